/* Compares plans for steps that draw their layers with plans for steps that keep all, on other draws than either was
 * chosen for. tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/lab/study/kept_rows.h"
#include "bench/lab/study/study.h"

#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "sched/study/drawn_plans.h"
#include "sched/study/random_profile.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PROFILES = 50, OTHER_DRAWS = 1000, OTHER_SEED = 77, STREAM = 0x5d };

typedef struct {
    double theta;
    uint64_t limit;
    slc_profile *profile;
} drawn_case;

static double share_of(uint64_t seed, uint64_t index)
{
    return (double)slc_random_below(seed, STREAM, index, 1000) / 1000;
}

/* Draws a profile, theta, and a budget between the smallest and what sdp needs; every second profile may recompute. */
static sluice_status draw_case(uint64_t seed, drawn_case *out)
{
    slc_random_options options = slc_random_defaults();
    uint64_t least = 0, all_sdp = 0;
    *out = (drawn_case){.theta = 0.2 + 0.7 * share_of(seed, 0)};
    sluice_status status = slc_random_profile(&options, seed, &out->profile);
    if (!status) status = slc_simple_plan_range(out->profile, seed % 2, &least, &all_sdp);
    if (!status) status = slc_drawn_plans_set_keeps(out->profile, out->theta);
    const double share = 0.05 + 0.95 * share_of(seed, 1);
    out->limit = least + (uint64_t)(share * (double)(all_sdp > least ? all_sdp - least : 0));
    return status;
}

static sluice_status compare_case(const slc_study *study, uint64_t seed, const drawn_case *c, slc_drawn_plans *found)
{
    slc_free_choices choices;
    sluice_status status = slc_free_choices_init(&choices, &c->profile->job, seed % 2);
    if (status) return status;
    slc_joint_request ask = slc_study_request(c->profile, &choices, c->limit);
    ask.effort_s = study->effort_s;
    ask.steps_left = study->steps;
    status = slc_drawn_plans_compare(&ask, OTHER_DRAWS, OTHER_SEED, found);
    slc_free_choices_fini(&choices);
    return status;
}

/* `key` names the row. */
static sluice_status add_row(const slc_study *study, uint64_t seed, json_t *key)
{
    drawn_case c = {0};
    slc_drawn_plans found;
    sluice_status status = draw_case(seed, &c);
    if (!status) status = compare_case(study, seed, &c, &found);
    json_t *figures =
        status ? NULL
               : json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:s}", "layers", (int)c.profile->job.layer_count,
                           "theta", c.theta, "depth", found.depth, "step_keeping_all_s", found.whole_s,
                           "plan_for_all_s", found.all_s, "plan_for_draws_s", found.drawn_s, "forecast_s", found.said_s,
                           "member", found.member);
    slc_profile_destroy(c.profile);
    return status ? status : slc_study_keep_row(study, key, figures);
}

static double number_of(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

/* Prints a row; *over becomes the share by which the plan for draws is slower than that for all layers. */
static void print_row(const slc_study *study, const json_t *row, double *over)
{
    const double all_s = number_of(row, "plan_for_all_s"), drawn_s = number_of(row, "plan_for_draws_s");
    *over = drawn_s / all_s - 1;
    fprintf(study->out, "%-8.0f %6.0f %6.2f %9.3f %9.3f %9.2f %9.2f  %s\n", number_of(row, "seed"),
            number_of(row, "layers"), number_of(row, "theta"), all_s / number_of(row, "step_keeping_all_s"),
            drawn_s / number_of(row, "step_keeping_all_s"), 100 * *over,
            100 * (number_of(row, "forecast_s") / drawn_s - 1), json_string_value(json_object_get(row, "member")));
    fflush(study->out);
}

sluice_status slc_study_drawn(const slc_study *study)
{
    const uint32_t count = study->count ? study->count : PROFILES;
    double sum = 0, most = -1;
    sluice_status status = slc_study_read_rows(study);
    fprintf(study->out,
            "mean steps over %d drawn steps, in steps that keep all layers: of the plan for all layers, of the plan\n"
            "for draws; by how much this one is slower; by how much its forecast is above its mean\n"
            "%-8s %6s %6s %9s %9s %9s %9s  %s\n",
            OTHER_DRAWS, "seed", "layers", "theta", "for all", "for draws", "slower %", "said %", "plan for draws");
    for (uint32_t i = 0; !status && i < count; i++) {
        const uint64_t seed = study->seed + i;
        double over;
        json_t *key = json_pack("{s:s, s:I}", "study", "drawn", "seed", (json_int_t)seed);
        const json_t *row = slc_study_kept_row(study, key);
        if (!row) status = add_row(study, seed, key);
        if (!status) row = slc_study_kept_row(study, key);
        json_decref(key);
        if (status) break;
        print_row(study, row, &over);
        sum += over;
        if (over > most) most = over;
    }
    if (!status)
        fprintf(study->out, "%u profiles: slower by %.2f %% in the mean, by %.2f %% at most\n", count,
                100 * sum / count, 100 * most);
    return status;
}
