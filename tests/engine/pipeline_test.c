/* A pipeline of P stages of R replicas ends in the weights and losses of R ranks with the same micro-batches, to the
 * bit, whatever the cuts, the schedule, the chunks, the strategies, the path, recomputation and the optimizer; and with
 * R = 1 in those of M data-parallel ranks with one micro-batch each. What pipelines do not do yet is refused by name,
 * and so are wrong calls and shapes. */
#include "tests/support/draw.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include <sluice/checkpoint.h>
#include <sluice/model.h>
#include <sluice/plan.h>
#include <sluice/trace.h>

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/mman.h>

enum { BATCH = 2, LENGTH = 6, VOCABULARY = 37, IMAGE = 8, MICRO_BATCHES_MAX = 8, LAYERS = 4 };
enum { STEPS = 3, STEPS_MOST = 50, REPLICAS_MAX = 3, LIMIT_S = 120 };
enum { SHARED_BYTES = 65536, PIXELS = BATCH * IMAGE * IMAGE };

#define SMALL                                                                                                          \
    .struct_size = sizeof(sluice_model_config), .layers = LAYERS, .channels = 16, .heads = 2, .hidden = 32,            \
    .epsilon = 1e-5
#define CLASSES .head = SLUICE_HEAD_CLASSES, .classes = 3
#define TEXT .vocabulary = VOCABULARY, .context = LENGTH
#define IMAGES .image_size = IMAGE, .patch_size = 4, .image_channels = 1

static const sluice_model_config models[] = {
    {SMALL, CLASSES, IMAGES, .family = SLUICE_VIT},
    {SMALL, CLASSES, TEXT, .family = SLUICE_BERT, .types = 2},
    {SMALL, CLASSES, IMAGES, .family = SLUICE_BEIT, .relative_positions = true},
    {SMALL, TEXT, .family = SLUICE_GPT2, .gelu_tanh = true},
    {SMALL, TEXT, .family = SLUICE_BERT, .types = 2},
};
enum { MODELS = sizeof models / sizeof *models };

/* One way to train. */
typedef struct {
    uint32_t model, micro_batches, stages, replicas, chunks; /* stages 0: no pipeline; replicas 0: 1 */
    const char *schedule, *optimizer, *strategy;             /* strategy NULL: auto */
    uint64_t block_bytes;                                    /* 0: as the engine chooses */
    char cuts[64];                                           /* "": auto */
    double clip, dropout;
    sluice_dtype precision;
    sluice_recompute recompute;
    sluice_nan_policy nan;
    uint32_t steps;             /* 0: STEPS */
    bool messages, tight, each; /* tight: in the smallest budget; each: every micro-batch is reduced */
    uint64_t seed;
} trial;

typedef struct {
    char sha256[65];
    double losses[REPLICAS_MAX][STEPS_MOST];
    double evaluated[REPLICAS_MAX][2];
    uint64_t planned[RANKS_MAX], peak[RANKS_MAX];
} outcome;

typedef struct {
    trial trial;
    outcome *out;          /* shared by all processes */
    uint32_t first, last;  /* steps; last 0: all */
    const char *from, *to; /* folders of checkpoints; NULL: none. The first step is saved, behind those that follow */
} run;

#define PLAIN .micro_batches = 4, .optimizer = "adamw"

/* ---- Data ---- */

typedef struct {
    int32_t tokens[BATCH * LENGTH], types[BATCH * LENGTH], targets[BATCH * LENGTH];
    uint8_t mask[BATCH * LENGTH];
    float pixels[PIXELS];
} arrays;

/* Micro-batch `number` of all that are ever trained on. */
static void fill(arrays *a, uint64_t number)
{
    for (uint32_t i = 0; i < BATCH * LENGTH; i++) {
        a->tokens[i] = (int32_t)(mix(number * 1000 + i) % VOCABULARY);
        a->types[i] = i % LENGTH > 3;
        a->mask[i] = i != LENGTH - 1;
    }
    for (uint32_t i = 0; i < BATCH * LENGTH; i++) a->targets[i] = (int32_t)(mix(number * 77 + i) % 3);
    for (uint32_t i = 0; i < PIXELS; i++) a->pixels[i] = noise(number, i);
}

static sluice_batch batch_of(const sluice_model_config *c, const arrays *a)
{
    const bool sees = c->image_size > 0;
    return SLUICE_INIT(sluice_batch, .tokens = sees ? NULL : a->tokens, .types = sees ? NULL : a->types,
                       .attention_mask = sees ? NULL : a->mask, .pixels = sees ? a->pixels : NULL,
                       .targets = a->targets);
}

/* ---- A run ---- */

