#ifndef VERBENA_H
#define VERBENA_H

/* What Verbena's adapters can do beyond the verbs API. Programs find these with dlsym(3) in the
 * preloaded library, so that they also run where it is not. */

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Pulls the cable of a port of the software adapter, or puts it back. The port's state changes for
 * every process of the fabric, those that have the adapter open get IBV_EVENT_PORT_ERR or
 * IBV_EVENT_PORT_ACTIVE, and nothing passes while it is down. Returns 0 or an errno value. */
int verbena_set_port(struct ibv_context *context, uint8_t port_num, int up);

#ifdef __cplusplus
}
#endif

#endif
