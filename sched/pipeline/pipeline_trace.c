/* Trace events of one simulated step, repeated. pipeline_plan_test.c covers this file. */
#include "sched/pipeline/pipeline_trace.h"

#include "lib/base/status.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { COMPUTE = 1, SENDS, UPDATES, LABEL = 160 };

typedef struct {
    const slc_job *job;
    const slc_pipeline_plan *plan;
    json_t *events;
    double at_s; /* where the step's begin is in the trace */
    uint64_t flows;
    bool failed;
} tracing;

static void add(tracing *t, json_t *event)
{
    if (!event || json_array_append_new(t->events, event)) t->failed = true;
}

static double microseconds(const tracing *t, double s)
{
    return 1e6 * (t->at_s + s - t->plan->forecast.from_s);
}

static void add_span(tracing *t, uint32_t stage, int lane, const char *name, double start_s, double end_s)
{
    add(t, json_pack("{s:s, s:s, s:f, s:f, s:i, s:i}", "name", name, "ph", "X", "ts", microseconds(t, start_s), "dur",
                     1e6 * (end_s - start_s), "pid", (int)stage, "tid", lane));
}

static void name_lanes(tracing *t, uint32_t stage)
{
    static const char *const lanes[] = {[COMPUTE] = "compute", [SENDS] = "sends", [UPDATES] = "updates"};
    const slc_pipeline_shape *shape = &t->plan->program.shape;
    char name[LABEL];
    const uint32_t end = stage + 1 < slc_pipeline_pieces(shape) ? t->plan->first_layer[stage + 1] : t->job->layer_count;
    snprintf(name, sizeof name, "stage %u: %.60s to %.60s", stage, t->job->layers[t->plan->first_layer[stage]],
             t->job->layers[end - 1]);
    add(t, json_pack("{s:s, s:s, s:i, s:{s:s}}", "name", "process_name", "ph", "M", "pid", (int)stage, "args", "name",
                     name));
    for (int lane = COMPUTE; lane <= UPDATES; lane++)
        add(t, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "thread_name", "ph", "M", "pid", (int)stage, "tid",
                         lane, "args", "name", lanes[lane]));
}

/* Returns true if the step that is written holds this moment. */
static bool is_within(const tracing *t, double s)
{
    const slc_pipeline_forecast *f = &t->plan->forecast;
    return !isnan(s) && s >= f->from_s && s < f->from_s + f->step_s;
}

static void trace_tasks(tracing *t, uint32_t stage)
{
    static const char letters[SLC_TASK_KINDS] = {'F', 'B', 'I', 'W'};
    const slc_pipeline_program *program = &t->plan->program;
    const slc_task *tasks = slc_pipeline_tasks(program, stage);
    for (uint32_t n = 0; n < program->task_count; n++) {
        const slc_task_time *time = &t->plan->forecast.tasks[(size_t)stage * program->task_count + n];
        char name[LABEL];
        const uint32_t m = tasks[n].micro_batch % program->shape.micro_batches,
                       chunk = tasks[n].piece / program->shape.stages;
        if (!is_within(t, time->start_s)) continue;
        if (program->shape.chunks > 1)
            snprintf(name, sizeof name, "%c %u chunk %u", letters[tasks[n].kind], m, chunk);
        else
            snprintf(name, sizeof name, "%c %u", letters[tasks[n].kind], m);
        add_span(t, stage, COMPUTE, name, time->start_s, time->end_s);
    }
}

/* The start of the task that reads a message. */
static double reader_start(const tracing *t, const slc_transfer *transfer)
{
    const slc_pipeline_program *program = &t->plan->program;
    const slc_task *tasks = slc_pipeline_tasks(program, transfer->to);
    const bool back = transfer->kind == SLC_TRANSFER_BACKWARD;
    if (transfer->kind == SLC_TRANSFER_ROW_GRADIENTS) return NAN;
    for (uint32_t n = 0; n < program->task_count; n++)
        if (tasks[n].piece == transfer->piece && tasks[n].micro_batch == transfer->micro_batch &&
            (back ? slc_makes_input_gradient(tasks[n].kind) : tasks[n].kind == SLC_TASK_FORWARD))
            return t->plan->forecast.tasks[(size_t)transfer->to * program->task_count + n].start_s;
    return NAN;
}

