/* A run that loads a compressed optimizer's checkpoint goes on with the bits of the run that saved it, errors and
 * progress included, whether it was saved before the freeze or after it. On another number of ranks, or under
 * strategies that do not compress, it goes on without the arrays that compression keeps. A checkpoint that is refused
 * changes nothing. */
#include "tests/support/base/folder.h"
#include "tests/support/draw.h"
#include "tests/support/onebit_model.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/stat.h>

enum { FREEZE = 3, RUN_ON = 5 };

typedef struct {
    trial first, second; /* the run that saves, the run that loads */
    uint64_t saved;      /* steps after which it saves */
    bool same;           /* the second run must repeat the first */
    uint64_t ahead;      /* steps that the second run makes before it loads */
    char dir[64];
    uint64_t hash; /* the hash at the end of the first run */
    int size;
    bool saves;
} scenario;

/* Adds the compression errors to the hash: each rank has its own. */
static int hash_errors(model *m, uint64_t *hash)
{
    static const char *const names[] = {"error_worker", "error_server", "accumulator", "kept", "flat"};
    static float x[PADDED_MAX * PARAMS_MAX];
    for (uint32_t p = 0; p < m->param_count; p++)
        for (int e = 0; e < 5; e++) {
            uint64_t count = sluice_param_state_count(m->params[p].param, names[e]);
            RANK_CHECK(count <= sizeof x / sizeof *x);
            if (!count) continue;
            RANK_CHECK(!sluice_param_state_read(m->params[p].param, names[e], 0, count, x));
            for (uint64_t i = 0; i < count; i++) {
                uint32_t bits;
                memcpy(&bits, &x[i], 4);
                *hash = mix(*hash ^ bits);
            }
        }
    return 0;
}

static int run_steps(model *m, uint64_t count)
{
    for (uint64_t s = 1; s <= count; s++) {
        m->exchange = s == count;
        if (model_step(m, NULL)) return 1;
    }
    return 0;
}

/* A hash of everything that all ranks hold, the same on every rank. */
static int end_hash(model *m, uint64_t *hash)
{
    uint64_t all[RANKS_MAX];
    if (model_replicas_equal(m, hash) || hash_errors(m, hash)) return 1;
    RANK_CHECK(!sluice_world_all_gather(m->world, hash, sizeof *hash, all));
    for (int r = 0; r < m->size; r++) *hash = mix(*hash ^ all[r]);
    return 0;
}

static int save_and_go_on(model *m, const scenario *s, uint64_t *hash)
{
    if (model_build(m) || run_steps(m, s->saved)) return 1;
    RANK_CHECK(!sluice_checkpoint_save(m->rt, s->dir, "x", 1));
    if (run_steps(m, RUN_ON) || end_hash(m, hash)) return 1;
    model_end(m);
    return 0;
}

static int load_and_go_on(model *m, const scenario *s, uint64_t *hash)
{
    if (model_build(m) || run_steps(m, s->ahead)) return 1;
    RANK_CHECK(!sluice_checkpoint_load(m->rt, s->dir, NULL, NULL));
    RANK_CHECK(sluice_runtime_step(m->rt) == s->saved);
    m->calls = s->saved;
    if (run_steps(m, RUN_ON) || end_hash(m, hash) || model_peak_is_planned(m)) return 1;
    model_end(m);
    return 0;
}

static int as_rank(int rank, int size, void *context)
{
    const scenario *s = context;
    model m;
    uint64_t hash = 0, again = 0;
    if (s->saves) {
        if (model_world(&s->first, rank, size, &m) || save_and_go_on(&m, s, &hash)) return 1;
        m.t = &s->second;
    } else if (model_world(&s->second, rank, size, &m)) {
        return 1;
    }
    if (load_and_go_on(&m, s, &again)) return 1;
    RANK_CHECK(!s->same || hash == again);
    sluice_world_destroy(m.world);
    return 0;
}

