/* Models on the device "cuda" next to the host: the same steps from the same weights, whose losses must agree;
 * repeated, they must be equal to the bit, and so must weights; memory must be what the plan says. Evaluation's logits
 * agree too. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/numbers/random.h"
#include "lib/device/device.h"
#include "lib/optim/optimizers.h"
#include "tests/support/base/folder.h"
#include "tests/support/seed.h"

#include <math.h>
#include <sluice/model.h>
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 20, BATCH = 2, LENGTH = 12, MICRO_BATCHES_MOST = 3 };

typedef struct {
    const char *family;
    sluice_model_head head;
    uint32_t micro_batches; /* with 3, memory of inputs is used a second time while the first may be in flight */
    double dropout;
    sluice_dtype precision;
    const char *optimizer; /* NULL: the default */
} job;

/* All micro-batches of the job, one after the other; steps take the same. The second has no target. */
typedef struct {
    uint64_t tokens_each, targets_each, pixels_each, patches_each;
    int32_t *tokens, *types, *targets;
    uint8_t *attention_mask, *masked_patches;
    float *pixels;
} data;

typedef struct {
    double losses[STEPS], evaluation;
    char weights[65];
    uint64_t logit_count;
    float *logits;
    uint64_t planned_bytes, peak_bytes;
} outcome;

static bool sees(const sluice_model_config *c)
{
    return c->image_size > 0;
}

static sluice_model_config config_of(const job *j)
{
    sluice_model_config c = SLUICE_INIT(sluice_model_config);
    works(sluice_model_config_named(j->family, "nano", &c));
    c.head = j->head;
    c.dropout = j->dropout;
    if (sees(&c) && c.head == SLUICE_HEAD_TOKENS) {
        c.mask_token = true;
        c.vocabulary = 67; /* no multiple of what rows of logits are padded to */
    } else if (c.head == SLUICE_HEAD_CLASSES) {
        c.classes = 10;
    }
    return c;
}

static void *array(uint64_t count, size_t bytes)
{
    void *memory = calloc(count + 1, bytes);
    assert_non_null(memory);
    return memory;
}

/* Draw i of a kind: from 0 to below `limit`. */
static int32_t draw(uint64_t kind, uint64_t i, uint32_t limit)
{
    return (int32_t)slc_random_below(test_seed(11), kind, i, limit);
}

static data make_data(const sluice_model_config *c)
{
    const uint32_t length = sees(c) ? 0 : LENGTH;
    const uint64_t rows = (uint64_t)BATCH * LENGTH, sequence = sluice_model_targets(c, length);
    const uint32_t answers = c->head == SLUICE_HEAD_CLASSES ? c->classes : c->vocabulary;
    data d = {.tokens_each = sees(c) ? 0 : rows, .targets_each = BATCH * sequence};
    if (sees(c)) {
        d.pixels_each = (uint64_t)BATCH * c->image_channels * c->image_size * c->image_size;
        d.patches_each = BATCH * (uint64_t)(sluice_model_tokens(c, 0) - 1);
    }
    d.tokens = array(MICRO_BATCHES_MOST * rows, sizeof *d.tokens);
    d.types = array(MICRO_BATCHES_MOST * rows, sizeof *d.types);
    d.attention_mask = array(MICRO_BATCHES_MOST * rows, 1);
    d.targets = array(MICRO_BATCHES_MOST * d.targets_each, sizeof *d.targets);
    d.pixels = array(MICRO_BATCHES_MOST * d.pixels_each, sizeof *d.pixels);
    d.masked_patches = array(MICRO_BATCHES_MOST * d.patches_each, 1);
    for (uint64_t i = 0; i < MICRO_BATCHES_MOST * d.tokens_each; i++) {
        d.tokens[i] = draw(0, i, i % 3 ? 7 : c->vocabulary); /* some occur often */
        d.types[i] = c->types ? draw(1, i, c->types) : 0;
        d.attention_mask[i] = i % LENGTH < LENGTH - 5;
    }
    for (uint64_t i = 0; i < MICRO_BATCHES_MOST * d.targets_each; i++)
        d.targets[i] = i / d.targets_each == 1 || (sequence > 1 && i % 4 == 1) ? -1 : draw(2, i, answers);
    slc_random_normal(test_seed(12), 0, 0, MICRO_BATCHES_MOST * d.pixels_each, d.pixels);
    for (uint64_t i = 0; i < MICRO_BATCHES_MOST * d.patches_each; i++) d.masked_patches[i] = draw(3, i, 3) == 0;
    return d;
}

static void free_data(data *d)
{
    free(d->tokens), free(d->types), free(d->targets), free(d->attention_mask), free(d->masked_patches),
        free(d->pixels);
}

static sluice_batch batch_of(const sluice_model_config *c, const data *d, uint32_t m)
{
    sluice_batch b = SLUICE_INIT(sluice_batch);
    b.targets = d->targets + m * d->targets_each;
    if (sees(c)) b.pixels = d->pixels + m * d->pixels_each;
    if (sees(c) && c->mask_token) b.masked_patches = d->masked_patches + m * d->patches_each;
    if (!sees(c)) b.tokens = d->tokens + m * d->tokens_each;
    if (c->types) b.types = d->types + m * d->tokens_each;
    if (c->family == SLUICE_BERT) b.attention_mask = d->attention_mask + m * d->tokens_each;
    return b;
}

