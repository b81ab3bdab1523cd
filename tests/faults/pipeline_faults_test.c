/* A rank of a pipeline is killed or stopped, in any stage, schedule and replica: while it computes, while messages are
 * under way, while a save is. Every other rank's call then says which rank and which stage it was, and nothing hangs.
 * How long that took is printed, and not judged. */
#include "tests/support/base/folder.h"
#include "tests/support/draw.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include <errno.h>
#include <sluice/checkpoint.h>
#include <sluice/model.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <sys/time.h>

enum { IMAGE = 8, PIXELS = IMAGE * IMAGE, MICRO_BATCHES = 6, LAYERS = 4, STEPS_MOST = 100000, LIMIT_S = 60 };
static const double STALL_TIMEOUT_S = 3; /* a rank that says nothing for 2 s has stalled */

static const sluice_model_config model_config = {.struct_size = sizeof(sluice_model_config),
                                                 .family = SLUICE_VIT,
                                                 .head = SLUICE_HEAD_CLASSES,
                                                 .classes = 3,
                                                 .layers = LAYERS,
                                                 .channels = 16,
                                                 .heads = 2,
                                                 .hidden = 32,
                                                 .epsilon = 1e-5,
                                                 .image_size = IMAGE,
                                                 .patch_size = 4,
                                                 .image_channels = 1};

typedef enum { IN_SLOT, IN_MESSAGES, IN_SAVE, MOMENTS } moment;
static const char *const moment_names[] = {"in a slot", "while messages are under way", "in a save"};

/* A rank that goes. */
typedef struct {
    const char *schedule, *strategy;
    int stages, replicas, victim;
    moment at;
    int signal;
    uint64_t seed;
} fault;

/* All processes of a fault share this. */
typedef struct {
    _Atomic int victim_pid, told;
    _Atomic uint64_t gone_ns;
    double heard_s[RANKS_MAX];
} course;

typedef struct {
    const fault *fault;
    course *course;
    const char *folder; /* of checkpoints */
} scene;

/* ---- The rank that goes ---- */

static course *of_victim; /* for the handler of its alarm */
static int signal_of_victim;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Everything in it may be called from a handler. */
static void go(int number)
{
    (void)number;
    atomic_store(&of_victim->gone_ns, now_ns());
    kill(getpid(), signal_of_victim);
}

static void go_after(uint64_t microseconds)
{
    const struct itimerval after = {.it_value = {(time_t)(microseconds / 1000000), (long)(microseconds % 1000000) + 1}};
    setitimer(ITIMER_REAL, &after, NULL);
}

/* The model asks this before each layer. */
static sluice_status go_in_slot(void *left)
{
    if (!--*(uint64_t *)left) go(0);
    return SLUICE_OK;
}

/* ---- All ranks ---- */

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
} trainer;

static int make(const scene *s, trainer *t)
{
    sluice_world_config world;
    sluice_config config;
    RANK_CHECK(!sluice_world_config_init(&world));
    if (s->fault->signal == SIGSTOP) world.timeout_s = STALL_TIMEOUT_S;
    /* A message takes so long that most of a step is messages. */
    if (s->fault->at == IN_MESSAGES) world.throttle = "1gbit,5ms";
    RANK_CHECK(!sluice_world_create(&world, &t->world));
    sluice_config_init(&config);
    config.micro_batches = MICRO_BATCHES;
    config.pipeline = (uint32_t)s->fault->stages;
    config.pipeline_schedule = s->fault->schedule;
    config.strategy = s->fault->strategy;
    RANK_CHECK(!sluice_runtime_create(t->world, &config, &t->rt));
    RANK_CHECK(!sluice_model_create(t->rt, &model_config,
                                    &SLUICE_INIT(sluice_model_options, .batch = 1, .micro_batches = MICRO_BATCHES),
                                    &t->model));
    RANK_CHECK(!sluice_runtime_commit(t->rt));
    RANK_CHECK(!sluice_model_init(t->model, 1));
    return 0;
}

static sluice_status run_step(trainer *t)
{
    static float pixels[PIXELS];
    static int32_t target;
    sluice_batch batches[MICRO_BATCHES];
    bool here;
    for (int m = 0; m < MICRO_BATCHES; m++)
        batches[m] = SLUICE_INIT(sluice_batch, .pixels = pixels, .targets = &target);
    sluice_status status = sluice_step_begin(t->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3));
    if (!status) status = sluice_model_step(t->model, batches, &here);
    return status ? status : sluice_step_end(t->rt, NULL);
}

/* Sets the moment: a drawn layer of the steps that come, or a drawn time. */
static void prepare_to_go(const scene *s, trainer *t, uint64_t *left)
{
    uint64_t seed = s->fault->seed;
    of_victim = s->course;
    signal_of_victim = s->fault->signal;
    atomic_store(&s->course->victim_pid, getpid());
    signal(SIGALRM, go);
    *left = 1 + draw(&seed, 4 * LAYERS * MICRO_BATCHES);
    if (s->fault->at == IN_SLOT) sluice_model_check(t->model, go_in_slot, left);
    if (s->fault->at == IN_MESSAGES) go_after(draw(&seed, 150000));
    if (s->fault->at == IN_SAVE) go_after(draw(&seed, 3000));
}

