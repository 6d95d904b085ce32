#ifndef CLI_JSON_H
#define CLI_JSON_H

/* Prints a string in quotes, escaped. */
void json_print_string(const char *text);
void json_print_member(const char *name, const char *text, const char *end);

#endif
