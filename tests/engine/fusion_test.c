/* Many tiny layers end with the same weights to the bit with fused units and without, under every strategy and
 * schedule, on 1, 2 and 4 ranks, clipped, with micro-batches reduced at once and each, and in bf16. Peaks are as
 * planned; a checkpoint of one loads into the other; a fused unit's parameters are valid in their own layer only. */
#include "lib/base/element.h"
#include "lib/plan/request.h"
#include "lib/engine/runtime.h"
#include "tests/support/base/folder.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/mman.h>

enum { LAYERS_MAX = 12, STEPS = 4 };

typedef struct {
    const char *strategy, *schedule, *fuse;
    sluice_recompute recompute;
    uint32_t layers, micro_batches, steps;
    bool each, bf16, odd; /* odd: some layers cannot be fused */
    double clip;
    const char *save, *load;
    struct result *out; /* in shared memory; rank 0 writes it */
} trial;

struct result {
    char weights[65];
    uint32_t units;
};

typedef struct {
    const trial *t;
    sluice_runtime *rt;
    sluice_layer *layer[LAYERS_MAX];
    sluice_param *weight[LAYERS_MAX], *bias[LAYERS_MAX], *tied;
    uint64_t count[LAYERS_MAX];
    sluice_activation *made[LAYERS_MAX];
    int rank;
} model;

static uint64_t size_of(uint32_t layer)
{
    return 1 + ((layer + 1) * 2654435761u >> 7) % 700;
}

/* In an odd model layer 3 has a strategy of its own, others another precision, or no parameter but a tied one. */
static bool is_forced(const trial *t, uint32_t l)
{
    return t->odd && l == 3;
}
static bool is_other_precision(const trial *t, uint32_t l)
{
    return t->odd && l == 6;
}
static bool is_bare(const trial *t, uint32_t l)
{
    return t->odd && l == 9;
}

static int add_layer(model *m, uint32_t l)
{
    const trial *t = m->t;
    char name[16];
    snprintf(name, sizeof name, "h.%u", l);
    RANK_CHECK(!sluice_layer_add(m->rt, name, &m->layer[l]));
    if (is_forced(t, l)) RANK_CHECK(!sluice_layer_strategy(m->layer[l], "oss"));
    if (is_other_precision(t, l)) RANK_CHECK(!sluice_layer_precision(m->layer[l], t->bf16 ? SLUICE_FP32 : SLUICE_BF16));
    RANK_CHECK(!sluice_layer_can_recompute(m->layer[l], l % 3 == 0));
    sluice_activation_desc activation = {.struct_size = sizeof(sluice_activation_desc),
                                         .name = "x",
                                         .bytes = 64 + 16 * l,
                                         .last = SLUICE_BACKWARD,
                                         .recomputable = l % 3 == 0};
    RANK_CHECK(!sluice_activation_add(m->layer[l], &activation, &m->made[l]));
    if (t->odd && l == 2)
        RANK_CHECK(!sluice_param_add(
            m->layer[l], &SLUICE_INIT(sluice_param_desc, .name = "tied", .count = 77, .tied = true), &m->tied));
    if (t->odd && l == 9) RANK_CHECK(!sluice_param_use(m->layer[l], m->tied));
    if (is_bare(t, l)) return 0;
    m->count[l] = size_of(l);
    RANK_CHECK(!sluice_param_add(
        m->layer[l],
        &SLUICE_INIT(sluice_param_desc, .name = "w", .count = m->count[l], .no_backward_value = l % 4 == 1),
        &m->weight[l]));
    RANK_CHECK(!sluice_param_add(
        m->layer[l],
        &SLUICE_INIT(sluice_param_desc, .name = "b", .count = 5, .frozen = t->odd && l == 4, .no_decay = true),
        &m->bias[l]));
    return 0;
}

static int write_first_values(model *m)
{
    for (uint32_t p = 0; p < sluice_runtime_param_count(m->rt); p++) {
        sluice_param *param = sluice_runtime_param(m->rt, p);
        uint64_t count = sluice_param_count(param);
        float *values = malloc(count * sizeof *values);
        for (uint64_t i = 0; i < count; i++) values[i] = (float)((i * 7919 + p * 104729) % 2003) * 1e-3f - 1;
        RANK_CHECK(!sluice_param_write(param, 0, count, values));
        free(values);
    }
    return 0;
}

static int build(model *m, sluice_world *world)
{
    const trial *t = m->t;
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = t->strategy;
    config.schedule = t->schedule;
    config.steps = test_brief() ? STEPS : 0; /* as in engine_model.c */
    config.fuse = t->fuse;
    config.recompute = t->recompute;
    config.micro_batches = t->micro_batches;
    config.accumulate = t->each ? SLUICE_ACCUMULATE_EACH : SLUICE_ACCUMULATE_LAST;
    config.precision = t->bf16 ? SLUICE_BF16 : SLUICE_FP32;
    config.clip = t->clip;
    RANK_CHECK(!sluice_runtime_create(world, &config, &m->rt));
    for (uint32_t l = 0; l < t->layers; l++)
        if (add_layer(m, l)) return 1;
    RANK_CHECK(!sluice_runtime_commit(m->rt));
    return write_first_values(m);
}

