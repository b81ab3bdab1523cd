/* Compares the slot model's answer with two bounds: one for the same positions and ties (search), and one for every
 * legal position without ties (proven). The second bound is found twice: by the LP, which may take parts of strategies,
 * and by branching on strategies. The plan is compared with the branched bound, and the difference is divided by its
 * causes (sched/planner/distance.h). The plan is also compared with the fastest baseline of the same budget.
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/lab/study/kept_rows.h"
#include "ilp/slot_model.h"
#include "lib/base/numbers/random.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"
#include "sched/planner/distance.h"
#include "sched/study/random_profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PROFILES = 100, STREAM = 0x6a, WORST = 5 };

/* The figures of a profile: shares by which one thing is above another. PARTS is the first part of the plan's distance
 * to the branched bound. */
enum { SEARCH, PROVEN, BRANCHED, PLAN, PARTS, FIGURES = PARTS + SLC_DISTANCE_PARTS };

typedef struct {
    uint64_t seed, limit;
    double above[FIGURES];
    double bound_s; /* the branched bound */
    double solve_s, plan_s;
    double baseline_s; /* step of the fastest uniform strategy under any baseline; 0: none fits */
} gap;

static sluice_status ask_model(const slc_profile *profile, uint64_t limit, gap *out)
{
    const slc_job *job = &profile->job;
    uint8_t *allowed = malloc((size_t)job->unit_count + 1);
    if (!allowed) return slc_error(SLUICE_ERR_MEMORY, "study");
    memset(allowed, 1 << SLC_SDP | 1 << SLC_FSDP, job->unit_count);
    slc_slot_request ask = {
        .job = job, .times = &profile->times, .allowed = allowed, .limit = limit, .effort_s = 5, .gap = 0.003};
    slc_slot_solution solution = {0};
    double relaxed_s = 0;
    sluice_status status = slc_slot_model_solve(&ask, &solution);
    if (!status && !solution.found) status = slc_error(SLUICE_ERR_BUDGET, "no answer in time");
    ask.effort_s = 60;
    ask.gap = 1e-4; /* a bound is lower by so much than where branching stops */
    if (!status) status = slc_slot_model_bound(&ask, &relaxed_s, &out->bound_s);
    if (!status && !(relaxed_s > 0)) status = slc_error(SLUICE_ERR_BUDGET, "no bound in time");
    if (!status) {
        out->above[SEARCH] = solution.step_s / solution.bound_s - 1;
        out->above[PROVEN] = solution.step_s / relaxed_s - 1;
        out->above[BRANCHED] = solution.step_s / out->bound_s - 1;
        out->solve_s = solution.solve_s;
    }
    slc_slot_solution_fini(&solution);
    free(allowed);
    return status;
}

/* Compares the joint plan with the branched bound. */
static sluice_status compare_plan(const slc_profile *profile, uint64_t limit, const slc_joint_answer *answer, gap *out)
{
    const slc_joint_request ask = {.job = &profile->job, .times = &profile->times, .limit = limit};
    slc_plan_distance distance;
    sluice_status status = slc_distance_find(&ask, answer, out->bound_s, 60, &distance);
    if (!status && !distance.known) status = slc_error(SLUICE_ERR_BUDGET, "the model has no answer for the plan");
    out->above[PLAN] = answer->forecast.step_s / out->bound_s - 1;
    for (int k = 0; k < SLC_DISTANCE_PARTS; k++) out->above[PARTS + k] = distance.part_s[k] / out->bound_s;
    return status;
}

static sluice_status compare_baseline(const slc_profile *profile, uint64_t limit, const slc_joint_answer *answer,
                                      gap *out)
{
    slc_simple_plan best = {0};
    sluice_status status = slc_simple_plan_fastest_uniform(profile, limit, &best);
    out->plan_s = answer->forecast.step_s;
    out->baseline_s = best.step_s;
    return status;
}

