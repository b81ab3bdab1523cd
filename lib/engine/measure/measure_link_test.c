/* Measuring the link in a real world of ranks, on the host and on GPUs: every rank gets the same legal figures, the
 * arena is as it was, the peak stays the packer's, and training goes on. The speed of a link is not asserted. */
#include "lib/engine/measure/measure.h"
#include "lib/engine/runtime.h"
#include "lib/plan/profile.h"

#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sluice/sluice.h>
#include <cmocka.h>

typedef struct {
    bool direct;
    const char *throttle;
    uint64_t count; /* elements of a layer */
    uint64_t steps; /* of the run; few of them are worth shorter measurements; 0: it does not say */
    bool on_gpu, nccl_sums;
} trial;

enum { LAYERS = 3 };

typedef struct {
    sluice_runtime *rt;
    sluice_layer *layers[LAYERS];
    sluice_param *params[LAYERS];
} model;

static int build(sluice_world *world, const trial *t, model *m)
{
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = "fsdp";
    config.steps = t->steps;
    config.block_bytes = 64 << 10;
    if (t->on_gpu) config.device = "cuda";
    if (t->nccl_sums) config.sums = SLUICE_SUMS_NCCL;
    RANK_CHECK(!sluice_runtime_create(world, &config, &m->rt));
    for (int l = 0; l < LAYERS; l++) {
        char name[16];
        snprintf(name, sizeof name, "l%d", l);
        RANK_CHECK(!sluice_layer_add(m->rt, name, &m->layers[l]));
        RANK_CHECK(!sluice_param_add(m->layers[l], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = t->count),
                                     &m->params[l]));
    }
    RANK_CHECK(!sluice_runtime_commit(m->rt));
    float *ones = malloc(t->count * sizeof *ones);
    for (uint64_t i = 0; i < t->count; i++) ones[i] = (float)(i % 1000);
    for (int l = 0; l < LAYERS; l++) RANK_CHECK(!sluice_param_write(m->params[l], 0, t->count, ones));
    free(ones);
    return 0;
}

