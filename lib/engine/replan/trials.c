/* The play-off of plans. Every plan of a job ends in the same weights, to the bit, so plans are tried in the training
 * itself, and no step is lost: after the plan from measured times has come, the plans that the simulator puts close to
 * it run a few steps each, by turns, and the one whose steps were the shortest stays. That may cost a share of the
 * steps that are left: longer steps of slower plans, moves between plans, and their planning.
 * tests/engine/replan_test.c covers this file. */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/replan/transition.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/drain.h"
#include "lib/plan/strategy_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP_STEPS = 1 }; /* of each turn: they finish what the plan before has left, and find cold memory */

static const double MARGIN = 0.1;             /* a plan that the simulator puts further behind is not tried */
static const double MOST_COST = 0.02;         /* of the time of the steps that are left */
static const double PLANNING_SHARE = 0.25;    /* of that cost */
static const double MEMORY_BYTES_PER_S = 4e9; /* at which a move copies what a rank keeps */
static const double LEAST_GAIN = 0.005;       /* the first plan stays unless another is faster by more */
static const double EFFORT_MIN_S = 0.002, EFFORT_MAX_S = 0.2; /* of one request */

/* ---- Which plans are tried ---- */

/* Requests of which the fastest plan is one candidate. */
typedef struct {
    slc_plan_request of[SLC_EXACT_STRATEGIES];
    const char *name[SLC_EXACT_STRATEGIES];
    uint32_t count;
} rivals;

static double allowed_s(const sluice_runtime *rt)
{
    return MOST_COST * (double)slc_runtime_steps_left(rt) * rt->current.forecast.step_s;
}

static slc_plan_request request_for_trial(const sluice_runtime *rt)
{
    slc_plan_request request = slc_engine_standing_request(rt);
    const double effort_s = allowed_s(rt) * PLANNING_SHARE / SLC_TRIALS_MAX;
    request.times = &rt->current.times;
    request.effort_s = effort_s < EFFORT_MIN_S ? EFFORT_MIN_S : effort_s > EFFORT_MAX_S ? EFFORT_MAX_S : effort_s;
    return request;
}

static void add_rival(rivals *list, const char *name, slc_plan_request request)
{
    list->of[list->count] = request;
    list->name[list->count++] = name;
}

/* Lists a rival for each uniform strategy; there is none if the program asked for one by its name, which stays. */
static rivals uniform_rivals(const sluice_runtime *rt)
{
    static const char *const names[SLC_EXACT_STRATEGIES] = {"uniform " SLC_EXACT_NAMES(, "uniform ")};
    rivals list = {0};
    const char *asked = slc_engine_standing_request(rt).strategy;
    if (strcmp(asked, "auto") && strcmp(asked, "mixed")) return list;
    for (int s = 0; s < SLC_EXACT_STRATEGIES; s++) {
        slc_plan_request request = request_for_trial(rt);
        request.strategy = slc_strategy_name((slc_strategy)s);
        add_rival(&list, names[s], request);
    }
    return list;
}

static rivals simple_rival(const sluice_runtime *rt)
{
    rivals list = {0};
    slc_plan_request request = request_for_trial(rt);
    request.schedule = rt->planning.planner.simple_schedule;
    if (request.schedule) add_rival(&list, "the first plan", request);
    return list;
}

static rivals lane_rivals(const sluice_runtime *rt)
{
    rivals list = {0};
    if (!rt->optimizer.concurrent || rt->planning.updates != SLC_UPDATES_AUTO) return list;
    slc_plan_request request = request_for_trial(rt);
    request.updates = SLC_UPDATES_COMPUTE;
    add_rival(&list, "updates on the compute threads", request);
    request.updates = SLC_UPDATES_COMMUNICATION;
    add_rival(&list, "updates on the communication thread", request);
    return list;
}

/* Lists a rival that recomputes nothing, if the plan that runs recomputes something. `none` says so for each layer. */
static rivals recompute_rival(const sluice_runtime *rt, const uint8_t *none)
{
    rivals list = {0};
    bool recomputes = false;
    for (uint32_t l = 0; l < rt->job.layer_count; l++) recomputes |= rt->current.plan->recompute[l] != 0;
    if (!recomputes || rt->config.recompute != SLUICE_RECOMPUTE_AUTO) return list;
    slc_plan_request request = request_for_trial(rt);
    request.recompute = none;
    add_rival(&list, "nothing recomputed", request);
    return list;
}

static bool is_known(const slc_trials *trials, const slc_plan *first, const slc_plan *plan)
{
    for (uint32_t i = 0; i < trials->count; i++) {
        const slc_plan *other = i == 0 ? first : trials->of[i].answer.plan;
        if (slc_plan_fingerprint(other) == slc_plan_fingerprint(plan)) return true;
    }
    return false;
}

/* Adds the fastest plan of the list, if one is close to the plan that runs. Collective; a list has as many requests on
 * each rank. */