static int add_gradient(const model *m, sluice_param *param, uint64_t key)
{
    bool fresh;
    const void *value = sluice_param_value(param);
    void *gradient = sluice_param_gradient_fresh(param, &fresh);
    RANK_CHECK(gradient);
    for (uint64_t i = 0; i < sluice_param_count(param); i++) {
        float noise = (float)((key * 31 + i * 17 + (uint64_t)m->rank * 13) % 211) * 1e-2f - 1;
        float sum = (value ? 0.1f * slc_element_value(value, sluice_param_dtype(param), i) : 0) + noise;
        sluice_dtype dtype = sluice_param_gradient_dtype(param);
        if (!fresh) sum += slc_element_value(gradient, dtype, i);
        if (dtype == SLUICE_BF16)
            ((uint16_t *)gradient)[i] = sluice_bf16_from_float(sum);
        else
            ((float *)gradient)[i] = sum;
    }
    return 0;
}

/* A neighbour's parameters, fused or not, are not valid here. */
static int forward(model *m, uint32_t l)
{
    RANK_CHECK(!sluice_forward_begin(m->layer[l]));
    if (m->weight[l]) RANK_CHECK(sluice_param_value(m->weight[l]));
    if (l && m->weight[l - 1]) RANK_CHECK(!sluice_param_value(m->weight[l - 1]));
    if (l + 1 < m->t->layers && m->weight[l + 1]) RANK_CHECK(!sluice_param_value(m->weight[l + 1]));
    RANK_CHECK(!sluice_forward_end(m->layer[l]));
    return 0;
}

static int backward(model *m, uint32_t l, uint64_t key)
{
    if (sluice_layer_recomputes(m->layer[l])) {
        RANK_CHECK(!sluice_recompute_begin(m->layer[l]));
        if (m->weight[l]) RANK_CHECK(sluice_param_value(m->weight[l]));
        RANK_CHECK(!sluice_recompute_end(m->layer[l]));
    }
    RANK_CHECK(!sluice_backward_begin(m->layer[l]));
    if (l && m->weight[l - 1]) RANK_CHECK(!sluice_param_gradient(m->weight[l - 1]));
    if (m->weight[l] && l % 7 != 5 && add_gradient(m, m->weight[l], key + l)) return 1; /* some get none */
    if (m->bias[l] && !(m->t->odd && l == 4) && add_gradient(m, m->bias[l], key + 2 * l)) return 1;
    if (m->tied && (l == 2 || l == 9) && add_gradient(m, m->tied, key + 3 * l)) return 1;
    RANK_CHECK(!sluice_backward_end(m->layer[l]));
    return 0;
}

static int one_step(model *m)
{
    const trial *t = m->t;
    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.01);
    RANK_CHECK(!sluice_step_begin(m->rt, &options));
    for (uint32_t batch = 0; batch < t->micro_batches; batch++) {
        for (uint32_t l = 0; l < t->layers; l++)
            if (forward(m, l)) return 1;
        for (uint32_t l = t->layers; l-- > 0;)
            if (backward(m, l, sluice_runtime_step(m->rt) * 1000 + batch * 100)) return 1;
    }
    RANK_CHECK(!sluice_step_end(m->rt, NULL));
    return 0;
}

static int run(int rank, int size, void *context)
{
    const trial *t = context;
    model m = {.t = t, .rank = rank};
    sluice_world *world;
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    struct result result = {.units = 0};
    (void)size;
    RANK_CHECK(!sluice_world_create(NULL, &world));
    if (build(&m, world)) return 1;
    if (t->load) RANK_CHECK(!sluice_checkpoint_load(m.rt, t->load, NULL, NULL));
    for (uint32_t step = 0; step < t->steps; step++) {
        if (one_step(&m)) return 1;
        if (t->save && step + 1 == t->steps / 2) RANK_CHECK(!sluice_checkpoint_save(m.rt, t->save, NULL, 0));
    }
    RANK_CHECK(!sluice_runtime_weights_sha256(m.rt, result.weights));
    RANK_CHECK(!sluice_runtime_memory(m.rt, &memory));
    RANK_CHECK(memory.peak_bytes == memory.planned_bytes);
    result.units = m.rt->job.unit_count;
    if (rank == 0) *t->out = result;
    sluice_runtime_destroy(m.rt);
    sluice_world_destroy(world);
    return 0;
}

static struct result results(int ranks, trial t)
{
    struct result *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    t.out = shared;
    if (run_ranks(ranks, run, &t, 200))
        fail_msg("%d ranks, %s, %s, fuse %s, each %d, bf16 %d, clip %g, odd %d", ranks, t.strategy, t.schedule, t.fuse,
                 t.each, t.bf16, t.clip, t.odd);
    struct result result = *shared;
    munmap(shared, sizeof *shared);
    return result;
}

