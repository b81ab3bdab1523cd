/* Plans published models on several clusters within several budgets, and holds each plan against what others find: the
 * schedule portfolio, without the slot model, the best uniform strategy under any baseline, and mixtures as a hand
 * makes them (the largest units fsdp, the rest sdp). No valid plan may lie below the plan's bound, and more memory may
 * not make a plan slower. It takes hours, so rows are kept as they come, and a study goes on where it was ended.
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/lab/study/kept_rows.h"
#include "bench/lab/study/study.h"
#include "lib/base/clock.h"
#include "lib/base/numbers/median.h"
#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "sched/study/published.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGETS = 5, STREAM = 0x70, HANDS = 3, DRAWS = 1000 };

static const char *const clusters[] = {"8xcpu-10gbit", "16xV100-25gbit", "64xA100-200gbit"};
enum { CLUSTERS = sizeof clusters / sizeof *clusters };

/* A plan beside the others for the same budget; seconds of a step, 0: none fits. */
typedef struct {
    double plan_s, bound_s, portfolio_s, uniform_s, hand_s;
    double effort_s, planning_s;
    double less_s; /* of the fastest plan for less memory */
} row;

/* Sums and largest values over all rows. */
typedef struct {
    uint32_t plans, slower, below_bound, worse_with_more;
    double *above, most_slower, most_below, most_worse;
} sums;

/* Counts how far the study has come. Plans of many layers take longer, so the time that is left is estimated from the
 * nominal seconds that planning may take, not from the number of plans. */
typedef struct {
    uint32_t plans, planned;
    double efforts_s, planned_efforts_s; /* of all plans; of those that were planned by now, not kept */
    double kept_efforts_s;
    uint64_t start_ns;
} progress;

static int larger(const void *a, const void *b)
{
    const slc_unit *x = *(const slc_unit *const *)a, *y = *(const slc_unit *const *)b;
    return (x->elements < y->elements) - (x->elements > y->elements);
}

/* Gives fsdp to the largest units that hold `share` of all elements, and sdp to the rest. */
static sluice_status mix_by_size(const slc_job *job, double share, slc_strategy *strategies)
{
    const slc_unit **units = malloc(((size_t)job->unit_count + 1) * sizeof *units);
    if (!units) return slc_error(SLUICE_ERR_MEMORY, "%u units", job->unit_count);
    double all = 0, taken = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        units[u] = &job->units[u];
        all += (double)job->units[u].elements;
    }
    qsort(units, job->unit_count, sizeof *units, larger);
    for (uint32_t i = 0; i < job->unit_count; i++) {
        strategies[units[i] - job->units] = taken < share * all ? SLC_FSDP : SLC_SDP;
        taken += (double)units[i]->elements;
    }
    free(units);
    return SLUICE_OK;
}

/* Finds the fastest of the hand's mixtures, each with and without recomputing every layer that can. */
static sluice_status try_hands(const slc_profile *profile, uint64_t limit, slc_free_choices *c, double *step_s)
{
    static const double shares[HANDS] = {0.25, 0.5, 0.75};
    const slc_job *job = &profile->job;
    slc_strategy *strategies = c->strategies + job->unit_count;
    slc_joint_request ask = {.job = job,
                             .times = &profile->times,
                             .strategies = strategies,
                             .recompute = c->recompute,
                             .limit = limit,
                             .quick = true};
    sluice_status status = SLUICE_OK;
    for (int i = 0; !status && i < 2 * HANDS; i++) {
        for (uint32_t l = 0; l < job->layer_count; l++) c->recompute[l] = i % 2 && job->can_recompute[l];
        status = mix_by_size(job, shares[i / 2], strategies);
        if (!status) status = slc_study_try(&ask, step_s);
    }
    return status;
}

