/* Compressed optimizers on GPUs: a run there holds, after every step, what the same run on the host holds, to the bit,
 * on every rank: values and states where replicas are equal, errors and local arrays, and the numbers of the optimizer;
 * through the freeze, re-plans and checkpoints, beside sharded layers. So packets and results are those of the host's
 * exchange, too: errors are what they leave. */
#include "tests/support/base/folder.h"
#include "tests/support/device/gpu_there.h"
#include "tests/support/draw.h"
#include "tests/support/onebit_model.h"

#include <sys/mman.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { STEPS_MOST = 24, HANG_S = 200 };

typedef struct {
    trial trial;
    uint32_t steps;
    uint64_t bad_call;  /* a gradient of rank 0 is not finite there; 0: never */
    uint64_t huge_from; /* of which an element is almost the largest number; 0: never */
    bool replans;       /* after every step to another plan of the same units */
    bool resumes;       /* after half of the steps from a checkpoint */
} run;

/* Shared with the ranks. */
typedef struct {
    run run;
    char folder[64]; /* for a checkpoint */
    uint64_t prints[2][RANKS_MAX][STEPS_MOST];
    bool on_gpu;
    uint32_t compressed[2], exchanging[2]; /* steps whose phase was; steps with units that exchange, on rank 0 */
} record;

/* ---- What a rank holds ---- */

static int add_own(const known *k, uint64_t *print)
{
    static const char *const names[] = {"error_worker", "error_server", "accumulator", "kept", "flat"};
    static float x[2 * PADDED_MAX * PARAMS_MAX];
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        const uint64_t count = sluice_param_state_count(k->param, names[n]);
        /* The count is 0 if this optimizer has no array of that name. */
        if (!count) continue;
        RANK_CHECK(count <= sizeof x / sizeof *x);
        RANK_CHECK(!sluice_param_state_read(k->param, names[n], 0, count, x));
        for (uint64_t i = 0; i < count; i++) {
            uint32_t bits;
            memcpy(&bits, &x[i], sizeof bits);
            *print = mix(*print ^ bits);
        }
    }
    return 0;
}

static int add_number(model *m, const sluice_param *param, const char *name, uint64_t *print)
{
    double value;
    uint64_t bits;
    if (sluice_runtime_progress_read(m->rt, param, name, &value)) return 0; /* another optimizer's */
    memcpy(&bits, &value, sizeof bits);
    *print = mix(*print ^ bits);
    return 0;
}

static int add_numbers(model *m, uint64_t *print)
{
    static const char *const of_job[] = {"frozen_at",      "norm_step", "norm",   "refreshes",
                                         "local_interval", "rates",     "decayed"};
    static const char *const of_parameter[] = {"coefficient", "ratios",         "last_factor",
                                               "scaling",     "frozen_updates", "refreshes"};
    for (size_t n = 0; n < sizeof of_job / sizeof *of_job; n++)
        if (add_number(m, NULL, of_job[n], print)) return 1;
    for (uint32_t p = 0; p < m->param_count; p++)
        for (size_t n = 0; n < sizeof of_parameter / sizeof *of_parameter; n++)
            if (add_number(m, m->params[p].param, of_parameter[n], print)) return 1;
    return 0;
}

static int print_of(model *m, uint64_t *print)
{
    bool readable;
    *print = 1;
    RANK_CHECK(!sluice_runtime_sync(m->rt));
    (void)sluice_runtime_replicas_equal(m->rt, &readable);
    if (readable && model_hash(m, true, print)) return 1;
    for (uint32_t p = 0; p < m->param_count; p++)
        if (add_own(&m->params[p], print)) return 1;
    return add_numbers(m, print);
}

/* ---- A run ---- */

static void note_step(record *r, const model *m, const sluice_step_report *report)
{
    bool any = false;
    for (uint32_t p = 0; p < m->param_count; p++) any |= model_is_onebit(&m->params[p]);
    r->compressed[r->on_gpu] += report->compressed;
    r->exchanging[r->on_gpu] += any;
}

