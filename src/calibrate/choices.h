/* SPDX-License-Identifier: BSD-2-Clause */
/* Judges the fitted counts, sizes, switches and zeros of a paper's adapters: what their neighbours
 * come to once the other numbers have followed. */
#ifndef CALIBRATE_CHOICES_H
#define CALIBRATE_CHOICES_H

#include "calibrate/descent.h"
#include "calibrate/paper_session.h"

/* Which other values to try. */
void choices_find_tries(struct leave_out_choice *choice);

/* Tries them by real runs at a solution. If one fits clearly better, takes it, with steps from
 * there, and sets '*taken'. Returns as paper_session_run(). */
int choices_judge(struct paper_session *session, struct surrogate *surrogate, struct solution *best,
                  bool *taken);

/* What was found: "2 and 8 fit clearly worse (by 12, 8)". */
void choices_describe(const struct leave_out_choice *choice, char *text, size_t size);

#endif
