/* A profile and a plan for it, as read by `sluice sim`, `check` and `trace`. */
#ifndef SLC_BENCH_PLAN_FILES_H
#define SLC_BENCH_PLAN_FILES_H

#include "lib/plan/profile.h"
#include "sched/simulate/simulate.h"

#include <argp.h>

/* The options --profile, --plan, --world and --lossy. slc_plan_files_argp returns an argp parser for a command's
 * children; its input is a slc_plan_files. --profile and --plan are mandatory. */
typedef struct {
    const char *profile_path, *plan_path;
    const char *lossy;   /* NULL: as in the profile, or as the plan was made */
    unsigned long world; /* 0: the profile's */
    slc_profile *profile;
    slc_plan *plan;
} slc_plan_files;

const struct argp *slc_plan_files_argp(void);

/* Reads both files; slc_plan_files_fini frees what was read. Errors: those of reading, with the file and the path
 * inside it. */
sluice_status slc_plan_files_read(slc_plan_files *files);
void slc_plan_files_fini(slc_plan_files *files);

/* Simulates the plan; the caller frees *items. Errors: MEMORY, FORMAT. */
sluice_status slc_plan_files_simulate(const slc_plan_files *files, const slc_simulation *options,
                                      slc_forecast *forecast, slc_item_times **items);

/* Writes a timeline of `steps` simulated steps; the file is whole or absent. Errors: PATH, IO, MEMORY. */
sluice_status slc_plan_files_trace(const slc_plan_files *files, const slc_forecast *forecast,
                                   const slc_item_times *items, uint32_t steps, const char *path);

#endif
