/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces by name, address and network: the loopback interface is everywhere. */
#include "util/netif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <string.h>

static void find_nothing(const char *text, const char *why)
{
    struct netif netif;
    char error[512] = "";

    assert_int_equal(netif_find(text, &netif, error, sizeof(error)), -1);
    if (!strstr(error, why))
        fail_msg("%s: '%s' is not in '%s'", text, why, error);
}

static void find_loopback(const char *text, uint32_t address)
{
    struct netif netif;
    char error[512] = "";

    if (netif_find(text, &netif, error, sizeof(error)))
        fail_msg("%s: %s", text, error);
    assert_string_equal(netif.name, "lo");
    assert_int_equal(netif.index, if_nametoindex("lo"));
    assert_true(netif.mtu >= 1280);
    assert_true(netif.count >= 1);
    assert_int_equal(netif.addresses[0].any.sa_family, AF_INET);
    assert_int_equal(ntohl(netif.addresses[0].v4.sin_addr.s_addr), address);
}

static void a_name_an_address_or_a_network_will_do(void **state)
{
    find_loopback("lo", INADDR_LOOPBACK);
    find_loopback("127.0.0.1", INADDR_LOOPBACK);
    find_loopback("127.0.0.0/8", INADDR_LOOPBACK);
    find_loopback("127.0.0.1/32", INADDR_LOOPBACK);
    find_loopback("127.0.0.0/31", INADDR_LOOPBACK);
    find_loopback("126.0.0.0/7", INADDR_LOOPBACK);
}

static void what_is_none_is_explained(void **state)
{
    static const char *const none[] = {
        "127.0.0.2",  "127.0.0.0/32", "127.0.0.2/31", "127.1.0.0/16", "126.0.0.0/8", "127.0.0.0/33",
        "127.0.0.0/", "127.0.0.0/8x", "127.0.0.0 /8", "/8",           "",            "l",
        "::2",        "::2/128",      "::1/129",      "no-such",
    };

    for (unsigned i = 0; i < sizeof(none) / sizeof(*none); i++) {
        find_nothing(none[i], "is neither an interface nor an address or network of this host");
        find_nothing(none[i], " lo");
    }
    find_nothing("0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000/1", "is neither");
}

static void six_is_found_where_there_is_one(void **state)
{
    struct netif netif;
    char error[512];

    if (netif_find("::1", &netif, error, sizeof(error)))
        skip();
    assert_string_equal(netif.name, "lo");
    assert_int_equal(netif.count, 1);
    assert_int_equal(netif.addresses[0].any.sa_family, AF_INET6);
    assert_memory_equal(&netif.addresses[0].v6.sin6_addr, &in6addr_loopback, 16);
    assert_int_equal(netif_find("::/64", &netif, error, sizeof(error)), 0);
    assert_int_equal(netif_find("::1/128", &netif, error, sizeof(error)), 0);
    assert_int_equal(netif_find("::/127", &netif, error, sizeof(error)), 0);
    assert_int_equal(netif_find("::/128", &netif, error, sizeof(error)), -1);
    assert_int_equal(netif_find("lo", &netif, error, sizeof(error)), 0);
    assert_true(netif.count >= 2);
    assert_int_equal(netif.addresses[netif.count - 1].any.sa_family, AF_INET6);
}

static void a_fabric_belongs_to_one_interface(void **state)
{
    struct netif one = { .name = "lo" }, two = { .name = "eth0" };
    char first[NETIF_FABRIC], second[NETIF_FABRIC];

    netif_fabric(&one, first);
    netif_fabric(&two, second);
    assert_memory_equal(first, "wire-lo-", 8);
    assert_memory_equal(second, "wire-eth0-", 10);
    assert_string_equal(first + 8, second + 10);
    assert_string_not_equal(first + 8, "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_an_address_or_a_network_will_do),
        cmocka_unit_test(what_is_none_is_explained),
        cmocka_unit_test(six_is_found_where_there_is_one),
        cmocka_unit_test(a_fabric_belongs_to_one_interface),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
