/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, their channels, and the extended interface. */

#include "verbs/verbs.h"

#include "check/check.h"
#include "hca/async.h"
#include "hca/cq.h"
#include "hca/notify.h"
#include "hca/observer.h"
#include "util/list.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define FROZEN_MS 10

#define SUPPORTED_WC_FLAGS                                                                         \
    (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                 \
     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* ---- creating and destroying ---- */

static struct hca_cq *create(struct ibv_context *context, uint32_t cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector, bool timestamps)
{
    int err = ensure_attached();

    if (!err)
        err = check_call(VERB_CREATE_CQ);
    if (!err && (cqe < 1 || cqe > HCA_MAX_CQE || comp_vector < 0 ||
                 comp_vector >= context->num_comp_vectors))
        err = check_because(EINVAL,
                            "a CQ of %u entries on vector %d: the device allows 1 to %d entries and "
                            "%d vectors",
                            cqe, comp_vector, HCA_MAX_CQE, context->num_comp_vectors);
    if (err)
        return fail(err);
    hca_charge(CALL_CREATE_CQ, cqe);
    struct hca_cq *cq = cq_create(to_context(context), cqe, (struct hca_channel *)channel,
                                  timestamps);
    if (!cq)
        return NULL;
    cq->ibv.channel = channel;
    cq->ibv.cq_context = cq_context;
    cq->ibv.cqe = cqe;
    pthread_mutex_init(&cq->ibv.mutex, NULL);
    pthread_cond_init(&cq->ibv.cond, NULL);
    return check_made(CHECK_CQ, cq, 0);
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                    struct ibv_comp_channel *channel, int comp_vector)
{
    struct hca_cq *cq = create(context, cqe < 0 ? 0 : cqe, cq_context, channel, comp_vector, false);

    return cq ? &cq->ibv : NULL;
}

struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    const uint32_t known_masks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
    const uint32_t known_flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
                                 IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    const uint64_t timestamps = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

    if (attr->comp_mask & ~known_masks || attr->wc_flags & ~SUPPORTED_WC_FLAGS ||
        (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && attr->flags & ~known_flags))
        return fail(EOPNOTSUPP);
    struct hca_cq *cq = create(context, attr->cqe, attr->cq_context, attr->channel,
                               attr->comp_vector, attr->wc_flags & timestamps);
    if (!cq)
        return NULL;
    cq->single_threaded = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
                          attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    verbs_fill_cq_ex(cq, attr->wc_flags);
    return &cq->ex;
}

EXPORT int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
    if (cqe < 1 || cqe > HCA_MAX_CQE)
        return EINVAL;
    int err = cq_resize((struct hca_cq *)ibv, cqe);
    if (!err)
        ibv->cqe = cqe;
    return err;
}

int verbs_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
    /* Moderation may delay events but need not: one event for each arming is allowed. */
    return attr->attr_mask & ~(unsigned)IBV_CQ_ATTR_MODERATE ? EOPNOTSUPP : 0;
}

void verbs_await_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed,
                      uint32_t taken)
{
    pthread_mutex_lock(mutex);
    while (*completed != taken)
        pthread_cond_wait(cond, mutex);
    pthread_mutex_unlock(mutex);
}

/* ---- events of a channel ---- */

static bool has_event(const struct hca_cq *cq)
{
    return load_acquire(&cq->shared->fired) != cq->events_taken;
}

static bool any_event(struct hca_channel *channel)
{
    bool waits = false;

    spin_lock(&channel->lock);
    for (struct hca_cq *cq = channel->cqs; cq && !waits; cq = cq->next_on_channel)
        waits = has_event(cq);
    spin_unlock(&channel->lock);
    return waits;
}

/* The descriptor must be readable while an event is pending. Raise it for peers that cannot. */
static void keep_readable(struct hca_channel *channel)
{
    struct pollfd p = { .fd = channel->ibv.fd, .events = POLLIN };

    if (any_event(channel) && poll(&p, 1, 0) == 0)
        notify_raise(proc_self, channel->ibv.fd, channel->id);
}

/* Drops the events of a destroyed CQ. If no other CQ has an event, the descriptor is cleared too. A
 * peer may raise it for another CQ meanwhile: if that raise was cleared, it is repeated. */
static void withdraw_events(struct hca_channel *channel, uint32_t untaken)
{
    struct pollfd p = { .fd = channel->ibv.fd, .events = POLLIN };

    if (!untaken && poll(&p, 1, 0) != 1)
        return;
    while (untaken && notify_lower(channel->ibv.fd))
        untaken--;
    while (!any_event(channel) && notify_lower(channel->ibv.fd))
        ;
    keep_readable(channel);
}

EXPORT int ibv_destroy_cq(struct ibv_cq *ibv)
{
    struct hca_cq *cq = (struct hca_cq *)ibv;

    if (unlikely(check_on))
        check_destroys(CHECK_CQ, cq, "ibv_destroy_cq()");
    if (load_relaxed(&cq->users) > 0)
        return check_because(EBUSY, "%d queues still use the CQ", load_relaxed(&cq->users));
    check_gone(CHECK_CQ, cq);
    if (cq->owner != proc_self) {
        free(cq); /* inherited through fork: the parent's object stays */
        return 0;
    }
    hca_charge(CALL_DESTROY_CQ, ibv->cqe);
    verbs_await_acks(&ibv->mutex, &ibv->cond, &ibv->comp_events_completed, cq->events_given);
    verbs_await_acks(&ibv->mutex, &ibv->cond, &ibv->async_events_completed, cq->async_taken);
    struct hca_channel *channel = (struct hca_channel *)ibv->channel;
    uint32_t untaken = load_acquire(&cq->shared->fired) - cq->events_taken;
    cq_destroy(cq);
    if (channel)
        withdraw_events(channel, untaken);
    return 0;
}

