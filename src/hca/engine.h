#ifndef HCA_ENGINE_H
#define HCA_ENGINE_H

/* What carries out work requests. The objects know it by this table only. */

#include "hca/objects.h"

struct hca_engine {
    const char *name;
    /* Carries out a request now, or keeps it: the queue's lock is held, the request is valid. */
    void (*send)(struct hca_qp *qp, struct send_wqe *wqe);
    /* The same for a plain send of one piece of at most CQE_INLINE bytes on an RC QP in RTS with
     * nothing waiting, if that is easily done; false: nothing has happened. */
    bool (*send_short)(struct hca_qp *qp, const struct ibv_sge *sge, unsigned flags);
    /* Tries again what had to wait. */
    void (*progress)(void);
    /* The QP leaves the states in which it sends: forget what it had waiting. */
    void (*drop)(struct hca_qp *qp);
    /* We joined the fabric, before the first object. */
    int (*start)(void);
    /* We leave it: nothing of the engine may run from here on. */
    void (*stop)(void);
    /* Others cannot reach our memory or descriptors themselves. */
    void (*serve_peers)(void);
};

extern const struct hca_engine *hca_engine;

/* Set by the engine while something waits; read by every poll. */
extern atomic_uint hca_waiting;

#endif
