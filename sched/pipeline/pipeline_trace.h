/* The timeline of a planned pipeline in the trace format of Chrome's tracing page and of Perfetto, as
 * sched/simulate/trace_json.h describes it. A process is a stage; its lanes are
 *   compute   tasks: "F 3" forward of micro-batch 3, "B 3" backward, "I 3" and "W 3" the two halves of a split one;
 *             with chunks "F 3 chunk 1"
 *   sends     messages ("activation 3", "gradient 3", "rows 3", "row gradients 3"), reductions and gathers
 *   updates   the optimizer's work
 * An arrow leads from a message to the task that reads it. Micro-batches are counted within their step. */
#pragma once

#include "sched/pipeline/pipeline_plan.h"

/* Writes `steps` times the step that the forecast tells of, as JSON that the caller frees. Errors: MEMORY. */
sluice_status slc_pipeline_trace(const slc_job *job, const slc_pipeline_plan *plan, uint32_t steps, char **out);
