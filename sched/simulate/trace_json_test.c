/* Traces must be JSON whose events are in order of time, none before 0, and whose slices do not overlap within a lane
 * and add up to the simulator's figures. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/sched/drawn_plan.h"
#include "sched/simulate/trace_json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

enum { JOBS = 60, PASSES = 2, LANES = 4, PROCESS = 3, MOST_SLICES = 4096 };

typedef struct {
    double from_us, to_us;
} slice;

typedef struct {
    slice slices[MOST_SLICES];
    size_t count;
} lane;

static int by_start(const void *a, const void *b)
{
    const slice *x = a, *y = b;
    if (x->from_us != y->from_us) return x->from_us < y->from_us ? -1 : 1;
    return (x->to_us > y->to_us) - (x->to_us < y->to_us);
}

static const char *text(const json_t *event, const char *key)
{
    const char *value = json_string_value(json_object_get(event, key));
    return value ? value : "";
}

static double number(const json_t *event, const char *key)
{
    json_t *value = json_object_get(event, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

typedef struct {
    lane lanes[LANES];
    double compute_us, exposed_us, link_us, update_us;
    double last_us; /* when the event before this one is */
    size_t counters, names, arrows[2];
} seen;

static bool on_thread(const char *category)
{
    return !strcmp(category, "update") || !strcmp(category, "compress") || !strcmp(category, "inspect");
}

static void look_at_slice(const json_t *event, seen *s)
{
    int thread = (int)number(event, "tid");
    double from_us = number(event, "ts"), us = number(event, "dur");
    assert_in_range(thread, 1, LANES - 1);
    assert_true(us >= -1e-3);
    lane *in = &s->lanes[thread];
    assert_true(in->count < MOST_SLICES);
    in->slices[in->count++] = (slice){from_us, from_us + us};
    const char *category = text(event, "cat");
    *(!strcmp(category, "exposed") ? &s->exposed_us
      : thread == 1                ? &s->compute_us
      : on_thread(category)        ? &s->update_us
                                   : &s->link_us) += us;
    bool computes = !strcmp(category, "slot") || !strcmp(category, "exposed");
    assert_true(computes == (thread == 1) || !strcmp(category, "update")); /* an update runs on either lane */
}

static void look_at_event(const json_t *event, seen *s)
{
    const char *kind = text(event, "ph");
    assert_int_equal(number(event, "pid"), PROCESS);
    assert_true(*text(event, "name"));
    if (strcmp(kind, "M")) {
        const double at_us = number(event, "ts");
        if (!(at_us >= s->last_us)) fail_msg("an event at %.17g us comes after one at %.17g us", at_us, s->last_us);
        s->last_us = at_us; /* 0 before the first: none is before that */
    } else
        assert_true(s->last_us == 0 && !json_object_get(event, "ts"));
    if (!strcmp(kind, "X")) look_at_slice(event, s);
    if (!strcmp(kind, "C")) s->counters += json_object_size(json_object_get(event, "args")) > 0;
    if (!strcmp(kind, "M")) s->names++;
    if (!strcmp(kind, "s") || !strcmp(kind, "f")) s->arrows[*kind == 'f']++;
}

static void near(double wanted, double got)
{
    if (!(fabs(wanted - got) <= 1e-6 * (1 + fabs(wanted)))) fail_msg("%g, expected %g", got, wanted);
}

static void look_at_trace(drawn_plan *d)
{
    static seen s;
    slc_forecast f;
    slc_trace *trace;
    char *json;
    slc_item_times *items = calloc(d->plan->train.item_count + 1, sizeof *items);
    assert_non_null(items);
    assert_int_equal(slc_simulate_items(&d->t.job, &d->times, d->plan, NULL, &f, items), SLUICE_OK);
    assert_int_equal(slc_trace_create(&d->t.job, d->plan, &trace), SLUICE_OK);
    slc_trace_process(trace, PROCESS, "simulated");
    assert_int_equal(slc_trace_simulated(trace, PROCESS, &f, items, PASSES), SLUICE_OK);
    assert_int_equal(slc_trace_text(trace, &json), SLUICE_OK);
    slc_trace_destroy(trace);

    json_error_t error;
    json_t *whole = json_loads(json, 0, &error), *events = json_object_get(whole, "traceEvents"), *event;
    if (!events) fail_msg("%s", error.text);
    size_t index;
    s = (seen){0};
    json_array_foreach (events, index, event) look_at_event(event, &s);
    for (int t = 1; t < LANES; t++) {
        lane *in = &s.lanes[t];
        if (in->count) qsort(in->slices, in->count, sizeof *in->slices, by_start);
        for (size_t i = 1; i < in->count; i++) assert_true(in->slices[i].from_us >= in->slices[i - 1].to_us - 1e-3);
    }
    near(PASSES * f.compute_s * 1e6, s.compute_us);
    near(PASSES * f.exposed_s * 1e6, s.exposed_us);
    near(PASSES * f.communication_s * 1e6, s.link_us);
    near(PASSES * f.update_s * 1e6, s.update_us);
    assert_true(s.counters >= 2 * PASSES);
    assert_int_equal(s.names, 7);
    assert_int_equal(s.arrows[0], s.arrows[1]);
    json_decref(whole);
    free(json);
    free(items);
}

