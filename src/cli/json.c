#include "json.h"

#include <stdio.h>

void print_json_string(const char *text)
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

void print_json_member(const char *name, const char *text, const char *end)
{
    print_json_string(name);
    fputs(": ", stdout);
    print_json_string(text);
    fputs(end, stdout);
}
