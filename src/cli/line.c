/* SPDX-License-Identifier: BSD-2-Clause */
#include "line.h"
#include "options.h"

#include <string.h>

int line_add(struct line *line, const char *word)
{
    if (line->count == LINE_WORDS_MAX) {
        cli_error("command line exceeds %d words", LINE_WORDS_MAX);
        return CLI_USAGE;
    }
    line->words[line->count++] = (char *)word;
    line->words[line->count] = NULL;
    return CLI_OK;
}

int line_add_text(struct line *line, char *text)
{
    char *rest;

    for (char *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (line_add(line, word))
            return CLI_USAGE;
    }
    return CLI_OK;
}

void line_put_word(FILE *out, const char *word)
{
    if (*word && !strpbrk(word, " \t\n;<>&|$`'\"\\*?[]()#~!{}")) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){ *word, '\0' }, out);
    fputc('\'', out);
}
