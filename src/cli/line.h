/* SPDX-License-Identifier: BSD-2-Clause */
/* A command line, built word by word. */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include <stdio.h>

#define LINE_WORDS_MAX 1024

struct line {
    char *words[LINE_WORDS_MAX + 1]; /* ends with NULL; not owned */
    int count;
};

/* CLI_OK, or CLI_USAGE after printing an error if there are too many words. */
int line_add(struct line *line, const char *word);

/* Splits 'text' at blanks; it must live as long as the line. */
int line_add_text(struct line *line, char *text);

/* Prints a word, quoted for the shell. */
void line_put_word(FILE *out, const char *word);

#endif