/* Goes on from a checkpoint in a runtime of its own. */
static int resume(model *m, const record *r)
{
    const uint64_t calls = m->calls;
    RANK_CHECK(!sluice_checkpoint_save(m->rt, r->folder, NULL, 0));
    model_end(m);
    if (model_build(m)) return 1;
    RANK_CHECK(!sluice_checkpoint_load(m->rt, r->folder, NULL, NULL));
    m->calls = calls;
    return 0;
}

static int train(int rank, int size, void *context)
{
    record *r = context;
    static const char *const schedules[] = {"one_ahead", "serial", "bucketed"};
    trial t = r->run.trial;
    model m;
    if (r->on_gpu) {
        t.device = "cuda";
        if (size > 1) setenv("SLUICE_COMM_TRANSPORT", "nccl", 1);
    }
    if (model_world(&t, rank, size, &m) || model_build(&m)) return 1;
    m.bad_call = r->run.bad_call, m.huge_from = r->run.huge_from;
    for (uint32_t step = 1; step <= r->run.steps; step++) {
        sluice_step_report report = SLUICE_INIT(sluice_step_report);
        m.exchange = r->run.resumes && step == r->run.steps / 2;
        if (model_step(&m, &report)) return 1;
        if (!rank) note_step(r, &m, &report);
        RANK_CHECK(report.skipped == (t.skip_nan && m.calls == r->run.bad_call));
        if (print_of(&m, &r->prints[r->on_gpu][rank][step - 1])) return 1;
        if (r->run.replans) RANK_CHECK(!sluice_runtime_replan(m.rt, NULL, schedules[step % 3], 0));
        if (r->run.resumes && step == r->run.steps / 2 && resume(&m, r)) return 1;
    }
    if (model_peak_is_planned(&m)) return 1;
    return model_leave(&m);
}

static bool lacks_gpu;

static void is_the_hosts(int ranks, const run *of)
{
    if (lacks_gpu || (ranks > 1 && !getenv("SLUICE_COMM_NCCL"))) {
        printf("SKIP: compressed updates of %d rank(s) on a GPU: no %s\n", ranks, lacks_gpu ? "GPU" : "NCCL");
        skip();
    }
    record *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(r != MAP_FAILED);
    r->run = *of;
    snprintf(r->folder, sizeof r->folder, "/tmp/onebit_cuda_test.%d", (int)getpid());
    for (int gpu = 0; gpu < 2; gpu++) {
        r->on_gpu = gpu;
        assert_int_equal(run_ranks(ranks, train, r, HANG_S), 0);
    }
    for (int gpu = 0; gpu < 2; gpu++) {
        assert_true(r->compressed[gpu] > 0 && r->compressed[gpu] < of->steps);
        assert_true(r->exchanging[gpu] == r->exchanging[0] && (r->exchanging[gpu] > 0) == (ranks > 1));
    }
    for (int rank = 0; rank < ranks; rank++)
        for (uint32_t step = 0; step < of->steps; step++)
            if (r->prints[0][rank][step] != r->prints[1][rank][step])
                fail_msg("rank %d of %d: another state after step %u than on the host", rank, ranks, step + 1);
    remove_tree(r->folder);
    munmap(r, sizeof *r);
}

/* ---- One rank, on which nothing is compressed ---- */

static const trial optimizers[] = {
    {.seed = 81, .freeze_step = 4},
    {.seed = 82, .freeze_step = 4, .compat = true},
    {.seed = 83, .freeze_step = 4, .optimizer = "onebit_lamb"},
    {.seed = 84, .freeze_step = 4, .optimizer = "onebit_lamb", .compat = true},
    {.seed = 85,
     .optimizer = "zero_one_adam",
     .var_freeze_step = 9,
     .var_update_scaler = 3,
     .local_step_scaler = 3,
     .local_step_clipper = 4},
    {.seed = 86,
     .optimizer = "zero_one_adam",
     .var_freeze_step = 9,
     .var_update_scaler = 3,
     .local_step_scaler = 3,
     .local_step_clipper = 4,
     .compat = true},
};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static void one_rank_of_each_optimizer(void **state)
{
    (void)state;
    for (int o = 0; o < OPTIMIZERS; o++) {
        trial t = optimizers[o];
        t.strategy = "dp";
        is_the_hosts(1, &(run){.trial = t, .steps = 16});
    }
}

