/* tests/engine/pipeline_test.c and pipeline_onebit_test.c use this file. */
#include "tests/support/pipeline_trial.h"

#include "tests/support/base/folder.h"
#include "tests/support/draw.h"

#include <sluice/checkpoint.h>
#include <sluice/plan.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/mman.h>

#define SMALL                                                                                                          \
    .struct_size = sizeof(sluice_model_config), .layers = LAYERS, .channels = 16, .heads = 2, .hidden = 32,            \
    .epsilon = 1e-5
#define CLASSES .head = SLUICE_HEAD_CLASSES, .classes = 3
#define TEXT .vocabulary = VOCABULARY, .context = LENGTH
#define IMAGES .image_size = IMAGE, .patch_size = 4, .image_channels = 1

const sluice_model_config trial_models[MODELS] = {
    {SMALL, CLASSES, IMAGES, .family = SLUICE_VIT},
    {SMALL, CLASSES, TEXT, .family = SLUICE_BERT, .types = 2},
    {SMALL, CLASSES, IMAGES, .family = SLUICE_BEIT, .relative_positions = true},
    {SMALL, TEXT, .family = SLUICE_GPT2, .gelu_tanh = true},
    {SMALL, TEXT, .family = SLUICE_BERT, .types = 2},
};
/* ---- Data ---- */

void trial_fill(trial_arrays *a, uint64_t number)
{
    for (uint32_t i = 0; i < BATCH * LENGTH; i++) {
        a->tokens[i] = (int32_t)(mix(number * 1000 + i) % VOCABULARY);
        a->types[i] = i % LENGTH > 3;
        a->mask[i] = i != LENGTH - 1;
    }
    for (uint32_t i = 0; i < BATCH * LENGTH; i++) a->targets[i] = (int32_t)(mix(number * 77 + i) % 3);
    for (uint32_t i = 0; i < PIXELS; i++) a->pixels[i] = noise(number, i);
}

sluice_batch trial_batch(const sluice_model_config *c, const trial_arrays *a)
{
    const bool sees = c->image_size > 0;
    return SLUICE_INIT(sluice_batch, .tokens = sees ? NULL : a->tokens, .types = sees ? NULL : a->types,
                       .attention_mask = sees ? NULL : a->mask, .pixels = sees ? a->pixels : NULL,
                       .targets = a->targets);
}

/* ---- A run ---- */

sluice_config trial_config(const trial *t)
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
    config.tied = trial_models[t->model].head == SLUICE_HEAD_TOKENS ? SLUICE_TIED_SPLIT : SLUICE_TIED_JOINT;
    config.onebit.freeze_step = config.onebit.var_freeze_step = t->freeze;
    config.onebit.var_update_scaler = 1; /* 0/1 Adam has all of its phases within a few steps */
    config.onebit.local_step_scaler = config.onebit.local_step_clipper = 2;
    config.pipeline = t->stages;
    config.pipeline_chunks = t->chunks;
    config.pipeline_schedule = t->schedule;
    config.pipeline_cuts = *t->cuts ? t->cuts : NULL;
    return config;
}

static int create(const trial *t, const sluice_config *config, trial_trainer *made)
{
    sluice_model_config model = trial_models[t->model];
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = model.image_size ? 0 : LENGTH, .dropout_seed = 3,
                    .micro_batches = t->micro_batches);
    model.dropout = t->dropout;
    RANK_CHECK(!sluice_runtime_create(made->world, config, &made->rt));
    RANK_CHECK(!sluice_model_create(made->rt, &model, &options, &made->model));
    const sluice_stage_times slow =
        SLUICE_INIT(sluice_stage_times, .update_s = 1e-9, .message_latency_s = 1e-6, .message_bytes_per_s = 1e5);
    for (uint32_t l = 0; t->slow && l < LAYERS + 2; l++)
        RANK_CHECK(!sluice_runtime_layer_times_set(made->rt, l, 1e-6, 1e-6));
    if (t->slow) RANK_CHECK(!sluice_runtime_stage_times_set(made->rt, &slow));
    return 0;
}

/* Finds the smallest budget by asking for less. */
static int find_smallest(const trial *t, sluice_config *config, trial_trainer *made)
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

int trial_make(const trial *t, trial_trainer *made)
{
    sluice_config config = trial_config(t);
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    if (t->tight && find_smallest(t, &config, made)) return 1;
    if (create(t, &config, made)) return 1;
    RANK_CHECK(!sluice_runtime_commit(made->rt));
    RANK_CHECK(!sluice_model_init(made->model, t->seed));
    RANK_CHECK(!sluice_runtime_memory(made->rt, &memory));
    RANK_CHECK(!t->tight || memory.planned_bytes <= config.budget_bytes);
    return 0;
}