static sluice_status measure(const slc_study *study, const slc_profile *profile, uint64_t limit, row *out)
{
    slc_joint_answer answer = {0};
    slc_free_choices c;
    slc_simple_plan uniform = {0};
    sluice_status status = slc_study_joint(study, profile, limit, true, &answer);
    if (!status)
        *out = (row){.plan_s = answer.forecast.step_s,
                     .bound_s = answer.bound_s,
                     .effort_s = answer.effort_s,
                     .planning_s = answer.total_s};
    slc_plan_destroy(answer.plan);
    if (status) return status;
    status = slc_simple_plan_fastest_uniform(profile, limit, &uniform);
    out->uniform_s = uniform.step_s;
    if (!status) status = slc_free_choices_init(&c, &profile->job, true);
    if (status) return status;
    slc_joint_request ask = slc_study_request(profile, &c, limit);
    ask.portfolio = true;
    status = slc_study_try(&ask, &out->portfolio_s);
    if (!status) status = try_hands(profile, limit, &c, &out->hand_s);
    slc_free_choices_fini(&c);
    return status;
}

/* ---- Rows ---- */

/* Share by which `s` is above `than_s`; 0 if there is nothing to compare. */
static double above(double s, double than_s)
{
    return s > 0 && than_s > 0 ? s / than_s - 1 : 0;
}

static double fastest_other(const row *r)
{
    double best_s = 0;
    slc_study_take_faster(r->portfolio_s, &best_s);
    slc_study_take_faster(r->uniform_s, &best_s);
    slc_study_take_faster(r->hand_s, &best_s);
    return best_s;
}

static void count(const row *r, sums *all)
{
    double slower = above(r->plan_s, fastest_other(r)), fastest_s = fastest_other(r);
    slc_study_take_faster(r->plan_s, &fastest_s);
    double below = above(r->bound_s, fastest_s), worse = above(r->plan_s, r->less_s);
    all->above[all->plans++] = r->bound_s > 0 ? above(r->plan_s, r->bound_s) : INFINITY;
    all->slower += slower > 0.001;
    all->below_bound += below > 0.001;
    all->worse_with_more += worse > 0.01;
    all->most_slower = fmax(all->most_slower, slower);
    all->most_below = fmax(all->most_below, below);
    all->most_worse = fmax(all->most_worse, worse);
}

static json_t *seconds(double s)
{
    return s > 0 ? json_real(s) : json_null();
}

/* Makes the key of a row: the model, the cluster, the limit and the settings that it was measured with. A row that was
 * kept with an equal key is not measured again. */
static json_t *key_of(const slc_study *study, const slc_profile *profile, const char *cluster, uint64_t limit)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:I}", "study", "published", "model", profile->model,
                     "cluster", cluster, "source", profile->source, "layers", (json_int_t)profile->job.layer_count,
                     "limit_bytes", (json_int_t)limit, "asked_effort_s", study->effort_s, "steps",
                     (json_int_t)study->steps);
}

static json_t *figures_of(const row *r)
{
    return json_pack("{s:f, s:o, s:o, s:o, s:o, s:f, s:f}", "step_s", r->plan_s, "bound_s", seconds(r->bound_s),
                     "portfolio_s", seconds(r->portfolio_s), "uniform_s", seconds(r->uniform_s), "hand_s",
                     seconds(r->hand_s), "effort_s", r->effort_s, "planning_s", r->planning_s);
}

static row row_of(const json_t *json)
{
    return (row){.plan_s = json_number_value(json_object_get(json, "step_s")),
                 .bound_s = json_number_value(json_object_get(json, "bound_s")),
                 .portfolio_s = json_number_value(json_object_get(json, "portfolio_s")),
                 .uniform_s = json_number_value(json_object_get(json, "uniform_s")),
                 .hand_s = json_number_value(json_object_get(json, "hand_s")),
                 .effort_s = json_number_value(json_object_get(json, "effort_s")),
                 .planning_s = json_number_value(json_object_get(json, "planning_s"))};
}