static sluice_status add_best(sluice_runtime *rt, const rivals *list, uint64_t until_ns)
{
    slc_trials *trials = &rt->trials;
    slc_plan_answer answer;
    uint32_t which;
    if (!list->count) return SLUICE_OK;
    const double below_s = rt->current.forecast.step_s * (1 + MARGIN);
    sluice_status status = slc_engine_share_best_plan(rt, list->of, list->count, below_s, until_ns, &answer, &which);
    if (status) return status == SLUICE_ERR_BUDGET ? SLUICE_OK : status;
    if (is_known(trials, rt->current.plan, answer.plan)) {
        slc_plan_destroy(answer.plan);
        return SLUICE_OK;
    }
    slc_trial *trial = &trials->of[trials->count++];
    *trial = (slc_trial){.answer = answer, .name = list->name[which]};
    return SLUICE_OK;
}

static sluice_status add_rivals(sluice_runtime *rt, uint32_t most)
{
    const uint64_t until_ns = slc_clock_ns() + (uint64_t)(1e9 * PLANNING_SHARE * allowed_s(rt));
    uint8_t *none = calloc((size_t)rt->job.layer_count + 1, 1);
    double missing = !none;
    sluice_status status = sluice_world_all_reduce(rt->world, &missing, 1);
    if (!status && missing > 0) status = slc_error(SLUICE_ERR_MEMORY, "plans to try");
    if (!status) {
        const rivals lists[] = {uniform_rivals(rt), lane_rivals(rt), simple_rival(rt), recompute_rival(rt, none)};
        for (size_t i = 0; !status && i < sizeof lists / sizeof *lists && rt->trials.count <= most; i++)
            status = add_best(rt, &lists[i], until_ns);
    }
    free(none);
    return status;
}

/* ---- What they cost ---- */

/* Seconds of moving from one plan to the other; a negative number: no memory for the lists of it. */
static double move_s(const sluice_runtime *rt, const slc_plan *from, const slc_plan *to)
{
    slc_transition transition;
    if (slc_transition_init(&rt->job, from, to, (uint32_t)rt->rank, &transition)) return -1;
    double gathered = 0, moved = 0;
    for (size_t g = 0; g < transition.gather_count; g++)
        gathered += (double)rt->job.units[transition.gathers[g].unit].elements *
                    sluice_dtype_bytes(transition.gathers[g].dtype);
    for (size_t m = 0; m < transition.move_count; m++) moved += (double)transition.moves[m].bytes;
    slc_transition_fini(&transition);
    const slc_link_line *line = &rt->current.times.link.all_gather;
    return moved / MEMORY_BYTES_PER_S + gathered * (rt->size - 1) / rt->size / line->bytes_per_s;
}

/* Returns how many rounds the steps that are left can pay for. Called on rank 0. */
static uint32_t count_rounds(const sluice_runtime *rt)
{
    const slc_trials *trials = &rt->trials;
    const double first_s = rt->current.forecast.step_s;
    double round_s = 0;
    for (uint32_t i = 1; i < trials->count; i++) {
        const double there_s = move_s(rt, rt->current.plan, trials->of[i].answer.plan);
        const double back_s = move_s(rt, trials->of[i].answer.plan, rt->current.plan);
        if (there_s < 0 || back_s < 0) return 0;
        const double behind_s = trials->of[i].answer.forecast.step_s - first_s;
        round_s += there_s + back_s + (behind_s > 0 ? behind_s : 0) * (WARM_UP_STEPS + SLC_TRIAL_STEPS);
    }
    const double room_s = allowed_s(rt) * (1 - PLANNING_SHARE);
    const uint64_t steps = (uint64_t)trials->count * (WARM_UP_STEPS + SLC_TRIAL_STEPS);
    uint32_t rounds = 0;
    while (rounds < SLC_TRIAL_ROUNDS && round_s * (rounds + 1) <= room_s &&
           steps * (rounds + 1) < slc_runtime_steps_left(rt))
        rounds++;
    return rounds;
}

/* ---- The play-off ---- */

void slc_trials_end(sluice_runtime *rt)
{
    slc_trials *trials = &rt->trials;
    for (uint32_t i = 0; i < trials->count; i++) {
        slc_plan_destroy(trials->of[i].answer.plan);
        trials->of[i].answer.plan = NULL;
    }
    if (trials->on) trials->count = 0; /* none of them was decided */
    trials->on = false;
}

