/* A pipeline of P stages of R replicas ends in the weights and losses of R ranks with the same micro-batches, to the
 * bit, whatever the cuts, the schedule, the chunks, the strategies, the path, recomputation and the optimizer; and with
 * R = 1 in those of M data-parallel ranks with one micro-batch each. What pipelines do not do yet is refused by name,
 * and so are wrong calls and shapes. */
#include "tests/support/draw.h"
#include "tests/support/pipeline_trial.h"
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

/* ---- Bits ---- */

static void equal_to_one_rank(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (uint32_t i = 0; i < test_rounds(test_brief() ? 3 : 12); i++) {
        const trial t = trial_draw(&seed);
        trial_check(&t);
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
    /* The replicas of the second stage are on two hosts, those of the others on one each. */
    static const trial two_hosts = {
        PLAIN, .stages = 3, .replicas = 2, .schedule = "1f1b", .strategy = "sdp", .ranks_a_host = 3, .seed = 7};
    (void)state;
    trial_check(&two_hosts);
    trial_check(&narrow_rows);
    trial_check(&each);
    uint64_t seed = 12;
    for (uint32_t i = 0; i < test_rounds(test_brief() ? 3 : 12); i++) {
        trial t = trial_draw(&seed);
        t.stages = t.stages > 3 ? 2 : t.stages;
        t.replicas = t.stages == 2 ? 2 + (uint32_t)draw(&seed, 2) : 2;
        t.strategy = strategies[draw(&seed, sizeof strategies / sizeof *strategies)];
        t.block_bytes = draw(&seed, 2) ? 1024 : 0;
        t.tight = draw(&seed, 2);
        t.each = trial_models[t.model].head != SLUICE_HEAD_TOKENS && draw(&seed, 2);
        t.cuts[0] = 0;
        if (!strcmp(t.schedule, "interleaved")) t.micro_batches = t.stages;
        trial_check(&t);
    }
}

/* M ranks with one micro-batch each have the same global batch as a pipeline of one replica with M micro-batches. */
static void check_ranks(const trial *t)
{
    trial_run ranks = {.trial = *t, .out = trial_shared()}, piped = {.trial = *t, .out = trial_shared()};
    ranks.trial.stages = 0;
    ranks.trial.micro_batches = 1;
    ranks.trial.messages = ranks.trial.tight = false;
    const int failed = run_ranks((int)t->micro_batches, trial_train, &ranks, LIMIT_S) ||
                       run_ranks((int)t->stages, trial_train, &piped, LIMIT_S);
    if (failed || strcmp(ranks.out->sha256, piped.out->sha256)) trial_describe(t);
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

/* Both promises hold over STEPS_LONG steps, for each model, number of stages and schedule, with one and two replicas.
 * What else there is to choose is drawn. The first argument "long" asks for this test. */
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
                    trial t = trial_draw(&seed);
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
                    t.each = trial_models[model].head != SLUICE_HEAD_TOKENS && draw(&seed, 3) == 0;
                    t.steps = STEPS_LONG;
                    if (!test_takes(number, 1)) continue;
                    trial_check(&t);
                    t.precision = SLUICE_FP32; /* promise 2 is of it, of one replica */
                    t.dropout = 0;             /* ranks drop out otherwise than micro-batches do */
                    t.each = false;
                    if (replicas == 1 && t.micro_batches <= 4) check_ranks(&t);
                }
}

/* The steps that many_steps_end_alike makes, all trials together: the argument behind "many_steps". */
static uint32_t many_steps = 40;

/* No message is lost and no bit changes over many steps, in each schedule and with replicas. `./dev stress pipelines`
 * asks for it under the thread sanitizer, in whose build gates and channels pause at random. */
