/* Timelines as trace events: complete events ("X") for everything that takes time, flow events ("s", "f") from an
 * operation to the slot that waited for it, counters ("C") for memory, metadata ("M") for names. Times are in
 * microseconds. */
#include "sched/simulate/trace_json.h"

#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPUTE = 1, COMMUNICATION, UPDATES, MESSAGES /* and from here on a lane for each channel */ };
enum { FLOWS_OF_A_PROCESS = 1 << 24 };

struct slc_trace {
    const slc_job *job;
    const slc_plan *plan;
    json_t *events;
    uint64_t flows;
    bool failed;
};

/* ---- Names ---- */

/* If a label was cut inside a character, drops the part of that character at the label's end. */
static void drop_part_of_character(char *text, int wanted)
{
    if (wanted < SLC_ITEM_LABEL) return;
    size_t length = strlen(text);
    while (length && ((unsigned char)text[length - 1] & 0xc0) == 0x80) length--;
    if (length && (unsigned char)text[length - 1] >= 0xc0) length--;
    text[length] = 0;
}

static int operation_label(const slc_job *job, const slc_item *item, const char *micro_batch, char *out)
{
    const char *kind = slc_item_kind_name(item->kind);
    if (item->unit == SLC_NONE) return snprintf(out, SLC_ITEM_LABEL, "%s%s", kind, micro_batch);
    const slc_unit *unit = &job->units[item->unit];
    const char *window = "";
    char blocks[64] = "";
    slc_window of;
    if (item->kind == SLC_ITEM_GATHER_WINDOW && slc_unit_window(job, unit, true, item->index, &of))
        window = slc_slot_is_forward(job, of.first_slot) ? " for F" : " for B";
    if (item->block_count == 1 && slc_unit_blocks(unit) > 1)
        snprintf(blocks, sizeof blocks, " block %llu", (unsigned long long)item->first_block);
    else if (item->block_count < slc_unit_blocks(unit))
        snprintf(blocks, sizeof blocks, " blocks %llu-%llu", (unsigned long long)item->first_block,
                 (unsigned long long)(item->first_block + item->block_count - 1));
    return snprintf(out, SLC_ITEM_LABEL, "%s %s%s%s%s", kind, unit->name, window, micro_batch, blocks);
}

void slc_item_label(const slc_job *job, const slc_item *item, char *out)
{
    char micro_batch[16] = "";
    bool slot = item->kind == SLC_ITEM_SLOT;
    if (slc_is_message(item->kind) ||
        (item->micro_batch && (slot || item->kind == SLC_ITEM_GATHER_WINDOW || job->each)))
        snprintf(micro_batch, sizeof micro_batch, " #%u", item->micro_batch);
    int wanted;
    if (slot)
        wanted = snprintf(out, SLC_ITEM_LABEL, "%c %s%s", slc_slot_is_forward(job, item->slot) ? 'F' : 'B',
                          job->layers[slc_slot_layer(job, item->slot)], micro_batch);
    else
        wanted = operation_label(job, item, micro_batch, out);
    drop_part_of_character(out, wanted);
}

/* ---- Events ---- */

static void put_event(slc_trace *trace, json_t *event)
{
    if (!event || json_array_append_new(trace->events, event)) trace->failed = true;
}

static void put_name(slc_trace *trace, int process, int thread, const char *what, const char *name)
{
    put_event(trace, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", what, "pid", process, "tid", thread,
                               "args", "name", name));
}

/* Perfetto shows lanes by their sort index. */
static void put_lane(slc_trace *trace, int process, int thread, const char *name)
{
    put_name(trace, process, thread, "thread_name", name);
    put_event(trace, json_pack("{s:s, s:s, s:i, s:i, s:{s:i}}", "ph", "M", "name", "thread_sort_index", "pid", process,
                               "tid", thread, "args", "sort_index", thread));
}

static void put_slice(slc_trace *trace, int process, int thread, const char *category, const char *name, double from_s,
                      double to_s, json_t *args)
{
    put_event(trace,
              json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o}", "ph", "X", "cat", category, "name", name, "pid",
                        process, "tid", thread, "ts", from_s * 1e6, "dur", (to_s - from_s) * 1e6, "args", args));
}

/* Draws an arrow from inside one slice to inside another. */
static void put_arrow(slc_trace *trace, int process, int from_thread, double from_s, double to_s)
{
    json_int_t id = (json_int_t)process * FLOWS_OF_A_PROCESS + (json_int_t)++trace->flows;
    put_event(trace, json_pack("{s:s, s:s, s:s, s:I, s:i, s:i, s:f}", "ph", "s", "cat", "gate", "name", "gate", "id",
                               id, "pid", process, "tid", from_thread, "ts", from_s * 1e6));
    put_event(trace, json_pack("{s:s, s:s, s:s, s:s, s:I, s:i, s:i, s:f}", "ph", "f", "bp", "e", "cat", "gate", "name",
                               "gate", "id", id, "pid", process, "tid", COMPUTE, "ts", to_s * 1e6));
}

