/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_LIST_H
#define UTIL_LIST_H

/* Linked lists with removal in constant time. `head` points to the first item. In an item, `next`
 * points to the next item and `link` to the pointer that points to this item. */

#define list_push(head, item, next, link) \
    do {                                  \
        (item)->next = (head);            \
        (item)->link = &(head);           \
        if (head)                         \
            (head)->link = &(item)->next; \
        (head) = (item);                  \
    } while (0)

#define list_remove(item, next, link)          \
    do {                                       \
        *(item)->link = (item)->next;          \
        if ((item)->next)                      \
            (item)->next->link = (item)->link; \
    } while (0)

#endif
