/* A planned pipeline for people. tests/command/plan/pipeline_command_test.sh covers this file. */
#include "bench/plan/pipeline/pipelined.h"

#include "bench/plan/words/quantities.h"
#include "bench/plan/words/strategy_counts.h"
#include "lib/base/text/size_text.h"
#include "lib/plan/roles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_BYTES = 512 };

static uint32_t piece_end(const slc_pipelined *made, uint32_t piece)
{
    return piece + 1 < slc_pipeline_pieces(&made->request.shape) ? made->plan.first_layer[piece + 1]
                                                                 : made->profile->job.layer_count;
}

/* Names the layers of a stage, as "embed-h.2, h.6-h.7". */
static void name_layers(const slc_pipelined *made, uint32_t stage, char *out)
{
    size_t used = 0;
    *out = 0;
    for (uint32_t p = stage; p < slc_pipeline_pieces(&made->request.shape); p += made->request.shape.stages) {
        const char *first = made->profile->job.layers[made->plan.first_layer[p]];
        const char *last = made->profile->job.layers[piece_end(made, p) - 1];
        if (used + 100 > NAMES_BYTES) break;
        used += (size_t)snprintf(out + used, NAMES_BYTES - used, first == last ? "%s%.40s" : "%s%.40s-%.40s",
                                 used ? ", " : "", first, last);
    }
}

static double parameters_of(const slc_pipelined *made, uint32_t stage)
{
    const slc_job *job = &made->profile->job;
    double sum = 0;
    for (uint32_t p = stage; p < slc_pipeline_pieces(&made->request.shape); p += made->request.shape.stages)
        for (uint32_t u = 0; u < job->unit_count; u++) {
            const uint32_t layer = job->units[u].uses[0].layer;
            if (layer >= made->plan.first_layer[p] && layer < piece_end(made, p) && !slc_looks_up(&job->units[u]))
                sum += (double)made->profile->parameters[u];
        }
    return sum;
}

static void print_head(FILE *out, const slc_pipelined *made)
{
    const slc_pipeline_shape *shape = &made->request.shape;
    const uint32_t replicas = made->profile->job.world;
    fprintf(out, "%s (%s)\n%u layers; %u rank%s: %u stages of %u replica%s, %u micro-batch%s, schedule %s",
            made->profile->model, made->profile->source, made->profile->job.layer_count, made->ranks,
            made->ranks == 1 ? "" : "s", shape->stages, replicas, replicas == 1 ? "" : "s", shape->micro_batches,
            shape->micro_batches == 1 ? "" : "es", made->request.schedule->name);
    if (shape->chunks > 1) fprintf(out, " with %u chunks a stage", shape->chunks);
    fputs("\n\n", out);
}

static void print_stages(FILE *out, const slc_pipelined *made)
{
    const slc_pipeline_shape *shape = &made->request.shape;
    const slc_pipeline_plan *plan = &made->plan;
    const double step_s = plan->forecast.step_s;
    char names[NAMES_BYTES], a[24], b[24];
    int width = 6;
    for (uint32_t s = 0; s < shape->stages; s++) {
        name_layers(made, s, names);
        if ((int)strlen(names) > width) width = (int)strlen(names);
    }
    fprintf(out, "  stage  %-*s  %10s  %10s  %10s  %10s  %4s  %6s  %7s  %s\n", width, "layers", "parameters", "memory",
            "forward", "backward", "held", "idle", "exposed", "sends");
    for (uint32_t s = 0; s < shape->stages; s++) {
        const slc_stage_forecast *f = &plan->forecast.stages[s];
        double forward_s = 0, backward_s = 0;
        for (uint32_t p = s; p < slc_pipeline_pieces(shape); p += shape->stages) {
            forward_s += plan->costs.times.forward_s[p];
            backward_s += plan->costs.times.input_s[p] + plan->costs.times.weight_s[p];
        }
        name_layers(made, s, names);
        fprintf(out, "  %5u  %-*s  %8.1f M  %10s  %10s  %10s  %4.4g  %5.1f%%  %6.1f%%  %5.1f%%\n", s, width, names,
                parameters_of(made, s) / 1e6, slc_size_of(plan->bytes[s]).text, slc_plan_seconds(forward_s, a),
                slc_plan_seconds(backward_s, b),
                (double)slc_pipeline_held(&plan->program, s, SLC_HELD_UNTIL_DONE) / shape->chunks,
                100 * f->idle_s / step_s, 100 * f->exposed_s / step_s,
                100 * (f->messages_s + f->operations_s) / step_s);
    }
    fputs(
        "  (forward, backward: a micro-batch; held: micro-batches at once; idle, exposed, sends: shares of the step)\n",
        out);
}

