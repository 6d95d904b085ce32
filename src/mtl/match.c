/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/match.h"

#include "util/util.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_BUCKETS 64

/* All entries with one key, oldest first. An empty queue is removed. */
struct match_queue {
    struct match_key key;
    uint32_t hash;
    struct match_queue *next; /* in its bucket, or among the spare ones */
    struct match_link first;  /* head of a ring */
};

static uint32_t hash(const struct match_key *key)
{
    uint64_t word = (uint64_t)(uint32_t)key->source << 32 | (uint32_t)key->tag;

    word = (word ^ (uint64_t)key->context * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
    return word >> 32;
}

static bool same(const struct match_key *a, const struct match_key *b)
{
    return a->context == b->context && a->source == b->source && a->tag == b->tag;
}

static struct match_queue **bucket_of(const struct match_table *table, uint32_t hash)
{
    return &table->buckets[hash & (table->bucket_count - 1)];
}

static struct match_queue *find_queue(struct match_table *table, const struct match_key *key)
{
    struct match_queue *queue = table->recent;

    if (queue && same(&queue->key, key))
        return queue;
    for (queue = *bucket_of(table, hash(key)); queue && !same(&queue->key, key);)
        queue = queue->next;
    table->recent = queue;
    return queue;
}

static int table_init(struct match_table *table, uint32_t bucket_count)
{
    table->buckets = calloc(bucket_count, sizeof(struct match_queue *));
    table->bucket_count = bucket_count;
    table->queue_count = 0;
    table->recent = NULL;
    return table->buckets ? 0 : ENOMEM;
}

static void table_free(struct match_table *table)
{
    for (uint32_t i = 0; i < table->bucket_count; i++) {
        for (struct match_queue *queue = table->buckets[i], *next; queue; queue = next) {
            next = queue->next;
            free(queue);
        }
    }
    free(table->buckets);
}

/* Without memory the table keeps its size and becomes slower. */
static void table_grow(struct match_table *table)
{
    struct match_table larger;

    if (table_init(&larger, table->bucket_count * 2))
        return;
    for (uint32_t i = 0; i < table->bucket_count; i++) {
        for (struct match_queue *queue = table->buckets[i], *next; queue; queue = next) {
            struct match_queue **bucket = bucket_of(&larger, queue->hash);

            next = queue->next;
            queue->next = *bucket;
            *bucket = queue;
        }
    }
    larger.queue_count = table->queue_count;
    free(table->buckets);
    *table = larger;
}

static struct match_queue *new_queue(struct matching *matching, struct match_table *table,
                                     const struct match_key *key)
{
    struct match_queue *queue = matching->spare, **bucket;

    if (queue)
        matching->spare = queue->next;
    else
        queue = malloc(sizeof(*queue));
    if (!queue)
        return NULL;
    if (table->queue_count >= table->bucket_count)
        table_grow(table);
    queue->key = *key;
    queue->hash = hash(key);
    queue->first.next = queue->first.previous = &queue->first;
    bucket = bucket_of(table, queue->hash);
    queue->next = *bucket;
    *bucket = queue;
    table->queue_count++;
    table->recent = queue;
    return queue;
}

static void ring_add(struct match_link *head, struct match_link *link)
{
    link->next = head;
    link->previous = head->previous;
    link->previous->next = link;
    head->previous = link;
}

static void ring_remove(struct match_link *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
}

static int append(struct matching *matching, struct match_table *table, const struct match_key *key,
                  struct match_link *link)
{
    struct match_queue *queue = find_queue(table, key);

    if (!queue)
        queue = new_queue(matching, table, key);
    if (!queue)
        return ENOMEM;
    link->queue = queue;
    ring_add(&queue->first, link);
    return 0;
}

static void detach(struct matching *matching, struct match_table *table, struct match_link *link)
{
    struct match_queue *queue = link->queue, **at;

    ring_remove(link);
    link->queue = NULL;
    if (queue->first.next != &queue->first)
        return;
    for (at = bucket_of(table, queue->hash); *at != queue;)
        at = &(*at)->next;
    *at = queue->next;
    table->recent = NULL;
    table->queue_count--;
    queue->next = matching->spare;
    matching->spare = queue;
}

static int kind_of(const struct match_key *key)
{
    return (key->source == MATCH_ANY ? MATCH_ANY_SOURCE : 0) |
           (key->tag == MATCH_ANY ? MATCH_ANY_TAG : 0);
}

/* The key of a receive of that kind that would match. False if there is none. */
static bool with_wildcards(const struct match_key *key, int kind, struct match_key *out)
{
    *out = *key;
    if (kind & MATCH_ANY_SOURCE)
        out->source = MATCH_ANY;
    if (kind & MATCH_ANY_TAG)
        out->tag = MATCH_ANY;
    return !(kind & MATCH_ANY_TAG) || key->tag >= 0;
}

int match_init(struct matching *matching)
{
    *matching = (struct matching){ .indexed[MATCH_EXACT] = true };
    matching->all.next = matching->all.previous = &matching->all;
    if (table_init(&matching->receives, FIRST_BUCKETS))
        return ENOMEM;
    if (!table_init(&matching->messages, FIRST_BUCKETS))
        return 0;
    table_free(&matching->receives);
    return ENOMEM;
}

void match_free(struct matching *matching)
{
    table_free(&matching->receives);
    table_free(&matching->messages);
    for (struct match_queue *queue = matching->spare, *next; queue; queue = next) {
        next = queue->next;
        free(queue);
    }
}

int match_post(struct matching *matching, struct match_receive *receive)
{
    receive->order = matching->order++;
    if (append(matching, &matching->receives, &receive->key, &receive->link))
        return ENOMEM;
    matching->waiting[kind_of(&receive->key)]++;
    return 0;
}

void match_withdraw(struct matching *matching, struct match_receive *receive)
{
    detach(matching, &matching->receives, &receive->link);
    matching->waiting[kind_of(&receive->key)]--;
}

bool match_is_posted(const struct match_receive *receive)
{
    return receive->link.queue != NULL;
}

bool match_any_posted(const struct matching *matching)
{
    uint64_t count = 0;

    for (int kind = 0; kind < MATCH_KINDS; kind++)
        count += matching->waiting[kind];
    return count;
}

struct match_receive *match_arrived(struct matching *matching, const struct match_key *key)
{
    struct match_receive *oldest = NULL;

    for (int kind = 0; kind < MATCH_KINDS; kind++) {
        struct match_receive *receive;
        struct match_queue *queue;
        struct match_key asked;

        if (!matching->waiting[kind] || !with_wildcards(key, kind, &asked))
            continue;
        queue = find_queue(&matching->receives, &asked);
        if (!queue)
            continue;
        receive = container_of(queue->first.next, struct match_receive, link);
        if (!oldest || receive->order < oldest->order)
            oldest = receive;
    }
    if (oldest)
        match_withdraw(matching, oldest);
    return oldest;
}

static void forget_kind(struct matching *matching, struct match_message *message, int kind)
{
    detach(matching, &matching->messages, &message->link[kind]);
    message->kinds &= ~(1u << kind);
}

static void forget(struct matching *matching, struct match_message *message)
{
    while (message->kinds)
        forget_kind(matching, message, __builtin_ctz(message->kinds));
}

static int index_as(struct matching *matching, struct match_message *message, int kind)
{
    struct match_key key;

    if (!with_wildcards(&message->key, kind, &key))
        return 0;
    if (append(matching, &matching->messages, &key, &message->link[kind]))
        return ENOMEM;
    message->kinds |= 1u << kind;
    return 0;
}

int match_keep(struct matching *matching, struct match_message *message)
{
    message->kinds = 0;
    for (int kind = 0; kind < MATCH_KINDS; kind++) {
        if (matching->indexed[kind] && index_as(matching, message, kind)) {
            forget(matching, message);
            return ENOMEM;
        }
    }
    ring_add(&matching->all, &message->age);
    matching->unexpected++;
    return 0;
}

static struct match_message *message_of(struct match_link *age)
{
    return container_of(age, struct match_message, age);
}

/* Indexes messages by one more kind of key, on its first use: most programs use one kind, and the
 * other indexes would double the memory that a message touches. Without memory, the next call tries
 * again. */
static bool make_index(struct matching *matching, int kind)
{
    struct match_link *age;

    for (age = matching->all.next; age != &matching->all; age = age->next) {
        if (index_as(matching, message_of(age), kind))
            break;
    }
    matching->indexed[kind] = age == &matching->all;
    if (matching->indexed[kind])
        return true;
    while ((age = age->previous) != &matching->all) {
        if (message_of(age)->kinds & 1u << kind)
            forget_kind(matching, message_of(age), kind);
    }
    return false;
}

static struct match_message *search(struct matching *matching, const struct match_key *key)
{
    struct match_key asked;

    for (struct match_link *age = matching->all.next; age != &matching->all; age = age->next) {
        struct match_message *message = message_of(age);

        if (with_wildcards(&message->key, kind_of(key), &asked) && same(&asked, key))
            return message;
    }
    return NULL;
}

struct match_message *match_find(struct matching *matching, const struct match_key *key)
{
    const struct match_queue *queue;
    int kind = kind_of(key);

    if (!matching->unexpected)
        return NULL;
    if (!matching->indexed[kind] && !make_index(matching, kind))
        return search(matching, key);
    queue = find_queue(&matching->messages, key);
    if (!queue)
        return NULL;
    return container_of(queue->first.next - kind, struct match_message, link[0]);
}

void match_take(struct matching *matching, struct match_message *message)
{
    ring_remove(&message->age);
    forget(matching, message);
    matching->unexpected--;
}

void match_each_receive(struct matching *matching,
                        void (*call)(struct match_receive *receive, void *argument), void *argument)
{
    struct match_table *table = &matching->receives;

    for (uint32_t i = 0; i < table->bucket_count; i++) {
        for (struct match_queue *queue = table->buckets[i], *next_queue; queue;
             queue = next_queue) {
            struct match_link *last = queue->first.previous;
            bool more = true;

            next_queue = queue->next;
            for (struct match_link *link = queue->first.next, *next; more; link = next) {
                next = link->next;
                more = link != last;
                call(container_of(link, struct match_receive, link), argument);
            }
        }
    }
}
