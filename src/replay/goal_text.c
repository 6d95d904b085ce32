/* SPDX-License-Identifier: BSD-2-Clause */
/* The text form, as LogGOPSim's txt2bin reads it:
 *
 *      num_ranks 2
 *      rank 0 {
 *      l1: calc 100 cpu 0
 *      l2: send 8b to 1 tag 5 cpu 0 nic 0
 *      l2 requires l1
 *      }
 *
 * Besides: ';' ends a line, too; labels may be used before they are defined; "tag", "cpu" and "nic"
 * come in any order. */
#include "replay/goal.h"

#include "util/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_CAPACITY 256
#define QUOTED         24 /* bytes of the text in messages */
#define NOTE_MAX       128

struct word {
    const char *at;
    size_t length;
};

/* An open hash table from labels of a rank to its operations. */
struct labels {
    uint32_t *slots; /* index + 1; 0: empty */
    uint64_t mask;
    uint32_t count;
};

struct named_dependency {
    struct word from, to;
    bool start;
};

struct parser {
    struct goal *goal;
    const char *at, *end;
    uint32_t rank; /* whose block this is */
    bool in_rank;  /* rather than between two of them */
    struct goal_op *ops;
    uint32_t op_count;
    uint64_t op_capacity;
    struct named_dependency *named;
    uint64_t named_count, named_capacity;
    struct goal_note *notes;
    uint64_t note_count, note_capacity;
    struct labels labels;
    char *error;
    size_t size;
};

/* ---- places in the text ---- */

uint32_t goal_text_line(const struct goal *goal, uint64_t where)
{
    uint32_t line = 1;

    for (uint64_t i = 0; i < where && i < goal->length; i++)
        line += goal->text[i] == '\n';
    return line;
}

static int fail_at(struct parser *parser, const char *at, const char *expected)
{
    uint32_t line = goal_text_line(parser->goal, at - parser->goal->text);
    uint32_t length = 0;
    char of_rank[32] = "";

    while (length < QUOTED && at + length < parser->end && at[length] >= ' ' && at[length] < 127)
        length++;
    if (parser->in_rank)
        snprintf(of_rank, sizeof(of_rank), "rank %u, ", parser->rank);
    if (at == parser->end)
        return goal_fail(parser->error, parser->size,
                         "%sline %u: the file ends, expected %s: is it truncated?", of_rank, line,
                         expected);
    if (!length)
        return goal_fail(parser->error, parser->size, "%sline %u: the line ends, expected %s",
                         of_rank, line, expected);
    return goal_fail(parser->error, parser->size, "%sline %u: '%.*s': expected %s%s", of_rank, line,
                     (int)length, at, expected,
                     at + length == parser->end ? ", and the file ends: is it truncated?" : "");
}

static int fail_memory(struct parser *parser)
{
    return goal_fail(parser->error, parser->size, "out of memory after %u operations of rank %u",
                     parser->op_count, parser->rank);
}

/* ---- words ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_in_word(char c)
{
    return is_letter(c) || is_digit(c) || c == '_';
}

size_t goal_text_word(const struct goal *goal, uint64_t where)
{
    size_t length = 0;

    while (where + length < goal->length && is_in_word(goal->text[where + length]))
        length++;
    return length;
}

static void skip_blanks(struct parser *parser)
{
    while (parser->at < parser->end && (*parser->at == ' ' || *parser->at == '\t'))
        parser->at++;
}

static bool starts_with(const struct parser *parser, const char *text)
{
    size_t length = strlen(text);

    return (size_t)(parser->end - parser->at) >= length && !memcmp(parser->at, text, length);
}

/* The array with room for one more element; NULL if out of memory. */
static void *grow(void *array, uint64_t count, uint64_t *capacity, size_t element)
{
    uint64_t larger = *capacity ? *capacity * 2 : FIRST_CAPACITY;
    void *grown;

    if (count < *capacity)
        return array;
    grown = realloc(array, larger * element);
    if (grown)
        *capacity = larger;
    return grown;
}