static void weights_are_equal_fused_or_not(void **state)
{
    (void)state;
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp", "random:3", "mixed"};
    static const char *const schedules[] = {"serial", "one_ahead", "bucketed", "priority", "greedy", "random"};
    static const char *const fuses[] = {"auto", "1MiB", "5KB"};
    uint32_t number = 0, tried = 0, fewer = 0;
    for (int ranks = 1; ranks <= 4; ranks *= 2)
        for (uint32_t kind = 0; kind < 4; kind++) { /* of micro-batches, reductions, types, clipping */
            trial t = {.strategy = "sdp",
                       .schedule = "serial",
                       .fuse = "off",
                       .layers = 12,
                       .micro_batches = kind % 2 ? 2 : 1,
                       .each = kind == 3,
                       .bf16 = kind >= 2,
                       .clip = kind == 1 ? 0.5 : 0,
                       .odd = kind > 0,
                       .steps = STEPS};
            struct result apart = results(ranks, t);
            for (int s = 0; s < 6; s++, number++) {
                if (!test_takes(number, 0.5)) continue;
                t.strategy = strategies[s];
                t.schedule = schedules[(number + kind) % 6];
                t.fuse = fuses[number % 3];
                t.recompute = number % 2 ? SLUICE_RECOMPUTE_ALL : SLUICE_RECOMPUTE_NONE;
                struct result fused = results(ranks, t);
                if (strcmp(fused.weights, apart.weights))
                    fail_msg("%d ranks, kind %u, %s, %s, fuse %s: other weights", ranks, kind, t.strategy, t.schedule,
                             t.fuse);
                assert_true(fused.units <= apart.units);
                tried++;
                fewer += fused.units < apart.units;
            }
        }
    assert_true(fewer > tried / 2);
}

static void what_cannot_be_fused_stays_apart(void **state)
{
    (void)state;
    trial t = {
        .strategy = "fsdp", .schedule = "one_ahead", .fuse = "1MiB", .layers = 12, .micro_batches = 1, .steps = 1};
    assert_int_equal(results(2, t).units, 1);
    t.odd = true;
    /* Units hold layers 0-2, 3, 4-5, 6, 7-8 and 10-11; two more hold the tied parameter and the frozen one of layer
     * 4. */
    assert_int_equal(results(2, t).units, 8);
    t.fuse = "off";
    assert_int_equal(results(2, t).units, 13);
}

static void checkpoints_load_across(void **state)
{
    (void)state;
    trial t = {.strategy = "fsdp",
               .schedule = "one_ahead",
               .fuse = "1MiB",
               .layers = 12,
               .micro_batches = 1,
               .odd = true,
               .steps = 6};
    for (int way = 0; way < 2; way++) {
        char dir[64];
        make_own_folder(dir);
        t.fuse = way ? "off" : "1MiB";
        t.strategy = "fsdp";
        t.save = dir;
        t.load = NULL;
        t.steps = 6;
        struct result whole = results(2, t);
        t.fuse = way ? "1MiB" : "off";
        t.strategy = way ? "oss" : "sdp";
        t.save = NULL;
        t.load = dir;
        t.steps = 3;
        assert_string_equal(results(2, t).weights, whole.weights);
        remove_tree(dir);
    }
}

/* Two ranks plan again after measuring, with the solver. */
static void the_solver_plans_fused_units(void **state)
{
    (void)state;
    trial t = {.strategy = "auto",
               .schedule = slc_schedule_default,
               .fuse = "off",
               .layers = 12,
               .micro_batches = 1,
               .odd = true,
               .steps = 6};
    struct result apart = results(2, t);
    t.fuse = "auto";
    assert_string_equal(results(2, t).weights, apart.weights);
    t.fuse = "1MiB";
    assert_string_equal(results(2, t).weights, apart.weights);
}

static int refuse(int rank, int size, void *context)
{
    sluice_world *world;
    sluice_runtime *rt;
    sluice_config config;
    (void)rank, (void)size;
    RANK_CHECK(!sluice_world_create(NULL, &world));
    sluice_config_init(&config);
    config.fuse = context;
    RANK_CHECK(sluice_runtime_create(world, &config, &rt) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "give auto, off, or a size"));
    config.fuse = NULL;
    setenv("SLUICE_PLAN_FUSE", context, 1);
    RANK_CHECK(sluice_runtime_create(world, &config, &rt) == SLUICE_ERR_ARGUMENT);
    sluice_world_destroy(world);
    return 0;
}

static void other_words_are_refused(void **state)
{
    (void)state;
    char word[] = "sometimes";
    assert_int_equal(run_ranks(1, refuse, word, 60), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_equal_fused_or_not), cmocka_unit_test(what_cannot_be_fused_stays_apart),
        cmocka_unit_test(checkpoints_load_across),        cmocka_unit_test(the_solver_plans_fused_units),
        cmocka_unit_test(other_words_are_refused),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
