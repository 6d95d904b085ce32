/* SPDX-License-Identifier: BSD-2-Clause */
/* An option is one row: its name, argument, default, and where its value is stored. Parsing, help,
 * man pages and completion are made from the rows. */
#ifndef UTIL_OPTION_H
#define UTIL_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMBERS_MAX 256

enum option_kind {
    OPTION_FLAG,    /* bool */
    OPTION_NUMBER,  /* uint64_t; K, M and G are powers of 1024; restricted to 'choices' if set */
    OPTION_NUMBERS, /* struct number_list: "8,64K", "2..4M" doubles, "0..100:25" steps */
    OPTION_REAL,    /* double, not negative; maximum 0: unlimited */
    OPTION_CHOICE,  /* uint64_t, the index of the word */
    OPTION_CHOICES, /* uint64_t, one bit for each word of a comma-separated list */
    OPTION_NAME,    /* const char *, letters, digits, '_', '.' and '-' */
    OPTION_TEXT,    /* const char * */
    OPTION_PATH,    /* const char * */
};

struct number_list {
    unsigned int count;
    uint64_t value[NUMBERS_MAX];
};

struct option_row {
    const char *name;
    const char *argument;      /* as the help shows it */
    const char *default_value; /* used when the option is not given */
    const char *environment;   /* the library's variable that takes the value, if any */
    const char *choices;       /* words separated by blanks */
    const char *help;
    const char *heading; /* subject of this row and those behind it, for the help; NULL: as before */
    enum option_kind kind;
    char letter;       /* short form, if any */
    bool writes;       /* the value names a file that the command writes */
    bool takes_dash;   /* the value "-" is standard output */
    unsigned int tags; /* bits defined by the owner of the rows */
    uint64_t minimum;
    uint64_t maximum;
    size_t offset; /* of the value in the settings, for option_store() */
};

/* Checks the value and, unless 'base' is NULL, stores it at base + row->offset. Text is not copied.
 * Returns 0, or -1 with the reason in 'error'. */
int option_store(const struct option_row *row, const char *value, void *base, char *error,
                 size_t size);

/* The row called 'name' ('length' bytes), or NULL. A row without a name ends the table. */
const struct option_row *option_find(const struct option_row *rows, const char *name,
                                     size_t length);

/* The row that "--name", "--name=value" or "-x" selects, or NULL. */
const struct option_row *option_of_word(const struct option_row *rows, const char *word);

/* Says that 'word' is no option of these rows, and which option it may stand for. Rows with any of
 * the 'hidden' tags are not suggested. */
void option_unknown(const struct option_row *rows, unsigned int hidden, const char *word,
                    char *error, size_t size);

/* Stores the values of "--name value", "--name=value" and "-x value". Rows with any of the
 * 'hidden' tags are unknown options. Returns 0, or -1 with the reason in 'error'. */
int option_read_words(const struct option_row *rows, unsigned int hidden, int count, char **words,
                      void *base, char *error, size_t size);

/* Reads a number with an optional suffix and sets *end to the first byte behind it. False if there
 * is no number, or it exceeds 64 bits. */
bool option_read_number(const char *text, const char **end, uint64_t *out);

/* Formats a size with its suffix: 64K, not 65536. */
const char *option_number_text(uint64_t number, char *text, size_t size);

#endif
