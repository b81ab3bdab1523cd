/* Finds budgets: rank 0 measures and plans, and tells the others. tests/command/measure/bench_test.sh covers this file.
 */
#include "bench/sweep/budgets.h"

#include "bench/sweep/survey.h"
#include "sched/joint/simple_plans.h"
#include "lib/base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

sluice_status slc_bench_budget_ends(const slc_profile *profile, bool recompute, uint64_t *least, uint64_t *all_sdp)
{
    sluice_status status = slc_simple_plan_range(profile, recompute, least, all_sdp);
    if (status) return status;
    *least += profile->job.reserved_bytes;
    *all_sdp += profile->job.reserved_bytes;
    if (*all_sdp < *least) *all_sdp = *least;
    return SLUICE_OK;
}

uint64_t slc_bench_budget_between(uint64_t least, uint64_t all_sdp, uint64_t index, uint64_t count)
{
    return least + (uint64_t)((double)(all_sdp - least) * (double)(index + 1) / (double)(count + 1));
}

static sluice_status measure_ends(sluice_world *world, const slc_bench_options *o, const volatile sig_atomic_t *stops,
                                  slc_bench_ends *out)
{
    char path[PATH_BYTES];
    slc_profile *profile;
    *out = (slc_bench_ends){0};
    snprintf(path, sizeof path, "%s/profile.json", o->output);
    sluice_status status = slc_bench_survey(world, &o->training, path, stops, &profile), planned = SLUICE_OK;
    if (!status && profile)
        planned =
            slc_bench_budget_ends(profile, strcmp(o->training.recompute, "none") != 0, &out->least, &out->all_sdp);
    slc_profile_destroy(profile);
    if (planned) *out = (slc_bench_ends){0};
    if (!status) status = sluice_world_broadcast(world, out, sizeof *out, 0);
    if (!status && !out->least) status = planned ? planned : slc_error(SLUICE_ERR_MEMORY, "rank 0 found no budgets");
    return status;
}

static void write_list(FILE *file, const slc_bench_options *o, const slc_bench_ends *found)
{
    for (uint64_t b = 0; b < o->budgets.count; b++) {
        const char *text = o->budgets.text[b];
        uint64_t several = slc_bench_budget_auto(text);
        if (!several) fprintf(file, "%s,", text);
        for (uint64_t i = 0; i < several; i++)
            fprintf(file, "%.2fMiB,",
                    (double)slc_bench_budget_between(found->least, found->all_sdp, i, several) / 0x1p20);
    }
}

bool slc_bench_budgets_are_found(const slc_bench_options *options)
{
    bool any = false;
    for (uint64_t b = 0; b < options->budgets.count; b++) any |= slc_bench_budget_auto(options->budgets.text[b]) > 0;
    return any;
}

sluice_status slc_bench_budgets_set(slc_bench_options *options, const slc_bench_ends *ends)
{
    char *list = NULL;
    size_t size;
    FILE *file = open_memstream(&list, &size);
    if (!file) return slc_error(SLUICE_ERR_MEMORY, "budgets");
    write_list(file, options, ends);
    if (fclose(file)) return slc_error(SLUICE_ERR_MEMORY, "budgets");
    list[strlen(list) - 1] = 0; /* removes the last comma */
    sluice_status status = slc_bench_options_set_budgets(options, list);
    free(list);
    return status;
}

sluice_status slc_bench_budgets_find(sluice_world *world, slc_bench_options *options,
                                     const volatile sig_atomic_t *stops, slc_bench_ends *ends)
{
    if (!slc_bench_budgets_are_found(options)) return SLUICE_OK;
    sluice_status status = sluice_world_broadcast(world, ends, sizeof *ends, 0);
    if (!status && !ends->least) status = measure_ends(world, options, stops, ends);
    return status ? status : slc_bench_budgets_set(options, ends);
}
