/* Takes the planner apart, on drawn profiles: what a step gains by strategies of each layer's own, by a planned order,
 * by operations that are cut into blocks, and by recomputation; each alone, all together, and all but one. An arm that
 * lacks a part has what a trainer without a planner has instead:
 *   strategies      one for all layers, the fastest that fits
 *   order           the fastest baseline
 *   blocks          an operation moves a whole unit
 *   recomputation   none; with it, baselines recompute all layers or none
 * A profile's link is slow, even or fast: computing takes that much shorter or longer than communicating.
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/lab/study/kept_rows.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"
#include "sched/study/random_profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROFILES = 200, BUDGETS = 5 };

/* The parts; an arm is a sum of them. */
enum { STRATEGIES = 1, ORDER = 2, BLOCKS = 4, RECOMPUTATION = 8, ARMS = 16, PARTS = 4 };

static const char *const part_names[PARTS] = {"strategies", "order", "blocks", "recomputation"};

/* Ratios of computing to communicating. */
static const struct {
    const char *name;
    slc_random_range compute_ratio;
} links[] = {{"slow", {0.4, 0.75}}, {"even", {0.75, 1.35}}, {"fast", {1.35, 2.5}}};
enum { LINKS = sizeof links / sizeof *links };

/* One profile within one budget. */
typedef struct {
    uint64_t seed, limit;
    uint32_t link, budget;
    double step_s[ARMS]; /* 0: no plan fits */
} figures;

static void write_arm(int arm, char out[64])
{
    *out = '\0';
    for (int k = 0; k < PARTS; k++)
        if (arm >> k & 1) snprintf(out + strlen(out), 64 - strlen(out), "%s%s", *out ? ", " : "", part_names[k]);
    if (!arm) snprintf(out, 64, "none of them");
}

/* ---- Steps ---- */

/* Draws a profile of a seed and a link. Without `blocks` each operation moves a whole unit; all else is the same. */
static sluice_status draw(uint64_t seed, uint32_t link, bool blocks, slc_profile **out)
{
    slc_random_options options = slc_random_defaults();
    options.compute_ratio = links[link].compute_ratio;
    options.can_recompute = true;
    sluice_status status = slc_random_profile(&options, seed, out);
    for (uint32_t u = 0; !status && !blocks && u < (*out)->job.unit_count; u++)
        (*out)->job.units[u].block_elements = (*out)->job.units[u].elements;
    return status;
}

static sluice_status try_baselines(const slc_profile *profile, const slc_strategy *strategies, const bool *recompute,
                                   uint64_t limit, double *step_s)
{
    slc_simple_plan plan;
    sluice_status status = slc_simple_plan_fastest_order(profile, strategies, recompute, limit, &plan);
    slc_study_take_faster(plan.step_s, step_s);
    return status;
}

/* Tries every uniform strategy under the baselines, and those that the planner offers under its order. */
static sluice_status try_uniform(const slc_study *study, const slc_profile *profile, uint64_t limit,
                                 slc_free_choices *c, bool recompute, double step_s[ARMS])
{
    const slc_job *job = &profile->job;
    slc_strategy *strategies = c->strategies + job->unit_count;
    slc_joint_request ask = slc_study_request(profile, c, limit);
    sluice_status status = SLUICE_OK;
    ask.strategies = strategies;
    ask.effort_s = study->effort_s;
    for (int k = 0; !status && k < SLC_EXACT_STRATEGIES; k++) {
        for (uint32_t u = 0; u < job->unit_count; u++)
            strategies[u] = slc_unit_strategy(job, &job->units[u], (slc_strategy)k);
        status = try_baselines(profile, strategies, NULL, limit, &step_s[0]);
        for (uint32_t l = 0; l < job->layer_count; l++) c->recomputed[l] = true;
        if (!status && recompute) status = try_baselines(profile, strategies, c->recomputed, limit, &step_s[0]);
        if (!status && (k == SLC_SDP || k == SLC_FSDP)) status = slc_study_try(&ask, &step_s[ORDER]);
    }
    return status;
}

/* The plan with all choices free, and the baselines on its strategies and on the mixtures of the portfolio. */
static sluice_status try_adaptive(const slc_study *study, const slc_profile *profile, uint64_t limit,
                                  const slc_free_choices *c, double step_s[ARMS])
{
    slc_joint_request ask = slc_study_request(profile, c, limit);
    slc_joint_answer answer = {0};
    ask.effort_s = study->effort_s;
    sluice_status status = slc_joint_plan(&ask, &answer, NULL);
    if (status) return status == SLUICE_ERR_BUDGET ? SLUICE_OK : status;
    step_s[STRATEGIES + ORDER] = answer.forecast.step_s;
    ask.portfolio = ask.quick = true;
    ask.effort_s = 0; /* nothing is searched, and all baselines are tried */
    status = try_baselines(profile, answer.plan->strategies, answer.plan->recompute, limit, &step_s[STRATEGIES]);
    if (!status) status = slc_study_try(&ask, &step_s[STRATEGIES]);
    slc_plan_destroy(answer.plan);
    return status;
}

