/* SPDX-License-Identifier: BSD-2-Clause */
/* Short messages that bypass pml/cm. */
#ifndef MTL_DIRECT_H
#define MTL_DIRECT_H

void direct_install(void);
void direct_remove(void);

#endif
