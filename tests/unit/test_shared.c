/* SPDX-License-Identifier: BSD-2-Clause */
/* The inbox through which processes of one node send to each other. */

#include "mtl/protocol.h"
#include "mtl/shared.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- what the component has around it ---- */

struct mtl mtl;
struct vtime vtime;
static struct endpoint sender;
static unsigned arrived, with_more; /* messages; those behind which there was another one */
static char last_body[16];

uint64_t protocol_own_name(void)
{
    return 1ull << 32 | 7;
}

struct endpoint *endpoint_of_name(const opal_process_name_t *name)
{
    assert_int_equal(name->vpid, 7);
    return &sender;
}

void protocol_arrived(struct endpoint *endpoint, const struct wire_header *header, const void *body)
{
    arrived++;
    if (endpoint->shared)
        with_more += shared_has_more(endpoint->shared);
    memcpy(last_body, body, header->length);
}

uint32_t endpoint_message_length(const struct message *message)
{
    return message->body_length;
}

uint32_t endpoint_write_message(void *to, struct message *message)
{
    if (message->body_length)
        memcpy(to, message->body, message->body_length);
    return message->body_length;
}

/* ---- tests ---- */

static uint64_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Room for the head of the inbox, but not for a ring. */
static struct shared_peer *attach_without_memory(const struct address *address)
{
    struct rlimit had, little;

    assert_int_equal(getrlimit(RLIMIT_AS, &had), 0);
    little = (struct rlimit){ address_space() + 16 * PAGE, had.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
    struct shared_peer *peer = shared_attach(address);
    assert_int_equal(setrlimit(RLIMIT_AS, &had), 0);
    return peer;
}

static void send_word(struct shared_peer *peer, const char *word)
{
    struct message message = { .body = word, .body_length = strlen(word) + 1 };

    assert_true(shared_send(peer, &message));
}

static void an_attacher_that_fails_hides_no_other(void **state)
{
    struct address address = { .pid = getpid(), .inbox = shared_open(), .wake = -1 };

    assert_true(address.inbox >= 0);
    struct shared_peer *first = shared_attach(&address);
    assert_non_null(first);
    assert_null(attach_without_memory(&address));
    struct shared_peer *second = shared_attach(&address);
    assert_non_null(second);
    send_word(second, "second");
    assert_int_equal(shared_poll(), 1);
    assert_string_equal(last_body, "second");
    send_word(first, "first");
    assert_int_equal(shared_poll(), 1);
    assert_string_equal(last_body, "first");
    assert_int_equal(arrived, 2);
    shared_detach(first);
    shared_detach(second);
    shared_close();
}

/* It was killed after its claim, and has written nothing. */
static void an_attacher_that_dies_hides_no_other(void **state)
{
    struct address address = { .pid = getpid(), .inbox = shared_open(), .wake = -1 };
    const uint8_t claimed = 1;
    const off_t first_claim = sizeof(uint32_t);

    assert_true(address.inbox >= 0);
    assert_int_equal(pwrite(address.inbox, &claimed, 1, first_claim), 1);
    struct shared_peer *peer = shared_attach(&address);
    assert_non_null(peer);
    send_word(peer, "heard");
    assert_int_equal(shared_poll(), 1);
    assert_string_equal(last_body, "heard");
    shared_detach(peer);
    shared_close();
}

static void a_message_knows_of_the_next_one(void **state)
{
    struct address address = { .pid = getpid(), .inbox = shared_open() };

    assert_true(address.inbox >= 0);
    sender.shared = shared_attach(&address);
    assert_non_null(sender.shared);
    assert_false(shared_has_more(sender.shared));
    send_word(sender.shared, "one");
    send_word(sender.shared, "two");
    send_word(sender.shared, "three");
    assert_int_equal(shared_poll(), 3);
    assert_int_equal(with_more, 2);
    send_word(sender.shared, "four");
    assert_true(shared_has_more(sender.shared));
    assert_int_equal(shared_poll(), 1);
    assert_int_equal(with_more, 2);
    shared_detach(sender.shared);
    sender.shared = NULL;
    shared_close();
}

static void send_type(struct shared_peer *peer, enum wire_type type)
{
    struct message message = { .header = { .type = type } };

    assert_true(shared_send(peer, &message));
}

static void a_message_that_wants_an_answer_wakes_once(void **state)
{
    struct address address = { .pid = getpid(), .inbox = shared_open() };
    int wake[2];
    char byte;

    assert_int_equal(pipe2(wake, O_NONBLOCK), 0);
    address.wake = wake[1];
    struct shared_peer *peer = shared_attach(&address);
    assert_non_null(peer);
    send_type(peer, WIRE_RTS);
    assert_int_equal(read(wake[0], &byte, 1), -1);
    shared_arm();
    send_type(peer, WIRE_EAGER);
    assert_int_equal(read(wake[0], &byte, 1), -1);
    send_type(peer, WIRE_RTS);
    assert_int_equal(read(wake[0], &byte, 1), 1);
    send_type(peer, WIRE_CTS_FRAGMENTS);
    assert_int_equal(read(wake[0], &byte, 1), -1);
    shared_detach(peer);
    shared_close();
    close(wake[0]);
    close(wake[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attacher_that_fails_hides_no_other),
        cmocka_unit_test(an_attacher_that_dies_hides_no_other),
        cmocka_unit_test(a_message_knows_of_the_next_one),
        cmocka_unit_test(a_message_that_wants_an_answer_wakes_once),
    };

    return cmocka_run_group_tests_name("shared", tests, NULL, NULL);
}