sluice_status slc_trials_begin(sluice_runtime *rt)
{
    slc_trials *trials = &rt->trials;
    const uint32_t longest = SLC_TRIALS_MAX - 1;
    uint32_t most = rt->config.replan_trials < longest ? rt->config.replan_trials : longest;
    /* Steps that draw their layers differ by more than the plans do. */
    if (!rt->current.measured || rt->size == 1 || rt->compression.on || rt->planning.kept || rt->drawn.any) most = 0;
    sluice_status status = sluice_world_broadcast(rt->world, &most, sizeof most, 0);
    if (status || !most) return slc_runtime_fail(rt, status);
    slc_kept_error kept; /* that there is no further plan is no error */
    slc_error_keep(&kept);
    trials->count = 1;
    trials->of[0] = (slc_trial){.name = "the planner's",
                                .answer = {.budget_bytes = rt->current.budget_bytes,
                                           .dp_bytes = rt->planning.dp_bytes,
                                           .forecast = rt->current.forecast}};
    memcpy(trials->of[0].answer.member, rt->current.member, sizeof rt->current.member);
    memcpy(trials->of[0].answer.note, rt->current.note, sizeof rt->current.note);
    status = add_rivals(rt, most);
    uint32_t rounds = !status && rt->rank == 0 ? count_rounds(rt) : 0;
    if (!status) status = sluice_world_broadcast(rt->world, &rounds, sizeof rounds, 0);
    trials->on = true;
    if (status || trials->count == 1 || !rounds) slc_trials_end(rt);
    if (status) return slc_runtime_fail(rt, status);
    slc_error_restore(&kept, SLUICE_OK);
    trials->rounds = rounds;
    trials->round = trials->running = trials->turn_steps = 0;
    trials->step_began_ns = slc_clock_ns();
    return SLUICE_OK;
}

/* Trains on under another plan. If memory for moving there is missing, the plan that runs stays for good. */
static sluice_status change_to(sluice_runtime *rt, uint32_t next)
{
    slc_trials *trials = &rt->trials;
    trials->turn_steps = 0;
    if (next == trials->running) return SLUICE_OK;
    sluice_status status = slc_phase_require_equal(rt, "replan");
    if (!status) status = slc_runtime_drain(rt);
    if (status) return status;
    slc_trial *left = &trials->of[trials->running], *taken = &trials->of[next];
    status = slc_engine_change_plan(rt, &taken->answer, &left->answer.plan);
    taken->answer.plan = NULL;
    if (!status) trials->running = next;
    if (status != SLUICE_ERR_MEMORY || rt->failure.status) return status;
    slc_trials_end(rt); /* on every rank; training goes on with the plan that runs */
    return SLUICE_OK;
}

/* Finds the median step of each plan that was tried. Ranks agree on the slowest one's times first, so the medians are
 * the same on every rank. */
static sluice_status find_medians(sluice_runtime *rt)
{
    slc_trials *trials = &rt->trials;
    for (uint32_t i = 0; i < trials->count; i++) {
        slc_trial *trial = &trials->of[i];
        sluice_status status = slc_measure_slowest(rt, trial->step_s, trial->steps);
        if (status) return status;
        trial->measured_s = slc_median(trial->step_s, trial->steps);
    }
    return SLUICE_OK;
}

static uint32_t find_fastest(const slc_trials *trials)
{
    uint32_t fastest = 0;
    for (uint32_t i = 1; i < trials->count; i++) {
        const double best_s = trials->of[fastest].measured_s;
        if (trials->of[i].measured_s < best_s * (fastest == 0 ? 1 - LEAST_GAIN : 1)) fastest = i;
    }
    return fastest;
}

static void tell_result(const slc_trials *trials)
{
    for (uint32_t i = 0; i < trials->count; i++)
        slc_log(SLC_LOG_INFO, "plan tried: %s, predicted %.3g ms, measured %.3g ms%s", trials->of[i].name,
                1e3 * trials->of[i].answer.forecast.step_s, 1e3 * trials->of[i].measured_s,
                i == trials->kept ? ", stays" : "");
}

static sluice_status decide(sluice_runtime *rt)
{
    slc_trials *trials = &rt->trials;
    sluice_status status = slc_runtime_fail(rt, find_medians(rt));
    if (status) return status;
    trials->kept = find_fastest(trials);
    status = change_to(rt, trials->kept);
    if (status || !trials->on) return status;
    trials->on = false; /* before the end, which forgets a play-off without a result */
    slc_trials_end(rt);
    if (rt->rank == 0) tell_result(trials);
    return SLUICE_OK;
}

sluice_status slc_trials_after_step(sluice_runtime *rt)
{
    slc_trials *trials = &rt->trials;
    slc_trial *trial = &trials->of[trials->running];
    const double step_s = slc_seconds(slc_clock_ns() - trials->step_began_ns);
    if (++trials->turn_steps > WARM_UP_STEPS) trial->step_s[trial->steps++] = step_s;
    sluice_status status = SLUICE_OK;
    if (trials->turn_steps == WARM_UP_STEPS + SLC_TRIAL_STEPS) {
        const uint32_t next = (trials->running + 1) % trials->count;
        if (next == 0) trials->round++;
        status = trials->round == trials->rounds ? decide(rt) : change_to(rt, next);
    }
    trials->step_began_ns = slc_clock_ns();
    return status;
}
