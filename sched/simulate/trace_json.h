/* A timeline in the trace format of Chrome's tracing page and of Perfetto (the JSON object form: "traceEvents",
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), made from simulated or from
 * measured times. A process is a rank; its lanes are threads:
 *   compute        slots ("F h.3", "B h.3"), updates, and between them "exposed: WHAT IT WAITED FOR"
 *   communication  operations on the link ("reduce_scatter h.3 blocks 0-3")
 *   updates        the optimizer's work on the communication thread
 *   one for each channel of a stage of a pipeline: its messages, a receive from when it could come until it is here
 * An arrow leads from the operation that a slot waited for to the slot. Memory is a counter by category. */
#pragma once

#include "sched/simulate/exposed.h"
#include "sched/simulate/memory_series.h"

enum { SLC_ITEM_LABEL = 160 };

/* Writes an item's name for tables and traces: "F h.3", "gather_window h.3 for B blocks 4-7", in the second micro-batch
 * with " #1". `out` has SLC_ITEM_LABEL bytes; longer names are cut. */
void slc_item_label(const slc_job *job, const slc_item *item, char *out);

typedef struct slc_trace slc_trace;

/* Starts a trace. Job and plan must outlive it. Later failures (no memory) are reported by slc_trace_text. Errors:
 * MEMORY. */
sluice_status slc_trace_create(const slc_job *job, const slc_plan *plan, slc_trace **out);
void slc_trace_destroy(slc_trace *trace); /* NULL is allowed */

/* Names a process and its lanes. */
void slc_trace_process(slc_trace *trace, int process, const char *name);

/* Adds one pass; `at_s` is where its time 0 is in the trace. Items whose start or end is NaN (left out, not recorded)
 * are skipped. `previous` holds the previous pass with the same time 0; NULL: that pass is not in the trace. An
 * exposure whose slot is SLC_NONE comes after the pass's last slot. */
void slc_trace_pass(slc_trace *trace, int process, uint64_t pass, double at_s, const slc_item_times *items,
                    const slc_item_times *previous, const slc_exposure *exposures, uint32_t exposure_count);
void slc_trace_memory(slc_trace *trace, int process, double at_s, const slc_memory_series *series);

/* Adds the events of a trace's text, of other processes. Errors: MEMORY. */
sluice_status slc_trace_join(slc_trace *trace, const char *text);

/* Gives the whole trace as JSON, which the caller frees: events in order of time, names first. If one is before 0, all
 * times move by it. Errors: MEMORY. */
sluice_status slc_trace_text(slc_trace *trace, char **out);

/* Adds `passes` steps of the simulated steady state of one process, with their memory. Errors: MEMORY. */
sluice_status slc_trace_simulated(slc_trace *trace, int process, const slc_forecast *forecast,
                                  const slc_item_times *items, uint32_t passes);