/* Measures a row, or takes the kept one. */
static sluice_status find_row(const slc_study *study, const slc_profile *profile, const char *cluster, uint64_t limit,
                              row *out, bool *kept)
{
    json_t *key = key_of(study, profile, cluster, limit);
    if (!key) return slc_error(SLUICE_ERR_MEMORY, "study");
    const json_t *found = slc_study_kept_row(study, key);
    sluice_status status = SLUICE_OK;
    *kept = found != NULL;
    if (found)
        *out = row_of(found);
    else
        status = measure(study, profile, limit, out);
    if (!status && !found) status = slc_study_keep_row(study, key, figures_of(out));
    json_decref(key);
    return status;
}

static void print_row(const slc_study *study, const slc_profile *profile, const char *cluster, uint64_t limit,
                      const row *r, const progress *p)
{
    fprintf(study->out, "%-16s %-16s %6u %10.1f %11.3f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %5u/%u",
            profile->model, cluster, profile->job.layer_count, (double)limit / 1e6, 1e3 * r->plan_s,
            100 * above(r->plan_s, r->bound_s), 100 * above(r->plan_s, r->portfolio_s),
            100 * above(r->plan_s, r->uniform_s), 100 * above(r->plan_s, r->hand_s), 100 * above(r->plan_s, r->less_s),
            r->effort_s, r->planning_s, p->planned, p->plans);
    if (p->planned_efforts_s > 0) {
        const double left_s = (p->efforts_s - p->kept_efforts_s - p->planned_efforts_s) / p->planned_efforts_s *
                              slc_seconds(slc_clock_ns() - p->start_ns);
        fprintf(study->out, " %4.0f min", left_s / 60);
    }
    fputc('\n', study->out);
    fflush(study->out);
}

static sluice_status write_profile(const char *folder, const slc_profile *profile, const char *cluster)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s-%s.json", folder, profile->model, cluster);
    if (length < 0 || (size_t)length >= sizeof path) return slc_error(SLUICE_ERR_ARGUMENT, "%s: too long", folder);
    return slc_profile_write(profile, path);
}

/* ---- All together ---- */

static sluice_status make_profile(const slc_study *study, const char *model, uint32_t number, const char *cluster,
                                  slc_profile **out)
{
    double share = (double)slc_random_below(study->seed, STREAM, number, DRAWS) / DRAWS;
    const slc_published_options options = {
        .model = model, .cluster = cluster, .compute_ratio = 0.3 * pow(10, share), .can_recompute = true};
    return slc_published_profile(&options, out);
}

/* Nominal seconds that planning a profile may take. */
static sluice_status effort_of(const slc_study *study, const slc_profile *profile, double *effort_s)
{
    slc_free_choices c;
    sluice_status status = slc_free_choices_init(&c, &profile->job, true);
    if (status) return status;
    slc_joint_request ask = slc_study_request(profile, &c, UINT64_MAX);
    ask.effort_s = study->effort_s;
    *effort_s = slc_joint_effort_s(&ask);
    slc_free_choices_fini(&c);
    return SLUICE_OK;
}

/* Plans one model on one cluster, from the smallest budget that works to the one of sdp for all units. */
static sluice_status sweep(const slc_study *study, const char *model, uint32_t number, const char *cluster, progress *p,
                           sums *all)
{
    uint32_t budgets = study->budgets ? study->budgets : BUDGETS;
    slc_profile *profile = NULL;
    uint64_t least = 0, all_sdp = 0;
    double effort_s = 0, less_s = 0;
    sluice_status status = make_profile(study, model, number, cluster, &profile);
    if (!status && study->profiles) status = write_profile(study->profiles, profile, cluster);
    if (!status) status = effort_of(study, profile, &effort_s);
    if (!status) status = slc_simple_plan_range(profile, true, &least, &all_sdp);
    double range = (double)(all_sdp > least ? all_sdp - least : 0);
    for (uint32_t b = 0; !status && b < budgets; b++) {
        uint64_t limit = least + (uint64_t)(range * b / (budgets > 1 ? budgets - 1 : 1));
        row now = {0};
        bool kept = false;
        status = find_row(study, profile, cluster, limit, &now, &kept);
        if (status) break;
        now.less_s = less_s;
        slc_study_take_faster(now.plan_s, &less_s);
        *(kept ? &p->kept_efforts_s : &p->planned_efforts_s) += effort_s;
        p->planned++;
        print_row(study, profile, cluster, limit, &now, p);
        count(&now, all);
    }
    slc_profile_destroy(profile);
    return slc_error_context(status, "%s on %s", model, cluster);
}