/* ---- One run ---- */

/* The loss is the mean over the targets of the step. */
static double divisor_of(const job *j, const data *d)
{
    double targets = 0;
    for (uint64_t i = 0; i < j->micro_batches * d->targets_each; i++) targets += d->targets[i] >= 0;
    return targets / j->micro_batches;
}

static void train(sluice_runtime *rt, sluice_model *model, const job *j, const data *d, uint32_t steps, outcome *out)
{
    const sluice_model_config *c = sluice_model_get_config(model);
    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3);
    for (uint32_t step = 0; step < steps; step++) {
        works(sluice_step_begin(rt, &options));
        for (uint32_t m = 0; m < j->micro_batches; m++) {
            sluice_batch batch = batch_of(c, d, m);
            batch.loss_divisor = divisor_of(j, d);
            works(sluice_model_forward(model, &batch));
            works(sluice_model_backward(model, NULL));
        }
        works(sluice_step_end(rt, NULL));
        works(sluice_model_loss(model, &out->losses[step]));
    }
    works(sluice_runtime_sync(rt));
}

static void evaluate(sluice_model *model, const data *d, outcome *out)
{
    const sluice_model_config *c = sluice_model_get_config(model);
    const sluice_batch batch = batch_of(c, d, 0);
    out->logit_count = d->targets_each * (c->head == SLUICE_HEAD_CLASSES ? c->classes : c->vocabulary);
    out->logits = array(out->logit_count, sizeof *out->logits);
    works(sluice_model_evaluate(model, &batch, &out->evaluation, out->logits));
}

static outcome run_on(const char *device, const job *j, const sluice_model_config *c, const data *d, uint32_t steps)
{
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
    sluice_config config;
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    outcome out = {.evaluation = NAN};
    sluice_config_init(&config);
    config.device = device;
    config.schedule = "serial";
    config.strategy = "dp";
    config.micro_batches = j->micro_batches;
    config.precision = j->precision;
    if (j->optimizer) config.optimizer_name = j->optimizer;
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = sees(c) ? 0 : LENGTH, .dropout_seed = 3);
    works(sluice_world_create(NULL, &world));
    works(sluice_runtime_create(world, &config, &rt));
    works(sluice_model_create(rt, c, &options, &model));
    works(sluice_runtime_commit(rt));
    works(sluice_model_init(model, 5));
    train(rt, model, j, d, steps, &out);
    works(sluice_runtime_weights_sha256(rt, out.weights));
    evaluate(model, d, &out);
    works(sluice_runtime_memory(rt, &memory));
    out.planned_bytes = memory.planned_bytes;
    out.peak_bytes = memory.peak_bytes;
    sluice_runtime_destroy(rt);
    sluice_model_destroy(model); /* the order in which a program ends them is its own */
    sluice_world_destroy(world);
    return out;
}

/* ---- Comparisons ---- */

/* Rounding to bf16 moves a loss by more than the order of sums does. */
static void bf16_losses_agree(const job *j, const outcome *gpu, const outcome *host, uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++)
        if (!(fabs(gpu->losses[i] - host->losses[i]) <= 0.01))
            fail_msg("%s in bf16, loss of step %u: %.9g on cuda, %.9g on cpu", j->family, i + 1, gpu->losses[i],
                     host->losses[i]);
}

static void are_close(const char *what, double got, double want, double bar)
{
    if (!(fabs(got - want) <= bar * fabs(want)))
        fail_msg("%s: %.9g on cuda, %.9g on cpu: more than %g apart", what, got, want, bar);
}

static void losses_agree(const job *j, const outcome *gpu, const outcome *host, uint32_t steps)
{
    char what[64];
    for (uint32_t i = 0; i < steps; i++) {
        snprintf(what, sizeof what, "%s, loss of step %u", j->family, i + 1);
        are_close(what, gpu->losses[i], host->losses[i], i ? 1e-4 : 1e-6);
    }
    are_close("loss of evaluation", gpu->evaluation, host->evaluation, 1e-4);
}

static void logits_agree(const outcome *gpu, const outcome *host)
{
    double error = 0, size = 0;
    assert_int_equal(gpu->logit_count, host->logit_count);
    for (uint64_t i = 0; i < host->logit_count; i++) {
        const double difference = (double)gpu->logits[i] - (double)host->logits[i];
        error += difference * difference, size += (double)host->logits[i] * (double)host->logits[i];
    }
    if (!(sqrt(error) <= 1e-3 * sqrt(size))) fail_msg("logits: nRMSE %g", sqrt(error / size));
}

static const char *lacks_gpu; /* why there is none */

/* Under a sanitizer the tests take few steps: it sees in them what it can see, and the emulated GPU is slow under it.
 */
