/* Names of requests and transfers, as given to other processes. */
#include "mtl/rendezvous.h"

#include <stdlib.h>

#define FIRST_COOKIES 256

struct cookie {
    enum cookie_kind kind;
    uint32_t generation;
    uint32_t next_free;
    void *object;
};

static struct cookie *cookies;
static uint32_t room, first_free; /* number 0 is nobody's */

static bool grow(void)
{
    uint32_t larger = room ? room * 2 : FIRST_COOKIES;
    struct cookie *grown = realloc(cookies, larger * sizeof(*grown));

    if (!grown)
        return false;
    cookies = grown;
    for (uint32_t i = larger; i-- > (room ? room : 1);) {
        cookies[i] = (struct cookie){ .kind = COOKIE_FREE, .next_free = first_free };
        first_free = i;
    }
    room = larger;
    return true;
}

uint64_t cookie_new(enum cookie_kind kind, void *object)
{
    struct cookie *cookie;
    uint32_t index;

    if (!first_free && !grow())
        return 0;
    index = first_free;
    cookie = &cookies[index];
    first_free = cookie->next_free;
    cookie->kind = kind;
    cookie->object = object;
    return (uint64_t)cookie->generation << 32 | index;
}

void *cookie_find(enum cookie_kind kind, uint64_t name)
{
    uint32_t index = name;

    if (index >= room || !index || cookies[index].kind != kind ||
        cookies[index].generation != name >> 32)
        return NULL;
    return cookies[index].object;
}

void cookie_free(uint64_t name)
{
    struct cookie *cookie = &cookies[(uint32_t)name];

    cookie->kind = COOKIE_FREE;
    cookie->generation++;
    cookie->next_free = first_free;
    first_free = (uint32_t)name;
}

void cookies_each(void (*call)(enum cookie_kind kind, void *object, void *argument), void *argument)
{
    for (uint32_t i = 1; i < room; i++) {
        if (cookies[i].kind != COOKIE_FREE)
            call(cookies[i].kind, cookies[i].object, argument);
    }
}

void cookies_free(void)
{
    free(cookies);
    cookies = NULL;
    room = first_free = 0;
}