static json_t *item_args(const slc_trace *trace, uint32_t number, uint64_t pass, const slc_item_times *times)
{
    const slc_item *item = &trace->plan->train.items[number];
    json_t *args = json_pack("{s:I, s:I, s:I}", "item", (json_int_t)number, "pass", (json_int_t)pass, "micro_batch",
                             (json_int_t)item->micro_batch);
    if (item->unit == SLC_NONE || item->kind == SLC_ITEM_SLOT) return args;
    const slc_unit *unit = &trace->job->units[item->unit];
    uint64_t elements = slc_run_elements(unit, item->first_block, item->block_count);
    uint64_t bytes = slc_operation_bytes(trace->job, unit, item->kind, elements);
    json_object_set_new(args, "strategy", json_string(slc_strategy_name(trace->plan->strategies[item->unit])));
    json_object_set_new(args, "bytes", json_integer((json_int_t)bytes));
    json_object_set_new(args, "late", json_boolean(item->late));
    json_object_set_new(args, "queued_us", json_real((times->start_s - times->open_s) * 1e6));
    return args;
}

static int lane_of(const slc_item *item)
{
    if (slc_is_message(item->kind)) return MESSAGES + (int)item->index;
    return slc_on_compute_lane(item) ? COMPUTE : slc_is_on_thread(item->kind) ? UPDATES : COMMUNICATION;
}

static void put_exposure(slc_trace *trace, int process, double at_s, const slc_item_times *items,
                         const slc_item_times *previous, const slc_exposure *exposed)
{
    const slc_item *plan_items = trace->plan->train.items;
    char cause[SLC_ITEM_LABEL] = "?", name[SLC_ITEM_LABEL + 16], slot[SLC_ITEM_LABEL] = "the end of the step";
    char busy[SLC_ITEM_LABEL] = "?";
    if (exposed->cause != SLC_NONE) slc_item_label(trace->job, &plan_items[exposed->cause], cause);
    if (exposed->slot != SLC_NONE) slc_item_label(trace->job, &plan_items[exposed->slot], slot);
    if (exposed->busy != SLC_NONE) slc_item_label(trace->job, &plan_items[exposed->busy], busy);
    const bool idle = exposed->cause != SLC_NONE && slc_is_message(plan_items[exposed->cause].kind);
    snprintf(name, sizeof name, "%s: %s", idle ? "idle" : "exposed", cause);
    put_slice(trace, process, COMPUTE, "exposed", name, at_s + exposed->from_s, at_s + exposed->to_s,
              json_pack("{s:s, s:s}", "before", slot, "meanwhile", busy));
    const slc_item_times *of = exposed->previous ? previous : items;
    if (exposed->cause == SLC_NONE || exposed->slot == SLC_NONE || !of) return;
    double from_s = (of[exposed->cause].start_s + of[exposed->cause].end_s) / 2;
    double to_s = (items[exposed->slot].start_s + items[exposed->slot].end_s) / 2;
    if (!isnan(from_s) && !isnan(to_s))
        put_arrow(trace, process, lane_of(&plan_items[exposed->cause]), at_s + from_s, at_s + to_s);
}

/* ---- Public ---- */

sluice_status slc_trace_create(const slc_job *job, const slc_plan *plan, slc_trace **out)
{
    slc_trace *trace = calloc(1, sizeof *trace);
    if (!trace) return slc_error(SLUICE_ERR_MEMORY, "trace");
    *trace = (slc_trace){.job = job, .plan = plan, .events = json_array()};
    if (!trace->events) {
        free(trace);
        return slc_error(SLUICE_ERR_MEMORY, "trace");
    }
    *out = trace;
    return SLUICE_OK;
}

void slc_trace_destroy(slc_trace *trace)
{
    if (!trace) return;
    json_decref(trace->events);
    free(trace);
}

void slc_trace_process(slc_trace *trace, int process, const char *name)
{
    put_name(trace, process, 0, "process_name", name);
    put_lane(trace, process, COMPUTE, "compute");
    put_lane(trace, process, COMMUNICATION, "communication");
    put_lane(trace, process, UPDATES, "updates");
    for (uint32_t c = 0; c < trace->job->channel_count; c++) {
        const slc_stage_channel *channel = &trace->job->channels[c];
        char lane[48];
        snprintf(lane, sizeof lane, "%s stage %u", channel->receives ? "receives from" : "sends to", channel->stage);
        put_lane(trace, process, MESSAGES + (int)c, lane);
    }
}

void slc_trace_pass(slc_trace *trace, int process, uint64_t pass, double at_s, const slc_item_times *items,
                    const slc_item_times *previous, const slc_exposure *exposures, uint32_t exposure_count)
{
    const slc_program *program = &trace->plan->train;
    for (uint32_t e = 0; e < exposure_count; e++) put_exposure(trace, process, at_s, items, previous, &exposures[e]);
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        char name[SLC_ITEM_LABEL];
        if (isnan(items[i].start_s) || isnan(items[i].end_s)) continue;
        slc_item_label(trace->job, item, name);
        put_slice(trace, process, lane_of(item), slc_item_kind_name(item->kind), name, at_s + items[i].start_s,
                  at_s + items[i].end_s, item_args(trace, i, pass, &items[i]));
    }
}

