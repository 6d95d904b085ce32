#ifndef UTIL_LIST_H
#define UTIL_LIST_H

/* Lists whose items say where they hang: one that is taken out costs the same wherever it is. `head`
 * is a pointer to the first item, `next` and `link` are fields of the items. */

#define list_push(head, item, next, link)                                                          \
    do {                                                                                           \
        (item)->next = (head);                                                                     \
        (item)->link = &(head);                                                                    \
        if (head)                                                                                  \
            (head)->link = &(item)->next;                                                          \
        (head) = (item);                                                                           \
    } while (0)

#define list_remove(item, next, link)                                                              \
    do {                                                                                           \
        *(item)->link = (item)->next;                                                              \
        if ((item)->next)                                                                          \
            (item)->next->link = (item)->link;                                                     \
    } while (0)

#endif
