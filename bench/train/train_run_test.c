/* A run's losses, weights and evaluations do not depend on how its batch is split between ranks and micro-batches,
 * though windows and images have different numbers of targets; and a set of held-out images that is small is evaluated
 * once. */
#include "tests/support/base/folder.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include "bench/train/run.h"

#include <math.h>
#include <sys/mman.h>

enum { SEQUENCES = 4, EVALUATED = 8, IMAGES = 57, SIDE = 8, MOST_WEIGHTS = 400000 };

typedef struct {
    uint64_t ranks, micro_batches;
    const char *strategy;
} split;

static const split splits[] = {{1, 1, "dp"},  {1, 2, "dp"},  {1, 4, "dp"},  {2, 1, "fsdp"},
                               {2, 2, "sdp"}, {4, 1, "oss"}, {4, 1, "fsdp"}};
enum { SPLITS = sizeof splits / sizeof *splits };

typedef struct {
    double first_loss, evaluation_loss, accuracy;
    uint64_t count;
    float weights[MOST_WEIGHTS];
} outcome;

typedef struct {
    slc_training_options options;
    outcome *outcome; /* rank 0's, which the test program reads */
} job;

static sluice_status keep_weights(sluice_runtime *rt, void *context)
{
    outcome *out = ((job *)context)->outcome;
    float *to = out->weights;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < sluice_runtime_param_count(rt); i++) {
        sluice_param *param = sluice_runtime_param(rt, i);
        const uint64_t count = sluice_param_count(param);
        if (to + count > out->weights + MOST_WEIGHTS) return SLUICE_ERR_MEMORY;
        status = sluice_param_read(param, 0, count, to);
        to += count;
    }
    if (sluice_world_rank(sluice_runtime_world(rt)) == 0) out->count = (uint64_t)(to - out->weights);
    return status;
}

static int train(int rank, int size, void *context)
{
    (void)size;
    job mine = *(job *)context;
    outcome *other = rank ? calloc(1, sizeof *other) : NULL;
    if (rank) mine.outcome = other;
    RANK_CHECK(mine.outcome);
    const slc_training_watch watch = {.finished = keep_weights, .context = &mine};
    slc_training_result result;
    sluice_world *world = NULL;
    RANK_CHECK(!sluice_world_create(NULL, &world));
    RANK_CHECK(!slc_training_options_check(&mine.options));
    RANK_CHECK(!slc_training_run(world, &mine.options, &watch, &result));
    RANK_CHECK(result.step_count == mine.options.steps);
    mine.outcome->first_loss = result.course.points[0].loss;
    mine.outcome->evaluation_loss = result.evaluation_loss;
    mine.outcome->accuracy = result.accuracy;
    slc_training_result_free(&result);
    RANK_CHECK(!sluice_world_barrier(world));
    sluice_world_destroy(world);
    free(other);
    return 0;
}

static void set(slc_training_options *options, const char *name, const char *text)
{
    works(slc_training_option_set(options, name, text));
}

/* The gradients of the keys' biases are 0 but for rounding; with a small epsilon AdamW would make whole steps of that.
 */
static job make_job(const split *s, const char *model, const char *head, const char *data, outcome *out)
{
    job j = {.outcome = out};
    slc_training_options *o = &j.options;
    slc_training_options_init(o);
    set(o, "model", model);
    set(o, "head", head);
    set(o, "size", "nano");
    set(o, "data", data);
    set(o, "context", strcmp(model, "bert") ? "0" : "24");
    set(o, "dropout", strcmp(model, "bert") ? "0" : "0.1");
    set(o, "schedule", "one_ahead");
    set(o, "strategy", s->strategy);
    set(o, "lr", "0.001");
    set(o, "warmup", "0");
    set(o, "epsilon", "1e-4");
    o->steps = test_brief() ? 2 : 20;
    o->micro_batches = s->micro_batches;
    o->batch = SEQUENCES / (s->ranks * s->micro_batches);
    /* windows of text are drawn without end, so that only equal numbers can be compared */
    o->eval_batches = strcmp(model, "bert") ? EVALUATED : EVALUATED / (s->ranks * o->batch);
    return j;
}

static void compare(const char *model, const split *s, const outcome *got, const outcome *want)
{
    double apart = 0;
    assert_int_equal(got->count, want->count);
    for (uint64_t i = 0; i < want->count; i++) apart = fmax(apart, fabs((double)got->weights[i] - want->weights[i]));
    const bool equal_answers = isnan(want->accuracy) ? isnan(got->accuracy) : got->accuracy == want->accuracy;
    print_message("%s, %d x %d by %s: losses apart by %.1e, weights by %.1e, held-out losses by %.1e\n", model,
                  (int)s->ranks, (int)s->micro_batches, s->strategy, fabs(got->first_loss - want->first_loss), apart,
                  fabs(got->evaluation_loss - want->evaluation_loss));
    assert_true(fabs(got->first_loss - want->first_loss) < 1e-6);
    assert_true(apart < 1e-5);
    assert_true(fabs(got->evaluation_loss - want->evaluation_loss) < 1e-5);
    assert_true(equal_answers);
}

/* Returns the outcome of the first split, which the caller unmaps; those of the others are compared with it. */
static outcome *check_splits(const char *model, const char *head, const char *data)
{
    outcome *out = mmap(NULL, 2 * sizeof *out, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(out != MAP_FAILED);
    for (size_t i = 0; i < SPLITS; i++) {
        job j = make_job(&splits[i], model, head, data, &out[i > 0]);
        assert_int_equal(run_ranks((int)splits[i].ranks, train, &j, 100), 0);
        if (i) compare(model, &splits[i], &out[1], &out[0]);
    }
    return out;
}

static void let_go(outcome *out)
{
    munmap(out, 2 * sizeof *out);
}

/* ---- Data ---- */

static const char *write_text(void)
{
    enum { LETTERS = 6000 };
    static const char words[] = "each rank masks another number of the tokens that it has been given to guess; ";
    char text[LETTERS];
    for (int i = 0; i < LETTERS; i++) text[i] = words[(i + i / 500) % (int)(sizeof words - 1)];
    return write_file("text", text, sizeof text);
}

/* A tenth of them, 5, is held out, which is no multiple of any micro-batch but one. */
static const char *write_images(void)
{
    char text[IMAGES * (SIDE * SIDE + 1) * 4], *at = text;
    for (int n = 0; n < IMAGES; n++) {
        for (int i = 0; i < SIDE * SIDE; i++) at += sprintf(at, "%d,", (i * (n % 3 + 1) + n * 7 + i * i % 11) % 256);
        at += sprintf(at, "%d\n", n % 3);
    }
    return write_file("images.csv", text, (size_t)(at - text));
}

static void masked_tokens(void **state)
{
    (void)state;
    let_go(check_splits("bert", "tokens", write_text()));
}

static void masked_patches(void **state)
{
    (void)state;
    let_go(check_splits("beit", "tokens", write_images()));
}

static void images_once(void **state)
{
    (void)state;
    outcome *out = check_splits("vit", "classes", write_images());
    const double right = out->accuracy * (IMAGES / 10);
    assert_true(fabs(right - round(right)) < 1e-9);
    let_go(out);
}

int main(void)
{
#ifndef SLUICE_HAVE_DNNL
    print_message("SKIP: bench.train_run_test: built without oneDNN\n");
    return 0;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked_tokens),
        cmocka_unit_test(masked_patches),
        cmocka_unit_test(images_once),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
