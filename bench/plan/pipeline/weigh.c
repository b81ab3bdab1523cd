/* tests/command/plan/pipeline_command_test.sh covers this file. */
#include "bench/plan/pipeline/weigh.h"

#include "bench/plan/words/budget_text.h"
#include "bench/plan/words/quantities.h"
#include "lib/base/status.h"
#include "lib/base/text/size_text.h"

#include <math.h>
#include <string.h>

typedef struct {
    const slc_pipeline_options *options;
    slc_profile *profile;
    const char *strategy, *recompute, *budget;
    uint32_t ranks, micro_batches; /* of the profile as it was; of a rank without a pipeline */
    slc_weighing *out;
} comparison;

/* Notes why this way cannot be taken. It is no error of the whole if a plan does not fit or there are too few
 * layers. */
static sluice_status take_why(sluice_status status, slc_weighed *way)
{
    if (status != SLUICE_ERR_BUDGET && status != SLUICE_ERR_ARGUMENT) return status;
    way->step_s = INFINITY;
    snprintf(way->why, sizeof way->why, "%s", sluice_last_error());
    return SLUICE_OK;
}

static sluice_status weigh_without(const comparison *w)
{
    slc_weighed *way = &w->out->ways[w->out->count++];
    slc_pipeline_rival rival = {0};
    *way = (slc_weighed){.stages = 1, .micro_batches = w->micro_batches, .step_s = INFINITY};
    sluice_status status = slc_pipelined_without(w->profile, w->micro_batches, w->recompute, w->budget, &rival);
    if (status) return status;
    if (!(rival.step_s > 0)) {
        snprintf(way->why, sizeof way->why, "no plan fits the budget");
        return SLUICE_OK;
    }
    way->step_s = rival.step_s;
    way->exposed_s = rival.exposed_s;
    way->bytes = rival.bytes;
    return SLUICE_OK;
}

static uint64_t most_bytes(const slc_pipelined *made)
{
    uint64_t most = 0;
    for (uint32_t s = 0; s < made->request.shape.stages; s++)
        if (made->plan.bytes[s] > most) most = made->plan.bytes[s];
    return most;
}

static sluice_status weigh_stages(const comparison *w, uint32_t stages, const char *schedule)
{
    slc_weighed *way = &w->out->ways[w->out->count++];
    slc_pipeline_options one = *w->options;
    slc_pipelined made;
    one.stages = stages;
    one.schedule = schedule;
    one.micro_batches = w->micro_batches * stages;
    one.alone = true;
    *way = (slc_weighed){.stages = stages, .micro_batches = one.micro_batches, .schedule = schedule};
    sluice_status status = slc_pipelined_make(&one, w->profile, w->strategy, w->recompute, w->budget, &made);
    if (!status) {
        way->step_s = made.plan.forecast.step_s + w->profile->times.outside_s;
        way->idle_share = made.plan.forecast.idle_share;
        way->bytes = most_bytes(&made);
    } else {
        status = take_why(status, way);
    }
    slc_pipelined_fini(&made);
    w->profile->job.micro_batches = w->micro_batches;
    sluice_status back = slc_profile_set_world(w->profile, w->ranks);
    return status ? status : back;
}

static sluice_status weigh_all(const comparison *w)
{
    static const char *const usual[] = {"1f1b", "interleaved"};
    const bool named = strcmp(w->options->schedule, usual[0]) != 0;
    sluice_status status = weigh_without(w);
    for (uint32_t p = 2; !status && p <= w->ranks && w->out->count + 2 <= SLC_WEIGHED_MAX; p++) {
        if (w->ranks % p) continue;
        for (int s = 0; !status && s < (named ? 1 : 2); s++)
            status = weigh_stages(w, p, named ? w->options->schedule : usual[s]);
    }
    return status;
}

