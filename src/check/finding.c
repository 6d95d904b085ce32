/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/finding.h"

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
    char *text, *json;
    size_t text_size, json_size;
    FILE *text_stream, *json_stream;
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

static bool open_streams(struct finding *finding)
{
    finding->text_stream = open_memstream(&finding->text, &finding->text_size);
    finding->json_stream = open_memstream(&finding->json, &finding->json_size);
    return finding->text_stream && finding->json_stream;
}

static void discard(struct finding *finding)
{
    if (finding->text_stream)
        fclose(finding->text_stream);
    if (finding->json_stream)
        fclose(finding->json_stream);
    free(finding->text);
    free(finding->json);
    free(finding);
}

struct finding *finding_begin(const char *rule, const char *format, ...)
{
    struct finding *finding = calloc(1, sizeof(*finding));
    char text[1024];
    va_list args;

    if (!finding)
        return NULL;
    if (!open_streams(finding)) {
        discard(finding);
        return NULL;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(finding->text_stream, "verbena[%d] %s: %s\n", (int)getpid(), rule, text);
    fprintf(finding->json_stream, "{\"rule\":");
    write_string(finding->json_stream, rule);
    fprintf(finding->json_stream, ",\"pid\":%d,\"program\":", (int)getpid());
    write_string(finding->json_stream, program_invocation_short_name);
    fprintf(finding->json_stream, ",\"text\":");
    write_string(finding->json_stream, text);
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
    fprintf(finding->text_stream, "  %s\n", text);
    fprintf(finding->json_stream, finding->notes++ ? "," : ",\"notes\":[");
    write_string(finding->json_stream, text);
}

static void end_notes(struct finding *finding)
{
    if (finding->notes && !finding->stacks)
        fputc(']', finding->json_stream);
}

static void print_line(struct finding *finding, const struct stacktrace_line *line, bool first)
{
    fprintf(finding->text_stream, "    %s", line->function);
    if (*line->file)
        fprintf(finding->text_stream, " at %s:%d\n", line->file, line->line);
    else
        fprintf(finding->text_stream, " in %s\n", line->object);
    fprintf(finding->json_stream, "%s{\"function\":", first ? "" : ",");
    write_string(finding->json_stream, line->function);
    fprintf(finding->json_stream, ",\"object\":");
    write_string(finding->json_stream, line->object);
    if (*line->file) {
        fprintf(finding->json_stream, ",\"file\":");
        write_string(finding->json_stream, line->file);
        fprintf(finding->json_stream, ",\"line\":%d", line->line);
    }
    fputc('}', finding->json_stream);
}

/* What called main() says nothing about the program. */
static bool is_last(const struct stacktrace_line *line)
{
    return !strcmp(line->function, "main") || !strcmp(line->function, "start_thread");
}

void finding_stack(struct finding *finding, const char *what, const struct stacktrace *trace)
{
    bool first = true;

    if (!finding || !trace->count)
        return;
    end_notes(finding);
    fprintf(finding->text_stream, "  %s:\n", what);
    fprintf(finding->json_stream, finding->stacks++ ? "," : ",\"stacks\":[");
    fprintf(finding->json_stream, "{\"what\":");
    write_string(finding->json_stream, what);
    fprintf(finding->json_stream, ",\"frames\":[");
    for (uint32_t i = 0; i < trace->count; i++) {
        struct stacktrace_line lines[LINES_PER_FRAME];
        int count = stacktrace_describe(trace->frames[i], lines, LINES_PER_FRAME);

        for (int line = 0; line < count; line++, first = false)
            print_line(finding, &lines[line], first);
        if (count && is_last(&lines[count - 1]))
            break;
    }
    fprintf(finding->json_stream, "]}");
}

static void write_all(int fd, const char *text, size_t size)
{
    while (size) {
        ssize_t done = write(fd, text, size);

        if (done < 0 && errno != EINTR)
            return;
        if (done > 0) {
            text += done;
            size -= done;
        }
    }
}

static void append_to_file(const struct finding *finding)
{
    const char *path = getenv("VERBENA_FINDINGS");
    int fd = path && *path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;

    if (fd < 0)
        return;
    write_all(fd, finding->json, finding->json_size);
    close(fd);
}

void finding_end(struct finding *finding)
{
    int saved = errno;

    if (!finding)
        return;
    end_notes(finding);
    fprintf(finding->json_stream, "%s}\n", finding->stacks ? "]" : "");
    fflush(finding->text_stream);
    fflush(finding->json_stream);
    write_all(STDERR_FILENO, finding->text, finding->text_size);
    append_to_file(finding);
    discard(finding);
    errno = saved;
}