void slc_trace_memory(slc_trace *trace, int process, double at_s, const slc_memory_series *series)
{
    for (size_t p = 0; p < series->count; p++) {
        const slc_memory_point *point = &series->points[p];
        json_t *live = json_object();
        for (int c = 0; c < SLC_MEMORY_RESERVED; c++)
            if (live)
                json_object_set_new(live, slc_memory_category_name((slc_memory_category)c),
                                    json_integer((json_int_t)point->live[c]));
        double us = (at_s + point->at_s) * 1e6;
        put_event(trace, json_pack("{s:s, s:s, s:i, s:f, s:o}", "ph", "C", "name", "memory, bytes", "pid", process,
                                   "ts", us, "args", live));
        put_event(trace, json_pack("{s:s, s:s, s:i, s:f, s:{s:I}}", "ph", "C", "name", "highest address", "pid",
                                   process, "ts", us, "args", "bytes", (json_int_t)point->highest));
    }
}

sluice_status slc_trace_join(slc_trace *trace, const char *text)
{
    json_t *whole = json_loads(text, 0, NULL);
    const bool joined = whole && !json_array_extend(trace->events, json_object_get(whole, "traceEvents"));
    json_decref(whole);
    return joined ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "trace of %zu bytes", strlen(text));
}

typedef struct {
    json_t *event; /* the trace's */
    size_t number; /* as they were put: keeps the order of those at one time */
    double at_us;
} timed_event;

static int by_time(const void *a, const void *b)
{
    const timed_event *x = a, *y = b;
    if (x->at_us != y->at_us) return x->at_us < y->at_us ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Puts the events in order of time, names first. Operations that begin before their step (late ones, early gathers)
 * have times below 0 in the first step of a trace, and viewers drop such events: then all times move, so that the first
 * is 0. */
static json_t *in_order(const slc_trace *trace)
{
    const size_t count = json_array_size(trace->events);
    timed_event *order = malloc((count + 1) * sizeof *order);
    json_t *events = order ? json_array() : NULL;
    if (!events) goto free_order;
    for (size_t i = 0; i < count; i++) {
        json_t *event = json_array_get(trace->events, i), *ts = json_object_get(event, "ts");
        order[i] = (timed_event){event, i, ts ? json_real_value(ts) : -INFINITY};
    }
    qsort(order, count, sizeof *order, by_time);
    size_t first = 0;
    while (first < count && isinf(order[first].at_us)) first++;
    const double least_us = first < count ? fmin(order[first].at_us, 0) : 0;
    bool failed = false;
    for (size_t i = 0; i < count; i++) {
        if (i >= first) failed |= json_real_set(json_object_get(order[i].event, "ts"), order[i].at_us - least_us);
        failed |= json_array_append(events, order[i].event);
    }
    if (failed) {
        json_decref(events);
        events = NULL;
    }
free_order:
    free(order);
    return events;
}

sluice_status slc_trace_text(slc_trace *trace, char **out)
{
    json_t *events = trace->failed ? NULL : in_order(trace);
    json_t *whole = events ? json_pack("{s:O, s:s}", "traceEvents", events, "displayTimeUnit", "ms") : NULL;
    *out = whole ? json_dumps(whole, JSON_COMPACT) : NULL;
    json_decref(whole);
    json_decref(events);
    return *out ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "trace of %zu events", json_array_size(trace->events));
}

static slc_item_times earlier(const slc_item_times *times, double s)
{
    return (slc_item_times){times->open_s - s, times->start_s - s, times->end_s - s, times->over_s - s};
}

sluice_status slc_trace_simulated(slc_trace *trace, int process, const slc_forecast *forecast,
                                  const slc_item_times *items, uint32_t passes)
{
    const slc_plan *plan = trace->plan;
    double step_s = forecast->step_s;
    slc_memory_series memory = {0};
    uint32_t count = plan->train.item_count;
    slc_exposure *exposures = malloc((count + 1) * sizeof *exposures);
    slc_item_times *before = malloc((count + 1) * sizeof *before);
    sluice_status status = exposures && before ? slc_simulate_memory(plan, items, step_s, &memory)
                                               : slc_error(SLUICE_ERR_MEMORY, "trace of %u items", count);
    if (!status) {
        for (uint32_t i = 0; i < count; i++) before[i] = earlier(&items[i], step_s);
        uint32_t waits = slc_exposures(plan, items, forecast, exposures);
        for (uint32_t p = 0; p < passes; p++) {
            slc_trace_pass(trace, process, p, p * step_s, items, p ? before : NULL, exposures, waits);
            slc_trace_memory(trace, process, p * step_s, &memory);
        }
    }
    slc_memory_series_fini(&memory);
    free(before);
    free(exposures);
    return status;
}
