/* The step words: what the kernels of a step must know of it before the host can (is a gradient finite, the clip
 * factor, the norms that the optimizer asks for). On a device that runs ahead they lie in the arena behind the words
 * that ranks add up, one set for each of the two steps that may be under way. Once the agreement's work is done the
 * host finds a copy in pinned memory. Private to lib/engine. */
#pragma once

#include <sluice/runtime.h>

struct slc_step_state;

/* Decides how many words ranks add up, and returns how many int64 words those and both sets take of the arena beyond
 * SLC_AGREEMENT_HEAD. rt->agreement.norm_count is known. */
uint64_t slc_pass_words_room(sluice_runtime *rt);
/* Makes both sets in the agreement's buffer, and the pinned copies; called whenever the buffer has moved. Does nothing
 * on a device that does not run ahead. Errors: MEMORY. */
sluice_status slc_pass_words_place(sluice_runtime *rt);
/* Lets the step's set forget the step before the last, before the operations of the step are submitted. */
sluice_status slc_pass_words_begin(sluice_runtime *rt, const struct slc_step_state *step);
/* Run on the communication thread. pack writes what this rank has found to the words that are then added up; with one
 * rank it does nothing. agree makes factor, skip and norms of the sums, and copies them to the host. */
sluice_status slc_pass_words_pack(sluice_runtime *rt, const struct slc_step_state *step);
sluice_status slc_pass_words_agree(sluice_runtime *rt, const struct slc_step_state *step);
/* Takes the copy into the step's state. The agreement is done. */
void slc_pass_words_learn(struct slc_step_state *step);