/* Trains, and saves where that is the moment, until something fails. */
static sluice_status train(const scene *s, trainer *t)
{
    sluice_status status = SLUICE_OK;
    for (int step = 0; !status && step < STEPS_MOST; step++) {
        if (s->fault->at == IN_SAVE) status = sluice_checkpoint_begin(t->rt, s->folder, NULL, 0);
        if (!status) status = run_step(t);
        if (!status && s->fault->at == IN_SAVE) status = sluice_checkpoint_end(t->rt, true, NULL);
    }
    return status;
}

static int live(int rank, int size, void *context)
{
    const scene *s = context;
    trainer t = {0};
    uint64_t left;
    char wanted[64];
    if (make(s, &t)) return 1;
    RANK_CHECK(!run_step(&t));
    RANK_CHECK(!sluice_world_barrier(t.world));
    if (rank == s->fault->victim) prepare_to_go(s, &t, &left);
    const sluice_status status = train(s, &t);
    const uint64_t heard_ns = now_ns();
    snprintf(wanted, sizeof wanted, "rank %d (stage %d of %d)", s->fault->victim, s->fault->victim / s->fault->replicas,
             s->fault->stages);
    const bool named = strstr(sluice_last_error(), wanted) != NULL;
    if (!named) fprintf(stderr, "rank %d should hear of %s: %s\n", rank, wanted, sluice_last_error());
    const bool right = status == (s->fault->signal == SIGKILL ? SLUICE_ERR_PEER : SLUICE_ERR_TIMEOUT);
    s->course->heard_s[rank] = 1e-9 * (double)(heard_ns - atomic_load(&s->course->gone_ns));
    /* A rank that is stopped stays until all others have heard of it. */
    if (atomic_fetch_add(&s->course->told, 1) + 1 == size - 1) kill(atomic_load(&s->course->victim_pid), SIGKILL);
    sluice_model_destroy(t.model);
    sluice_runtime_destroy(t.rt);
    sluice_world_destroy(t.world);
    return !(named && right);
}

/* ---- Faults ---- */

static double longest(const course *c, int size)
{
    double most_s = 0;
    for (int r = 0; r < size; r++)
        if (c->heard_s[r] > most_s) most_s = c->heard_s[r];
    return most_s;
}

static void check_fault(const fault *f, double *killed_s, double *stopped_s)
{
    char folder[64];
    int codes[RANKS_MAX];
    course *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(c != MAP_FAILED);
    make_own_folder(folder);
    scene s = {f, c, folder};
    const int ranks = f->stages * f->replicas;
    run_ranks_codes(ranks, live, &s, LIMIT_S, codes);
    for (int r = 0; r < ranks; r++) {
        const int wanted = r == f->victim ? 128 + SIGKILL : 0;
        if (codes[r] != wanted)
            fprintf(stderr, "%s, %d stages of %d under %s, rank %d %s %s, seed %llu: rank %d ended with %d\n",
                    f->schedule, f->stages, f->replicas, f->strategy, f->victim,
                    f->signal == SIGKILL ? "killed" : "stopped", moment_names[f->at], (unsigned long long)f->seed, r,
                    codes[r]);
        assert_int_equal(codes[r], wanted);
    }
    double *most_s = f->signal == SIGKILL ? killed_s : stopped_s;
    if (longest(c, ranks) > *most_s) *most_s = longest(c, ranks);
    remove_tree(folder);
    munmap(c, sizeof *c);
}

/* Faults of pipelines of one shape, of which a test takes a share, times the scale. */
typedef struct {
    const char *schedule;
    int stages, replicas;
    double share;
} shape;

/* Each stage, replica, schedule, moment and signal has its turn; strategies are drawn. */
static void survivors_name_rank_and_stage(void **state)
{
    static const shape shapes[] = {{"1f1b", 3, 1, 0.125}, {"gpipe", 3, 1, 0.125}, {"interleaved", 2, 1, 0.125},
                                   {"1f1b", 2, 2, 0.04},  {"gpipe", 2, 2, 0.04},  {"interleaved", 2, 2, 0.04}};
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp"};
    uint32_t number = 0, done = 0;
    double killed_s = 0, stopped_s = 0;
    (void)state;
    for (const shape *k = shapes; k < shapes + sizeof shapes / sizeof *shapes; k++)
        for (int victim = 0; victim < k->stages * k->replicas; victim++)
            for (int at = 0; at < MOMENTS; at++)
                for (int stops = 0; stops < 2; stops++, number++) {
                    uint64_t seed = mix(number);
                    if (!test_takes(number, k->share)) continue;
                    const fault f = {.schedule = k->schedule,
                                     .strategy = strategies[draw(&seed, 4)],
                                     .stages = k->stages,
                                     .replicas = k->replicas,
                                     .victim = victim,
                                     .at = (moment)at,
                                     .signal = stops ? SIGSTOP : SIGKILL,
                                     .seed = mix(number)};
                    check_fault(&f, &killed_s, &stopped_s);
                    done++;
                }
    printf(
        "%u of %u faults; the last rank heard of a killed one after at most %.2f s, of a stopped one (an error after "
        "%.0f s) %.2f s\n",
        done, number, killed_s, STALL_TIMEOUT_S, stopped_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(survivors_name_rank_and_stage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
