/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/finding.h"

#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES_PER_FRAME 8

struct finding {
    struct file_text text, json;
    unsigned notes, stacks;
};

static void write_string(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (; *text; text++) {
        unsigned char byte = *text;

        if (byte == '"' || byte == '\\')
            fprintf(stream, "\\%c", byte);
        else if (byte < 0x20)
            fprintf(stream, "\\u%04x", byte);
        else
            fputc(byte, stream);
    }
    fputc('"', stream);
}

struct finding *finding_begin(const char *rule, const char *format, ...)
{
    struct finding *finding = calloc(1, sizeof(*finding));
    char text[1024];
    va_list args;

    if (!finding || !file_begin(&finding->text)) {
        free(finding);
        return NULL;
    }
    if (!file_begin(&finding->json)) {
        file_drop(&finding->text);
        free(finding);
        return NULL;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(finding->text.stream, "verbena[%d] %s: %s\n", (int)getpid(), rule, text);
    fprintf(finding->json.stream, "{\"rule\":");
    write_string(finding->json.stream, rule);
    fprintf(finding->json.stream, ",\"pid\":%d,\"program\":", (int)getpid());
    write_string(finding->json.stream, program_invocation_short_name);
    fprintf(finding->json.stream, ",\"text\":");
    write_string(finding->json.stream, text);
    return finding;
}

void finding_note(struct finding *finding, const char *format, ...)
{
    char text[1024];
    va_list args;

    if (!finding || finding->stacks)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(finding->text.stream, "  %s\n", text);
    fprintf(finding->json.stream, finding->notes++ ? "," : ",\"notes\":[");
    write_string(finding->json.stream, text);
}

static void end_notes(struct finding *finding)
{
    if (finding->notes && !finding->stacks)
        fputc(']', finding->json.stream);
}

static void print_line(struct finding *finding, const struct stacktrace_line *line, bool first)
{
    fprintf(finding->text.stream, "    %s", line->function);
    if (*line->file)
        fprintf(finding->text.stream, " at %s:%d\n", line->file, line->line);
    else
        fprintf(finding->text.stream, " in %s\n", line->object);
    fprintf(finding->json.stream, "%s{\"function\":", first ? "" : ",");
    write_string(finding->json.stream, line->function);
    fprintf(finding->json.stream, ",\"object\":");
    write_string(finding->json.stream, line->object);
    if (*line->file) {
        fprintf(finding->json.stream, ",\"file\":");
        write_string(finding->json.stream, line->file);
        fprintf(finding->json.stream, ",\"line\":%d", line->line);
    }
    fputc('}', finding->json.stream);
}

void finding_stack(struct finding *finding, const char *what, const struct stacktrace *trace)
{
    struct stacktrace shown = *trace;
    bool first = true;

    if (!finding || !trace->count)
        return;
    stacktrace_trim(&shown);
    end_notes(finding);
    fprintf(finding->text.stream, "  %s:\n", what);
    fprintf(finding->json.stream, finding->stacks++ ? "," : ",\"stacks\":[");
    fprintf(finding->json.stream, "{\"what\":");
    write_string(finding->json.stream, what);
    fprintf(finding->json.stream, ",\"frames\":[");
    for (uint32_t i = 0; i < shown.count; i++) {
        struct stacktrace_line lines[LINES_PER_FRAME];
        int count = stacktrace_describe(shown.frames[i], lines, LINES_PER_FRAME);

        for (int line = 0; line < count; line++, first = false)
            print_line(finding, &lines[line], first);
    }
    fprintf(finding->json.stream, "]}");
}

static void append_to_file(const struct file_text *json)
{
    const char *path = getenv("VERBENA_FINDINGS");
    int fd = path && *path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;

    if (fd < 0)
        return;
    file_append(fd, json->text, json->size);
    close(fd);
}

void finding_end(struct finding *finding)
{
    int saved = errno;

    if (!finding)
        return;
    end_notes(finding);
    fprintf(finding->json.stream, "%s}\n", finding->stacks ? "]" : "");
    if (!fflush(finding->text.stream) && !fflush(finding->json.stream)) {
        file_append(STDERR_FILENO, finding->text.text, finding->text.size);
        append_to_file(&finding->json);
    }
    file_drop(&finding->text);
    file_drop(&finding->json);
    free(finding);
    errno = saved;
}