/* A gradient that nobody touches is zero. */
static int step(const trial *t, model *m)
{
    RANK_CHECK(!sluice_step_begin(m->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
    for (int l = 0; l < LAYERS; l++) {
        RANK_CHECK(!sluice_forward_begin(m->layers[l]));
        RANK_CHECK(!sluice_forward_end(m->layers[l]));
    }
    for (int l = LAYERS; l-- > 0;) {
        RANK_CHECK(!sluice_backward_begin(m->layers[l]));
        float *gradient = sluice_param_gradient(m->params[l]);
        if (!t->on_gpu) gradient[0] += 1;
        RANK_CHECK(!sluice_backward_end(m->layers[l]));
    }
    RANK_CHECK(!sluice_step_end(m->rt, NULL));
    return 0;
}

static int legal(const slc_link *link, int size)
{
    const slc_link_line *lines[] = {&link->reduce_scatter, &link->all_gather};
    for (int i = 0; i < 2; i++) {
        RANK_CHECK(isfinite(lines[i]->latency_s) && lines[i]->latency_s >= 0);
        RANK_CHECK(isfinite(lines[i]->bytes_per_s) && lines[i]->bytes_per_s > 0);
    }
    RANK_CHECK(link->sigma >= 1 && isfinite(link->sigma));
    RANK_CHECK(link->kappa >= 0 && link->kappa <= link->sigma);
    RANK_CHECK(link->update_kappa >= 0 && isfinite(link->update_kappa));
    RANK_CHECK(link->operation_s > 0 && isfinite(link->operation_s));
    RANK_CHECK(link->block_bytes >= 64 << 10 || size == 1);
    return 0;
}

static int same_everywhere(sluice_world *world, const slc_link *link, int size)
{
    slc_link *all = calloc((size_t)size, sizeof *all);
    RANK_CHECK(!sluice_world_all_gather(world, link, sizeof *link, all));
    for (int r = 0; r < size; r++) {
        RANK_CHECK(all[r].reduce_scatter.latency_s == link->reduce_scatter.latency_s);
        RANK_CHECK(all[r].reduce_scatter.bytes_per_s == link->reduce_scatter.bytes_per_s);
        RANK_CHECK(all[r].all_gather.latency_s == link->all_gather.latency_s);
        RANK_CHECK(all[r].all_gather.bytes_per_s == link->all_gather.bytes_per_s);
        RANK_CHECK(all[r].kappa == link->kappa && all[r].sigma == link->sigma &&
                   all[r].update_kappa == link->update_kappa);
        RANK_CHECK(all[r].operation_s == link->operation_s && all[r].block_bytes == link->block_bytes);
        RANK_CHECK(all[r].thread_moves == link->thread_moves);
    }
    free(all);
    return 0;
}

static void print(const trial *t, int size, const slc_link *link, double seconds)
{
    printf("# %d ranks %s %s: RS %.1f us + %.0f MB/s, AG %.1f us + %.0f MB/s, kappa %.2f sigma %.2f, of updates %.2f, "
           "block %llu KiB, "
           "operation %.2f us, %s; took %.2f s\n",
           size,
           t->on_gpu   ? "gpu"
           : t->direct ? "direct"
                       : "messages",
           t->throttle, 1e6 * link->reduce_scatter.latency_s, 1e-6 * link->reduce_scatter.bytes_per_s,
           1e6 * link->all_gather.latency_s, 1e-6 * link->all_gather.bytes_per_s, link->kappa, link->sigma,
           link->update_kappa, (unsigned long long)link->block_bytes >> 10, 1e6 * link->operation_s,
           link->thread_moves ? "thread moves" : "network moves", seconds);
}

static int measure(int rank, int size, void *context)
{
    const trial *t = context;
    sluice_world *world;
    sluice_world_config config;
    model m;
    slc_link link;
    char before[65], after[65];
    RANK_CHECK(!sluice_world_config_init(&config));
    config.direct = t->direct;
    config.throttle = t->throttle;
    RANK_CHECK(!sluice_world_create(&config, &world));
    if (build(world, t, &m) || step(t, &m) || step(t, &m)) return 1;
    RANK_CHECK(!sluice_runtime_weights_sha256(m.rt, before));
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    RANK_CHECK(!sluice_runtime_sync(m.rt));
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    RANK_CHECK(!slc_engine_measure_link(m.rt, &link));
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (rank == 0)
        print(t, size, &link, (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
    for (int p = 0; p < SLC_MEASURE_PASSES && t->count >= 100000; p++)
        RANK_CHECK(m.rt->measure->passes_s[p] > 0 && isfinite(m.rt->measure->passes_s[p]));
    if (legal(&link, size) || same_everywhere(world, &link, size)) return 1;
    RANK_CHECK(link.thread_moves == (t->direct && !*t->throttle && size > 1 && !t->on_gpu));
    RANK_CHECK(!sluice_runtime_weights_sha256(m.rt, after));
    RANK_CHECK(!strcmp(before, after));
    RANK_CHECK(!sluice_runtime_memory(m.rt, &memory));
    RANK_CHECK(memory.peak_bytes == memory.planned_bytes);
    if (step(t, &m)) return 1;
    RANK_CHECK(!sluice_runtime_sync(m.rt));
    sluice_runtime_destroy(m.rt);
    sluice_world_destroy(world);
    return 0;
}

static void run(int size, trial t)
{
    assert_int_equal(run_ranks(size, measure, &t, 60), 0);
}

static void alone(void **state)
{
    (void)state;
    run(1, (trial){.direct = true, .throttle = "", .count = 100000, .steps = 4});
}

static void direct(void **state)
{
    (void)state;
    run(2, (trial){.direct = true, .throttle = "", .count = 1 << 18, .steps = 0});
    run(4, (trial){.direct = true, .throttle = "", .count = 200000, .steps = 4});
}

static void messages(void **state)
{
    (void)state;
    run(2, (trial){.direct = false, .throttle = "", .count = 1 << 18, .steps = 4});
}

static void throttled(void **state)
{
    (void)state;
    run(2, (trial){.direct = true, .throttle = "1gbit,50us", .count = 1 << 18, .steps = 4});
    if (!test_brief()) run(2, (trial){.direct = true, .throttle = "100mbit", .count = 120000, .steps = 4});
}

static void a_model_that_leaves_hardly_any_room(void **state)
{
    (void)state;
    run(2, (trial){.direct = true, .throttle = "", .count = 20, .steps = 0});
    run(2, (trial){.direct = false, .throttle = "", .count = 2000, .steps = 4});
}

/* ---- GPUs ---- */

static bool lacks_gpu, lacks_nccl = true;

static int opens_gpu(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    slc_device *device;
    RANK_CHECK(!slc_device_open("cuda", &device));
    slc_device_close(device);
    return 0;
}

static void one_gpu(void **state)
{
    (void)state;
    if (lacks_gpu) skip();
    run(1, (trial){.throttle = "", .count = 100000, .steps = 4, .on_gpu = true});
    run(1, (trial){.throttle = "", .count = 20, .steps = 4, .on_gpu = true}); /* there is hardly any room */
}

static void several_gpus(void **state)
{
    (void)state;
    if (lacks_nccl) skip();
    setenv("SLUICE_COMM_TRANSPORT", "nccl", 1);
    run(2, (trial){.throttle = "", .count = 1 << 18, .steps = 4, .on_gpu = true});
    if (!test_brief()) run(3, (trial){.throttle = "", .count = 50000, .steps = 4, .on_gpu = true, .nccl_sums = true});
    run(2, (trial){.throttle = "", .count = 20, .steps = 4, .on_gpu = true});
    unsetenv("SLUICE_COMM_TRANSPORT");
}

/* The block is one of those that are allowed, the same on all ranks, and nothing stays attached. */
static int choose_block(int rank, int size, void *context)
{
    const trial *t = context;
    sluice_world *world;
    sluice_world_config config;
    model m;
    uint64_t bytes = 0, all[RANKS_MAX];
    RANK_CHECK(!sluice_world_config_init(&config));
    RANK_CHECK(!sluice_world_create(&config, &world));
    sluice_config wanted;
    sluice_config_init(&wanted);
    wanted.device = "cuda";
    RANK_CHECK(!sluice_runtime_create(world, &wanted, &m.rt));
    RANK_CHECK(!slc_measure_block(m.rt, SLUICE_BF16, 16 << 10, 1 << 20, &bytes));
    if (rank == 0) printf("# %d GPUs: a block of %llu KiB\n", size, (unsigned long long)bytes >> 10);
    RANK_CHECK(bytes >= 16 << 10 && bytes <= 1 << 20 && !(bytes & (bytes - 1)));
    RANK_CHECK(!sluice_world_all_gather(world, &bytes, sizeof bytes, all));
    for (int r = 0; r < size; r++) RANK_CHECK(all[r] == bytes);
    sluice_runtime_destroy(m.rt);
    if (build(world, t, &m) || step(t, &m)) return 1;
    RANK_CHECK(!sluice_runtime_sync(m.rt));
    sluice_runtime_destroy(m.rt);
    sluice_world_destroy(world);
    return 0;
}

static void a_base_block_by_the_link(void **state)
{
    (void)state;
    trial t = {.throttle = "", .count = 1000, .on_gpu = true};
    if (lacks_nccl) skip();
    setenv("SLUICE_COMM_TRANSPORT", "nccl", 1);
    assert_int_equal(run_ranks(2, choose_block, &t, 60), 0);
    unsetenv("SLUICE_COMM_TRANSPORT");
}

/* Makes a runtime of one long layer whose block is left open, with a plan that a file has, or a budget. */
static int open_block(sluice_world *world, const char *plan, const char *out, uint64_t budget, uint64_t block,
                      uint64_t *bytes)
{
    enum { LONG = (16 << 20) / 4 + 1000 };
    sluice_config config;
    sluice_runtime *rt;
    sluice_layer *layer;
    sluice_param *param;
    sluice_config_init(&config);
    config.device = "cuda";
    config.strategy = "fsdp";
    config.schedule = "one_ahead";
    config.plan_file = plan;
    config.budget_bytes = budget;
    config.block_bytes = block;
    RANK_CHECK(!sluice_runtime_create(world, &config, &rt));
    RANK_CHECK(!sluice_layer_add(rt, "long", &layer));
    RANK_CHECK(!sluice_param_add(layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = LONG), &param));
    RANK_CHECK(!sluice_runtime_commit(rt));
    *bytes = rt->config.block_bytes;
    if (out && rt->rank == 0) RANK_CHECK(!slc_plan_write(&rt->job, rt->current.plan, &rt->current.forecast, out));
    sluice_runtime_destroy(rt);
    return 0;
}

static int leave_block_open(int rank, int size, void *context)
{
    const char *path = context;
    sluice_world *world;
    uint64_t bytes = 0;
    RANK_CHECK(!sluice_world_create(NULL, &world));
    if (open_block(world, NULL, NULL, 0, 0, &bytes)) return 1;
    if (rank == 0) printf("# %d GPUs, a long layer: blocks of %llu MiB\n", size, (unsigned long long)bytes >> 20);
    RANK_CHECK(bytes == 16 << 20 || bytes == 32 << 20 || bytes == 64 << 20);
    if (open_block(world, NULL, NULL, (uint64_t)1 << 30, 0, &bytes)) return 1;
    RANK_CHECK(bytes == 16 << 20); /* with a budget it hangs on nothing */
    if (open_block(world, NULL, path, 0, 5 << 20, &bytes)) return 1;
    RANK_CHECK(bytes == 5 << 20);
    if (open_block(world, path, NULL, 0, 0, &bytes)) return 1;
    RANK_CHECK(bytes == 5 << 20); /* the plan's */
    sluice_world_destroy(world);
    return 0;
}

static void a_base_block_that_is_left_open(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice_block_XXXXXX";
    if (lacks_nccl) skip();
    close(mkstemp(path));
    setenv("SLUICE_COMM_TRANSPORT", "nccl", 1);
    assert_int_equal(run_ranks(2, leave_block_open, path, 60), 0);
    unsetenv("SLUICE_COMM_TRANSPORT");
    unlink(path);
}

int main(void)
{
    lacks_gpu = run_ranks(1, opens_gpu, NULL, 60) != 0;
#if defined(SLUICE_TEST_NCCL)
    setenv("SLUICE_COMM_NCCL", SLUICE_TEST_NCCL, 1);
    setenv("SLUICE_EMULATED_LOADED", "2", 1); /* no kernel is launched for the first time beside a collective */
    lacks_nccl = lacks_gpu;
#else
    printf("SKIP: several GPUs: this build has no small NCCL over an emulated GPU\n");
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone),
        cmocka_unit_test(direct),
        cmocka_unit_test(messages),
        cmocka_unit_test(throttled),
        cmocka_unit_test(a_model_that_leaves_hardly_any_room),
        cmocka_unit_test(one_gpu),
        cmocka_unit_test(several_gpus),
        cmocka_unit_test(a_base_block_by_the_link),
        cmocka_unit_test(a_base_block_that_is_left_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
