/* An option is one row: its name, what it takes, what holds without it, and where its value goes.
 * Parsing, help, man pages and completion are made from the rows. */
#ifndef UTIL_OPTION_H
#define UTIL_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMBERS_MAX 256

enum option_kind {
    OPTION_FLAG,    /* bool */
    OPTION_NUMBER,  /* uint64_t, K, M and G are powers of 1024; one of 'choices' if there are any */
    OPTION_NUMBERS, /* struct number_list: "8,64K", "2..4M" doubles, "0..100:25" steps */
    OPTION_REAL,    /* double, not negative; a maximum of 0 is none */
    OPTION_CHOICE,  /* uint64_t, the index of the word */
    OPTION_CHOICES, /* uint64_t, a bit for each word of a list with commas */
    OPTION_NAME,    /* const char *, letters, digits, '_', '.' and '-' */
    OPTION_TEXT,    /* const char * */
    OPTION_PATH,    /* const char * */
    OPTION_LATER,   /* a word of the command line that is reserved, and refused for now */
};

struct number_list {
    unsigned int count;
    uint64_t value[NUMBERS_MAX];
};

struct option_row {
    const char *name;
    const char *argument;    /* as the help shows it */
    const char *fallback;    /* what holds when it is not given */
    const char *environment; /* the variable of the library it goes to, if any */
    const char *choices;     /* words separated by blanks */
    const char *help;
    enum option_kind kind;
    char letter;       /* short form, if any */
    bool writes;       /* a file that the command writes */
    unsigned int tags; /* bits that mean something to whoever owns the rows */
    uint64_t minimum;
    uint64_t maximum;
    size_t offset; /* where the value goes, for option_store() */
};

/* Checks the value and, unless 'base' is NULL, stores it at base + row->offset. Text is not copied.
 * Returns 0, or -1 with what is wrong in 'error'. */
int option_store(const struct option_row *row, const char *value, void *base, char *error,
                 size_t size);

/* The row of that name (of the given length), or NULL. The rows end with one without a name. */
const struct option_row *option_find(const struct option_row *rows, const char *name,
                                     size_t length);

/* The row that "--name", "--name=value" or "-x" means, or NULL. */
const struct option_row *option_of_word(const struct option_row *rows, const char *word);

/* Stores the values of "--name value", "--name=value" and "-x value"; rows with any of the hidden
 * tags are not there. Returns 0, or -1 with what is wrong in 'error'. */
int option_read_words(const struct option_row *rows, unsigned int hidden, int count, char **words,
                      void *base, char *error, size_t size);

bool option_shown(const struct option_row *row);

/* Reads a number with an optional suffix; *end is where it stopped. False if there is none or it
 * does not fit. */
bool option_read_number(const char *text, const char **end, uint64_t *out);

/* Sizes as people write them: 64K, not 65536. */
const char *option_number_text(uint64_t number, char *text, size_t size);

#endif