void trial_end(trial_trainer *t)
{
    sluice_model_destroy(t->model);
    sluice_runtime_destroy(t->rt);
    sluice_world_destroy(t->world);
}

int trial_step(const trial *t, trial_trainer *with, uint32_t number, double *loss, bool *here)
{
    static trial_arrays all[MICRO_BATCHES_MAX];
    sluice_batch batches[MICRO_BATCHES_MAX];
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    const uint32_t ranks = sluice_runtime_replicas(with->rt), rank = sluice_runtime_replica(with->rt);
    for (uint32_t m = 0; m < t->micro_batches; m++) {
        trial_fill(&all[m], t->seed * 1000 + (number * t->micro_batches + m) * ranks + rank);
        batches[m] = trial_batch(&trial_models[t->model], &all[m]);
    }
    const uint32_t last = t->steps ? t->steps : STEPS;
    /* A variance that is frozen after a few steps may be so small that a usual rate ends in NaN. */
    const double rate = t->freeze ? 1e-3 : 1e-2;
    /* Evaluations, checkpoints and hashes want replicas that are equal. */
    RANK_CHECK(!sluice_step_begin(with->rt,
                                  &SLUICE_INIT(sluice_step_options, .learning_rate = rate,
                                               .exchange = number < 2 || number == t->freeze || number + 1 == last)));
    RANK_CHECK(!sluice_model_step(with->model, batches, here));
    RANK_CHECK(!sluice_step_end(with->rt, &report));
    with->skipped = report.skipped;
    RANK_CHECK(t->stages < 2 || report.bytes_sent > 0);
    if (*here)
        RANK_CHECK(!sluice_model_loss(with->model, loss));
    else
        RANK_CHECK(sluice_model_loss(with->model, loss) == SLUICE_ERR_ORDER);
    return 0;
}

/* Evaluates micro-batches that are trained on too, without training. */
static int evaluate(const trial_run *r, trial_trainer *t)
{
    static trial_arrays a;
    for (uint64_t i = 0; i < 2; i++) {
        double loss = 0;
        trial_fill(&a, r->trial.seed * 1000 + i * sluice_runtime_replicas(t->rt) + sluice_runtime_replica(t->rt));
        const sluice_batch batch = trial_batch(&trial_models[r->trial.model], &a);
        RANK_CHECK(!sluice_model_evaluate(t->model, &batch, &loss, NULL));
        if (loss > 0) r->out->evaluated[sluice_runtime_replica(t->rt)][i] = loss;
    }
    return 0;
}

/* Writes the weights' hash, or that there is none: a skipped step exchanges nothing and so leaves 0/1 Adam's replicas
 * as different as the local steps before it made them, and nobody can read such weights. */
static int hash_weights(const trial_trainer *t, char hex[65])
{
    bool readable;
    (void)sluice_runtime_replicas_equal(t->rt, &readable);
    if (t->skipped && !readable)
        strcpy(hex, "replicas differ");
    else
        RANK_CHECK(!sluice_runtime_weights_sha256(t->rt, hex));
    return 0;
}

static uint32_t last_step(const trial_run *r)
{
    return r->last ? r->last : r->trial.steps ? r->trial.steps : STEPS;
}

int trial_train(int rank, int size, void *context)
{
    const trial_run *r = context;
    (void)size;
    trial_trainer t = {0};
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    char hex[65];
    setenv("SLUICE_COMM_DIRECT", r->trial.messages ? "off" : "on", 1);
    if (r->trial.ranks_a_host) set_number("SLUICE_COMM_HOST_ID", rank / (int)r->trial.ranks_a_host);
    RANK_CHECK(!sluice_world_create(NULL, &t.world));
    if (trial_make(&r->trial, &t)) return 1;
    if (r->from) RANK_CHECK(!sluice_checkpoint_load(t.rt, r->from, NULL, NULL));
    for (uint32_t s = r->first; s < last_step(r); s++) {
        double loss = 0;
        bool here;
        if (trial_step(&r->trial, &t, s, &loss, &here)) return 1;
        if (s < 2 && evaluate(r, &t)) return 1;
        if (here) r->out->losses[sluice_runtime_replica(t.rt)][s] = loss;
        /* The hash compares the replicas of each stage, here those of the warm-up. */
        if (r->trial.freeze == s + 1) RANK_CHECK(!sluice_runtime_weights_sha256(t.rt, hex));
        if (r->to && s == (r->saved ? r->saved - 1 : r->first))
            RANK_CHECK(!sluice_checkpoint_begin(t.rt, r->to, NULL, 0));
    }
    if (r->to) RANK_CHECK(!sluice_checkpoint_end(t.rt, true, NULL));
    if (hash_weights(&t, hex)) return 1;
    RANK_CHECK(!sluice_runtime_memory(t.rt, &memory));
    r->out->planned[rank] = memory.planned_bytes;
    r->out->peak[rank] = memory.peak_bytes;
    if (rank == 0) memcpy(r->out->sha256, hex, sizeof hex);
    trial_end(&t);
    return 0;
}