static sluice_config config_of(const trial *t)
{
    sluice_config config;
    sluice_config_init(&config);
    config.schedule = "one_ahead";
    config.micro_batches = t->micro_batches;
    config.optimizer_name = t->optimizer;
    if (t->strategy) config.strategy = t->strategy;
    config.block_bytes = t->block_bytes;
    config.clip = t->clip;
    config.precision = t->precision;
    config.recompute = t->recompute;
    config.nan = t->nan;
    config.accumulate = t->each ? SLUICE_ACCUMULATE_EACH : SLUICE_ACCUMULATE_LAST;
    config.tied = models[t->model].head == SLUICE_HEAD_TOKENS ? SLUICE_TIED_SPLIT : SLUICE_TIED_JOINT;
    config.pipeline = t->stages;
    config.pipeline_chunks = t->chunks;
    config.pipeline_schedule = t->schedule;
    config.pipeline_cuts = *t->cuts ? t->cuts : NULL;
    return config;
}

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
} trainer;

static int create(const trial *t, const sluice_config *config, trainer *made)
{
    sluice_model_config model = models[t->model];
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = model.image_size ? 0 : LENGTH, .dropout_seed = 3,
                    .micro_batches = t->micro_batches);
    model.dropout = t->dropout;
    RANK_CHECK(!sluice_runtime_create(made->world, config, &made->rt));
    RANK_CHECK(!sluice_model_create(made->rt, &model, &options, &made->model));
    return 0;
}

/* Finds the smallest budget by asking for less. */
static int find_smallest(const trial *t, sluice_config *config, trainer *made)
{
    config->budget_bytes = 1;
    if (create(t, config, made)) return 1;
    RANK_CHECK(sluice_runtime_commit(made->rt) == SLUICE_ERR_BUDGET);
    const char *said = strstr(sluice_last_error(), "the smallest that was found is ");
    RANK_CHECK(said);
    config->budget_bytes = strtoull(said + strlen("the smallest that was found is "), NULL, 10);
    sluice_model_destroy(made->model);
    sluice_runtime_destroy(made->rt);
    return 0;
}

static int make(const trial *t, trainer *made)
{
    sluice_config config = config_of(t);
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    if (t->tight && find_smallest(t, &config, made)) return 1;
    if (create(t, &config, made)) return 1;
    RANK_CHECK(!sluice_runtime_commit(made->rt));
    RANK_CHECK(!sluice_model_init(made->model, t->seed));
    RANK_CHECK(!sluice_runtime_memory(made->rt, &memory));
    RANK_CHECK(!t->tight || memory.planned_bytes <= config.budget_bytes);
    return 0;
}

static void end(trainer *t)
{
    sluice_model_destroy(t->model);
    sluice_runtime_destroy(t->rt);
    sluice_world_destroy(t->world);
}

static int step(const trial *t, trainer *with, uint32_t number, double *loss, bool *here)
{
    static arrays all[MICRO_BATCHES_MAX];
    sluice_batch batches[MICRO_BATCHES_MAX];
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    const uint32_t ranks = sluice_runtime_replicas(with->rt), rank = sluice_runtime_replica(with->rt);
    for (uint32_t m = 0; m < t->micro_batches; m++) {
        fill(&all[m], t->seed * 1000 + (number * t->micro_batches + m) * ranks + rank);
        batches[m] = batch_of(&models[t->model], &all[m]);
    }
    RANK_CHECK(!sluice_step_begin(with->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-2)));
    RANK_CHECK(!sluice_model_step(with->model, batches, here));
    RANK_CHECK(!sluice_step_end(with->rt, &report));
    RANK_CHECK(t->stages < 2 || report.bytes_sent > 0);
    if (*here)
        RANK_CHECK(!sluice_model_loss(with->model, loss));
    else
        RANK_CHECK(sluice_model_loss(with->model, loss) == SLUICE_ERR_ORDER);
    return 0;
}

/* Evaluates micro-batches that are trained on too, without training. */
static int evaluate(const run *r, trainer *t)
{
    static arrays a;
    for (uint64_t i = 0; i < 2; i++) {
        double loss = 0;
        fill(&a, r->trial.seed * 1000 + i * sluice_runtime_replicas(t->rt) + sluice_runtime_replica(t->rt));
        const sluice_batch batch = batch_of(&models[r->trial.model], &a);
        RANK_CHECK(!sluice_model_evaluate(t->model, &batch, &loss, NULL));
        if (loss > 0) r->out->evaluated[sluice_runtime_replica(t->rt)][i] = loss;
    }
    return 0;
}

static uint32_t last_step(const run *r)
{
    return r->last ? r->last : r->trial.steps ? r->trial.steps : STEPS;
}

