/* Places of threads in the modelled world: which are free, whose they are, in which order they come
 * when clocks are equal. Except for the first two, these are called with the world's join_lock
 * held. */
#ifndef SIM_PLACE_H
#define SIM_PLACE_H

#include "sim/world.h"

/* No other thread of its process has one. */
bool place_is_alone(const struct entity *entity);

/* From now on, if a thread of this process joins for which no place was reserved, it and all others
 * of the process lose the turn when they are found asleep. */
void place_watch_strangers(void);
void place_joined_unannounced(struct entity *entity);

/* One for this process; NULL, with the reason logged, if there is no room. */
struct entity *place_find_free(void);

/* By rank or node, and then as threads come. */
uint32_t place_own_order(void);
void place_make_guest(struct entity *entity, uint32_t order);

/* The place that this process left for the program it was to become, or NULL. */
struct entity *place_left_behind(void);

/* At which a guest may come from outside. */
uint64_t place_next_round_time(void);

#endif