/* Fills the arms with and without these two parts. */
static sluice_status measure_arms(const slc_study *study, const slc_profile *profile, uint64_t limit, int parts,
                                  double step_s[ARMS])
{
    slc_free_choices c;
    sluice_status status = slc_free_choices_init(&c, &profile->job, parts & RECOMPUTATION);
    if (status) return status;
    status = try_uniform(study, profile, limit, &c, parts & RECOMPUTATION, step_s + parts);
    if (!status) status = try_adaptive(study, profile, limit, &c, step_s + parts);
    slc_free_choices_fini(&c);
    return status;
}

/* ---- Rows ---- */

static void print_figures(const slc_study *study, const slc_profile *profile, double share, const figures *f)
{
    const double none_s = f->step_s[0], all_s = f->step_s[ARMS - 1];
    fprintf(study->out, "%-8" PRIu64 " %6u %-5s %5.0f %% %10.1f %10.3f %10.3f\n", f->seed, profile->job.layer_count,
            links[f->link].name, 100 * share, (double)f->limit / 1e6, none_s, all_s);
    fflush(study->out);
}

/* Makes the key of a row: a row that was kept with an equal key is not measured again. */
static json_t *key_of(const slc_study *study, const slc_profile *profile, double share, const figures *f)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:f, s:I, s:f}", "study", "ablation", "seed", (json_int_t)f->seed,
                     "layers", (json_int_t)profile->job.layer_count, "world", (json_int_t)profile->job.world,
                     "micro_batches", (json_int_t)profile->job.micro_batches, "link", links[f->link].name,
                     "budget_share", share, "limit_bytes", (json_int_t)f->limit, "asked_effort_s", study->effort_s);
}

static json_t *figures_of(const figures *f)
{
    json_t *steps = json_object();
    for (int arm = 0; arm < ARMS; arm++) {
        char name[64];
        write_arm(arm, name);
        json_object_set_new(steps, name, f->step_s[arm] > 0 ? json_real(f->step_s[arm]) : json_null());
    }
    return json_pack("{s:o}", "step_s", steps);
}

static void read_figures(const json_t *row, figures *out)
{
    const json_t *steps = json_object_get(row, "step_s");
    for (int arm = 0; arm < ARMS; arm++) {
        char name[64];
        write_arm(arm, name);
        out->step_s[arm] = json_number_value(json_object_get(steps, name));
    }
}

/* Measures the arms within one budget, or takes their row that was kept. */
static sluice_status find_row(const slc_study *study, const slc_profile *cut, const slc_profile *whole, double share,
                              figures *f)
{
    json_t *key = key_of(study, cut, share, f);
    const json_t *kept = key ? slc_study_kept_row(study, key) : NULL;
    sluice_status status = key ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "study");
    if (kept) read_figures(kept, f);
    for (int parts = 0; !status && !kept && parts < ARMS; parts += BLOCKS)
        status = measure_arms(study, parts & BLOCKS ? cut : whole, f->limit, parts, f->step_s);
    if (!status && !kept) status = slc_study_keep_row(study, key, figures_of(f));
    if (!status) print_figures(study, cut, share, f);
    json_decref(key);
    return status;
}

/* Measures one profile within all budgets, from the smallest that works without recomputation to that of sdp. */
static sluice_status measure_profile(const slc_study *study, uint64_t seed, uint32_t budgets, figures *out)
{
    const uint32_t link = (uint32_t)(seed % LINKS);
    slc_profile *cut = NULL, *whole = NULL;
    uint64_t least = 0, all_sdp = 0;
    sluice_status status = draw(seed, link, true, &cut);
    if (!status) status = draw(seed, link, false, &whole);
    if (!status) status = slc_simple_plan_range(cut, false, &least, &all_sdp);
    const double range = all_sdp > least ? (double)(all_sdp - least) : 0;
    for (uint32_t b = 0; !status && b < budgets; b++) {
        const double share = budgets > 1 ? (double)b / (budgets - 1) : 0;
        figures *f = &out[b];
        *f = (figures){.seed = seed, .limit = least + (uint64_t)(share * range), .link = link, .budget = b};
        status = find_row(study, cut, whole, share, f);
    }
    slc_profile_destroy(cut);
    slc_profile_destroy(whole);
    return slc_error_context(status, "profile of seed %" PRIu64, seed);
}

/* ---- Tables ---- */

/* Cases that a table's column looks at; LINKS or the number of budgets: all. */
typedef struct {
    const figures *all;
    uint32_t count, link, budget;
    uint32_t budgets;
    double *room; /* [count] */
} cases;

