/* SPDX-License-Identifier: BSD-2-Clause */
/* Matching against a list that is searched from its beginning, and its cost with many messages. */
#include "mtl/match.h"
#include "util/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

#define STEPS   200000
#define SOURCES 4
#define TAGS    4

/* What is posted or kept, oldest first. */
struct list {
    struct match_key keys[STEPS];
    void *objects[STEPS];
    uint32_t count;
};

static bool takes(const struct match_key *receive, const struct match_key *message)
{
    return receive->context == message->context &&
           (receive->source == MATCH_ANY || receive->source == message->source) &&
           (receive->tag == message->tag || (receive->tag == MATCH_ANY && message->tag >= 0));
}

static void list_add(struct list *list, const struct match_key *key, void *object)
{
    list->keys[list->count] = *key;
    list->objects[list->count++] = object;
}

static void list_remove(struct list *list, uint32_t place)
{
    list->count--;
    for (uint32_t i = place; i < list->count; i++) {
        list->keys[i] = list->keys[i + 1];
        list->objects[i] = list->objects[i + 1];
    }
}

static struct match_key random_message(unsigned int *seed)
{
    int tag = rand_r(seed) % (TAGS + 1);

    return (struct match_key){ rand_r(seed) % 2, rand_r(seed) % SOURCES, tag == TAGS ? -20 : tag };
}

static struct match_key random_receive(unsigned int *seed)
{
    struct match_key key = random_message(seed);

    if (rand_r(seed) % 3 == 0)
        key.source = MATCH_ANY;
    if (rand_r(seed) % 3 == 0)
        key.tag = MATCH_ANY;
    return key;
}

static void message_comes(struct matching *matching, struct list *posted, struct list *kept,
                          const struct match_key *key)
{
    struct match_receive *found = match_arrived(matching, key);
    struct match_message *message;
    uint32_t i = 0;

    while (i < posted->count && !takes(&posted->keys[i], key))
        i++;
    assert_ptr_equal(found, i < posted->count ? posted->objects[i] : NULL);
    if (found) {
        list_remove(posted, i);
        free(found);
        return;
    }
    message = malloc(sizeof(*message));
    message->key = *key;
    assert_int_equal(match_keep(matching, message), 0);
    list_add(kept, key, message);
}

static void receive_comes(struct matching *matching, struct list *posted, struct list *kept,
                          const struct match_key *key)
{
    struct match_message *found = match_find(matching, key);
    struct match_receive *receive;
    uint32_t i = 0;

    while (i < kept->count && !takes(key, &kept->keys[i]))
        i++;
    assert_ptr_equal(found, i < kept->count ? kept->objects[i] : NULL);
    if (found) {
        match_take(matching, found);
        list_remove(kept, i);
        free(found);
        return;
    }
    receive = malloc(sizeof(*receive));
    receive->key = *key;
    assert_int_equal(match_post(matching, receive), 0);
    list_add(posted, key, receive);
}

static void withdraw_one(struct matching *matching, struct list *posted, uint32_t place)
{
    struct match_receive *receive = posted->objects[place];

    assert_true(match_is_posted(receive));
    match_withdraw(matching, receive);
    assert_false(match_is_posted(receive));
    list_remove(posted, place);
    free(receive);
}

static void empty(struct matching *matching, struct list *posted, struct list *kept)
{
    while (posted->count)
        withdraw_one(matching, posted, 0);
    while (kept->count) {
        match_take(matching, kept->objects[0]);
        free(kept->objects[0]);
        list_remove(kept, 0);
    }
}