trial_outcome *trial_shared(void)
{
    void *memory = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

void trial_describe(const trial *t)
{
    fprintf(stderr,
            "model %u, %u micro-batches, %u stages of %u replicas and %u chunks, %s, cuts \"%s\", strategy %s, block "
            "%llu, %s, freeze %u, clip %g, dropout %g, precision %d, recompute %d, nan %d, steps %u, %s%s%s%s, ranks a "
            "host %u, seed %llu\n",
            t->model, t->micro_batches, t->stages, t->replicas, t->chunks, t->schedule, t->cuts,
            t->strategy ? t->strategy : "auto", (unsigned long long)t->block_bytes, t->optimizer, t->freeze, t->clip,
            t->dropout, (int)t->precision, (int)t->recompute, (int)t->nan, t->steps,
            t->messages ? "messages" : "direct", t->tight ? ", tight" : "", t->each ? ", each" : "",
            t->slow ? ", slow" : "", t->ranks_a_host, (unsigned long long)t->seed);
}

int trial_replicas(const trial *t)
{
    return t->replicas ? (int)t->replicas : 1;
}

int trial_ranks(const trial *t)
{
    return (t->stages ? (int)t->stages : 1) * trial_replicas(t);
}

void trial_check(const trial *t)
{
    trial_run alone = {.trial = *t, .out = trial_shared()}, piped = {.trial = *t, .out = trial_shared()};
    alone.trial.stages = 0;
    alone.trial.messages = alone.trial.tight = false;
    alone.trial.ranks_a_host = 0;
    if (!t->freeze) alone.trial.strategy = "dp";
    alone.trial.recompute = SLUICE_RECOMPUTE_NONE;
    const int limit_s = LIMIT_S + (int)t->steps; /* a step takes far less than a second */
    const int failed = run_ranks(trial_replicas(t), trial_train, &alone, limit_s) ||
                       run_ranks(trial_ranks(t), trial_train, &piped, limit_s);
    const bool equal = !strcmp(alone.out->sha256, piped.out->sha256) &&
                       !memcmp(alone.out->losses, piped.out->losses, sizeof piped.out->losses);
    if (failed || !equal) trial_describe(t);
    assert_false(failed);
    assert_string_equal(alone.out->sha256, piped.out->sha256);
    assert_memory_equal(alone.out->evaluated, piped.out->evaluated, sizeof piped.out->evaluated);
    assert_true(alone.out->evaluated[trial_replicas(t) - 1][1] > 0);
    assert_memory_equal(alone.out->losses, piped.out->losses, sizeof piped.out->losses);
    for (int r = 0; r < trial_ranks(t); r++) assert_int_equal(piped.out->peak[r], piped.out->planned[r]);
    munmap(alone.out, SHARED_BYTES);
    munmap(piped.out, SHARED_BYTES);
}

/* ---- Runs that are saved ---- */

void saved_trial_make(const trial *t, uint32_t steps, uint32_t behind, saved_trial *s)
{
    *s = (saved_trial){0};
    make_own_folder(s->folder);
    s->whole = (trial_run){.trial = *t, .out = trial_shared()};
    s->saved = (trial_run){.trial = *t, .out = trial_shared(), .saved = steps, .last = steps + behind, .to = s->folder};
    s->next = (trial_run){.trial = *t, .out = trial_shared(), .first = steps, .from = s->folder};
    assert_int_equal(run_ranks(trial_ranks(t), trial_train, &s->whole, LIMIT_S), 0);
    assert_int_equal(run_ranks(trial_ranks(t), trial_train, &s->saved, LIMIT_S), 0);
}

void saved_trial_go_on(saved_trial *s, const trial_run *like)
{
    assert_int_equal(run_ranks(trial_ranks(&s->next.trial), trial_train, &s->next, LIMIT_S), 0);
    assert_string_equal(s->next.out->sha256, like->out->sha256);
}

void saved_trial_end(saved_trial *s)
{
    munmap(s->whole.out, SHARED_BYTES);
    munmap(s->saved.out, SHARED_BYTES);
    munmap(s->next.out, SHARED_BYTES);
    remove_tree(s->folder);
}

/* ---- Draws ---- */

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

trial trial_draw(uint64_t *seed)
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
