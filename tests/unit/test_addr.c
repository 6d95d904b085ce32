/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of a fabric with three nodes, two devices each, two ports each. */

#include "fabric.h"

#include "hca/addr.h"
#include "hca/segment.h"

#include "verbena.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES = 3, DEVICES = 2, PORTS = 2 };

static struct ibv_context *context;

static int join_fabric(void **state)
{
    setenv("VERBENA_NODES", "3", 1);
    setenv("VERBENA_NODE", "1", 1);
    setenv("VERBENA_DEVICES", "2", 1);
    setenv("VERBENA_PORTS", "2", 1);
    context = fabric_open();
    return 0;
}

/* The n-th port has the n-th LID, and LIDs, GUIDs and GIDs lead back to it. */
static void every_port_has_addresses_of_its_own(void **state)
{
    unsigned n = 0, back[3];
    union ibv_gid gid;

    for (unsigned node = 0; node < NODES; node++)
        for (unsigned device = 0; device < DEVICES; device++)
            for (unsigned port = 1; port <= PORTS; port++, n++) {
                uint16_t lid = addr_lid(node, device, port);
                assert_int_equal(lid, seg->first_lid + n);
                assert_true(addr_from_lid(lid, &back[0], &back[1], &back[2]));
                assert_int_equal(back[0], node);
                assert_int_equal(back[1], device);
                assert_int_equal(back[2], port);
                addr_gid(node, device, port, &gid);
                assert_int_equal(be64toh(gid.global.subnet_prefix), 0xfe80000000000000ull);
                assert_int_equal(addr_lid_from_gid(&gid), lid);
            }
    assert_false(addr_from_lid(seg->first_lid - 1, &back[0], &back[1], &back[2]));
    assert_false(addr_from_lid(seg->first_lid + n, &back[0], &back[1], &back[2]));
}

static void a_guid_is_made_of_its_parts(void **state)
{
    uint64_t guid = addr_port_guid(2, 1, 2);

    assert_int_equal(guid >> 40, 0x027662);
    assert_int_equal(guid >> 24 & 0xffff, seg->guid_part & 0xffff);
    assert_int_equal(guid >> 16 & 0xff, 2);
    assert_int_equal(guid >> 8 & 0xff, 1);
    assert_int_equal(guid & 0xff, 2);
    assert_int_equal(addr_node_guid(2, 1), guid - 2);
}

static void expect_foreign(uint64_t guid)
{
    union ibv_gid gid = { .global = { htobe64(0xfe80000000000000ull), htobe64(guid) } };

    if (addr_lid_from_gid(&gid))
        fail_msg("GUID %llx is of this fabric", (unsigned long long)guid);
}

static void a_gid_beside_the_fabric_has_no_lid(void **state)
{
    uint64_t first = addr_port_guid(0, 0, 1);

    expect_foreign(first - 1);
    expect_foreign(first + PORTS);
    expect_foreign(first + ((uint64_t)DEVICES << 8));
    expect_foreign(first + ((uint64_t)NODES << 16));
    expect_foreign(first ^ 1ull << 24);
    expect_foreign(first ^ 1ull << 40);
    expect_foreign(first ^ 1ull << 63);
}

static void an_address_vector_leads_to_a_port(void **state)
{
    uint16_t lid = addr_lid(2, 0, 1);
    struct ibv_ah_attr av = { .dlid = lid, .port_num = 1 };

    assert_int_equal(addr_lid_of(&av), lid);
    av.is_global = 1; /* the GID is empty: only the LID counts */
    assert_int_equal(addr_lid_of(&av), lid);
    addr_gid(2, 0, 1, &av.grh.dgid);
    assert_int_equal(addr_lid_of(&av), lid);
    av.dlid = 0;
    assert_int_equal(addr_lid_of(&av), lid);
    av.dlid = addr_lid(0, 0, 1); /* of another port than the GID */
    assert_int_equal(addr_lid_of(&av), 0);
    av.is_global = 0;
    assert_int_equal(addr_lid_of(&av), addr_lid(0, 0, 1));
    av.dlid = seg->first_lid - 1;
    assert_int_equal(addr_lid_of(&av), 0);
}

static const char *warning_of(const struct ibv_ah_attr *destination)
{
    fabric_log_begin();
    addr_warn_if_foreign(destination, "the test");
    return fabric_log_end();
}

static void a_foreign_address_is_named(void **state)
{
    struct ibv_ah_attr destination = { .dlid = addr_lid(1, 1, 1) };
    char want[64];

    assert_string_equal(warning_of(&destination), "");
    destination.dlid = seg->first_lid - 1;
    snprintf(want, sizeof(want), "the test: no port with LID 0x%x on fabric", destination.dlid);
    assert_non_null(strstr(warning_of(&destination), want));
    destination = (struct ibv_ah_attr){ .is_global = 1 };
    destination.grh.dgid.raw[0] = 0xfe;
    destination.grh.dgid.raw[15] = 7;
    assert_non_null(strstr(warning_of(&destination), "no port with GID fe00::7 on fabric"));
}

/* One port that is down is not its neighbour. */
static void each_port_goes_down_alone(void **state)
{
    uint16_t own = addr_lid(1, 0, 2);

    assert_false(addr_port_is_down(own));
    assert_int_equal(verbena_set_port(context, 2, 0), 0);
    assert_true(addr_port_is_down(own));
    assert_false(addr_port_is_down(own - 1));
    assert_false(addr_port_is_down(own + 1));
    assert_false(addr_port_is_down(seg->first_lid - 1));
    assert_false(addr_port_is_down(seg->first_lid + MAX_FABRIC_PORTS));
    assert_int_equal(verbena_set_port(context, 2, 1), 0);
    assert_false(addr_port_is_down(own));
    assert_int_equal(addr_port_bit(seg->first_lid + 33), 33);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_port_has_addresses_of_its_own),
        cmocka_unit_test(a_guid_is_made_of_its_parts),
        cmocka_unit_test(a_gid_beside_the_fabric_has_no_lid),
        cmocka_unit_test(an_address_vector_leads_to_a_port),
        cmocka_unit_test(a_foreign_address_is_named),
        cmocka_unit_test(each_port_goes_down_alone),
    };

    return cmocka_run_group_tests_name("addr", tests, join_fabric, NULL);
}
