/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DMA_MR_MODE_H
#define DMA_MR_MODE_H

/* Whether peers map registered memory: if worthwhile (auto), never (copy), or if possible
 * (share). */
enum mr_mode { MR_AUTO, MR_COPY, MR_SHARE };

/* VERBENA_MR. An unknown value is reported once; the default is used. */
enum mr_mode mr_mode(void);

#endif
