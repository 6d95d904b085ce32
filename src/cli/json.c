#include "json.h"

#include <stdio.h>

void json_print_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        unsigned char byte = *text;

        if (byte == '"' || byte == '\\')
            printf("\\%c", byte);
        else if (byte < 0x20)
            printf("\\u%04x", byte);
        else
            putchar(byte);
    }
    putchar('"');
}

void json_print_member(const char *name, const char *text, const char *end)
{
    json_print_string(name);
    fputs(": ", stdout);
    json_print_string(text);
    fputs(end, stdout);
}
