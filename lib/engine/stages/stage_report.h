/* A stage's times in a step, for reports. Private to lib/engine. */
#pragma once

#include "lib/engine/step_state.h"

#include <sluice/runtime.h>

/* Keeps what sluice_runtime_stage says of a step that ends, whose slots have been measured. Does nothing where there is
 * no pipeline. */
void slc_stage_report_note(sluice_runtime *rt, const slc_step_state *step);