/* Cuts what the program has kept in the checkpoint, which is read after the optimizer's numbers. */
static int spoil(const char *dir)
{
    char command[128];
    snprintf(command, sizeof command, "find %s -name extra -exec truncate -s 0 {} +", dir);
    return system(command);
}

/* With `others` > 0 a world of that many ranks loads it too. */
static void goes_on(int size, scenario s, int others)
{
    make_own_folder(s.dir);
    if (!s.first.freeze_step) s.first.freeze_step = s.second.freeze_step = FREEZE;
    s.saves = true;
    assert_int_equal(run_ranks(size, as_rank, &s, 120), 0);
    s.saves = s.same = false;
    if (others) assert_int_equal(run_ranks(others, as_rank, &s, 120), 0);
    remove_tree(s.dir);
}

static void repeats_the_run(void **state)
{
    (void)state;
    goes_on(2, (scenario){.first.seed = 1, .second.seed = 1, .saved = 6, .same = true}, 0);
    goes_on(3, (scenario){.first = {.seed = 2, .clip = 0.3}, .second = {.seed = 2, .clip = 0.3}, .saved = 7, .same = 1},
            0);
    const trial mixed = {.seed = 3, .onebit_layers = 5, .other = "fsdp", .micro_batches = 2, .bf16_layers = 6};
    goes_on(4, (scenario){.first = mixed, .second = mixed, .saved = 5, .same = true}, 0);
}

static void from_the_warm_up(void **state)
{
    (void)state;
    for (uint64_t saved = FREEZE - 1; saved <= FREEZE + 1; saved++)
        goes_on(2, (scenario){.first.seed = 4, .second.seed = 4, .saved = saved, .same = true}, 0);
}

/* Loading replaces everything that the second run had before: errors, phase and all. */
static void into_a_run_that_is_elsewhere(void **state)
{
    (void)state;
    goes_on(2, (scenario){.first.seed = 5, .second.seed = 5, .saved = 6, .ahead = 9, .same = true}, 0);
    goes_on(2, (scenario){.first.seed = 6, .second.seed = 6, .saved = 2, .ahead = 8, .same = true}, 0);
}

/* A run goes on to the bit under another plan if that plan compresses the same units. */
static void under_another_plan(void **state)
{
    (void)state;
    goes_on(2,
            (scenario){.first = {.seed = 7, .onebit_layers = 6, .other = "fsdp", .schedule = "one_ahead"},
                       .second = {.seed = 7, .onebit_layers = 6, .other = "oss", .block = 4096},
                       .saved = 6,
                       .same = true},
            0);
}

static void without_the_errors(void **state)
{
    (void)state;
    goes_on(2, (scenario){.first.seed = 8, .second.seed = 8, .saved = 6, .same = true}, 3);
    goes_on(3, (scenario){.first.seed = 9, .second.seed = 9, .saved = 5, .same = true}, 1);
    goes_on(2, (scenario){.first.seed = 10, .second = {.seed = 10, .strategy = "sdp"}, .saved = 6}, 4);
    goes_on(2, (scenario){.first = {.seed = 11, .strategy = "sdp"}, .second = {.seed = 11}, .saved = 6}, 0);
}

static void of_lamb(void **state)
{
    (void)state;
    const trial lamb = {.seed = 12, .optimizer = "onebit_lamb", .onebit_layers = 11, .other = "fsdp"};
    goes_on(2, (scenario){.first = lamb, .second = lamb, .saved = 6, .same = true}, 3);
    goes_on(3, (scenario){.first = lamb, .second = lamb, .saved = FREEZE, .ahead = 5, .same = true}, 0);
    const trial compat = {.seed = 13, .optimizer = "onebit_lamb", .compat = true};
    goes_on(2, (scenario){.first = compat, .second = compat, .saved = 6, .same = true}, 0);
}