/* Prints "units: 12 fsdp, 3 sdp", and how often those under fsdp are gathered. */
static void print_strategies(FILE *out, const slc_pipelined *made)
{
    const slc_staged_plan *staged = made->plan.staged;
    const slc_strategy_counts counts = slc_strategy_counts_of(&made->profile->job, staged->strategies);
    uint32_t held = 0;
    for (uint32_t u = 0; u < staged->unit_count; u++)
        held += staged->held[u] && !slc_looks_up(&made->profile->job.units[u]);
    fprintf(out, "; units: %s", slc_strategy_counts_in_words(&counts).text);
    if (counts.of[SLC_FSDP])
        fprintf(out, "; gathered once a step: %u, in each micro-batch: %u", held, counts.of[SLC_FSDP] - held);
}

static void print_cuts(FILE *out, const slc_pipelined *made)
{
    fputs("cuts       ", out);
    for (uint32_t p = 1; p < slc_pipeline_pieces(&made->request.shape); p++)
        fprintf(out, "%s%s", p > 1 ? "," : "", made->profile->job.layers[made->plan.first_layer[p]]);
    if (made->request.first_layer && made->request.first_layer != made->plan.first_layer) fputs(" as given", out);
    print_strategies(out, made);
    fprintf(out, "%s\n", made->plan.recompute ? ", layers that can recompute do" : "");
}

static void print_memory(FILE *out, const slc_pipelined *made)
{
    uint32_t most = 0;
    for (uint32_t s = 1; s < made->request.shape.stages; s++)
        if (made->plan.bytes[s] > made->plan.bytes[most]) most = s;
    fprintf(out, "memory     %s a rank at the peak of stage %u (%llu bytes)", slc_size_of(made->plan.bytes[most]).text,
            most, (unsigned long long)made->plan.bytes[most]);
    if (made->request.budget_bytes) fprintf(out, ", of a budget of %s", slc_size_of(made->request.budget_bytes).text);
    if (made->plan.older_bytes[0])
        fprintf(out, "; %s of stage 0 are older values", slc_size_of(made->plan.older_bytes[0]).text);
    fputc('\n', out);
}

/* Says what units cost that are gathered in each micro-batch and direction. */
static void print_gathers(FILE *out, const slc_pipelined *made)
{
    const slc_pipeline_times *times = &made->plan.costs.times;
    const slc_job *job = &made->profile->job;
    double bytes = 0, link_s = 0;
    for (uint32_t g = 0; g < times->gather_count; g++) {
        const slc_unit *unit = &job->units[times->gathers[g].unit];
        bytes += (double)unit->elements * sluice_dtype_bytes(unit->dtype) * (job->world - 1) / job->world;
        link_s += times->gathers[g].link_s;
    }
    char text[24];
    if (times->gather_count)
        fprintf(
            out,
            "gathers    %u a micro-batch, %u a step: %.2f MB a micro-batch and %s of a step on all ways out together\n",
            times->gather_count, times->gather_count * job->micro_batches, bytes / 1e6,
            slc_plan_seconds(link_s * job->micro_batches, text));
}

static void print_messages(FILE *out, const slc_pipelined *made)
{
    const uint32_t pieces = slc_pipeline_pieces(&made->request.shape);
    const slc_job *job = &made->profile->job;
    uint64_t forward = 0, backward = 0;
    for (uint32_t p = 1; p < pieces; p++) {
        forward += slc_cut_forward_bytes(job, made->plan.first_layer[p] - 1);
        backward += slc_cut_backward_bytes(job, made->plan.first_layer[p] - 1);
    }
    const slc_unit *rows = slc_cut_rows(job);
    fprintf(out, "messages   %.2f MB forward and %.2f MB back a micro-batch, over %u cut%s", (double)forward / 1e6,
            (double)backward / 1e6, pieces - 1, pieces == 2 ? "" : "s");
    if (rows) fprintf(out, "; rows of the table: %.2f MB each way", (double)slc_cut_rows_bytes(rows) / 1e6);
    fputc('\n', out);
    print_gathers(out, made);
}