static void traces_say_what_was_simulated(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, look_at_trace);
}

/* An exposure must name the operation that the slot waited for, and the slot must start when that one is over. */
static void look_at_exposures(drawn_plan *d)
{
    slc_forecast f;
    uint32_t items_count = d->plan->train.item_count;
    slc_item_times *items = calloc(items_count + 1, sizeof *items);
    slc_exposure *exposures = calloc(items_count + 1, sizeof *exposures);
    assert_non_null(items);
    assert_non_null(exposures);
    assert_int_equal(slc_simulate_items(&d->t.job, &d->times, d->plan, NULL, &f, items), SLUICE_OK);
    uint32_t count = slc_exposures(d->plan, items, &f, exposures);
    double sum_s = 0;
    for (uint32_t e = 0; e < count; e++) {
        assert_true(slc_on_compute_lane(&d->plan->train.items[exposures[e].slot]));
        assert_int_not_equal(exposures[e].cause, SLC_NONE);
        double over_s = items[exposures[e].cause].over_s - (exposures[e].previous ? f.step_s : 0);
        assert_true(fabs(over_s - exposures[e].to_s) <= 1e-9 * f.step_s);
        assert_int_not_equal(exposures[e].busy, SLC_NONE); /* nobody waits while nothing runs */
        assert_false(slc_on_compute_lane(&d->plan->train.items[exposures[e].busy]));
        sum_s += exposures[e].to_s - exposures[e].from_s;
    }
    assert_true(fabs(sum_s - f.exposed_s) <= 1e-6 * f.step_s);
    free(exposures);
    free(items);
}

static void waits_have_causes(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, look_at_exposures);
}

static void labels(void **state)
{
    (void)state;
    const char *layers[] = {"wte", "h.0"};
    slc_use uses[] = {{0, true}, {1, true}};
    slc_unit units[] = {{"wte", 320, 32, SLUICE_FP32, true, uses, .use_count = 2},
                        {"h.0", 32, 32, SLUICE_FP32, true, uses + 1, .use_count = 1}};
    slc_job job = {.world = 2, .micro_batches = 2, .layer_count = 2, .layers = layers, .units = units, .unit_count = 2};
    char label[SLC_ITEM_LABEL];
    static const struct {
        slc_item item;
        const char *wanted;
    } cases[] = {
        {{.kind = SLC_ITEM_SLOT, .slot = 1, .unit = SLC_NONE}, "F h.0"},
        {{.kind = SLC_ITEM_SLOT, .slot = 3, .micro_batch = 1, .unit = SLC_NONE}, "B wte #1"},
        {{.kind = SLC_ITEM_REDUCE_SCATTER, .unit = 0, .first_block = 2, .block_count = 3},
         "reduce_scatter wte blocks 2-4"},
        {{.kind = SLC_ITEM_UPDATE, .unit = 0, .first_block = 9, .block_count = 1}, "update wte block 9"},
        {{.kind = SLC_ITEM_GATHER_VALUE, .unit = 1, .block_count = 1}, "gather_value h.0"},
        {{.kind = SLC_ITEM_GATHER_WINDOW, .unit = 0, .block_count = 10}, "gather_window wte for F"},
        {{.kind = SLC_ITEM_AGREE, .unit = SLC_NONE}, "agree"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        slc_item_label(&job, &cases[i].item, label);
        assert_string_equal(label, cases[i].wanted);
    }
    char name[2 * SLC_ITEM_LABEL]; /* characters of two bytes, so that the cut would fall inside one */
    for (size_t i = 0; i + 1 < sizeof name; i++) name[i] = i % 2 ? '\xa9' : '\xc3';
    name[sizeof name - 2] = 0;
    layers[1] = name;
    slc_item_label(&job, &cases[0].item, label);
    assert_true(strlen(label) % 2 == 0 && strlen(label) >= SLC_ITEM_LABEL - 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels),
        cmocka_unit_test(waits_have_causes),
        cmocka_unit_test(traces_say_what_was_simulated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
