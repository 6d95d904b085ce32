/* SPDX-License-Identifier: BSD-2-Clause */
/* Persistent buffered sends, which Open MPI's pml/cm gets wrong. */
#ifndef MTL_BSEND_H
#define MTL_BSEND_H

/* Replace the PML's MPI_Bsend_init, and restore it. The PML must have been selected. */
void bsend_install(void);
void bsend_remove(void);

#endif