static int train(int rank, int size, void *context)
{
    const run *r = context;
    (void)size;
    trainer t = {0};
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    char hex[65];
    setenv("SLUICE_COMM_DIRECT", r->trial.messages ? "off" : "on", 1);
    RANK_CHECK(!sluice_world_create(NULL, &t.world));
    if (make(&r->trial, &t)) return 1;
    if (r->from) RANK_CHECK(!sluice_checkpoint_load(t.rt, r->from, NULL, NULL));
    for (uint32_t s = r->first; s < last_step(r); s++) {
        double loss = 0;
        bool here;
        if (step(&r->trial, &t, s, &loss, &here)) return 1;
        if (s < 2 && evaluate(r, &t)) return 1;
        if (here) r->out->losses[sluice_runtime_replica(t.rt)][s] = loss;
        if (r->to && s == r->first) RANK_CHECK(!sluice_checkpoint_begin(t.rt, r->to, NULL, 0));
    }
    if (r->to) RANK_CHECK(!sluice_checkpoint_end(t.rt, true, NULL));
    RANK_CHECK(!sluice_runtime_weights_sha256(t.rt, hex));
    RANK_CHECK(!sluice_runtime_memory(t.rt, &memory));
    r->out->planned[rank] = memory.planned_bytes;
    r->out->peak[rank] = memory.peak_bytes;
    if (rank == 0) memcpy(r->out->sha256, hex, sizeof hex);
    end(&t);
    return 0;
}

