/* The messages of a stage of a pipeline: each channel is a lane of its own, whose transfers wait for counts of the
 * other lanes. A message takes a transfer for each activation that it carries. Private to lib/engine. */
#pragma once

#include "lib/engine/step/pass_state.h"

#include <sluice/runtime.h>

/* Makes what a stage's pass needs besides the lanes of operations. Errors: MEMORY. */
sluice_status slc_stage_messages_init(sluice_runtime *rt, slc_pass *pass);
void slc_stage_messages_fini(slc_pass *pass);

/* Notes where a pass that begins finds the channels. */
void slc_stage_messages_begin(sluice_runtime *rt, slc_pass *pass);
/* Submits those messages of the running pass that there is room for, and all of items before `until`, for which it
 * waits until there is. */
sluice_status slc_stage_messages_submit(sluice_runtime *rt, slc_pass *pass, uint32_t until);
/* Lets an operation of the running pass wait for what its item waits for: an agreement for the step's end, which adds
 * the stages' words up (agreement.h). */
void slc_stage_messages_let_wait(sluice_runtime *rt, slc_pass *pass, uint32_t item, slc_op *op);

/* Waits until a channel has completed `count` transfers; *waited_s, if not NULL, grows by the time. */
sluice_status slc_stage_messages_wait(sluice_runtime *rt, uint32_t channel, uint32_t count, double *waited_s);
/* Waits until the messages of the pass before the running one are complete: the next pass uses their contexts. */
sluice_status slc_stage_messages_settle(sluice_runtime *rt, const slc_pass *pass);
/* Bytes of the messages that this rank has sent; 0 where there is no pipeline. */
uint64_t slc_stage_messages_bytes_sent(const sluice_runtime *rt);
/* Returns true if all messages that were submitted have arrived, also if this rank has not noticed yet that a last send
 * has (slc_channel_arrived). */
bool slc_stage_messages_have_arrived(const sluice_runtime *rt);
/* Waits until all messages are complete. */
sluice_status slc_stage_messages_finish(sluice_runtime *rt);