/* Collects how many times faster `arm` is than `than`, where both fit. *only is how often only `arm` fits. */
static uint32_t speed_ups(const cases *c, int arm, int than, uint32_t *only)
{
    uint32_t both = 0;
    *only = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const figures *f = &c->all[i];
        if ((c->link < LINKS && f->link != c->link) || (c->budget < c->budgets && f->budget != c->budget)) continue;
        if (f->step_s[arm] > 0 && f->step_s[than] > 0) c->room[both++] = f->step_s[than] / f->step_s[arm];
        *only += f->step_s[arm] > 0 && !(f->step_s[than] > 0);
    }
    slc_sort(c->room, both);
    return both;
}

static double mean(const double *values, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += values[i];
    return count ? sum / count : NAN;
}

static double at_share(const double *sorted, uint32_t count, double share)
{
    return count ? sorted[(size_t)(share * (count - 1) + 0.5)] : NAN;
}

static void print_arms(FILE *out, const cases *c)
{
    fprintf(out, "\nstep of none of the parts over that of each arm, where both fit\n%-48s %5s %5s %6s %6s %6s %6s\n",
            "arm", "cases", "more", "mean", "10th", "median", "90th");
    for (int arm = 0; arm < ARMS; arm++) {
        char name[64];
        uint32_t only;
        const uint32_t both = speed_ups(c, arm, 0, &only);
        write_arm(arm, name);
        fprintf(out, "%-48s %5u %5u %6.3f %6.3f %6.3f %6.3f\n", name, both, only, mean(c->room, both),
                at_share(c->room, both, 0.1), at_share(c->room, both, 0.5), at_share(c->room, both, 0.9));
    }
    fprintf(out, "more: cases in which the arm fits and none of the parts does\n");
}

static void print_cell(FILE *out, const cases *c, int arm, int than)
{
    uint32_t only;
    const uint32_t both = speed_ups(c, arm, than, &only);
    char faster[16] = "-", fits[16] = "";
    if (both) snprintf(faster, sizeof faster, "%.3f", mean(c->room, both));
    if (only) snprintf(fits, sizeof fits, "+%u", only);
    fprintf(out, " %6s%-5s", faster, fits);
}

static void print_cells(FILE *out, const cases *all, const char *name, int arm, int than)
{
    cases c = *all;
    fprintf(out, "%-14s", name);
    for (c.budget = 0; c.budget < all->budgets; c.budget++) print_cell(out, &c, arm, than);
    for (c.link = 0; c.link < LINKS; c.link++) print_cell(out, &c, arm, than);
    print_cell(out, all, arm, than);
    fputc('\n', out);
}

/* Prints by budget and by link how many times faster each part makes the step: added to none, or to all others. */
static void print_parts(FILE *out, const cases *all, bool to_others)
{
    fprintf(out, "\nmean speed-up by a part that is added to %s; +N: fits in N cases only with it\n%-14s",
            to_others ? "all others" : "none", "part");
    for (uint32_t b = 0; b < all->budgets; b++)
        fprintf(out, " %5.0f %%    ", all->budgets > 1 ? 100.0 * b / (all->budgets - 1) : 0);
    for (uint32_t l = 0; l < LINKS; l++) fprintf(out, " %6s     ", links[l].name);
    fprintf(out, " %6s\n", "all");
    for (int k = 0; k < PARTS; k++) {
        const int than = to_others ? ARMS - 1 - (1 << k) : 0;
        print_cells(out, all, part_names[k], than + (1 << k), than);
    }
    if (!to_others) print_cells(out, all, "all four", ARMS - 1, 0);
}

sluice_status slc_study_ablation(const slc_study *study)
{
    const uint32_t profiles = study->count ? study->count : PROFILES;
    const uint32_t budgets = study->budgets ? study->budgets : BUDGETS, count = profiles * budgets;
    figures *all = calloc(count, sizeof *all);
    double *room = calloc(count, sizeof *room);
    fprintf(study->out, "steps in seconds, 0: no plan fits\n%-8s %6s %-5s %7s %10s %10s %10s\n", "seed", "layers",
            "link", "budget", "MB", "no part", "all parts");
    sluice_status status = all && room ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "study");
    if (!status) status = slc_study_read_rows(study);
    for (uint32_t i = 0; !status && i < profiles; i++)
        status = measure_profile(study, study->seed + i, budgets, &all[(size_t)i * budgets]);
    if (!status) {
        const cases c = {
            .all = all, .count = count, .link = LINKS, .budget = budgets, .budgets = budgets, .room = room};
        fprintf(study->out,
                "%u drawn profiles, %u budgets each (0 %%: the smallest that works, 100 %%: what sdp needs)\n",
                profiles, budgets);
        print_arms(study->out, &c);
        print_parts(study->out, &c, false);
        print_parts(study->out, &c, true);
    }
    free(room);
    free(all);
    return status;
}
