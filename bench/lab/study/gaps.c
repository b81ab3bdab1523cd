/* Compares the slot model's answer with two bounds: of the same positions and ties (search), and of every legal
 * position without ties (proven). The second bound comes in two versions: the LP's, which may take parts of strategies,
 * and the one that branching on strategies makes of it. The plan is compared with the last. */
#include "bench/lab/study/study.h"
#include "ilp/slot_model.h"
#include "lib/base/random.h"
#include "lib/base/median.h"
#include "lib/base/status.h"
#include "sched/study/random_profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PROFILES = 100, STREAM = 0x6a };

typedef struct {
    double search, proven, branched, plan, solve_s;
    double bound_s; /* the branched bound */
} gap;

static sluice_status ask_model(const slc_profile *profile, uint64_t limit, gap *out)
{
    const slc_job *job = &profile->job;
    uint8_t *allowed = malloc((size_t)job->unit_count + 1);
    if (!allowed) return slc_error(SLUICE_ERR_MEMORY, "study");
    memset(allowed, 1 << SLC_SDP | 1 << SLC_FSDP, job->unit_count);
    slc_slot_request ask = {
        .job = job, .times = &profile->times, .allowed = allowed, .limit = limit, .time_limit_s = 5, .gap = 0.003};
    slc_slot_solution solution = {0};
    double relaxed_s = 0;
    sluice_status status = slc_slot_model_solve(&ask, &solution);
    if (!status && !solution.found) status = slc_error(SLUICE_ERR_BUDGET, "no answer in time");
    ask.time_limit_s = 60;
    if (!status) status = slc_slot_model_bound(&ask, &relaxed_s, &out->bound_s);
    if (!status) {
        out->search = solution.step_s / solution.bound_s - 1;
        out->proven = solution.step_s / relaxed_s - 1;
        out->branched = solution.step_s / out->bound_s - 1;
        out->solve_s = solution.solve_s;
    }
    slc_slot_solution_fini(&solution);
    free(allowed);
    return status;
}

/* Sorts `values`. */
static double quantile(double *values, size_t count, double q)
{
    slc_sort(values, count);
    return values[(size_t)(q * (double)(count - 1) + 0.5)];
}

static void print_row(FILE *out, const char *what, double *values, size_t count, double at_most)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) kept += values[i] <= at_most;
    double median = quantile(values, count, 0.5), ninth = quantile(values, count, 0.9);
    fprintf(out, "%-44s %7.2f %7.2f %7.2f   %zu of %zu within %g %%\n", what, 100 * median, 100 * ninth,
            100 * values[count - 1], kept, count, 100 * at_most);
}

static sluice_status one(const slc_study *study, uint64_t seed, gap *out)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile = NULL;
    slc_joint_answer answer = {0};
    uint64_t least = 0, all_sdp = 0;
    sluice_status status = slc_random_profile(&options, seed, &profile);
    if (!status) status = slc_simple_plan_range(profile, false, &least, &all_sdp);
    double share = (double)slc_random_below(seed, STREAM, 0, 1000) / 1000;
    uint64_t limit = least + (uint64_t)((0.05 + 0.95 * share) * (double)(all_sdp > least ? all_sdp - least : 0));
    if (!status) status = ask_model(profile, limit, out);
    if (!status) status = slc_study_joint(study, profile, limit, false, &answer);
    if (!status) {
        out->plan = answer.forecast.step_s / out->bound_s - 1;
        json_array_append_new(study->rows, json_pack("{s:s, s:I, s:i, s:I, s:f, s:f, s:f, s:f, s:f}", "study", "gaps",
                                                     "seed", (json_int_t)seed, "layers", (int)profile->job.layer_count,
                                                     "limit_bytes", (json_int_t)limit, "gap_search", out->search,
                                                     "gap_proven_lp", out->proven, "gap_proven", out->branched,
                                                     "plan_above_bound", out->plan, "solve_s", out->solve_s));
    }
    slc_plan_destroy(answer.plan);
    slc_profile_destroy(profile);
    return slc_error_context(status, "profile of seed %" PRIu64, seed);
}

sluice_status slc_study_gaps(const slc_study *study)
{
    uint32_t count = study->count ? study->count : PROFILES;
    double *values = malloc(4 * (size_t)count * sizeof *values);
    if (!values) return slc_error(SLUICE_ERR_MEMORY, "study");
    double *search = values, *proven = values + count, *branched = proven + count, *plan = branched + count;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < count; i++) {
        gap g = {0};
        status = one(study, study->seed + i, &g);
        search[i] = g.search;
        proven[i] = g.proven;
        branched[i] = g.branched;
        plan[i] = g.plan;
    }
    if (!status) {
        fprintf(study->out, "%-44s %7s %7s %7s\n", "gap in % (drawn profiles and budgets)", "median", "90th", "most");
        print_row(study->out, "search: model against its own bound", search, count, 0.01);
        print_row(study->out, "proven: against every position, no ties, LP", proven, count, 0.05);
        print_row(study->out, "the same, branched on strategies", branched, count, 0.05);
        print_row(study->out, "the plan, simulated, against the same", plan, count, 0.05);
    }
    free(values);
    return status;
}