static void many_steps_end_alike(void **state)
{
    static const trial ways[] = {
        {PLAIN, .stages = 3, .chunks = 1, .schedule = "gpipe", .seed = 21},
        {PLAIN, .stages = 4, .chunks = 1, .schedule = "1f1b", .seed = 22},
        {PLAIN, .stages = 2, .chunks = 2, .schedule = "interleaved", .seed = 23},
        {PLAIN, .stages = 2, .replicas = 2, .chunks = 1, .schedule = "1f1b", .strategy = "fsdp", .seed = 24},
    };
    const uint32_t count = sizeof ways / sizeof *ways, each = many_steps / count;
    (void)state;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t left = each < 2 ? 2 : each, again = 0; left; again++) {
            trial t = ways[i];
            t.seed += 10 * again;
            /* Two steps at least are left for the last time, because the first two are evaluated. */
            t.steps = left <= STEPS_MOST ? left : left == STEPS_MOST + 1 ? STEPS_MOST - 1 : STEPS_MOST;
            left -= t.steps;
            trial_check(&t);
        }
    }
}

/* A checkpoint of four stages, written while they train on, is gone on from by as many, by two, and by one rank. */
static void checkpoints_fit_any_stages(void **state)
{
    (void)state;
    for (uint32_t model = 0; model < MODELS; model += 3) {
        saved_trial s;
        saved_trial_make(&(trial){PLAIN, .model = model, .stages = 4, .schedule = "1f1b", .seed = 9}, 1, 1, &s);
        for (uint32_t stages = 4; stages; stages /= 2) {
            s.next.trial.stages = stages;
            saved_trial_go_on(&s, &s.whole);
        }
        saved_trial_end(&s);
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
    saved_trial s;
    (void)state;
    saved_trial_make(&(trial){PLAIN, .model = 3, .stages = 2, .replicas = 2, .schedule = "1f1b", .seed = 9}, 1, 0, &s);
    for (size_t i = 0; i < sizeof going_on / sizeof *going_on; i++) {
        s.next.trial = going_on[i];
        saved_trial_go_on(&s, &s.whole);
    }
    s.next.last = 1; /* no step at all */
    for (size_t i = 0; i < sizeof reading / sizeof *reading; i++) {
        s.next.trial = reading[i];
        saved_trial_go_on(&s, &s.saved);
    }
    saved_trial_end(&s);
}

/* ---- Times and reports ---- */

/* Times of layers, of which layer `slow` takes twenty times as long as any other, decide where "auto" cuts. */
typedef struct {
    uint32_t slow;     /* 0: no times are given */
    const char *first; /* the first layer of stage 1; NULL: any */
    char sha256[65];
} timed;

/* Stages say what they are, how their step went, and how long their layers take. */
static int reports_agree(const trial_trainer *t, int rank, const sluice_step_report *step)
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
static int predictions_agree(const trial_trainer *t, uint32_t slow)
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
static int times_are_measured(const trial_trainer *t, int rank)
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
    const sluice_config config = trial_config(&t);
    trial_trainer with = {0};
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    static trial_arrays all[4];
    sluice_batch batches[4];
    const char *name;
    uint32_t piece = 0;
    bool here;
    (void)size;
    RANK_CHECK(!sluice_world_create(NULL, &with.world));
    RANK_CHECK(!sluice_runtime_create(with.world, &config, &with.rt));
    const sluice_model_options options = SLUICE_INIT(sluice_model_options, .batch = BATCH, .micro_batches = 4);
    RANK_CHECK(!sluice_model_create(with.rt, &trial_models[0], &options, &with.model));
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
        trial_fill(&all[m], m);
        batches[m] = trial_batch(&trial_models[0], &all[m]);
    }
    RANK_CHECK(!sluice_step_begin(with.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-2)));
    RANK_CHECK(!sluice_model_step(with.model, batches, &here));
    RANK_CHECK(!sluice_step_end(with.rt, &report));
    if (reports_agree(&with, rank, &report) || predictions_agree(&with, asked->slow)) return 1;
    if (times_are_measured(&with, rank)) return 1;
    char hex[65];
    RANK_CHECK(!sluice_runtime_weights_sha256(with.rt, hex));
    if (rank == 0) memcpy(asked->sha256, hex, sizeof hex);
    trial_end(&with);
    return 0;
}