static void one_rank_with_everything_else(void **state)
{
    (void)state;
    is_the_hosts(
        1,
        &(run){.trial = {.seed = 71, .freeze_step = 3, .clip = 0.4, .bf16_layers = 5}, .steps = 10, .replans = true});
    is_the_hosts(1, &(run){.trial = {.seed = 72, .freeze_step = 3, .skip_nan = true, .micro_batches = 2},
                           .steps = 10,
                           .bad_call = 6});
    is_the_hosts(1, &(run){.trial = {.seed = 73, .freeze_step = 4, .optimizer = "onebit_lamb", .skip_nan = true},
                           .steps = 10,
                           .bad_call = 7});
    is_the_hosts(1, &(run){.trial = {.seed = 74, .freeze_change = 0.9, .beta2 = 0.7, .optimizer = "onebit_lamb"},
                           .steps = 12,
                           .resumes = true});
    is_the_hosts(1, &(run){.trial = {.seed = 75, .freeze_change = 0.9, .beta2 = 0.7}, .steps = 12, .resumes = true});
}

/* ---- Several ranks ---- */

static void two_ranks_of_each_optimizer(void **state)
{
    (void)state;
    for (int o = 0; o < OPTIMIZERS; o++) is_the_hosts(2, &(run){.trial = optimizers[o], .steps = 16});
}

static void beside_sharded_layers(void **state)
{
    (void)state;
    is_the_hosts(4, &(run){.trial = {.seed = 91, .freeze_step = 4, .onebit_layers = 5, .other = "fsdp"},
                           .steps = 12,
                           .replans = true});
    is_the_hosts(4, &(run){.trial = {.seed = 92,
                                     .freeze_step = 4,
                                     .onebit_layers = 6,
                                     .other = "sdp",
                                     .optimizer = "onebit_lamb",
                                     .bf16_layers = 3},
                           .steps = 12,
                           .resumes = true});
    trial zero_one = optimizers[4];
    zero_one.onebit_layers = 9, zero_one.other = "oss";
    is_the_hosts(4, &(run){.trial = zero_one, .steps = 18, .resumes = true});
}

/* Layers are left out of steps, of units that they share too. */
static void without_some_layers(void **state)
{
    (void)state;
    for (int o = 0; o < OPTIMIZERS; o += 2) {
        trial t = optimizers[o];
        t.leaves_out = true;
        t.fuse = o ? "64KiB" : "off", t.block = 65536;
        is_the_hosts(2, &(run){.trial = t, .steps = 16, .resumes = o == 2});
    }
}

static void clipped_skipped_and_compat(void **state)
{
    (void)state;
    is_the_hosts(3, &(run){.trial = {.seed = 93, .freeze_step = 4, .clip = 0.4, .micro_batches = 2}, .steps = 10});
    is_the_hosts(2, &(run){.trial = {.seed = 94, .freeze_step = 4, .skip_nan = true}, .steps = 10, .bad_call = 7});
    is_the_hosts(2, &(run){.trial = {.seed = 95, .freeze_step = 4, .skip_nan = true, .optimizer = "onebit_lamb"},
                           .steps = 10,
                           .bad_call = 5});
    is_the_hosts(3, &(run){.trial = {.seed = 96, .freeze_step = 4, .optimizer = "onebit_lamb", .compat = true},
                           .steps = 10,
                           .replans = true});
}

int main(void)
{
    lacks_gpu = !gpu_is_there(HANG_S);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_of_each_optimizer),  cmocka_unit_test(one_rank_with_everything_else),
        cmocka_unit_test(two_ranks_of_each_optimizer), cmocka_unit_test(beside_sharded_layers),
        cmocka_unit_test(without_some_layers),         cmocka_unit_test(clipped_skipped_and_compat)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