static trial of_intervals(uint64_t seed, const char *strategy)
{
    return (trial){.seed = seed,
                   .optimizer = "zero_one_adam",
                   .strategy = strategy,
                   .freeze_step = 1,
                   .var_freeze_step = 9,
                   .var_update_scaler = 2,
                   .local_step_scaler = 4,
                   .local_step_clipper = 4};
}

/* Steps that leave layers out: each parameter has its own number of updates, by the freeze too. */
static void without_some_layers(void **state)
{
    (void)state;
    for (uint64_t saved = FREEZE - 1; saved <= FREEZE + 3; saved += 2) {
        trial t = {.seed = 18 + saved, .leaves_out = true, .fuse = saved % 4 ? "off" : "64KiB", .block = 65536};
        goes_on(2, (scenario){.first = t, .second = t, .saved = saved, .same = true}, 0);
        t.optimizer = "onebit_lamb";
        goes_on(2, (scenario){.first = t, .second = t, .saved = saved, .ahead = saved, .same = true}, 0);
    }
    trial t = of_intervals(25, NULL);
    t.leaves_out = true;
    for (uint64_t saved = 5; saved <= 23; saved += 6)
        goes_on(2, (scenario){.first = t, .second = t, .saved = saved, .same = true}, saved == 23 ? 3 : 0);
}

/* Saves before compression, between refreshes, after the variance is frozen, and among local steps. */
static void of_zero_one_adam(void **state)
{
    (void)state;
    trial t = of_intervals(14, NULL);
    t.onebit_layers = 13;
    t.other = "sdp";
    for (uint64_t saved = 1; saved <= 25; saved += 4)
        goes_on(2, (scenario){.first = t, .second = t, .saved = saved, .ahead = saved % 3 * 8, .same = true}, 0);
    goes_on(2, (scenario){.first = t, .second = t, .saved = 21, .same = true}, 4);
}

/* With one rank, or if nothing is onebit, no interval is open: reading and saving are always allowed, and units that
 * become onebit later begin with no interval. */
static int without_intervals(int rank, int size, void *context)
{
    const scenario *s = context;
    model m;
    double open = -1;
    float x[COUNT_MAX];
    if (model_world(&s->first, rank, size, &m) || model_build(&m)) return 1;
    for (int step = 1; step <= 23; step++) {
        if (model_step(&m, NULL)) return 1;
        RANK_CHECK(!sluice_param_read(m.params[0].param, 0, m.params[0].count, x));
    }
    RANK_CHECK(!sluice_runtime_progress_read(m.rt, NULL, "interval_steps", &open) && open == 0);
    RANK_CHECK(!sluice_checkpoint_save(m.rt, s->dir, NULL, 0));
    return model_leave(&m);
}

/* Replicas that differ by roundings are saved as their owners have them. A run that loads begins with the values that
 * were read when they were saved, the same on every rank, and any two such runs go on alike. */
static int from_owners_as_rank(int rank, int size, void *context)
{
    scenario *s = context;
    char saved[65], hex[65];
    uint64_t hash[2];
    model m;
    if (model_world(&s->first, rank, size, &m) || model_build(&m) || run_steps(&m, s->saved)) return 1;
    RANK_CHECK(!sluice_runtime_replicas_equal(m.rt, NULL));
    RANK_CHECK(!sluice_runtime_weights_sha256(m.rt, saved));
    RANK_CHECK(!sluice_checkpoint_save(m.rt, s->dir, "x", 1));
    for (int k = 0; k < 3; k++) { /* in round 0 the run that saved goes back too */
        if (k) {
            model_end(&m);
            m.t = k == 2 ? &s->second : &s->first;
            if (model_build(&m)) return 1;
        }
        RANK_CHECK(!sluice_checkpoint_load(m.rt, s->dir, NULL, NULL));
        RANK_CHECK(sluice_runtime_replicas_equal(m.rt, NULL));
        RANK_CHECK(!sluice_runtime_weights_sha256(m.rt, hex) && !strcmp(hex, saved));
        m.calls = s->saved;
        if (k == 2) break; /* other units are compressed, so this run goes another way */
        if (run_steps(&m, RUN_ON) || end_hash(&m, &hash[k])) return 1;
    }
    RANK_CHECK(hash[0] == hash[1]);
    return model_leave(&m);
}