/* Names the largest part of a step, and what would make it smaller. */
static void print_limit(FILE *out, const slc_pipelined *made)
{
    const slc_pipeline_shape *shape = &made->request.shape;
    const slc_pipeline_parts *parts = &made->parts;
    const slc_stage_forecast *stages = made->plan.forecast.stages;
    uint32_t slowest = 0;
    double mean_s = 0;
    char names[NAMES_BYTES];
    for (uint32_t s = 0; s < shape->stages; s++) {
        mean_s += stages[s].compute_s / shape->stages;
        if (stages[s].compute_s > stages[slowest].compute_s) slowest = s;
    }
    name_layers(made, slowest, names);
    const double uneven_s = parts->slowest_s - mean_s;
    if (parts->messages_s > fmax(fmax(parts->filling_s, parts->operations_s), uneven_s))
        fputs("limit      messages between stages: they take longer than the slots beside them\n", out);
    else if (parts->operations_s > fmax(parts->filling_s, uneven_s))
        fputs("limit      reductions, updates and gathers of the stages, which their idle time does not hide\n", out);
    else if (parts->filling_s > uneven_s)
        fprintf(
            out,
            "limit      filling and emptying: %u micro-batches for %u stages; more of them make the share smaller\n",
            shape->micro_batches, shape->stages);
    else
        fprintf(out, "limit      stage %u (%s): it computes %.2f times as long as the mean\n", slowest, names,
                mean_s > 0 ? parts->slowest_s / mean_s : 1);
}

static void print_times(FILE *out, const slc_pipelined *made)
{
    const slc_pipeline_plan *plan = &made->plan;
    const slc_pipeline_parts *parts = &made->parts;
    const slc_times *times = &made->profile->times;
    char a[24], b[24], c[24], d[24], e[24];
    fprintf(out,
            "step       %s predicted: %s of the slowest stage's slots, %s of filling and emptying, %s for messages, %s "
            "for reductions and updates",
            slc_plan_seconds(plan->forecast.step_s + times->outside_s, a), slc_plan_seconds(parts->slowest_s, b),
            slc_plan_seconds(parts->filling_s, c), slc_plan_seconds(parts->messages_s, d),
            slc_plan_seconds(parts->operations_s, e));
    if (times->outside_s > 0) fprintf(out, ", %s outside of slots", slc_plan_seconds(times->outside_s, a));
    fprintf(out, "\nidle       %.1f %% of the step, the mean of the stages\n", 100 * plan->forecast.idle_share);
    if (plan->bound_s > 0)
        fprintf(out, "bound      lower bound %s; this plan is %.1f %% above\n", slc_plan_seconds(plan->bound_s, a),
                fmax(0, 100 * (plan->forecast.step_s / plan->bound_s - 1)));
}

/* Prints what the ranks would do without a pipeline. */
static void print_rival(FILE *out, const slc_pipelined *made)
{
    const slc_pipeline_rival *rival = &made->rival;
    const double step_s = made->plan.forecast.step_s + made->profile->times.outside_s;
    char text[24];
    if (!rival->asked) return;
    if (!(rival->step_s > 0)) {
        fprintf(out, "without    no plan for %u ranks without a pipeline fits the budget\n", made->ranks);
        return;
    }
    fprintf(out, "without    %s a step on %u ranks without a pipeline, %u micro-batch%s each, in %s: ",
            slc_plan_seconds(rival->step_s, text), made->ranks, rival->micro_batches,
            rival->micro_batches == 1 ? "" : "es", slc_size_of(rival->bytes).text);
    if (rival->step_s < step_s)
        fprintf(out, "faster than this plan by a factor of %.2f\n", step_s / rival->step_s);
    else
        fprintf(out, "this plan is faster by a factor of %.2f\n", rival->step_s / step_s);
}