static sluice_status measure(const slc_study *study, const slc_profile *profile, gap *out)
{
    slc_joint_answer answer = {0};
    sluice_status status = ask_model(profile, out->limit, out);
    if (!status) status = slc_study_joint(study, profile, out->limit, false, &answer);
    if (!status) status = compare_plan(profile, out->limit, &answer, out);
    if (!status) status = compare_baseline(profile, out->limit, &answer, out);
    slc_plan_destroy(answer.plan);
    return status;
}

/* ---- Rows ---- */

static const char *const figure_names[PARTS] = {"gap_search", "gap_proven_lp", "gap_proven", "plan_above_bound"};

static void name_figure(int figure, char name[static 32])
{
    if (figure < PARTS)
        snprintf(name, 32, "%s", figure_names[figure]);
    else
        snprintf(name, 32, "above_by_%s", slc_distance_part_name(figure - PARTS));
}

/* Makes the key of a row: a row that was kept with an equal key is not measured again. */
static json_t *key_of(const slc_study *study, const slc_profile *profile, const gap *g)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:f, s:I}", "study", "gaps", "seed", (json_int_t)g->seed, "layers",
                     (json_int_t)profile->job.layer_count, "limit_bytes", (json_int_t)g->limit, "asked_effort_s",
                     study->effort_s, "steps", (json_int_t)study->steps);
}

static json_t *figures_of(const gap *g)
{
    json_t *row = json_pack("{s:f, s:f, s:f}", "bound_s", g->bound_s, "solve_s", g->solve_s, "plan_s", g->plan_s);
    json_object_set_new(row, "fastest_baseline_s", g->baseline_s > 0 ? json_real(g->baseline_s) : json_null());
    for (int k = 0; k < FIGURES; k++) {
        char name[32];
        name_figure(k, name);
        json_object_set_new(row, name, json_real(g->above[k]));
    }
    return row;
}

static void read_figures(const json_t *row, gap *out)
{
    out->bound_s = json_number_value(json_object_get(row, "bound_s"));
    out->solve_s = json_number_value(json_object_get(row, "solve_s"));
    out->plan_s = json_number_value(json_object_get(row, "plan_s"));
    out->baseline_s = json_number_value(json_object_get(row, "fastest_baseline_s"));
    for (int k = 0; k < FIGURES; k++) {
        char name[32];
        name_figure(k, name);
        out->above[k] = json_number_value(json_object_get(row, name));
    }
}

/* Measures a profile, or takes its row that was kept. */
static sluice_status measure_profile(const slc_study *study, uint64_t seed, gap *out)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile = NULL;
    uint64_t least = 0, all_sdp = 0;
    out->seed = seed;
    sluice_status status = slc_random_profile(&options, seed, &profile);
    if (!status) status = slc_simple_plan_range(profile, false, &least, &all_sdp);
    double share = (double)slc_random_below(seed, STREAM, 0, 1000) / 1000;
    out->limit = least + (uint64_t)((0.05 + 0.95 * share) * (double)(all_sdp > least ? all_sdp - least : 0));
    json_t *key = status ? NULL : key_of(study, profile, out);
    const json_t *kept = key ? slc_study_kept_row(study, key) : NULL;
    if (kept) read_figures(kept, out);
    if (!status && !kept) status = measure(study, profile, out);
    if (!status && !kept) status = slc_study_keep_row(study, key, figures_of(out));
    json_decref(key);
    slc_profile_destroy(profile);
    return slc_error_context(status, "profile of seed %" PRIu64, seed);
}

/* ---- The table ---- */

static void print_profile(FILE *out, const gap *g, uint32_t number, uint32_t count)
{
    fprintf(out, "%u of %u: seed %" PRIu64 ", %.1f MB: a step of %.3f ms, %.2f %% above the bound\n", number, count,
            g->seed, (double)g->limit / 1e6, 1e3 * g->plan_s, 100 * g->above[PLAN]);
    fflush(out);
}