static void print_sums(FILE *out, sums *all)
{
    slc_sort(all->above, all->plans);
    fprintf(out,
            "%u plans: above the bound by %.2f %% in the median, %.2f at the 90th percentile, %.2f at most\n"
            "slower than another by more than 0.1 %%: %u (at most %.2f %%); another below the bound by more than 0.1 "
            "%%: %u (%.2f %%);\nslower with more memory by more than 1 %%: %u (%.2f %%)\n",
            all->plans, 100 * all->above[all->plans / 2], 100 * all->above[(size_t)(0.9 * (all->plans - 1) + 0.5)],
            100 * all->above[all->plans - 1], all->slower, 100 * all->most_slower, all->below_bound,
            100 * all->most_below, all->worse_with_more, 100 * all->most_worse);
}

/* A model on all clusters comes before the next model, so that a study that is ended early has seen all of them. */
typedef struct {
    const char *model, *cluster;
    uint32_t number; /* what its draws are of */
} pairing;

static uint32_t list_pairings(const slc_study *study, pairing *out)
{
    uint32_t models = 0, count = 0;
    while (slc_published_name(models)) models++;
    for (uint32_t i = 0; i < models * CLUSTERS; i++) {
        const uint32_t m = i / CLUSTERS, c = i % CLUSTERS;
        const pairing p = {slc_published_name(m), clusters[c], c * models + m};
        if (study->model && strcmp(study->model, p.model)) continue;
        if (study->cluster && strcmp(study->cluster, p.cluster)) continue;
        if (study->count && count == study->count) break;
        if (out) out[count] = p;
        count++;
    }
    return count;
}

static sluice_status expect(const slc_study *study, const pairing *pairings, uint32_t count, progress *p)
{
    const uint32_t budgets = study->budgets ? study->budgets : BUDGETS;
    sluice_status status = SLUICE_OK;
    *p = (progress){.plans = count * budgets, .start_ns = slc_clock_ns()};
    for (uint32_t i = 0; !status && i < count; i++) {
        slc_profile *profile = NULL;
        double effort_s = 0;
        status = make_profile(study, pairings[i].model, pairings[i].number, pairings[i].cluster, &profile);
        if (!status) status = effort_of(study, profile, &effort_s);
        p->efforts_s += budgets * effort_s;
        slc_profile_destroy(profile);
    }
    return status;
}

sluice_status slc_study_published(const slc_study *study)
{
    const uint32_t budgets = study->budgets ? study->budgets : BUDGETS, count = list_pairings(study, NULL);
    if (!count)
        return slc_error(SLUICE_ERR_ARGUMENT, "no published model \"%s\" on a cluster \"%s\"",
                         study->model ? study->model : "any", study->cluster ? study->cluster : "any");
    pairing *pairings = calloc(count, sizeof *pairings);
    sums all = {.above = calloc((size_t)count * budgets, sizeof *all.above)};
    progress p;
    sluice_status status = pairings && all.above ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "study");
    if (!status) status = slc_study_read_rows(study);
    if (!status) {
        list_pairings(study, pairings);
        status = expect(study, pairings, count, &p);
    }
    fprintf(study->out, "%-16s %-16s %6s %10s %11s %8s %8s %8s %8s %8s %8s %8s %s\n", "model", "cluster", "layers",
            "MB", "step ms", "bound %", "portf. %", "unif. %", "hand %", "less %", "effort s", "clock s",
            "plan, time left");
    for (uint32_t i = 0; !status && i < count; i++)
        status = sweep(study, pairings[i].model, pairings[i].number, pairings[i].cluster, &p, &all);
    if (!status) print_sums(study->out, &all);
    free(all.above);
    free(pairings);
    return status;
}