/* Prints stages whose replicas differ, which no plan has. */
static void print_unequal(FILE *out, const slc_pipelined *made)
{
    const slc_pipeline_plan *plan = &made->plan;
    char text[24];
    if (!plan->unequal_count) return;
    fprintf(out, "unequal    %s a step with replicas by PipeDream's programme, which cannot be run: ",
            slc_plan_seconds(plan->unequal_s, text));
    for (uint32_t s = 0; s < plan->unequal_count; s++)
        fprintf(out, "%s%u x %.40s-%.40s", s ? ", " : "", plan->unequal[s].replicas,
                made->profile->job.layers[plan->unequal[s].first_layer],
                made->profile->job.layers[plan->unequal[s].end_layer - 1]);
    fputc('\n', out);
}

static void print_notes(FILE *out, const slc_pipelined *made)
{
    const slc_pipeline_shape *shape = &made->request.shape;
    const slc_pipeline_schedule *schedule = made->request.schedule;
    if (schedule->splits && !slc_knows_weight_times(made->profile))
        fputs("note       the profile does not say what all weight gradients take: half of a backward is assumed\n",
              out);
    if (!schedule->flushes)
        fputs("note       steps compute with older values, so weights differ from those of the other schedules\n", out);
    if (shape->micro_batches < shape->stages)
        fprintf(out,
                "warning    %u micro-batch%s for %u stages: %.0f %% of the time of equal stages is idle; %u and more "
                "keep every stage busy at once\n",
                shape->micro_batches, shape->micro_batches == 1 ? "" : "es", shape->stages,
                100 * (shape->stages - 1.0) / (shape->micro_batches + shape->stages - 1.0), shape->stages);
}

void slc_pipelined_print(FILE *out, const slc_pipelined *made)
{
    print_head(out, made);
    print_stages(out, made);
    print_cuts(out, made);
    print_memory(out, made);
    print_times(out, made);
    print_limit(out, made);
    print_messages(out, made);
    print_rival(out, made);
    print_unequal(out, made);
    print_notes(out, made);
}

/* ---- The picture ---- */

/* A forward is the last digit of its micro-batch, a backward a letter, a weight gradient a capital letter. */
static char letter_of(const slc_task *task, uint32_t micro_batches)
{
    const uint32_t m = task->micro_batch % micro_batches;
    if (task->kind == SLC_TASK_FORWARD) return (char)('0' + m % 10);
    return (char)((task->kind == SLC_TASK_WEIGHT ? 'A' : 'a') + m % 26);
}

static void draw_stage(const slc_pipelined *made, uint32_t stage, uint32_t width, char *line)
{
    const slc_pipeline_program *program = &made->plan.program;
    const slc_pipeline_forecast *f = &made->plan.forecast;
    const slc_task *tasks = slc_pipeline_tasks(program, stage);
    memset(line, '.', width);
    line[width] = 0;
    for (uint32_t t = 0; t < program->task_count; t++) {
        const slc_task_time *time = &f->tasks[(size_t)stage * program->task_count + t];
        const double from = (time->start_s - f->from_s) / f->step_s * width,
                     to = (time->end_s - f->from_s) / f->step_s * width;
        for (double c = fmax(0, ceil(from - 0.5)); c < width && c + 0.5 < to; c++)
            line[(size_t)c] = letter_of(&tasks[t], program->shape.micro_batches);
    }
}

void slc_pipelined_draw(FILE *out, const slc_pipelined *made, uint32_t width)
{
    char *line = malloc((size_t)width + 1), text[24];
    for (uint32_t s = 0; line && s < made->request.shape.stages; s++) {
        draw_stage(made, s, width, line);
        fprintf(out, "  stage %-3u |%s|\n", s, line);
    }
    if (line)
        fprintf(out,
                "  one step of %s, a character %s; 0 1 2: forward of that micro-batch, a b c: backward, A B C: weight "
                "gradients, . idle\n",
                slc_plan_seconds(made->plan.forecast.step_s, text),
                slc_plan_seconds(made->plan.forecast.step_s / width, line));
    free(line);
}
