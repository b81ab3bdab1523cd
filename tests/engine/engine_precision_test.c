/* Mixed precision takes and sends as much as counts by hand say: memory by category and bytes between ranks, for every
 * strategy and type. A parameter keeps its fp32 master, unless nothing trains it. */
#include "tests/support/ranks.h"

#include <math.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LAYERS = 3, COUNT = 4096, ALL = LAYERS * COUNT, BLOCK_BYTES = 4096 };

typedef struct {
    const char *strategy;
    sluice_dtype precision, wire;
    uint32_t micro_batches;
    bool each;
} trial;

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layers[LAYERS];
    sluice_param *params[LAYERS];
} model;

static int build(model *m, const trial *t)
{
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = t->strategy;
    config.schedule = "serial";
    config.precision = t->precision;
    config.wire = t->wire;
    config.micro_batches = t->micro_batches;
    config.accumulate = t->each ? SLUICE_ACCUMULATE_EACH : SLUICE_ACCUMULATE_LAST;
    config.block_bytes = BLOCK_BYTES;
    RANK_CHECK(!sluice_world_create(NULL, &m->world));
    RANK_CHECK(!sluice_runtime_create(m->world, &config, &m->rt));
    for (int l = 0; l < LAYERS; l++) {
        char name[] = {'l', (char)('0' + l), 0};
        RANK_CHECK(!sluice_layer_add(m->rt, name, &m->layers[l]));
        RANK_CHECK(!sluice_param_add(m->layers[l], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = COUNT),
                                     &m->params[l]));
    }
    RANK_CHECK(!sluice_runtime_commit(m->rt));
    return 0;
}