static void of_zero_one_adam_in_compat(void **state)
{
    (void)state;
    scenario s = {.first = of_intervals(17, NULL), .saved = 25};
    s.first.compat = true;
    s.second = s.first;
    s.second.other = "fsdp", s.second.onebit_layers = 5;
    make_own_folder(s.dir);
    assert_int_equal(run_ranks(3, from_owners_as_rank, &s, 120), 0);
    remove_tree(s.dir);
}

/* Layers that steps leave out have intervals of their own, which end after the job's. */
static int refuses_in_between(int rank, int size, void *context)
{
    enum { SAVED = 5, REFUSED = 26, STEPS = 33 };
    scenario *s = context;
    uint64_t hash[2];
    model m;
    if (model_world(&s->first, rank, size, &m)) return 1;
    for (int tries = 0; tries < 2; tries++) {
        if (model_build(&m)) return 1;
        for (uint64_t step = 1; step <= STEPS; step++) {
            bool readable;
            m.exchange = step == SAVED || step == STEPS;
            if (model_step(&m, NULL)) return 1;
            if (step == SAVED && tries) RANK_CHECK(!sluice_checkpoint_save(m.rt, s->dir, "x", 1));
            (void)sluice_runtime_replicas_equal(m.rt, &readable);
            if (step != REFUSED) continue;
            RANK_CHECK(!readable);
            if (!tries) continue;
            if (!rank) RANK_CHECK(!spoil(s->dir));
            RANK_CHECK(!sluice_world_barrier(m.world));
            RANK_CHECK(sluice_checkpoint_load(m.rt, s->dir, NULL, NULL) == SLUICE_ERR_FORMAT);
        }
        if (end_hash(&m, &hash[tries])) return 1;
        model_end(&m);
    }
    RANK_CHECK(hash[0] == hash[1]);
    sluice_world_destroy(m.world);
    return 0;
}

static void a_refused_one_changes_nothing(void **state)
{
    (void)state;
    scenario s = {.first = of_intervals(27, NULL)};
    s.first.leaves_out = true;
    make_own_folder(s.dir);
    assert_int_equal(run_ranks(2, refuses_in_between, &s, 120), 0);
    remove_tree(s.dir);
}

static void from_runs_without_intervals(void **state)
{
    (void)state;
    const trial alone = of_intervals(15, "onebit"), sharded = of_intervals(16, "sdp");
    scenario s = {.first = alone, .second = alone, .saved = 23};
    make_own_folder(s.dir);
    assert_int_equal(run_ranks(1, without_intervals, &s, 120), 0);
    assert_int_equal(run_ranks(3, as_rank, &s, 120), 0);
    s.first = sharded;
    s.second = of_intervals(16, "onebit");
    remove_tree(s.dir);
    assert_int_equal(mkdir(s.dir, 0777), 0);
    assert_int_equal(run_ranks(2, without_intervals, &s, 120), 0);
    assert_int_equal(run_ranks(2, as_rank, &s, 120), 0);
    remove_tree(s.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeats_the_run),
        cmocka_unit_test(from_the_warm_up),
        cmocka_unit_test(under_another_plan),
        cmocka_unit_test(into_a_run_that_is_elsewhere),
        cmocka_unit_test(without_the_errors),
        cmocka_unit_test(of_lamb),
        cmocka_unit_test(of_zero_one_adam),
        cmocka_unit_test(from_runs_without_intervals),
        cmocka_unit_test(of_zero_one_adam_in_compat),
        cmocka_unit_test(without_some_layers),
        cmocka_unit_test(a_refused_one_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
