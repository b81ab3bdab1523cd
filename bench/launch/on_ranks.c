/* tests/command/measure/lab_pipeline_test.sh and tests/command/measure/overhead_test.sh cover this file. */
#include "bench/launch/on_ranks.h"

#include "bench/cli/command.h"
#include "bench/launch/self_launch.h"

#include <stdio.h>

static int measure_here(const char *who, slc_rank_measure measure, const void *context)
{
    sluice_world *world = NULL;
    slc_outcome files = {0};
    sluice_status status = sluice_world_create(NULL, &world);
    if (!status) status = measure(context, world, &files);
    int code = status ? slc_fail(who) : 0;
    if (!status && (sluice_world_barrier(world) || files.status)) code = EXIT_FAILED;
    if (files.status) fprintf(stderr, "%s: %s\n", who, files.why);
    sluice_world_destroy(world);
    return code;
}

int slc_run_on_ranks(int ranks, const char *command, char *const *args, slc_rank_measure measure, const void *context)
{
    char *const more[] = {NULL};
    char who[64];
    int code = EXIT_FAILED;
    snprintf(who, sizeof who, "sluice-lab %s", command);
    if (slc_launched()) return measure_here(who, measure, context);
    if (slc_launch_self(ranks, command, args, more, &code)) fprintf(stderr, "%s: %s\n", who, sluice_last_error());
    return code;
}