static void cuts_follow_given_times(void **state)
{
    (void)state;
    static const timed cases[] = {{0, NULL, ""}, {1, "h.1", ""}, {LAYERS, "h.3", ""}};
    timed *all = (timed *)(void *)trial_shared();
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
    {{PLAIN, .stages = 2}, "random:3", SPLIT, 0, SLUICE_ERR_ARGUMENT, "one of dp, oss, sdp, fsdp and onebit"},
    {{PLAIN, .model = 3, .stages = 2}, NULL, SPLIT, SLUICE_ACCUMULATE_EACH, SLUICE_ERR_UNSUPPORTED, "accumulate last"},
    {{PLAIN, .model = 3, .stages = 2}, NULL, SLUICE_TIED_JOINT, 0, SLUICE_ERR_UNSUPPORTED, "use tied split"},
};
enum { REFUSALS = sizeof refusals / sizeof *refusals };

static int refused(int rank, int size, void *context)
{
    (void)rank;
    (void)size;
    (void)context;
    for (int i = 0; i < REFUSALS; i++) {
        const refusal *r = &refusals[i];
        trial_trainer t = {0};
        sluice_config config = trial_config(&r->trial);
        if (r->strategy) config.strategy = r->strategy;
        config.accumulate = r->accumulate;
        config.tied = r->tied;
        RANK_CHECK(!sluice_world_create(NULL, &t.world));
        RANK_CHECK(!sluice_runtime_create(t.world, &config, &t.rt));
        const sluice_model_options options = SLUICE_INIT(
            sluice_model_options, .batch = 1, .length = trial_models[r->trial.model].image_size ? 0 : LENGTH);
        RANK_CHECK(!sluice_model_create(t.rt, &trial_models[r->trial.model], &options, &t.model));
        if (says(sluice_runtime_commit(t.rt), r->status, r->part)) return 1;
        trial_end(&t);
    }
    return 0;
}

/* Calls that do not know stages leave the runtime as it was; a slot of a layer elsewhere fails it. */
static int calls_are_refused(int rank, int size, void *context)
{
    const trial t = {PLAIN, .stages = 2, .schedule = "gpipe"};
    trial_trainer with = {0};
    double loss;
    bool here;
    char *plan, *profile;
    (void)size;
    (void)context;
    RANK_CHECK(!sluice_world_create(NULL, &with.world));
    if (trial_make(&t, &with)) return 1;
    if (says(sluice_runtime_replan(with.rt, NULL, NULL, 0), SLUICE_ERR_UNSUPPORTED, "replan: not in a pipeline yet") ||
        says(sluice_runtime_profile_write(with.rt, "x", "x"), SLUICE_ERR_UNSUPPORTED, "profile_write: not") ||
        says(sluice_runtime_plan_json(with.rt, "x", &plan, &profile), SLUICE_ERR_UNSUPPORTED, "plan_json: not"))
        return 1;
    if (trial_step(&t, &with, 0, &loss, &here)) return 1;
    RANK_CHECK(here == (rank == 1));
    RANK_CHECK(sluice_runtime_replicas(with.rt) == 1 && sluice_runtime_replica(with.rt) == 0);
    RANK_CHECK(!sluice_step_begin(with.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-2)));
    RANK_CHECK(!sluice_world_barrier(with.world)); /* the failure of one rank ends the others' calls */
    static trial_arrays all[1];
    trial_fill(all, 1);
    const sluice_batch batch = trial_batch(&trial_models[0], all);
    /* It walks all layers by itself, and the first one lies on rank 0, the last one on rank 1. */
    const sluice_status status = sluice_model_forward(with.model, &batch);
    RANK_CHECK(status == SLUICE_ERR_ORDER || status == SLUICE_ERR_PEER);
    RANK_CHECK(strstr(sluice_last_error(), "this rank does not hold it"));
    trial_end(&with);
    return 0;
}