enum sanitizer { NONE, ADDRESS, THREAD };
#if defined(__SANITIZE_THREAD__)
static const enum sanitizer sanitizer = THREAD;
#elif defined(__SANITIZE_ADDRESS__)
static const enum sanitizer sanitizer = ADDRESS;
#else
static const enum sanitizer sanitizer = NONE;
#endif

static uint32_t steps_of(const job *j)
{
    const bool many = sanitizer == ADDRESS && !strcmp(j->family, "gpt2") && j->precision == SLUICE_FP32;
    if (j->optimizer) return sanitizer == NONE ? 5 : 2;
    return sanitizer == NONE ? STEPS : many ? 8 : 2;
}

static void repeats(const outcome *first, const job *j, const sluice_model_config *c, const data *d, uint32_t steps)
{
    outcome again = run_on("cuda", j, c, d, steps);
    assert_memory_equal(first->losses, again.losses, sizeof first->losses);
    assert_memory_equal(first->logits, again.logits, first->logit_count * sizeof *first->logits);
    assert_string_equal(first->weights, again.weights);
    free(again.logits);
}

static void trains_as_on_the_host(const job *j)
{
    if (lacks_gpu) {
        printf("SKIP: %s\n", lacks_gpu);
        skip();
    }
    const uint32_t steps = steps_of(j);
    const sluice_model_config c = config_of(j);
    data d = make_data(&c);
    outcome first = run_on("cuda", j, &c, &d, steps);
    assert_int_equal(first.peak_bytes, first.planned_bytes);
    if (sanitizer == THREAD) { /* which sees nothing in the host's run, and changes no result */
        free(first.logits);
        free_data(&d);
        return;
    }
    outcome host = run_on("cpu", j, &c, &d, steps);
    if (j->precision == SLUICE_BF16) {
        bf16_losses_agree(j, &first, &host, steps);
    } else {
        losses_agree(j, &first, &host, steps);
        logits_agree(&first, &host);
    }
    repeats(&first, j, &c, &d, steps);
    assert_int_equal(host.peak_bytes, host.planned_bytes);
    free(host.logits), free(first.logits);
    free_data(&d);
}

static void gpt2(void **state)
{
    (void)state;
    trains_as_on_the_host(&(job){"gpt2", SLUICE_HEAD_TOKENS, 3, 0.1, SLUICE_FP32, NULL});
}

static void bert(void **state)
{
    (void)state;
    trains_as_on_the_host(&(job){"bert", SLUICE_HEAD_TOKENS, 1, 0, SLUICE_FP32, NULL});
}

static void bert_with_classes(void **state)
{
    (void)state;
    trains_as_on_the_host(&(job){"bert", SLUICE_HEAD_CLASSES, 1, 0.1, SLUICE_FP32, NULL});
}

static void vit(void **state)
{
    (void)state;
    trains_as_on_the_host(&(job){"vit", SLUICE_HEAD_CLASSES, 2, 0, SLUICE_FP32, NULL});
}

static void beit(void **state)
{
    (void)state;
    trains_as_on_the_host(&(job){"beit", SLUICE_HEAD_CLASSES, 1, 0, SLUICE_FP32, NULL});
}

static void beit_with_masked_patches(void **state)
{
    (void)state;
    trains_as_on_the_host(&(job){"beit", SLUICE_HEAD_TOKENS, 3, 0.1, SLUICE_FP32, NULL});
}

static void bf16(void **state)
{
    (void)state;
    trains_as_on_the_host(&(job){"gpt2", SLUICE_HEAD_TOKENS, 1, 0, SLUICE_BF16, NULL});
    trains_as_on_the_host(&(job){"vit", SLUICE_HEAD_CLASSES, 1, 0, SLUICE_BF16, NULL});
}

static void other_optimizers(void **state)
{
    (void)state;
    for (size_t i = 1; slc_optimizer_at(i); i++) {
        if (!slc_optimizer_at(i)->on_gpu) continue;
        const char *name = slc_optimizer_at(i)->name;
        trains_as_on_the_host(&(job){"gpt2", SLUICE_HEAD_TOKENS, 1, 0, SLUICE_FP32, name});
    }
}

int main(void)
{
    slc_device *device = NULL;
    const char *what = slc_device_describe("cuda");
    char error[512];
    if (!what) {
        lacks_gpu = "this build lacks the device cuda";
    } else if (slc_device_open("cuda", &device)) {
        (void)snprintf(error, sizeof error, "%s", sluice_last_error());
        lacks_gpu = error;
    } else {
        printf("models on %s\n", what);
    }
    slc_device_close(device);
    const struct CMUnitTest tests[] = {cmocka_unit_test(gpt2), cmocka_unit_test(bert),
                                       cmocka_unit_test(beit_with_masked_patches), cmocka_unit_test(bf16),
                                       /* The tests from here on run the streams and kernels of those above again. */
                                       cmocka_unit_test(bert_with_classes), cmocka_unit_test(vit),
                                       cmocka_unit_test(beit), cmocka_unit_test(other_optimizers)};
    if (sanitizer == THREAD) {
        const struct CMUnitTest fewer[] = {tests[0], tests[2]}; /* micro-batches that use memory again */
        return cmocka_run_group_tests(fewer, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