static int step(model *m, const trial *t, sluice_step_report *report)
{
    RANK_CHECK(!sluice_step_begin(m->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
    for (uint32_t b = 0; b < t->micro_batches; b++) {
        for (int l = 0; l < LAYERS; l++)
            RANK_CHECK(!sluice_forward_begin(m->layers[l]) && !sluice_forward_end(m->layers[l]));
        for (int l = LAYERS; l-- > 0;) /* no layer adds to the gradients: zeros travel as well */
            RANK_CHECK(!sluice_backward_begin(m->layers[l]) && !sluice_backward_end(m->layers[l]));
    }
    RANK_CHECK(!sluice_step_end(m->rt, report));
    RANK_CHECK(!sluice_runtime_sync(m->rt));
    return 0;
}

static uint64_t category(const sluice_memory_report *memory, const char *name)
{
    for (uint32_t c = 0; c < memory->category_count; c++)
        if (!strcmp(memory->categories[c].name, name)) return memory->categories[c].peak_bytes;
    return 0;
}

static int expect(const char *what, uint64_t got, uint64_t want, const trial *t)
{
    if (got == want) return 0;
    fprintf(stderr, "rank %s: %s, %s, wire %s, M %u, each %d: %s is %llu, not %llu\n", getenv("RANK"), t->strategy,
            sluice_dtype_name(t->precision), sluice_dtype_name(t->wire), t->micro_batches, t->each, what,
            (unsigned long long)got, (unsigned long long)want);
    return 1;
}

/* Under the serial schedule there is one layer's gradient at a time, unless gradients last from micro-batch to
 * micro-batch, and one layer's gathered values. */
static int check_memory(model *m, const trial *t, uint64_t n)
{
    bool dp = !strcmp(t->strategy, "dp"), oss = !strcmp(t->strategy, "oss"), fsdp = !strcmp(t->strategy, "fsdp");
    bool bf16 = t->precision == SLUICE_BF16, waits = t->micro_batches > 1 && !t->each;
    uint64_t value = bf16 ? 2 : 4, gradient = bf16 && t->wire == SLUICE_BF16 && !waits ? 2 : 4;
    bool whole_sum = dp && gradient == 2; /* the sum of three micro-batches is in fp32 */
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    RANK_CHECK(!sluice_runtime_memory(m->rt, &memory));
    RANK_CHECK(memory.peak_bytes == memory.planned_bytes);
    RANK_CHECK(sluice_param_dtype(m->params[0]) == t->precision);
    RANK_CHECK(sluice_dtype_bytes(sluice_param_gradient_dtype(m->params[0])) == gradient);
    return expect("values", category(&memory, "values"), value * ALL / (fsdp ? n : 1), t) ||
           expect("masters", category(&memory, "fp32 masters"), bf16 ? 4 * ALL / (dp ? 1 : n) : 0, t) ||
           expect("gradients", category(&memory, "gradients"), gradient * (dp || oss || waits ? ALL : COUNT), t) ||
           expect("reduced", category(&memory, "reduced gradients"), t->each ? 4 * ALL / (whole_sum ? 1 : n) : 0, t) ||
           expect("state", category(&memory, "optimizer state"), 8 * ALL / (dp ? 1 : n), t) ||
           expect("gathered", category(&memory, "gathered values"), fsdp ? value * COUNT : 0, t);
}

/* dp's reductions, and fsdp's gathers and reductions, are over when the step ends. fsdp gathers all layers but the last
 * twice. */
static int check_bytes_sent(const trial *t, uint64_t n, const sluice_step_report *report)
{
    bool bf16 = t->precision == SLUICE_BF16, waits = t->micro_batches > 1 && !t->each, adds = t->micro_batches > 1;
    uint64_t value = bf16 ? 2 : 4, gradient = bf16 && t->wire == SLUICE_BF16 && !waits ? 2 : 4;
    uint64_t reduced = adds ? 4 : gradient, times = t->each ? t->micro_batches : 1;
    uint64_t bytes = 2 * 8 * (n == 1 ? 64 : (64 + 16 * n - 1) / (16 * n) * 16 * n); /* the agreement, both ways */
    if (!strcmp(t->strategy, "dp"))
        bytes += t->each ? (times * gradient + reduced) * ALL : 2 * gradient * ALL;
    else if (!strcmp(t->strategy, "fsdp"))
        bytes += times * gradient * ALL + t->micro_batches * value * (2 * LAYERS - 1) * COUNT;
    else
        return 0;
    return expect("bytes sent", report->bytes_sent, bytes * (n - 1) / n, t);
}

static int count(int rank, int size, void *context)
{
    const trial *t = context;
    model m;
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    (void)rank;
    if (build(&m, t) || step(&m, t, &report) || step(&m, t, &report)) return 1;
    bool late_gather = !strcmp(t->strategy, "dp") && t->each; /* the gather may run after the agreement */
    if (check_memory(&m, t, (uint64_t)size)) return 1;
    if (!late_gather && check_bytes_sent(t, (uint64_t)size, &report)) return 1;
    sluice_runtime_destroy(m.rt);
    sluice_world_destroy(m.world);
    return 0;
}

static void memory_and_bytes_are_as_counted(void **state)
{
    (void)state;
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp"};
    for (int s = 0; s < 4; s++)
        for (int ranks = 1; ranks <= 4; ranks *= 2)
            for (int types = 0; types < 3; types++)
                for (int sums = 0; sums < 3; sums++) {
                    trial t = {.strategy = strategies[s],
                               .precision = types ? SLUICE_BF16 : SLUICE_FP32,
                               .wire = types == 1 ? SLUICE_BF16 : SLUICE_FP32,
                               .micro_batches = sums ? 3 : 1,
                               .each = sums == 2};
                    assert_int_equal(run_ranks(ranks, count, &t, 60), 0);
                }
}

/* ---- Masters ---- */

/* Returns a number between two bf16 numbers, a little above one. */
static float fine(int i)
{
    return 1.0f + (float)i * 0x1p-20f;
}

static int keep(int rank, int size, void *context)
{
    (void)rank, (void)size;
    const char *strategy = context;
    enum { FEW = 300 };
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer;
    sluice_param *trained, *frozen;
    sluice_config config;
    float wrote[FEW], got[FEW];
    sluice_config_init(&config);
    config.strategy = strategy;
    config.schedule = "serial";
    config.precision = SLUICE_BF16;
    config.block_bytes = 256;
    RANK_CHECK(!sluice_world_create(NULL, &world) && !sluice_runtime_create(world, &config, &rt));
    RANK_CHECK(!sluice_layer_add(rt, "only", &layer));
    RANK_CHECK(!sluice_param_add(layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = FEW), &trained));
    RANK_CHECK(
        !sluice_param_add(layer, &SLUICE_INIT(sluice_param_desc, .name = "f", .count = FEW, .frozen = true), &frozen));
    RANK_CHECK(!sluice_runtime_commit(rt));
    for (int i = 0; i < FEW; i++) wrote[i] = fine(i);
    /* Writes in two pieces that meet in the middle of a shard. */
    sluice_param *both[] = {trained, frozen};
    for (int p = 0; p < 2; p++)
        RANK_CHECK(!sluice_param_write(both[p], 0, 137, wrote) &&
                   !sluice_param_write(both[p], 137, FEW - 137, wrote + 137));
    RANK_CHECK(!sluice_param_read(trained, 0, FEW, got));
    RANK_CHECK(!memcmp(got, wrote, sizeof got)); /* the master has every bit */
    RANK_CHECK(!sluice_param_read(frozen, 3, FEW - 3, got));
    for (int i = 0; i < FEW - 3; i++) RANK_CHECK(got[i] == sluice_bf16_to_float(sluice_bf16_from_float(fine(i + 3))));
    RANK_CHECK(!sluice_evaluate_begin(rt) && !sluice_forward_begin(layer));
    for (int p = 0; p < 2; p++) {
        const uint16_t *seen = sluice_param_value(both[p]);
        for (int i = 0; i < FEW; i++) RANK_CHECK(seen[i] == sluice_bf16_from_float(fine(i)));
    }
    RANK_CHECK(!sluice_forward_end(layer) && !sluice_evaluate_end(rt));
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    return 0;
}

static void what_is_trained_keeps_its_fp32(void **state)
{
    (void)state;
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp"};
    for (int s = 0; s < 4; s++)
        for (int ranks = 1; ranks <= 3; ranks++) assert_int_equal(run_ranks(ranks, keep, (void *)strategies[s], 60), 0);
}

/* ---- Steps too small for bf16 ---- */

/* The rate moves a value by less than half the distance between bf16 numbers, so only a master adds the moves up. */
static int creep(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    enum { STEPS = 64 };
    const trial t = {.strategy = "sdp", .precision = SLUICE_BF16, .wire = SLUICE_BF16, .micro_batches = 1};
    model m;
    float ones[COUNT], got[COUNT];
    if (build(&m, &t)) return 1;
    for (int i = 0; i < COUNT; i++) ones[i] = 1;
    for (int l = 0; l < LAYERS; l++) RANK_CHECK(!sluice_param_write(m.params[l], 0, COUNT, ones));
    for (int s = 0; s < STEPS; s++) {
        RANK_CHECK(!sluice_step_begin(m.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3)));
        for (int l = 0; l < LAYERS; l++)
            RANK_CHECK(!sluice_forward_begin(m.layers[l]) && !sluice_forward_end(m.layers[l]));
        for (int l = LAYERS; l-- > 0;) {
            bool fresh;
            RANK_CHECK(!sluice_backward_begin(m.layers[l]));
            uint16_t *gradient = sluice_param_gradient_fresh(m.params[l], &fresh);
            RANK_CHECK(gradient && fresh);
            for (int i = 0; i < COUNT; i++) gradient[i] = sluice_bf16_from_float(1);
            RANK_CHECK(!sluice_backward_end(m.layers[l]));
        }
        RANK_CHECK(!sluice_step_end(m.rt, NULL));
    }
    RANK_CHECK(!sluice_param_read(m.params[1], 0, COUNT, got));
    /* With a gradient of 1 AdamW moves a value by the rate, and decay by another hundredth of the rate. */
    for (int i = 0; i < COUNT; i++) RANK_CHECK(fabs((double)got[i] - (1 - STEPS * 1e-3 * 1.01)) < 1e-3);
    sluice_runtime_destroy(m.rt);
    sluice_world_destroy(m.world);
    return 0;
}

static void small_steps_add_up(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, creep, NULL, 60), 0);
    assert_int_equal(run_ranks(2, creep, NULL, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_and_bytes_are_as_counted),
        cmocka_unit_test(what_is_trained_keeps_its_fp32),
        cmocka_unit_test(small_steps_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