/* Reads a class of communication. Returns the text behind it, or NULL if there is none. */
static const char *read_class(const char *text, enum rails_class *class)
{
    for (int i = 0; i < RAILS_CLASSES; i++) {
        size_t length = strlen(rails_class_names[i]);

        if (strncmp(text, rails_class_names[i], length) || (text[length] && text[length] != ','))
            continue;
        *class = i;
        return text + length + strspn(text + length, ", ");
    }
    return NULL;
}

/* What holds for the whole schedule. */
static void read_general_note(struct goal *goal, const char *text)
{
    goal->connects |= !strcmp(text, RECORD_CONNECTS);
    if (!strncmp(text, RECORD_SENDS_ARE, strlen(RECORD_SENDS_ARE)))
        read_class(text + strlen(RECORD_SENDS_ARE), &goal->class);
}

/* What a recording tells that GOAL has no words for, in comments: see mtl/record_notes.h. */
static int read_note(struct parser *parser, const char *comment)
{
    struct goal_note note = { .op = parser->op_count - 1 };
    struct record_memory *memory = &note.memory;
    char line[NOTE_MAX] = "";
    const char *text = line + strlen(RECORD_COMMENT), *rest;
    struct goal_note *notes;
    enum rails_class class;

    memcpy(line, comment,
           parser->at - comment < NOTE_MAX - 1 ? parser->at - comment : NOTE_MAX - 1);
    if (!parser->op_count) {
        read_general_note(parser->goal, line);
        return 0;
    }
    if (strncmp(line, RECORD_COMMENT, strlen(RECORD_COMMENT)))
        return 0;
    rest = read_class(text, &class);
    if (rest)
        parser->ops[note.op].class = class;
    if (sscanf(rest ? rest : text, RECORD_AT RECORD_MEMORY, &memory->address, &memory->registered,
               &memory->first.regions, &memory->first.bytes, &memory->last.regions,
               &memory->last.bytes) < 1)
        return 0;
    notes = grow(parser->notes, parser->note_count, &parser->note_capacity, sizeof(note));
    if (!notes)
        return fail_memory(parser);
    parser->notes = notes;
    parser->notes[parser->note_count++] = note;
    return 0;
}

/* Skips blanks, ends of lines and comments. */
static int skip_space(struct parser *parser)
{
    while (parser->at < parser->end) {
        const char *begin = parser->at;

        if (strchr(" \t\r\n;", *begin) && *begin) {
            parser->at++;
        } else if (starts_with(parser, "//")) {
            while (parser->at < parser->end && *parser->at != '\n')
                parser->at++;
            if (read_note(parser, begin))
                return -1;
        } else if (starts_with(parser, "/*")) {
            while (parser->at < parser->end && !starts_with(parser, "*/"))
                parser->at++;
            if (parser->at == parser->end)
                return fail_at(parser, begin, "an end of this comment");
            parser->at += 2;
        } else {
            break;
        }
    }
    return 0;
}

static bool read_word(struct parser *parser, struct word *word)
{
    skip_blanks(parser);
    if (parser->at == parser->end || !is_letter(*parser->at))
        return false;
    *word =
        (struct word){ parser->at, goal_text_word(parser->goal, parser->at - parser->goal->text) };
    parser->at += word->length;
    return true;
}

static bool is(const struct word *word, const char *text)
{
    return word->length == strlen(text) && !memcmp(word->at, text, word->length);
}

static int read_number(struct parser *parser, uint64_t maximum, uint64_t *value)
{
    const char *begin;

    skip_blanks(parser);
    begin = parser->at;
    *value = 0;
    while (parser->at < parser->end && is_digit(*parser->at)) {
        unsigned digit = *parser->at - '0';

        if (*value > (maximum - digit) / 10)
            return fail_at(parser, begin, "a smaller number");
        *value = *value * 10 + digit;
        parser->at++;
    }
    return parser->at == begin ? fail_at(parser, begin, "a number") : 0;
}

/* A number, or -1 for any. */
static int read_number_or_any(struct parser *parser, uint32_t *value)
{
    uint64_t number;

    skip_blanks(parser);
    if (starts_with(parser, "-1")) {
        parser->at += 2;
        *value = GOAL_ANY;
        return 0;
    }
    if (read_number(parser, GOAL_ANY - 1, &number))
        return -1;
    *value = number;
    return 0;
}

