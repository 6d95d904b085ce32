/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/netif.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_ip(const struct ifaddrs *entry)
{
    return entry->ifa_addr &&
           (entry->ifa_addr->sa_family == AF_INET || entry->ifa_addr->sa_family == AF_INET6);
}

static const void *address_bytes(const struct ifaddrs *entry)
{
    return entry->ifa_addr->sa_family == AF_INET
               ? (void *)&((struct sockaddr_in *)entry->ifa_addr)->sin_addr
               : (void *)&((struct sockaddr_in6 *)entry->ifa_addr)->sin6_addr;
}

static bool is_address(const char *text, const struct ifaddrs *entry)
{
    uint8_t wanted[16];

    if (inet_pton(entry->ifa_addr->sa_family, text, wanted) != 1)
        return false;
    return !memcmp(wanted, address_bytes(entry), entry->ifa_addr->sa_family == AF_INET ? 4 : 16);
}

/* `text` is a network, such as 10.0.0.0/24 or fd00::/64, that the address belongs to. */
static bool is_in_network(const char *text, const struct ifaddrs *entry)
{
    unsigned long bits = entry->ifa_addr->sa_family == AF_INET ? 32 : 128, prefix;
    const char *slash = strchr(text, '/');
    uint8_t network[16], address[16];
    char head[INET6_ADDRSTRLEN], *end;

    if (!slash || slash - text >= (int)sizeof(head))
        return false;
    memcpy(head, text, slash - text);
    head[slash - text] = '\0';
    prefix = strtoul(slash + 1, &end, 10);
    if (end == slash + 1 || *end || prefix > bits ||
        inet_pton(entry->ifa_addr->sa_family, head, network) != 1)
        return false;
    memcpy(address, address_bytes(entry), bits / 8);
    for (unsigned bit = 0; bit < prefix; bit++)
        if ((network[bit / 8] ^ address[bit / 8]) & 0x80 >> bit % 8)
            return false;
    return true;
}

static void take(struct netif *netif, const struct ifaddrs *entry)
{
    union netif_address *to;

    strncpy(netif->name, entry->ifa_name, sizeof(netif->name) - 1);
    if (netif->count == NETIF_ADDRESSES)
        return;
    to = &netif->addresses[netif->count++];
    if (entry->ifa_addr->sa_family == AF_INET)
        to->v4 = *(struct sockaddr_in *)entry->ifa_addr;
    else
        to->v6 = *(struct sockaddr_in6 *)entry->ifa_addr;
}

static int read_mtu(struct netif *netif, char *error, size_t size)
{
    struct ifreq request = { 0 };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), failed;

    if (fd < 0)
        fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    strcpy(request.ifr_name, netif->name);
    failed = fd < 0 || ioctl(fd, SIOCGIFMTU, &request);
    if (failed)
        snprintf(error, size, "%s: cannot read its MTU: %s", netif->name, strerror(errno));
    if (fd >= 0)
        close(fd);
    netif->index = if_nametoindex(netif->name);
    netif->mtu = failed ? 0 : request.ifr_mtu;
    return failed ? -1 : 0;
}

static void explain(const char *text, const struct ifaddrs *list, char *error, size_t size)
{
    char names[256] = "";

    for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
        char word[IF_NAMESIZE + 2];

        if (!strcmp(entry->ifa_name, text)) {
            snprintf(error, size, "interface %s has no IP address", text);
            return;
        }
        snprintf(word, sizeof(word), " %s", entry->ifa_name);
        if (entry->ifa_addr && entry->ifa_addr->sa_family == AF_PACKET &&
            strlen(names) + strlen(word) < sizeof(names))
            strcat(names, word);
    }
    snprintf(error, size,
             "%s is neither an interface nor an address or network of this host, which has%s", text,
             *names ? names : " none");
}

int netif_find(const char *text, struct netif *netif, char *error, size_t size)
{
    static const int families[] = { AF_INET, AF_INET6 };
    struct ifaddrs *list;

    memset(netif, 0, sizeof(*netif));
    if (getifaddrs(&list)) {
        snprintf(error, size, "getifaddrs: %s", strerror(errno));
        return -1;
    }
    for (int f = 0; f < 2; f++)
        for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next)
            if (is_ip(entry) && entry->ifa_addr->sa_family == families[f] &&
                (!strcmp(entry->ifa_name, text) || is_address(text, entry) ||
                 is_in_network(text, entry)) &&
                (!netif->count || !strcmp(entry->ifa_name, netif->name)))
                take(netif, entry);
    if (!netif->count)
        explain(text, list, error, size);
    freeifaddrs(list);
    return netif->count ? read_mtu(netif, error, size) : -1;
}

void netif_fabric(const struct netif *netif, char name[NETIF_FABRIC])
{
    struct stat namespace = { 0 };

    stat("/proc/self/ns/net", &namespace);
    snprintf(name, NETIF_FABRIC, "wire-%s-%lu", netif->name, (unsigned long)namespace.st_ino);
}
