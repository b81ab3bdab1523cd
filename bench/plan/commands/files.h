/* A profile and a plan for it, as read by `sluice sim`, `check` and `trace`. */
#pragma once

#include "bench/cli/options/command_line.h"
#include "bench/plan/pipeline/pipelined.h"
#include "lib/plan/profile.h"
#include "sched/simulate/simulate.h"

/* The options --profile, --plan, --world and --lossy. slc_plan_files_line has them, for a command's own line to share;
 * slc_plan_or_pipeline_line also has those that plan a pipeline in place of --plan. --profile is mandatory, and so is
 * --plan or --pipeline. */
typedef struct {
    const char *profile_path, *plan_path;
    const char *lossy; /* NULL: as in the profile, or as the plan was made */
    uint32_t world;    /* 0: the profile's */
    slc_pipeline_options pipeline;
    slc_plan_outline outline; /* of the file at plan_path, once the options are checked */
    slc_profile *profile;
    slc_plan *plan;
    slc_forecast forecast; /* these two once it is simulated */
    slc_item_times *items;
} slc_plan_files;

/* Returns true if stages are asked for: by --pipeline, or by a plan that has them. */
bool slc_plan_files_has_stages(const slc_plan_files *files);

extern const slc_command_line slc_plan_files_line, slc_plan_or_pipeline_line;

/* Reads both files; slc_plan_files_fini frees what was read. Errors: those of reading, with the file and the path
 * inside it. */
sluice_status slc_plan_files_read(slc_plan_files *files);
void slc_plan_files_fini(slc_plan_files *files);

/* Reads both files and simulates the plan. Errors: those of slc_plan_files_read; MEMORY, FORMAT. */
sluice_status slc_plan_files_simulate(slc_plan_files *files, const slc_simulation *options);

/* Reads the profile, and the plan of stages in the file, or plans the pipeline that the options describe; the caller
 * frees *made by slc_pipelined_fini before the files. Errors: those of reading the profile and of slc_pipelined_make.
 */
sluice_status slc_plan_files_pipeline(slc_plan_files *files, slc_pipelined *made);

/* Writes a timeline of `steps` simulated steps; the file is whole or absent. Errors: PATH, IO, MEMORY. */
sluice_status slc_plan_files_trace(const slc_plan_files *files, uint32_t steps, const char *path);