static int expect_word(struct parser *parser, const char *text)
{
    const char *before;
    struct word word;

    skip_blanks(parser);
    before = parser->at;
    return read_word(parser, &word) && is(&word, text) ? 0 : fail_at(parser, before, text);
}

static int expect_line_end(struct parser *parser)
{
    skip_blanks(parser);
    if (parser->at == parser->end || strchr("\r\n;}", *parser->at) || starts_with(parser, "//") ||
        starts_with(parser, "/*"))
        return 0;
    return fail_at(parser, parser->at, "the end of the line");
}

/* ---- labels ---- */

static uint32_t hash(const struct word *word)
{
    uint32_t value = 2166136261u;

    for (size_t i = 0; i < word->length; i++)
        value = (value ^ (uint8_t)word->at[i]) * 16777619u;
    return value ^ value >> 15;
}

static bool has_label(const struct parser *parser, uint32_t op, const struct word *label)
{
    const char *at = parser->goal->text + parser->ops[op].where;

    return (size_t)(parser->end - at) >= label->length && !memcmp(at, label->at, label->length) &&
           (at + label->length == parser->end || !is_in_word(at[label->length]));
}

/* The slot of the label, or the empty one where it belongs. */
static uint32_t *find_label(const struct parser *parser, const struct word *label)
{
    const struct labels *labels = &parser->labels;

    for (uint32_t i = hash(label);; i++) {
        uint32_t *slot = &labels->slots[i & labels->mask];

        if (!*slot || has_label(parser, *slot - 1, label))
            return slot;
    }
}

static bool grow_labels(struct parser *parser)
{
    struct labels *labels = &parser->labels, old = *labels;
    uint64_t size = old.slots ? (old.mask + 1) * 2 : 2 * FIRST_CAPACITY;

    if (old.slots && labels->count < size / 4)
        return true;
    labels->slots = calloc(size, sizeof(*labels->slots));
    if (!labels->slots) {
        *labels = old;
        return false;
    }
    labels->mask = size - 1;
    for (uint64_t i = 0; old.slots && i <= old.mask; i++) {
        struct word word;
        uint64_t where;

        if (!old.slots[i])
            continue;
        where = parser->ops[old.slots[i] - 1].where;
        word = (struct word){ parser->goal->text + where, goal_text_word(parser->goal, where) };
        *find_label(parser, &word) = old.slots[i];
    }
    free(old.slots);
    return true;
}

static int add_label(struct parser *parser, const struct word *label)
{
    uint32_t *slot;

    if (!grow_labels(parser))
        return fail_memory(parser);
    slot = find_label(parser, label);
    if (*slot)
        return goal_fail(parser->error, parser->size,
                         "line %u: rank %u has the label %.*s already, on line %u",
                         goal_text_line(parser->goal, label->at - parser->goal->text), parser->rank,
                         label->length < QUOTED ? (int)label->length : QUOTED, label->at,
                         goal_text_line(parser->goal, parser->ops[*slot - 1].where));
    *slot = parser->op_count + 1;
    parser->labels.count++;
    return 0;
}

/* ---- operations ---- */

static int read_options(struct parser *parser, struct goal_op *op)
{
    struct word word;
    uint64_t number;

    for (;;) {
        const char *before = parser->at;

        if (!read_word(parser, &word))
            return expect_line_end(parser);
        if (is(&word, "tag") && op->kind != GOAL_CALC) {
            if (read_number_or_any(parser, &op->tag))
                return -1;
        } else if (is(&word, "cpu")) {
            if (read_number(parser, UINT8_MAX, &number))
                return -1;
            op->cpu = number;
        } else if (is(&word, "nic") && op->kind != GOAL_CALC) {
            if (read_number(parser, UINT8_MAX, &number))
                return -1;
            op->nic = number;
        } else {
            return fail_at(parser, word.at > before ? word.at : before,
                           op->kind == GOAL_CALC ? "cpu or the end of the line"
                                                 : "tag, cpu, nic or the end of the line");
        }
    }
}

