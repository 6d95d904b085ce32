#ifndef CLI_JSON_H
#define CLI_JSON_H

/* Prints a string in quotes, escaped. */
void print_json_string(const char *text);
void print_json_member(const char *name, const char *text, const char *end);

#endif
