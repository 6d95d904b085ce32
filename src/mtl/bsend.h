/* Persistent buffered sends, which Open MPI's pml/cm gets wrong. */
#ifndef MTL_BSEND_H
#define MTL_BSEND_H

/* Takes MPI_Bsend_init over from the PML, which has to be selected, and gives it back. */
void bsend_take_over(void);
void bsend_give_back(void);

#endif