static int read_message(struct parser *parser, struct goal_op *op)
{
    uint64_t number;

    if (expect_word(parser, "b") || expect_word(parser, op->kind == GOAL_SEND ? "to" : "from"))
        return -1;
    if (op->kind == GOAL_RECV)
        return read_number_or_any(parser, &op->peer);
    if (read_number(parser, GOAL_ANY - 1, &number))
        return -1;
    op->peer = number;
    return 0;
}

static int read_op(struct parser *parser, const struct word *verb, const char *where)
{
    struct goal_op op = { .where = where - parser->goal->text, .class = parser->goal->class };
    void *ops;

    op.kind = is(verb, "send") ? GOAL_SEND : is(verb, "recv") ? GOAL_RECV : GOAL_CALC;
    if (read_number(parser, INT64_MAX, &op.size))
        return -1;
    if (op.kind != GOAL_CALC && read_message(parser, &op))
        return -1;
    if (read_options(parser, &op))
        return -1;
    if (parser->op_count == GOAL_OPS_MAX)
        return goal_fail(parser->error, parser->size, "rank %u has more than %u operations",
                         parser->rank, GOAL_OPS_MAX);
    ops = grow(parser->ops, parser->op_count, &parser->op_capacity, sizeof(op));
    if (!ops)
        return fail_memory(parser);
    parser->ops = ops;
    parser->ops[parser->op_count++] = op;
    return 0;
}

static bool is_verb(const struct word *word)
{
    return is(word, "send") || is(word, "recv") || is(word, "calc");
}

static int read_dependency(struct parser *parser, const struct word *label, bool start)
{
    struct named_dependency *named;
    struct word required;

    if (!read_word(parser, &required))
        return fail_at(parser, parser->at, "a label");
    named = grow(parser->named, parser->named_count, &parser->named_capacity, sizeof(*named));
    if (!named)
        return fail_memory(parser);
    parser->named = named;
    named[parser->named_count++] =
        (struct named_dependency){ .from = required, .to = *label, .start = start };
    return expect_line_end(parser);
}

static int read_line(struct parser *parser)
{
    struct word first, second;
    const char *before;

    if (!read_word(parser, &first))
        return fail_at(parser, parser->at, "a label, send, recv, calc or '}'");
    if (is_verb(&first))
        return read_op(parser, &first, first.at);
    skip_blanks(parser);
    before = parser->at;
    if (parser->at < parser->end && *parser->at == ':') {
        parser->at++;
        skip_blanks(parser);
        before = parser->at;
        if (!read_word(parser, &second) || !is_verb(&second))
            return fail_at(parser, before, "send, recv or calc");
        if (add_label(parser, &first))
            return -1;
        return read_op(parser, &second, first.at);
    }
    if (!read_word(parser, &second) || (!is(&second, "requires") && !is(&second, "irequires")))
        return fail_at(parser, before, "':', requires or irequires");
    return read_dependency(parser, &first, is(&second, "irequires"));
}

/* ---- ranks ---- */

static int resolve(struct parser *parser, const struct word *label, uint32_t *op)
{
    uint32_t found = parser->labels.slots ? *find_label(parser, label) : 0;

    *op = found - 1;
    if (found)
        return 0;
    return goal_fail(parser->error, parser->size, "line %u: rank %u has no label %.*s",
                     goal_text_line(parser->goal, label->at - parser->goal->text), parser->rank,
                     label->length < QUOTED ? (int)label->length : QUOTED, label->at);
}

static int link_rank(struct parser *parser)
{
    struct goal_rank *rank = &parser->goal->ranks[parser->rank];
    struct goal_dependency *dependencies =
        malloc((parser->named_count + 1) * sizeof(*dependencies));
    int status = dependencies ? 0 : fail_memory(parser);

    for (uint64_t i = 0; !status && i < parser->named_count; i++) {
        const struct named_dependency *named = &parser->named[i];

        status = resolve(parser, &named->to, &dependencies[i].to);
        if (!status)
            status = resolve(parser, &named->from, &dependencies[i].from);
        dependencies[i].to |= named->start ? GOAL_EDGE_START : 0;
    }
    if (!status && goal_link(rank, dependencies, parser->named_count))
        status = fail_memory(parser);
    free(dependencies);
    return status;
}