static void add_arrow(tracing *t, const slc_transfer *transfer)
{
    const double start_s = reader_start(t, transfer);
    if (isnan(start_s)) return;
    const int flow = (int)++t->flows;
    add(t, json_pack("{s:s, s:s, s:s, s:i, s:f, s:i, s:i}", "name", "message", "cat", "message", "ph", "s", "id", flow,
                     "ts", microseconds(t, transfer->start_s), "pid", (int)transfer->from, "tid", SENDS));
    add(t, json_pack("{s:s, s:s, s:s, s:s, s:i, s:f, s:i, s:i}", "name", "message", "cat", "message", "ph", "f", "bp",
                     "e", "id", flow, "ts", microseconds(t, start_s), "pid", (int)transfer->to, "tid", COMPUTE));
}

static void trace_transfers(tracing *t)
{
    static const char *const names[] = {[SLC_TRANSFER_FORWARD] = "activation",
                                        [SLC_TRANSFER_BACKWARD] = "gradient",
                                        [SLC_TRANSFER_ROWS] = "rows",
                                        [SLC_TRANSFER_ROW_GRADIENTS] = "row gradients"};
    const slc_pipeline_forecast *f = &t->plan->forecast;
    for (uint32_t n = 0; n < f->transfer_count; n++) {
        const slc_transfer *transfer = &f->transfers[n];
        char name[LABEL];
        if (!is_within(t, transfer->start_s)) continue;
        if (transfer->kind == SLC_TRANSFER_GATHER) {
            const slc_stage_gather *gather = &t->plan->costs.times.gathers[transfer->piece];
            snprintf(name, sizeof name, "gather %.100s", t->job->units[gather->unit].name);
            add_span(t, transfer->from, SENDS, name, transfer->start_s, transfer->end_s);
            continue;
        }
        if (transfer->kind != SLC_TRANSFER_OPERATION) {
            snprintf(name, sizeof name, "%s %u", names[transfer->kind],
                     transfer->micro_batch % t->plan->program.shape.micro_batches);
            add_span(t, transfer->from, SENDS, name, transfer->start_s, transfer->end_s);
            add_arrow(t, transfer);
            continue;
        }
        const slc_stage_operation *o = &t->plan->costs.operations[transfer->piece];
        snprintf(name, sizeof name, "%s %.100s", slc_item_kind_name(o->kind),
                 o->unit == SLC_NONE ? "" : t->job->units[o->unit].name);
        add_span(t, transfer->from, o->thread_s > 0 ? UPDATES : SENDS, name, transfer->start_s, transfer->end_s);
    }
}

sluice_status slc_pipeline_trace(const slc_job *job, const slc_pipeline_plan *plan, uint32_t steps, char **out)
{
    tracing t = {.job = job, .plan = plan, .events = json_array()};
    *out = NULL;
    t.failed = !t.events;
    for (uint32_t s = 0; s < plan->program.shape.stages; s++) name_lanes(&t, s);
    for (uint32_t k = 0; k < steps; k++, t.at_s += plan->forecast.step_s) {
        for (uint32_t s = 0; s < plan->program.shape.stages; s++) trace_tasks(&t, s);
        trace_transfers(&t);
    }
    json_t *whole = t.failed ? NULL : json_pack("{s:O, s:s}", "traceEvents", t.events, "displayTimeUnit", "ms");
    *out = whole ? json_dumps(whole, JSON_COMPACT) : NULL;
    json_decref(whole);
    json_decref(t.events);
    return *out ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "trace of %u stages", plan->program.shape.stages);
}
