/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies boxes of points between blocks and messages. */
#include "lu.h"

void lu_pack(const struct lu *lu, const struct lu_slot *cells, struct lu_box box, double *buffer)
{
    for (int z = box.z; z < box.z + box.depth; z++) {
        for (int y = box.y; y < box.y + box.height; y++) {
            for (int x = box.x; x < box.x + box.width; x++) {
                const double *point = lu_at(lu, cells, x, y, z);

                for (int m = 0; m < LU_COMPONENTS; m++)
                    *buffer++ = point[m * LU_LANES];
            }
        }
    }
}

void lu_unpack(const struct lu *lu, struct lu_slot *cells, struct lu_box box, const double *buffer)
{
    for (int z = box.z; z < box.z + box.depth; z++) {
        for (int y = box.y; y < box.y + box.height; y++) {
            for (int x = box.x; x < box.x + box.width; x++) {
                double *point = lu_at(lu, cells, x, y, z);

                for (int m = 0; m < LU_COMPONENTS; m++)
                    point[m * LU_LANES] = *buffer++;
            }
        }
    }
}