/* The operations move to the rank, with one more that ends the edges. */
static int end_rank(struct parser *parser)
{
    struct goal_rank *rank = &parser->goal->ranks[parser->rank];
    struct goal_op *ops = realloc(parser->ops, (parser->op_count + 1ull) * sizeof(*ops));
    int status;

    if (!ops)
        return fail_memory(parser);
    ops[parser->op_count] = (struct goal_op){ 0 };
    parser->ops = rank->ops = ops;
    rank->count = parser->op_count;
    status = link_rank(parser);
    parser->ops = NULL;
    parser->op_count = parser->op_capacity = 0;
    parser->named_count = 0;
    rank->notes = parser->notes;
    rank->note_count = parser->note_count;
    parser->notes = NULL;
    parser->note_count = parser->note_capacity = 0;
    free(parser->labels.slots);
    parser->labels = (struct labels){ 0 };
    return status;
}

static int read_rank(struct parser *parser)
{
    const char *before = parser->at;
    uint64_t number;

    if (read_number(parser, UINT64_MAX - 9, &number))
        return -1;
    if (number >= parser->goal->rank_count)
        return goal_fail(parser->error, parser->size,
                         "line %u: rank %" PRIu64 " is out of range, num_ranks is %u",
                         goal_text_line(parser->goal, before - parser->goal->text), number,
                         parser->goal->rank_count);
    if (parser->goal->ranks[number].ops)
        return goal_fail(parser->error, parser->size,
                         "line %u: the file has a schedule for rank %" PRIu64 " already",
                         goal_text_line(parser->goal, before - parser->goal->text), number);
    parser->rank = number;
    skip_blanks(parser);
    if (parser->at == parser->end || *parser->at != '{')
        return fail_at(parser, parser->at, "'{'");
    parser->at++;
    parser->in_rank = true;
    for (;;) {
        if (skip_space(parser))
            return -1;
        if (parser->at == parser->end)
            return goal_fail(parser->error, parser->size,
                             "the file ends within rank %u: is it truncated?", parser->rank);
        if (*parser->at == '}')
            break;
        if (read_line(parser))
            return -1;
    }
    parser->at++;
    parser->in_rank = false;
    return end_rank(parser);
}

static int read_all(struct parser *parser)
{
    for (;;) {
        struct word word;
        uint64_t count;

        if (skip_space(parser))
            return -1;
        if (parser->at == parser->end)
            break;
        if (!read_word(parser, &word))
            return fail_at(parser, parser->at, "num_ranks or rank");
        if (is(&word, "num_ranks") && !parser->goal->ranks) {
            if (read_number(parser, UINT64_MAX - 9, &count))
                return -1;
            if (count > parser->goal->length)
                return goal_fail(parser->error, parser->size,
                                 "num_ranks is %" PRIu64 ", but a file of %zu bytes has no room "
                                 "for so many: is it truncated?",
                                 count, parser->goal->length);
            if (goal_make_ranks(parser->goal, count, parser->error, parser->size))
                return -1;
        } else if (is(&word, "rank") && parser->goal->ranks) {
            if (read_rank(parser))
                return -1;
        } else {
            return fail_at(parser, word.at,
                           parser->goal->ranks ? "rank" : "num_ranks, and then ranks");
        }
    }
    if (!parser->goal->ranks)
        return goal_fail(parser->error, parser->size, "no schedule: num_ranks is missing");
    return 0;
}

int goal_text_parse(struct goal *goal, char *error, size_t size)
{
    struct parser parser = { .goal = goal,
                             .at = goal->text,
                             .end = goal->text + goal->length,
                             .error = error,
                             .size = size };
    int status = read_all(&parser);

    free(parser.ops);
    free(parser.named);
    free(parser.notes);
    free(parser.labels.slots);
    return status;
}
