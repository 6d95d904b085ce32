/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/cm.h"

#include "cm/device.h"
#include "cm/mad_agent.h"
#include "hca/notify.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;
static bool shared_held;
static int cancel_state;

static struct cm_id **table;
static uint32_t table_size, table_cursor, serial;

/* ---- the lock ---- */

static void lock_shared(void)
{
    struct cm_message message;

    shared_held = shared_attach() == 0;
    if (!shared_held)
        return;
    shared_lock();
    while (mailbox_receive(&message))
        receive_message(&message);
}

static void unlock_shared(void)
{
    if (shared_held)
        shared_unlock();
}

/* read() and write() on an eventfd are cancellation points: disable cancellation under the lock. */
void cm_lock(void)
{
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(&mutex);
    cancel_state = state;
    lock_shared();
}

bool cm_lock_briefly(void)
{
    struct timespec until;
    int state;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    if (pthread_mutex_timedlock(&mutex, &until)) {
        pthread_setcancelstate(state, NULL);
        return false;
    }
    cancel_state = state;
    lock_shared();
    return true;
}

void cm_unlock(void)
{
    int state = cancel_state;

    unlock_shared();
    pthread_mutex_unlock(&mutex);
    pthread_setcancelstate(state, NULL);
}

void cm_wait_acknowledged(void)
{
    int state = cancel_state;

    unlock_shared();
    pthread_cond_wait(&acknowledged, &mutex);
    cancel_state = state;
    lock_shared();
}

void cm_wake_acknowledged(void)
{
    pthread_cond_broadcast(&acknowledged);
}

/* ---- joining the fabric ---- */

/* Used where peers cannot raise our descriptors: reads the mailbox, and each event then raises its
 * channel. */
static void service(void)
{
    cm_lock();
    cm_unlock();
}

int cm_attach(void)
{
    int err;

    pthread_mutex_lock(&mutex);
    err = shared_attach();
    if (!err)
        notify_add_service_hook(service);
    pthread_mutex_unlock(&mutex);
    if (err)
        return ENODEV;
    if ((err = device_open_all()))
        return err;
    return hca_is_ethernet() ? mad_agent_start() : 0;
}

/* Ids and connections stay with the parent. The child can only destroy its copies. */
static void forget_in_child(void)
{
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&acknowledged, NULL);
    for (uint32_t i = 0; i < table_size; i++) {
        struct cm_id *cm = table[i];
        if (!cm)
            continue;
        cm->state = CM_INHERITED;
        cm->watch = NULL;
        cm->due = 0;
        cm->channel->watches = NULL;
        cm->channel->events = NULL;
        cm->channel->events_end = &cm->channel->events;
        table[i] = NULL;
    }
    shared_forget();
    device_forget();
    mad_agent_forget();
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_in_child);
}

/* ---- ids by handle ---- */

static bool grow_table(void)
{
    uint32_t size = table_size ? 2 * table_size : 64;
    struct cm_id **grown = realloc(table, size * sizeof(*grown));

    if (!grown)
        return false;
    memset(grown + table_size, 0, (size - table_size) * sizeof(*grown));
    table_cursor = table_size;
    table = grown;
    table_size = size;
    return true;
}

static bool find_free_slot(void)
{
    for (uint32_t i = 0; i < table_size; i++) {
        uint32_t slot = (table_cursor + i) % table_size;
        if (!table[slot]) {
            table_cursor = slot;
            return true;
        }
    }
    return grow_table();
}

int cm_register(struct cm_id *cm)
{
    if (!find_free_slot())
        return ENOMEM;
    table[table_cursor] = cm;
    cm->handle = (uint64_t)++serial << 32 | (table_cursor + 1);
    table_cursor++;
    return 0;
}

void cm_unregister(struct cm_id *cm)
{
    if (cm_find(cm->handle) == cm)
        table[(uint32_t)cm->handle - 1] = NULL;
}

struct cm_id *cm_find(uint64_t handle)
{
    uint32_t slot = (uint32_t)handle - 1;

    if (slot >= table_size || !table[slot] || table[slot]->handle != handle)
        return NULL;
    return table[slot];
}

struct cm_id *cm_next(uint32_t *cursor)
{
    while (*cursor < table_size)
        if (table[(*cursor)++])
            return table[*cursor - 1];
    return NULL;
}

struct cm_id *cm_find_request(const struct cm_peer *from)
{
    for (uint32_t i = 0; i < table_size; i++) {
        struct cm_id *cm = table[i];
        if (cm && cm->state == CM_REQ_RCVD && cm->peer.id == from->id &&
            cm->peer.proc == from->proc && cm->peer.generation == from->generation)
            return cm;
    }
    return NULL;
}