int verbs_poll(struct hca_cq *cq, int entries, struct ibv_wc *wc, uint64_t *timestamps)
{
    int count;

    if (likely(!hca_engine->poll_begin))
        return cq_poll(cq, entries, wc, timestamps);
    if (!hca_engine->poll_begin(cq))
        return 0;
    count = cq_poll(cq, entries, wc, timestamps);
    hca_engine->poll_end(count);
    return count;
}

int verbs_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
    return verbs_poll((struct hca_cq *)cq, entries, wc, NULL);
}

int verbs_poll_checked(struct hca_cq *cq, int entries, struct ibv_wc *wc, uint64_t *timestamps,
                       const char *call)
{
    int count;

    check_uses(CHECK_CQ, cq, call);
    if (cq->single_threaded)
        check_enters(CHECK_CQ, cq, call);
    count = verbs_poll(cq, entries, wc, timestamps);
    if (cq->single_threaded)
        check_leaves(CHECK_CQ, cq);
    for (int i = 0; i < count; i++)
        check_polled(&wc[i]);
    return count;
}

int verbs_poll_cq_checked(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
    check_caller = __builtin_return_address(0);
    return verbs_poll_checked((struct hca_cq *)cq, entries, wc, NULL, "ibv_poll_cq()");
}

int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    hca_charge(CALL_EVENT, 0);
    if (hca_engine->program_sleeps)
        hca_engine->program_sleeps();
    return cq_arm((struct hca_cq *)cq, solicited_only);
}

/* ---- channels ---- */

static struct hca_channel *channels;
static pthread_mutex_t channels_mutex = PTHREAD_MUTEX_INITIALIZER;

static void raise_missed_events(void)
{
    pthread_mutex_lock(&channels_mutex);
    for (struct hca_channel *c = channels; c; c = c->next)
        keep_readable(c);
    pthread_mutex_unlock(&channels_mutex);
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    int err = check_call(VERB_CREATE_CHANNEL);
    struct hca_channel *channel = err ? NULL : calloc(1, sizeof(*channel));

    if (!channel)
        return fail(err ? err : ENOMEM);
    channel->ibv.context = context;
    channel->ibv.fd = notify_create(&channel->id);
    if (channel->ibv.fd < 0) {
        free(channel);
        return NULL;
    }
    pthread_mutex_lock(&channels_mutex);
    list_push(channels, channel, next, link);
    notify_add_service_hook(raise_missed_events);
    pthread_mutex_unlock(&channels_mutex);
    return check_made(CHECK_CHANNEL, channel, 0);
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    struct hca_channel *channel = (struct hca_channel *)ibv;

    if (unlikely(check_on))
        check_destroys(CHECK_CHANNEL, channel, "ibv_destroy_comp_channel()");
    if (ibv->refcnt)
        return check_because(EBUSY, "%d CQs still use the channel", ibv->refcnt);
    check_gone(CHECK_CHANNEL, channel);
    pthread_mutex_lock(&channels_mutex);
    list_remove(channel, next, link);
    pthread_mutex_unlock(&channels_mutex);
    notify_close(ibv->fd, channel->id);
    hca_free_object(channel);
    return 0;
}

/* Fair to the CQs of the channel: the search continues behind the last CQ found. */
static struct hca_cq *find_fired(struct hca_channel *channel)
{
    struct hca_cq *found = NULL;

    spin_lock(&channel->lock);
    struct hca_cq *start = channel->next_to_look_at ? channel->next_to_look_at : channel->cqs;
    struct hca_cq *cq = start;
    while (cq && !found) {
        if (has_event(cq)) {
            cq->events_taken++;
            store_relaxed(&cq->event_in_hand, 1);
            found = cq;
        }
        cq = cq->next_on_channel ? cq->next_on_channel : channel->cqs;
        if (cq == start)
            break;
    }
    /* A peer and keep_readable may both have raised the descriptor for one event. Who was told that
     * it is readable must not be made to wait: an event too many does no harm. */
    if (!found)
        found = start;
    if (found) {
        found->events_given++;
        channel->next_to_look_at = found->next_on_channel;
    }
    spin_unlock(&channel->lock);
    return found;
}

/* A pending signal interrupts even a non-blocking call. */
static int look(struct pollfd *p)
{
    int ready;

    do
        ready = poll(p, 1, 0);
    while (ready < 0 && errno == EINTR);
    return ready;
}

/* In virtual time. While nothing can happen in the fabric, real time passes, in slices that a signal
 * can interrupt. */
static int sleep_until_readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    int flags = fcntl(fd, F_GETFL), ready;

    hca_charge(CALL_EVENT, 0);
    while ((ready = look(&p)) == 0 && !(flags & O_NONBLOCK)) {
        if (hca_engine->sleep())
            continue;
        ready = poll(&p, 1, FROZEN_MS);
        if (ready)
            break;
    }
    return ready < 0 ? -1 : 0;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
    struct hca_channel *channel = (struct hca_channel *)ibv;
    struct hca_cq *found;
    uint64_t one;

    if (hca_engine->sleep && sleep_until_readable(ibv->fd))
        return -1;
    do {
        if (read(ibv->fd, &one, sizeof(one)) != sizeof(one))
            return -1;
    } while (!(found = find_fired(channel)));
    *cq = &found->ibv;
    *cq_context = found->ibv.cq_context;
    return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += nevents;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}