static void test_like_a_list(void **state)
{
    struct list *posted = calloc(1, sizeof(*posted)), *kept = calloc(1, sizeof(*kept));
    struct matching matching;
    unsigned int seed = 1;

    assert_int_equal(match_init(&matching), 0);
    for (int step = 0; step < STEPS; step++) {
        /* Now more receives, now more messages, so that both lists fill and drain. */
        bool receiving = rand_r(&seed) % 100 < (step / 200 % 2 ? 60 : 40);
        struct match_key key = receiving ? random_receive(&seed) : random_message(&seed);

        if (receiving)
            receive_comes(&matching, posted, kept, &key);
        else
            message_comes(&matching, posted, kept, &key);
        if (posted->count && rand_r(&seed) % 20 == 0)
            withdraw_one(&matching, posted, rand_r(&seed) % posted->count);
        assert_int_equal(match_any_posted(&matching), posted->count > 0);
        assert_int_equal(matching.unexpected, kept->count);
    }
    empty(&matching, posted, kept);
    assert_int_equal(matching.receives.queue_count, 0);
    assert_int_equal(matching.messages.queue_count, 0);
    match_free(&matching);
    free(posted);
    free(kept);
}

static void withdraw_all(struct match_receive *receive, void *matching)
{
    match_withdraw(matching, receive);
}

static void test_each_receive_once(void **state)
{
    struct match_receive receives[300];
    struct matching matching;

    assert_int_equal(match_init(&matching), 0);
    for (uint32_t i = 0; i < ARRAY_SIZE(receives); i++) {
        receives[i].key = (struct match_key){ 0, i % 7, i % 3 ? MATCH_ANY : (int)i % 100 };
        assert_int_equal(match_post(&matching, &receives[i]), 0);
    }
    match_each_receive(&matching, withdraw_all, &matching);
    for (uint32_t i = 0; i < ARRAY_SIZE(receives); i++)
        assert_false(match_is_posted(&receives[i]));
    match_free(&matching);
}

/* Ways of asking that nobody has used before find what has come until then. */
static void test_wildcards_come_late(void **state)
{
    static const struct match_key asked[] = { { 0, MATCH_ANY, 7 },
                                              { 0, 3, MATCH_ANY },
                                              { 0, MATCH_ANY, MATCH_ANY } };
    static const uint32_t oldest[] = { 7, 3, 1 };
    struct match_message messages[300];
    struct matching matching;

    assert_int_equal(match_init(&matching), 0);
    for (uint32_t i = 0; i < ARRAY_SIZE(messages); i++) {
        messages[i].key = (struct match_key){ 0, i % 4, i % 10 ? (int)i % 10 : -20 - (int)i };
        assert_int_equal(match_keep(&matching, &messages[i]), 0);
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(asked); i++) {
        assert_ptr_equal(match_find(&matching, &asked[i]), &messages[oldest[i]]);
        match_take(&matching, &messages[oldest[i]]);
        assert_ptr_not_equal(match_find(&matching, &asked[i]), &messages[oldest[i]]);
    }
    match_free(&matching);
}

/* Nanoseconds to find and take the newest of so many messages, each with a tag of its own. */
static double cost_of_newest(uint32_t count)
{
    struct match_message *messages = calloc(count, sizeof(*messages));
    struct matching matching;
    uint64_t start;

    assert_int_equal(match_init(&matching), 0);
    for (uint32_t i = 0; i < count; i++) {
        messages[i].key = (struct match_key){ 0, 1, i };
        assert_int_equal(match_keep(&matching, &messages[i]), 0);
    }
    start = now_ns();
    for (uint32_t i = count; i-- > 0;) {
        struct match_key key = { 0, i % 2 ? 1 : MATCH_ANY, i };

        assert_ptr_equal(match_find(&matching, &key), &messages[i]);
        match_take(&matching, &messages[i]);
    }
    match_free(&matching);
    free(messages);
    return (double)(now_ns() - start) / count;
}

static void test_cost_does_not_grow_with_number(void **state)
{
    double few = cost_of_newest(1000), many = cost_of_newest(50000);

    /* Searching a list would take fifty times as long; caches may cost a few. */
    assert_true(many < few * 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like_a_list),
        cmocka_unit_test(test_each_receive_once),
        cmocka_unit_test(test_wildcards_come_late),
        cmocka_unit_test(test_cost_does_not_grow_with_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