static outcome *shared(void)
{
    void *memory = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static void describe(const trial *t)
{
    fprintf(stderr,
            "model %u, %u micro-batches, %u stages of %u replicas and %u chunks, %s, cuts \"%s\", strategy %s, block "
            "%llu, %s, clip %g, dropout %g, precision %d, recompute %d, nan %d, %s%s%s, seed %llu\n",
            t->model, t->micro_batches, t->stages, t->replicas, t->chunks, t->schedule, t->cuts,
            t->strategy ? t->strategy : "auto", (unsigned long long)t->block_bytes, t->optimizer, t->clip, t->dropout,
            (int)t->precision, (int)t->recompute, (int)t->nan, t->messages ? "messages" : "direct",
            t->tight ? ", tight" : "", t->each ? ", each" : "", (unsigned long long)t->seed);
}

static int replicas_of(const trial *t)
{
    return t->replicas ? (int)t->replicas : 1;
}

static int ranks_of(const trial *t)
{
    return (t->stages ? (int)t->stages : 1) * replicas_of(t);
}

static void check(const trial *t)
{
    run alone = {.trial = *t, .out = shared()}, piped = {.trial = *t, .out = shared()};
    alone.trial.stages = 0;
    alone.trial.messages = alone.trial.tight = false;
    alone.trial.strategy = "dp";
    alone.trial.recompute = SLUICE_RECOMPUTE_NONE;
    const int failed =
        run_ranks(replicas_of(t), train, &alone, LIMIT_S) || run_ranks(ranks_of(t), train, &piped, LIMIT_S);
    const bool equal = !strcmp(alone.out->sha256, piped.out->sha256) &&
                       !memcmp(alone.out->losses, piped.out->losses, sizeof piped.out->losses);
    if (failed || !equal) describe(t);
    assert_false(failed);
    assert_string_equal(alone.out->sha256, piped.out->sha256);
    assert_memory_equal(alone.out->evaluated, piped.out->evaluated, sizeof piped.out->evaluated);
    assert_true(alone.out->evaluated[replicas_of(t) - 1][1] > 0);
    assert_memory_equal(alone.out->losses, piped.out->losses, sizeof piped.out->losses);
    for (int r = 0; r < ranks_of(t); r++) assert_int_equal(piped.out->peak[r], piped.out->planned[r]);
    munmap(alone.out, SHARED_BYTES);
    munmap(piped.out, SHARED_BYTES);
}

/* ---- Bits ---- */

/* Draws the first layers of all pieces but the first, ascending. */
static void draw_cuts(uint64_t *seed, uint32_t pieces, char out[64])
{
    const uint32_t layers = LAYERS + 2;
    uint32_t left = pieces - 1;
    size_t used = 0;
    for (uint32_t l = 1; l < layers && left; l++) {
        if (draw(seed, layers - l) >= left) continue;
        used += (size_t)snprintf(out + used, 64 - used, l + 1 == layers ? "%shead" : "%sh.%u", used ? "," : "", l - 1);
        left--;
    }
}

static trial draw_trial(uint64_t *seed)
{
    static const char *const schedules[] = {"gpipe", "1f1b", "interleaved"};
    trial t = {.model = (uint32_t)draw(seed, MODELS),
               .stages = 2 + (uint32_t)draw(seed, 3),
               .schedule = schedules[draw(seed, 3)],
               .optimizer = draw(seed, 3) ? "adamw" : "lamb",
               .dropout = draw(seed, 2) ? 0.1 : 0,
               .precision = draw(seed, 3) ? SLUICE_FP32 : SLUICE_BF16,
               .recompute = (sluice_recompute)draw(seed, 3),
               .nan = (sluice_nan_policy)draw(seed, 2),
               .messages = draw(seed, 3) == 0,
               .seed = draw(seed, 1000)};
    if (!strcmp(t.optimizer, "adamw") && draw(seed, 2)) t.clip = 0.5;
    const bool interleaved = !strcmp(t.schedule, "interleaved");
    if (interleaved && t.stages > 3) t.stages = 3;
    t.chunks = interleaved ? 2 : 1;
    t.micro_batches = interleaved ? t.stages * (1 + (uint32_t)draw(seed, 2)) : 1 + (uint32_t)draw(seed, 6);
    if (draw(seed, 2)) draw_cuts(seed, t.stages * t.chunks, t.cuts);
    return t;
}

static void equal_to_one_rank(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (uint32_t i = 0; i < test_rounds(test_brief() ? 3 : 12); i++) {
        const trial t = draw_trial(&seed);
        check(&t);
    }
}

static void equal_to_ranks_without_stages(void **state)
{
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp", NULL};
    /* Every micro-batch is reduced. */
    static const trial each = {PLAIN,        .stages = 2,        .replicas = 2,
                               .chunks = 1,  .schedule = "1f1b", .strategy = "fsdp",
                               .each = true, .seed = 6};
    /* Gradients of rows are bf16 on the wire if there is one micro-batch. */
    static const trial narrow_rows = {.model = 3,
                                      .micro_batches = 1,
                                      .stages = 2,
                                      .replicas = 2,
                                      .chunks = 1,
                                      .schedule = "1f1b",
                                      .optimizer = "adamw",
                                      .strategy = "dp",
                                      .precision = SLUICE_BF16,
                                      .seed = 4};
    (void)state;
    check(&narrow_rows);
    check(&each);
    uint64_t seed = 12;
    for (uint32_t i = 0; i < test_rounds(test_brief() ? 3 : 12); i++) {
        trial t = draw_trial(&seed);
        t.stages = t.stages > 3 ? 2 : t.stages;
        t.replicas = t.stages == 2 ? 2 + (uint32_t)draw(&seed, 2) : 2;
        t.strategy = strategies[draw(&seed, sizeof strategies / sizeof *strategies)];
        t.block_bytes = draw(&seed, 2) ? 1024 : 0;
        t.tight = draw(&seed, 2);
        t.each = models[t.model].head != SLUICE_HEAD_TOKENS && draw(&seed, 2);
        t.cuts[0] = 0;
        if (!strcmp(t.schedule, "interleaved")) t.micro_batches = t.stages;
        check(&t);
    }
}

/* M ranks with one micro-batch each have the same global batch as a pipeline of one replica with M micro-batches. */
static void check_ranks(const trial *t)
{
    run ranks = {.trial = *t, .out = shared()}, piped = {.trial = *t, .out = shared()};
    ranks.trial.stages = 0;
    ranks.trial.micro_batches = 1;
    ranks.trial.messages = ranks.trial.tight = false;
    const int failed =
        run_ranks((int)t->micro_batches, train, &ranks, LIMIT_S) || run_ranks((int)t->stages, train, &piped, LIMIT_S);
    if (failed || strcmp(ranks.out->sha256, piped.out->sha256)) describe(t);
    assert_false(failed);
    assert_string_equal(ranks.out->sha256, piped.out->sha256);
    munmap(ranks.out, SHARED_BYTES);
    munmap(piped.out, SHARED_BYTES);
}

static void equal_to_data_parallel_ranks(void **state)
{
    (void)state;
    for (uint32_t model = 0; model < MODELS; model++) {
        const trial t = {
            .model = model, .micro_batches = 3, .stages = 2, .schedule = "1f1b", .optimizer = "adamw", .seed = 5};
        check_ranks(&t);
    }
}

/* Both promises over so many steps, for each model, number of stages and schedule, with one and two replicas. What else
 * there is to choose is drawn. The first argument "long" asks for it. */
static void promises_hold_for_long(void **state)
{
    static const char *const schedules[] = {"gpipe", "1f1b", "interleaved"}, *const strategies[] = {"dp", "oss", "sdp",
                                                                                                    "fsdp", NULL};
    uint64_t seed = 13;
    uint32_t number = 0;
    (void)state;
    for (uint32_t model = 0; model < MODELS; model++)
        for (uint32_t stages = 2; stages <= 4; stages++)
            for (uint32_t k = 0; k < 3; k++)
                for (uint32_t replicas = 1; replicas <= 2; replicas++, number++) {
                    trial t = draw_trial(&seed);
                    const bool interleaved = !strcmp(schedules[k], "interleaved");
                    if (interleaved && stages > 3) continue; /* more pieces than layers */
                    t.model = model;
                    t.stages = stages;
                    t.replicas = replicas;
                    t.schedule = schedules[k];
                    t.chunks = interleaved ? 2 : 1;
                    t.micro_batches = interleaved ? stages : t.micro_batches;
                    t.cuts[0] = 0;
                    t.strategy = strategies[draw(&seed, sizeof strategies / sizeof *strategies)];
                    t.each = models[model].head != SLUICE_HEAD_TOKENS && draw(&seed, 3) == 0;
                    t.steps = STEPS_MOST;
                    if (!test_takes(number, 1)) continue;
                    check(&t);
                    t.precision = SLUICE_FP32; /* promise 2 is of it, of one replica */
                    t.dropout = 0;             /* ranks drop out otherwise than micro-batches do */
                    t.each = false;
                    if (replicas == 1 && t.micro_batches <= 4) check_ranks(&t);
                }
}

/* A checkpoint of three stages, written while they train on, is gone on from by as many, by fewer, and by one rank. */
static void checkpoints_fit_any_stages(void **state)
{
    (void)state;
    for (uint32_t model = 0; model < MODELS; model += 3) {
        char folder[] = "/tmp/sluice-pipeline-XXXXXX", command[64];
        assert_non_null(mkdtemp(folder));
        run whole = {.trial = {PLAIN, .model = model, .stages = 3, .schedule = "1f1b", .seed = 9}, .out = shared()};
        run first = whole, next = whole;
        first.out = shared();
        next.first = 1;
        first.last = 2;
        first.to = next.from = folder;
        assert_int_equal(run_ranks(3, train, &whole, LIMIT_S), 0);
        assert_int_equal(run_ranks(3, train, &first, LIMIT_S), 0);
        for (uint32_t stages = 3; stages; stages--) {
            next.out = shared();
            next.trial.stages = stages;
            assert_int_equal(run_ranks((int)stages, train, &next, LIMIT_S), 0);
            assert_string_equal(next.out->sha256, whole.out->sha256);
            munmap(next.out, SHARED_BYTES);
        }
        munmap(whole.out, SHARED_BYTES);
        munmap(first.out, SHARED_BYTES);
        snprintf(command, sizeof command, "rm -rf %s", folder);
        assert_int_equal(system(command), 0);
    }
}

/* A checkpoint of two stages of two replicas is gone on from by as many under other strategies, and by two ranks
 * without a pipeline; and other numbers of replicas read the same weights. */
static void checkpoints_fit_any_replicas(void **state)
{
    static const trial going_on[] = {
        {PLAIN, .model = 3, .stages = 2, .replicas = 2, .schedule = "gpipe", .strategy = "fsdp", .seed = 9},
        {PLAIN, .model = 3, .replicas = 2, .strategy = "oss", .seed = 9},
    };
    static const trial reading[] = {
        {PLAIN, .model = 3, .stages = 3, .schedule = "1f1b", .seed = 9},
        {PLAIN, .model = 3, .replicas = 3, .strategy = "sdp", .seed = 9},
    };
    char folder[] = "/tmp/sluice-pipeline-XXXXXX", command[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    run whole = {.trial = {PLAIN, .model = 3, .stages = 2, .replicas = 2, .schedule = "1f1b", .seed = 9},
                 .out = shared()};
    run saved = whole, next = whole;
    saved.out = shared();
    next.out = shared();
    saved.last = next.first = 1;
    saved.to = next.from = folder;
    assert_int_equal(run_ranks(4, train, &whole, LIMIT_S), 0);
    assert_int_equal(run_ranks(4, train, &saved, LIMIT_S), 0);
    for (size_t i = 0; i < sizeof going_on / sizeof *going_on; i++) {
        next.trial = going_on[i];
        assert_int_equal(run_ranks(ranks_of(&next.trial), train, &next, LIMIT_S), 0);
        assert_string_equal(next.out->sha256, whole.out->sha256);
    }
    next.last = 1; /* no step at all */
    for (size_t i = 0; i < sizeof reading / sizeof *reading; i++) {
        next.trial = reading[i];
        assert_int_equal(run_ranks(ranks_of(&next.trial), train, &next, LIMIT_S), 0);
        assert_string_equal(next.out->sha256, saved.out->sha256);
    }
    munmap(whole.out, SHARED_BYTES);
    munmap(saved.out, SHARED_BYTES);
    munmap(next.out, SHARED_BYTES);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

/* ---- Times and reports ---- */

/* Times of layers, of which layer `slow` takes twenty times as long as any other, decide where "auto" cuts. */
typedef struct {
    uint32_t slow;     /* 0: no times are given */
    const char *first; /* the first layer of stage 1; NULL: any */
    char sha256[65];
} timed;

/* Stages say what they are, how their step went, and how long their layers take. */
static int reports_agree(const trainer *t, int rank, const sluice_step_report *step)
{
    sluice_stage_report stage = SLUICE_INIT(sluice_stage_report);
    double forward_s, backward_s, waited_s = 0;
    uint32_t piece, before = 0;
    const char *name;
    RANK_CHECK(!sluice_runtime_stage(t->rt, &stage));
    RANK_CHECK(stage.stages == 2 && stage.replicas == 1 && stage.stage == (uint32_t)rank && stage.chunks == 1);
    RANK_CHECK(stage.layer_count == LAYERS + 2 && stage.slots_s > 0 && stage.slots_s < step->step_s);
    RANK_CHECK(fabs(stage.idle_s + stage.exposed_s - step->exposed_s) < 1e-9);
    for (uint32_t c = 0; c < stage.channel_count; c++) {
        RANK_CHECK(stage.channels[c].stage == (uint32_t)(1 - rank) && stage.channels[c].step_bytes > 0);
        waited_s += stage.channels[c].waited_s;
    }
    RANK_CHECK(fabs(waited_s + stage.end_s - stage.idle_s) < 1e-9);
    for (uint32_t l = 0; l < stage.layer_count; l++) {
        RANK_CHECK(!sluice_runtime_piece(t->rt, l, &name, &piece) && piece >= before && piece < 2);
        RANK_CHECK(!sluice_runtime_layer_times(t->rt, l, &forward_s, &backward_s));
        const bool here = piece == (uint32_t)rank;
        RANK_CHECK((forward_s > 0) == here && (backward_s > 0) == here);
        before = piece;
    }
    RANK_CHECK(sluice_runtime_piece(t->rt, stage.layer_count, &name, &piece) == SLUICE_ERR_ARGUMENT);
    return 0;
}

/* The predicted step has the given times of the stage's layers. `micro_batches` 4. */
static int predictions_agree(const trainer *t, uint32_t slow)
{
    sluice_stage_report stage = SLUICE_INIT(sluice_stage_report);
    sluice_prediction prediction = SLUICE_INIT(sluice_prediction);
    double slots_s = 0;
    uint32_t piece;
    const char *name;
    RANK_CHECK(!sluice_runtime_stage(t->rt, &stage));
    RANK_CHECK(!sluice_runtime_prediction(t->rt, &prediction));
    RANK_CHECK(prediction.predicted.step_s == stage.predicted_step_s);
    for (uint32_t l = 0; l < stage.layer_count; l++) {
        RANK_CHECK(!sluice_runtime_piece(t->rt, l, &name, &piece));
        if (piece == stage.stage) slots_s += 4 * ((l == slow ? 20e-3 : 1e-3) + 2e-3);
    }
    RANK_CHECK(fabs(stage.predicted_slots_s - (slow ? slots_s : 0)) < 1e-9);
    const double sum_s = stage.predicted_slots_s + stage.predicted_idle_s + stage.predicted_exposed_s;
    RANK_CHECK(fabs(sum_s - stage.predicted_step_s) < 1e-9);
    return 0;
}

/* Updates and messages take some time, the same on every rank. */
static int times_are_measured(const trainer *t, int rank)
{
    sluice_stage_times times = SLUICE_INIT(sluice_stage_times);
    RANK_CHECK(!sluice_runtime_stage_times(t->rt, &times));
    RANK_CHECK(times.update_s > 0 && times.message_latency_s > 0);
    double sum = rank ? -times.message_latency_s : times.message_latency_s;
    RANK_CHECK(!sluice_world_all_reduce(t->world, &sum, 1) && sum == 0);
    return 0;
}

static int train_timed(int rank, int size, void *context)
{
    timed *asked = context;
    const trial t = {PLAIN, .stages = 2, .schedule = "1f1b", .seed = 4};
    const sluice_config config = config_of(&t);
    trainer with = {0};
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    static arrays all[4];
    sluice_batch batches[4];
    const char *name;
    uint32_t piece = 0;
    bool here;
    (void)size;
    RANK_CHECK(!sluice_world_create(NULL, &with.world));
    RANK_CHECK(!sluice_runtime_create(with.world, &config, &with.rt));
    const sluice_model_options options = SLUICE_INIT(sluice_model_options, .batch = BATCH, .micro_batches = 4);
    RANK_CHECK(!sluice_model_create(with.rt, &models[0], &options, &with.model));
    for (uint32_t l = 0; asked->slow && l < LAYERS + 2; l++)
        RANK_CHECK(!sluice_runtime_layer_times_set(with.rt, l, l == asked->slow ? 20e-3 : 1e-3, 2e-3));
    const sluice_stage_times besides = SLUICE_INIT(sluice_stage_times, .update_s = 1e-9, .message_latency_s = 1e-4,
                                                   .message_bytes_per_s = 1e9),
                             wrong = SLUICE_INIT(sluice_stage_times, .update_s = -1);
    RANK_CHECK(!sluice_runtime_stage_times_set(with.rt, &besides));
    RANK_CHECK(sluice_runtime_stage_times_set(with.rt, &wrong) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(sluice_runtime_layer_times_set(with.rt, LAYERS + 2, 1, 1) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(sluice_runtime_layer_times_set(with.rt, 0, 0, 1) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(!sluice_runtime_commit(with.rt));
    RANK_CHECK(!sluice_model_init(with.model, 4));
    for (uint32_t l = 0; asked->first && !piece; l++) RANK_CHECK(!sluice_runtime_piece(with.rt, l, &name, &piece));
    RANK_CHECK(!asked->first || !strcmp(name, asked->first));
    for (uint32_t m = 0; m < 4; m++) {
        fill(&all[m], m);
        batches[m] = batch_of(&models[0], &all[m]);
    }
    RANK_CHECK(!sluice_step_begin(with.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-2)));
    RANK_CHECK(!sluice_model_step(with.model, batches, &here));
    RANK_CHECK(!sluice_step_end(with.rt, &report));
    if (reports_agree(&with, rank, &report) || predictions_agree(&with, asked->slow)) return 1;
    if (times_are_measured(&with, rank)) return 1;
    char hex[65];
    RANK_CHECK(!sluice_runtime_weights_sha256(with.rt, hex));
    if (rank == 0) memcpy(asked->sha256, hex, sizeof hex);
    end(&with);
    return 0;
}

static void cuts_follow_given_times(void **state)
{
    (void)state;
    static const timed cases[] = {{0, NULL, ""}, {1, "h.1", ""}, {LAYERS, "h.3", ""}};
    timed *all = (timed *)(void *)shared();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        all[i] = cases[i];
        assert_int_equal(run_ranks(2, train_timed, &all[i], LIMIT_S), 0);
        assert_string_equal(all[i].sha256, all[0].sha256);
    }
    munmap(all, SHARED_BYTES);
}

/* ---- Refusals ---- */

static int says(sluice_status status, sluice_status wanted, const char *part)
{
    if (status == wanted && strstr(sluice_last_error(), part)) return 0;
    fprintf(stderr, "%s: \"%s\" should be %s and say \"%s\"\n", sluice_status_name(status), sluice_last_error(),
            sluice_status_name(wanted), part);
    return 1;
}

/* A pipeline that cannot be, and the words of the commit that refuses it. */
typedef struct {
    trial trial;
    const char *strategy;
    sluice_tied tied;
    sluice_accumulate accumulate;
    sluice_status status;
    const char *part;
} refusal;

#define SPLIT SLUICE_TIED_SPLIT

static const refusal refusals[] = {
    {{PLAIN, .stages = 3}, NULL, SPLIT, 0, SLUICE_ERR_ARGUMENT, "no multiple of 3 stages"},
    {{PLAIN, .stages = 2, .schedule = "zero_bubble"}, NULL, SPLIT, 0, SLUICE_ERR_ARGUMENT, "does not run yet"},
    {{PLAIN, .stages = 2, .schedule = "none"}, NULL, SPLIT, 0, SLUICE_ERR_ARGUMENT, "there is none of that name"},
    {{PLAIN, .stages = 2, .chunks = 2}, NULL, SPLIT, 0, SLUICE_ERR_ARGUMENT, "interleaved"},
    {{PLAIN, .stages = 2, .cuts = "h.9"}, NULL, SPLIT, 0, SLUICE_ERR_ARGUMENT, "no layer is called \"h.9\""},
    {{PLAIN, .stages = 2}, "random:3", SPLIT, 0, SLUICE_ERR_ARGUMENT, "one of dp, oss, sdp and fsdp"},
    {{PLAIN, .model = 3, .stages = 2}, NULL, SPLIT, SLUICE_ACCUMULATE_EACH, SLUICE_ERR_UNSUPPORTED, "accumulate last"},
    {{PLAIN, .model = 3, .stages = 2}, NULL, SLUICE_TIED_JOINT, 0, SLUICE_ERR_UNSUPPORTED, "use tied split"},
    {{.micro_batches = 4, .stages = 2, .optimizer = "onebit_adam"},
     NULL,
     SPLIT,
     0,
     SLUICE_ERR_UNSUPPORTED,
     "a compressed optimizer"},
};
enum { REFUSALS = sizeof refusals / sizeof *refusals };

static int refused(int rank, int size, void *context)
{
    (void)rank;
    (void)size;
    (void)context;
    for (int i = 0; i < REFUSALS; i++) {
        const refusal *r = &refusals[i];
        trainer t = {0};
        sluice_config config = config_of(&r->trial);
        if (r->strategy) config.strategy = r->strategy;
        config.accumulate = r->accumulate;
        config.tied = r->tied;
        RANK_CHECK(!sluice_world_create(NULL, &t.world));
        RANK_CHECK(!sluice_runtime_create(t.world, &config, &t.rt));
        const sluice_model_options options =
            SLUICE_INIT(sluice_model_options, .batch = 1, .length = models[r->trial.model].image_size ? 0 : LENGTH);
        RANK_CHECK(!sluice_model_create(t.rt, &models[r->trial.model], &options, &t.model));
        if (says(sluice_runtime_commit(t.rt), r->status, r->part)) return 1;
        end(&t);
    }
    return 0;
}

/* Calls that do not know stages leave the runtime as it was; a slot of a layer elsewhere fails it. */
static int calls_are_refused(int rank, int size, void *context)
{
    const trial t = {PLAIN, .stages = 2, .schedule = "gpipe"};
    trainer with = {0};
    double loss;
    bool here;
    char *plan, *profile;
    (void)size;
    (void)context;
    RANK_CHECK(!sluice_world_create(NULL, &with.world));
    if (make(&t, &with)) return 1;
    if (says(sluice_runtime_replan(with.rt, NULL, NULL, 0), SLUICE_ERR_UNSUPPORTED, "replan: not in a pipeline yet") ||
        says(sluice_runtime_profile_write(with.rt, "x", "x"), SLUICE_ERR_UNSUPPORTED, "profile_write: not") ||
        says(sluice_runtime_plan_json(with.rt, "x", &plan, &profile), SLUICE_ERR_UNSUPPORTED, "plan_json: not"))
        return 1;
    if (step(&t, &with, 0, &loss, &here)) return 1;
    RANK_CHECK(here == (rank == 1));
    RANK_CHECK(sluice_runtime_replicas(with.rt) == 1 && sluice_runtime_replica(with.rt) == 0);
    RANK_CHECK(!sluice_step_begin(with.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-2)));
    RANK_CHECK(!sluice_world_barrier(with.world)); /* the failure of one rank ends the others' calls */
    static arrays all[1];
    fill(all, 1);
    const sluice_batch batch = batch_of(&models[0], all);
    /* It walks all layers by itself, and the first one lies on rank 0, the last one on rank 1. */
    const sluice_status status = sluice_model_forward(with.model, &batch);
    RANK_CHECK(status == SLUICE_ERR_ORDER || status == SLUICE_ERR_PEER);
    RANK_CHECK(strstr(sluice_last_error(), "this rank does not hold it"));
    end(&with);
    return 0;
}

/* A replica whose weights are others than those of the first one is found by their hash, on every rank. */
static int replicas_are_compared(int rank, int size, void *context)
{
    const trial t = {PLAIN, .model = 3, .stages = 2, .replicas = 2, .schedule = "1f1b", .strategy = "dp"};
    trainer with = {0};
    char hex[65];
    (void)size;
    (void)context;
    RANK_CHECK(!sluice_world_create(NULL, &with.world));
    if (make(&t, &with)) return 1;
    RANK_CHECK(!sluice_runtime_weights_sha256(with.rt, hex));
    sluice_param *last = sluice_runtime_param(with.rt, sluice_runtime_param_count(with.rt) - 1);
    const float value = rank == 3 ? 2 : 1;
    RANK_CHECK(!sluice_param_write(last, 0, 1, &value));
    const sluice_status status = sluice_runtime_weights_sha256(with.rt, hex);
    if (says(status, SLUICE_ERR_MISMATCH, "rank 3 has another replica of the weights than rank 2 of the same stage"))
        return 1;
    end(&with);
    return 0;
}

static void wrong_uses_are_refused(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(4, replicas_are_compared, NULL, LIMIT_S), 0);
    assert_int_equal(run_ranks(2, refused, NULL, LIMIT_S), 0);
    assert_int_equal(run_ranks(2, calls_are_refused, NULL, LIMIT_S), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_one_rank),
        cmocka_unit_test(equal_to_ranks_without_stages),
        cmocka_unit_test(equal_to_data_parallel_ranks),
        cmocka_unit_test(checkpoints_fit_any_stages),
        cmocka_unit_test(checkpoints_fit_any_replicas),
        cmocka_unit_test(cuts_follow_given_times),
        cmocka_unit_test(wrong_uses_are_refused),
    };
    const struct CMUnitTest longer[] = {cmocka_unit_test(promises_hold_for_long)};
    if (argc > 1 && !strcmp(argv[1], "long")) return cmocka_run_group_tests(longer, NULL, NULL);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
