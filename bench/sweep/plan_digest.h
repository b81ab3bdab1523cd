/* A name for the plan that a run kept, so that runs of equal plans are known. */
#pragma once

#include <sluice/runtime.h>

/* Writes the SHA-256 of all that a plan has carried out: strategies, recomputation, order, and where buffers lie; not
 * what is said of it (its schedule's name, forecasts). Errors: those of sluice_runtime_plan_json; MEMORY. */
sluice_status slc_bench_plan_digest(sluice_runtime *rt, char hex[65]);