sluice_status slc_pipelines_weigh(const slc_pipeline_options *options, slc_profile *profile, const char *strategy,
                                  const char *recompute, const char *budget, slc_weighing *out)
{
    const uint32_t kept = profile->job.micro_batches;
    const comparison w = {options,
                          profile,
                          strategy,
                          recompute,
                          budget,
                          profile->job.world,
                          options->micro_batches ? options->micro_batches : kept,
                          out};
    *out = (slc_weighing){0};
    profile->job.micro_batches = w.micro_batches;
    sluice_status status = weigh_all(&w);
    profile->job.micro_batches = kept;
    if (status) return status;
    for (uint32_t i = 1; i < out->count; i++)
        if (out->ways[i].step_s < out->ways[out->chosen].step_s) out->chosen = i;
    if (isfinite(out->ways[out->chosen].step_s)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_BUDGET, "nothing fits: without a pipeline %s; with %u stages: %s", out->ways[0].why,
                     out->ways[out->count - 1].stages, out->ways[out->count - 1].why);
}

/* ---- Words ---- */

/* The fastest pipeline; NULL: none fits, or there are too few ranks. */
static const slc_weighed *fastest_pipeline(const slc_weighing *weighing)
{
    const slc_weighed *fastest = NULL;
    for (uint32_t i = 1; i < weighing->count; i++) {
        const slc_weighed *way = &weighing->ways[i];
        if (isfinite(way->step_s) && (!fastest || way->step_s < fastest->step_s)) fastest = way;
    }
    return fastest;
}

static void print_way(FILE *out, const slc_weighed *way, bool chosen)
{
    char step[24];
    fprintf(out, "%c %6u  %-12s  %13u  ", chosen ? '*' : ' ', way->stages, way->schedule ? way->schedule : "-",
            way->micro_batches);
    if (isfinite(way->step_s))
        fprintf(out, "%10s  %10s  ", slc_plan_seconds(way->step_s, step), slc_size_of(way->bytes).text);
    if (!isfinite(way->step_s))
        fprintf(out, "%s\n", way->why);
    else if (way->schedule)
        fprintf(out, "stages are idle for %.1f %%\n", 100 * way->idle_share);
    else
        fprintf(out, "compute waits %s for transfers\n", slc_plan_seconds(way->exposed_s, step));
}

/* Idle stages stand against waits for transfers: whichever is shorter makes the step. */
static void print_why(FILE *out, const slc_weighing *weighing)
{
    const slc_weighed *without = weighing->ways, *piped = fastest_pipeline(weighing);
    char a[24], b[24], c[24], d[24];
    if (!piped || !isfinite(without->step_s)) {
        fprintf(out, "chosen     %s: nothing else fits\n", piped ? "a pipeline" : "no pipeline");
        return;
    }
    const bool chosen = weighing->chosen > 0;
    if (chosen)
        fprintf(out, "chosen     %u stages, %s", piped->stages, piped->schedule);
    else
        fputs("chosen     no pipeline", out);
    fprintf(
        out,
        ": a step of %s against %s. Without a pipeline compute waits %s a step for gradients and values; the stages "
        "of the fastest pipeline are idle for %s\n",
        slc_plan_seconds(chosen ? piped->step_s : without->step_s, a),
        slc_plan_seconds(chosen ? without->step_s : piped->step_s, b), slc_plan_seconds(without->exposed_s, c),
        slc_plan_seconds(piped->idle_share * piped->step_s, d));
}

void slc_weighing_print(FILE *out, const slc_weighing *weighing)
{
    fputs("  stages  schedule      micro-batches        step      memory\n", out);
    for (uint32_t i = 0; i < weighing->count; i++) print_way(out, &weighing->ways[i], i == weighing->chosen);
    print_why(out, weighing);
    fputc('\n', out);
}

json_t *slc_weighing_json(const slc_weighing *weighing)
{
    json_t *ways = json_array();
    for (uint32_t i = 0; i < weighing->count; i++) {
        const slc_weighed *way = &weighing->ways[i];
        const bool fits = isfinite(way->step_s);
        json_array_append_new(
            ways,
            json_pack("{s:i, s:s?, s:i, s:b, s:o, s:o, s:o, s:o, s:s?}", "stages", (int)way->stages, "schedule",
                      way->schedule, "micro_batches", (int)way->micro_batches, "chosen", (int)(i == weighing->chosen),
                      "step_s", fits ? json_real(way->step_s) : json_null(), "planned_bytes",
                      fits ? json_integer((json_int_t)way->bytes) : json_null(), "idle_share",
                      fits && way->schedule ? json_real(way->idle_share) : json_null(), "exposed_s",
                      fits && !way->schedule ? json_real(way->exposed_s) : json_null(), "why", fits ? NULL : way->why));
    }
    return ways;
}