/* A replica whose weights are others than those of the first one is found by their hash, on every rank. */
static int replicas_are_compared(int rank, int size, void *context)
{
    const trial t = {PLAIN, .model = 3, .stages = 2, .replicas = 2, .schedule = "1f1b", .strategy = "dp"};
    trial_trainer with = {0};
    char hex[65];
    (void)size;
    (void)context;
    RANK_CHECK(!sluice_world_create(NULL, &with.world));
    if (trial_make(&t, &with)) return 1;
    RANK_CHECK(!sluice_runtime_weights_sha256(with.rt, hex));
    sluice_param *last = sluice_runtime_param(with.rt, sluice_runtime_param_count(with.rt) - 1);
    const float value = rank == 3 ? 2 : 1;
    RANK_CHECK(!sluice_param_write(last, 0, 1, &value));
    const sluice_status status = sluice_runtime_weights_sha256(with.rt, hex);
    if (says(status, SLUICE_ERR_MISMATCH, "rank 3 has another replica of the weights than rank 2 of the same stage"))
        return 1;
    trial_end(&with);
    return 0;
}

static void wrong_uses_are_refused(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(4, replicas_are_compared, NULL, LIMIT_S), 0);
    assert_int_equal(run_ranks(2, refused, NULL, LIMIT_S), 0);
    assert_int_equal(run_ranks(2, calls_are_refused, NULL, LIMIT_S), 0);
}

/* ---- A timeline ---- */

/* The last sends of a step end when their sender is next awake, so some are still ending when it begins to record. */
static int record_after_a_step(int rank, int size, void *context)
{
    const trial *t = context;
    trial_trainer with = {0};
    char *json = NULL;
    double loss;
    bool here;
    (void)size;
    RANK_CHECK(!sluice_world_create(NULL, &with.world));
    if (trial_make(t, &with)) return 1;
    for (uint32_t s = 0; s < t->steps; s++) {
        if (trial_step(t, &with, s, &loss, &here)) return 1;
        if (s == 0) RANK_CHECK(!sluice_runtime_record(with.rt));
    }
    RANK_CHECK(!sluice_runtime_sync(with.rt));
    RANK_CHECK(!sluice_runtime_trace(with.rt, &json));
    RANK_CHECK((json != NULL) == (rank == 0));
    RANK_CHECK(rank || (strstr(json, "send") && strstr(json, "receive")));
    free(json);
    trial_end(&with);
    return 0;
}

static void recording_begins_between_steps(void **state)
{
    (void)state;
    static trial all[] = {
        {PLAIN, .stages = 2, .replicas = 1, .chunks = 1, .schedule = "1f1b", .steps = 3, .seed = 3},
        {PLAIN, .stages = 2, .replicas = 2, .chunks = 1, .schedule = "1f1b", .strategy = "sdp", .steps = 3, .seed = 4},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(run_ranks(trial_ranks(&all[i]), record_after_a_step, &all[i], LIMIT_S), 0);
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
        cmocka_unit_test(recording_begins_between_steps),
    };
    const struct CMUnitTest longer[] = {cmocka_unit_test(promises_hold_for_long)};
    const struct CMUnitTest many[] = {cmocka_unit_test(many_steps_end_alike)};
    if (argc > 1 && !strcmp(argv[1], "long")) return cmocka_run_group_tests(longer, NULL, NULL);
    if (argc > 1 && !strcmp(argv[1], "many_steps")) {
        if (argc > 2) many_steps = (uint32_t)strtoul(argv[2], NULL, 10);
        return cmocka_run_group_tests(many, NULL, NULL);
    }
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
