/* A command line that is put together word by word. */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include <stdio.h>

#define LINE_WORDS_MAX 1024

struct line {
    char *words[LINE_WORDS_MAX + 1]; /* ends with NULL; they belong to others */
    int count;
};

/* CLI_OK, or CLI_USAGE having said that there are too many. */
int line_add(struct line *line, const char *word);

/* Cuts 'text' at blanks; it has to live as long as the line. */
int line_add_text(struct line *line, char *text);

/* A word as a shell takes it. */
void line_put_word(FILE *out, const char *word);

#endif
