/* Evaluation in a pipeline: what crosses a cut is received when the first slot behind it begins, and sent when the last
 * one before it ends. Private to lib/engine. */
#pragma once

#include "lib/plan/plan.h"

#include <sluice/runtime.h>

/* Receives what the slot that has just begun reads from other stages, and waits for it. Does nothing where there is no
 * pipeline. */
sluice_status slc_stage_evaluation_receive(sluice_runtime *rt, const slc_item *slot);
/* Sends what the slot that is about to end has made for other stages, and waits until it is there. Does nothing where
 * there is no pipeline. */
sluice_status slc_stage_evaluation_send(sluice_runtime *rt, const slc_item *slot);
/* Sends the rows of the pass that comes next, if this rank holds the table. They are set; those of the pass before have
 * been sent. */
sluice_status slc_stage_evaluation_rows(sluice_runtime *rt);