/* Prints median, 90th percentile and most of a figure; `room` has one place for each gap. */
static void print_row(FILE *out, const char *what, const gap *gaps, uint32_t count, int figure, double at_most,
                      double *room)
{
    uint32_t within = 0;
    for (uint32_t i = 0; i < count; i++) {
        room[i] = gaps[i].above[figure];
        within += room[i] <= at_most;
    }
    slc_sort(room, count);
    const double middle = room[(size_t)(0.5 * (count - 1) + 0.5)], ninth = room[(size_t)(0.9 * (count - 1) + 0.5)];
    fprintf(out, "%-44s %7.2f %7.2f %7.2f   %u of %u within %g %%\n", what, 100 * middle, 100 * ninth,
            100 * room[count - 1], within, count, 100 * at_most);
}

static int farther(const void *a, const void *b)
{
    const gap *x = a, *y = b;
    return (x->above[PLAN] < y->above[PLAN]) - (x->above[PLAN] > y->above[PLAN]);
}

/* Names the profiles whose plans are farthest from the bound, with the largest part of each distance. */
static void print_worst(FILE *out, gap *gaps, uint32_t count)
{
    qsort(gaps, count, sizeof *gaps, farther);
    fprintf(out, "farthest from the bound:");
    for (uint32_t i = 0; i < count && i < WORST; i++) {
        int most = PARTS;
        for (int k = PARTS; k < FIGURES; k++)
            if (gaps[i].above[k] > gaps[i].above[most]) most = k;
        fprintf(out, "%s seed %" PRIu64 " %.1f %% (%s %.1f)", i ? "," : "", gaps[i].seed, 100 * gaps[i].above[PLAN],
                slc_distance_part_name(most - PARTS), 100 * gaps[i].above[most]);
    }
    fputc('\n', out);
}

static void print_baselines(FILE *out, const gap *gaps, uint32_t count)
{
    uint32_t fits = 0, slower = 0;
    double gain = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!(gaps[i].baseline_s > 0)) continue;
        fits++;
        slower += gaps[i].plan_s > gaps[i].baseline_s * (1 + 1e-9);
        gain += 1 - gaps[i].plan_s / gaps[i].baseline_s;
    }
    fprintf(out, "a baseline fits in %u of %u and is faster in %u; the plan is %.1f %% faster in the mean\n", fits,
            count, slower, fits ? 100 * gain / fits : 0);
}

static void print_table(FILE *out, gap *gaps, uint32_t count, double *room)
{
    fprintf(out, "%-44s %7s %7s %7s\n", "gap in % (drawn profiles and budgets)", "median", "90th", "most");
    print_row(out, "search: model against its own bound", gaps, count, SEARCH, 0.01, room);
    print_row(out, "proven: against every position, no ties, LP", gaps, count, PROVEN, 0.05, room);
    print_row(out, "the same, branched on strategies", gaps, count, BRANCHED, 0.05, room);
    print_row(out, "the plan, simulated, against the same", gaps, count, PLAN, 0.05, room);
    for (int k = 0; k < SLC_DISTANCE_PARTS; k++) {
        char what[40];
        snprintf(what, sizeof what, "  that part of it: %s", slc_distance_part_name(k));
        print_row(out, what, gaps, count, PARTS + k, 0.01, room);
    }
    print_worst(out, gaps, count);
    print_baselines(out, gaps, count);
}

sluice_status slc_study_gaps(const slc_study *study)
{
    uint32_t count = study->count ? study->count : PROFILES;
    gap *gaps = calloc(count, sizeof *gaps);
    double *room = malloc(count * sizeof *room);
    sluice_status status = gaps && room ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "study");
    if (!status) status = slc_study_read_rows(study);
    for (uint32_t i = 0; !status && i < count; i++) {
        status = measure_profile(study, study->seed + i, &gaps[i]);
        if (!status) print_profile(study->out, &gaps[i], i + 1, count);
    }
    if (!status) print_table(study->out, gaps, count, room);
    free(room);
    free(gaps);
    return status;
}
