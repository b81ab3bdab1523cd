/* A sequence that goes through a model a few tokens at a time must have the logits of the whole sequence, at every
 * position: for odd sizes, both types, one and two threads, any cut into calls. */
#include "tests/support/model/lone_model.h"

#include "lib/base/numbers/random.h"
#include "tests/support/seed.h"

#include <math.h>

typedef struct {
    uint32_t layers, channels, heads, context, vocabulary;
    uint32_t room, pass; /* of the cache; the most tokens of a pass */
    uint32_t calls[6];   /* tokens of each call; the last that is not 0 is repeated up to the end */
    sluice_dtype precision;
    uint32_t threads;
    double most; /* distance between logits, in units of the largest */
} trial;

static sluice_model_config config_of(const trial *t)
{
    return SLUICE_INIT(sluice_model_config, .family = SLUICE_GPT2, .layers = t->layers, .channels = t->channels,
                       .heads = t->heads, .hidden = 3 * t->channels + 1, .context = t->context,
                       .vocabulary = t->vocabulary, .epsilon = 1e-5, .gelu_tanh = true);
}

static test_model create(const trial *t, uint32_t length, uint32_t room, bool evaluates_only)
{
    const sluice_model_config config = config_of(t);
    test_model m = {0};
    sluice_config runtime;
    sluice_config_init(&runtime);
    runtime.strategy = "dp";
    runtime.schedule = "serial";
    runtime.threads = t->threads;
    runtime.precision = runtime.wire = t->precision;
    works(sluice_world_create(NULL, &m.world));
    works(sluice_runtime_create(m.world, &runtime, &m.rt));
    const sluice_model_options options = SLUICE_INIT(sluice_model_options, .batch = 1, .length = length,
                                                     .evaluates_only = evaluates_only, .cache_tokens = room);
    works(sluice_model_create(m.rt, &config, &options, &m.model));
    works(sluice_runtime_commit(m.rt));
    works(sluice_model_init(m.model, 3));
    return m;
}

/* Returns the logits of the whole sequence, by a model that could be trained. */
static float *whole(const trial *t, const int32_t *tokens, bool evaluates_only)
{
    test_model m = create(t, t->room, 0, evaluates_only);
    float *logits = malloc((size_t)t->room * t->vocabulary * sizeof *logits);
    double loss;
    assert_non_null(logits);
    works(sluice_model_evaluate(m.model, &SLUICE_INIT(sluice_batch, .tokens = tokens), &loss, logits));
    test_model_destroy(&m);
    return logits;
}

static int32_t *random_tokens(const trial *t)
{
    int32_t *tokens = malloc(t->room * sizeof *tokens);
    assert_non_null(tokens);
    for (uint32_t i = 0; i < t->room; i++) tokens[i] = (int32_t)slc_random_below(test_seed(5), 0, i, t->vocabulary);
    return tokens;
}

static double distance(const float *x, const float *y, uint32_t count)
{
    double most = 0, largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)x[i] - y[i]));
        largest = fmax(largest, fabs((double)y[i]));
        if (!isfinite(x[i])) return INFINITY;
    }
    return most / largest;
}

/* Goes through the sequence by the trial's calls, and returns the largest distance after a call. */
static double by_calls(const trial *t, test_model *m, const int32_t *tokens, const float *want)
{
    float *logits = malloc(t->vocabulary * sizeof *logits);
    double most = 0;
    uint32_t count = 0;
    assert_non_null(logits);
    for (uint32_t done = sluice_model_cached(m->model), call = 0; done < t->room; done += count, call++) {
        if (call < 6 && t->calls[call]) count = t->calls[call];
        if (count > t->room - done) count = t->room - done;
        works(sluice_model_extend(m->model, tokens + done, count, logits));
        assert_int_equal(sluice_model_cached(m->model), done + count);
        most = fmax(most, distance(logits, want + (size_t)(done + count - 1) * t->vocabulary, t->vocabulary));
    }
    free(logits);
    return most;
}

static const trial trials[] = {
    {2, 24, 3, 40, 31, 40, 40, {1}, SLUICE_FP32, 1, 1e-5},
    {2, 30, 3, 140, 33, 133, 130, {130, 1}, SLUICE_FP32, 1, 1e-5},
    {3, 48, 2, 300, 257, 290, 64, {200, 7, 1}, SLUICE_FP32, 2, 1e-5},
    {1, 7, 1, 20, 5, 19, 3, {5, 2}, SLUICE_FP32, 1, 1e-5},
    {2, 64, 2, 64, 100, 64, 16, {33, 1}, SLUICE_BF16, 1, 3e-2},
    {2, 33, 3, 150, 70, 140, 129, {129, 1}, SLUICE_BF16, 2, 3e-2},
};

static void the_logits_are_those_of_the_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const trial *t = &trials[i];
        int32_t *tokens = random_tokens(t);
        float *want = whole(t, tokens, false);
        test_model m = create(t, t->pass, t->room, false);
        double most = by_calls(t, &m, tokens, want);
        print_message("channels %u, %u tokens, %s: largest distance %g\n", t->channels, t->room,
                      sluice_dtype_name(t->precision), most);
        assert_true(most <= t->most);
        works(sluice_model_rewind(m.model, t->room / 2)); /* what is forgotten is computed again */
        assert_true(by_calls(t, &m, tokens, want) <= t->most);
        works(sluice_model_rewind(m.model, 0));
        assert_true(by_calls(t, &m, tokens, want) <= t->most);
        test_model_destroy(&m);
        free(want), free(tokens);
    }
}

/* A model that is not trained runs the operations of one that is: the logits of a model that is not trained have the
 * bits of one that could be. */
static void a_model_that_only_evaluates_has_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const trial *t = &trials[i];
        int32_t *tokens = random_tokens(t);
        float *want = whole(t, tokens, false), *got = whole(t, tokens, true);
        assert_memory_equal(got, want, (size_t)t->room * t->vocabulary * sizeof *got);
        free(got), free(want), free(tokens);
    }
}

static uint64_t planned(test_model *m)
{
    sluice_memory_report report = SLUICE_INIT(sluice_memory_report);
    works(sluice_runtime_memory(m->rt, &report));
    assert_true(report.peak_bytes <= report.planned_bytes);
    return report.planned_bytes;
}

static void the_budget_counts_the_cache_and_no_gradients(void **state)
{
    (void)state;
    const trial small = {2, 64, 4, 256, 50, 128, 1, {1}, SLUICE_FP32, 1, 0};
    trial large = small;
    large.room = 256;
    test_model trains = create(&small, 1, 0, false), evaluates = create(&small, 1, 0, true);
    test_model little = create(&small, 1, small.room, false), much = create(&large, 1, large.room, false);
    const sluice_model_config config = config_of(&small);
    const uint64_t values = sluice_model_param_count(&config) * 4;
    assert_true(planned(&trains) >= 4 * values);
    assert_true(planned(&trains) - planned(&evaluates) >= 3 * values);            /* gradients and two moments */
    assert_int_equal(planned(&much) - planned(&little), 2ull * 128 * 2 * 64 * 4); /* layers, tokens, K and V */
    test_model_destroy(&trains), test_model_destroy(&evaluates);
    test_model_destroy(&little), test_model_destroy(&much);
}

static void refused(sluice_status got, sluice_status want, const char *word)
{
    assert_int_equal(got, want);
    if (!strstr(sluice_last_error(), word)) fail_msg("\"%s\" lacks \"%s\"", sluice_last_error(), word);
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    const trial t = {1, 16, 2, 16, 20, 8, 4, {1}, SLUICE_FP32, 1, 0};
    int32_t tokens[9] = {0};
    float logits[20];
    double loss;
    test_model m = create(&t, t.pass, t.room, false), plain = create(&t, 4, 0, true);
    refused(sluice_model_extend(m.model, tokens, 0, NULL), SLUICE_ERR_ARGUMENT, "at least one token");
    refused(sluice_model_extend(m.model, tokens, 9, NULL), SLUICE_ERR_ARGUMENT, "cache's 8");
    works(sluice_model_extend(m.model, tokens, 5, NULL));
    refused(sluice_model_extend(m.model, tokens, 4, logits), SLUICE_ERR_ARGUMENT, "4 tokens after 5");
    tokens[1] = 20;
    refused(sluice_model_extend(m.model, tokens, 2, logits), SLUICE_ERR_ARGUMENT, "token 20 at 1");
    assert_int_equal(sluice_model_cached(m.model), 5);
    refused(sluice_model_rewind(m.model, 6), SLUICE_ERR_ARGUMENT, "holds 5");
    const sluice_batch batch = SLUICE_INIT(sluice_batch, .tokens = (int32_t[4]){0}, .targets = (int32_t[4]){0});
    refused(sluice_model_evaluate(m.model, &batch, &loss, NULL), SLUICE_ERR_UNSUPPORTED, "sluice_model_extend");
    refused(sluice_model_forward(m.model, &batch), SLUICE_ERR_UNSUPPORTED, "cannot be trained");
    refused(sluice_model_forward(plain.model, &batch), SLUICE_ERR_UNSUPPORTED, "cannot be trained");
    refused(sluice_model_extend(plain.model, tokens, 1, NULL), SLUICE_ERR_UNSUPPORTED, "cache_tokens");
    refused(sluice_model_rewind(plain.model, 0), SLUICE_ERR_UNSUPPORTED, "no cache");
    assert_int_equal(sluice_model_cached(plain.model), 0);
    works(sluice_model_extend(m.model, (int32_t[3]){1, 2, 3}, 3, logits)); /* nothing has failed */
    test_model_destroy(&m), test_model_destroy(&plain);
}

static void refused_options(const sluice_model_config *config, sluice_model_options options, const char *word)
{
    sluice_world *world;
    sluice_runtime *rt;
    sluice_config runtime;
    sluice_model *model;
    sluice_config_init(&runtime);
    works(sluice_world_create(NULL, &world));
    works(sluice_runtime_create(world, &runtime, &rt));
    refused(sluice_model_create(rt, config, &options, &model), SLUICE_ERR_ARGUMENT, word);
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
}

static void caches_that_cannot_be_are_refused(void **state)
{
    (void)state;
    sluice_model_config gpt2 = SLUICE_INIT(sluice_model_config), bert = gpt2, vit = gpt2;
    works(sluice_model_config_named("gpt2", "nano", &gpt2));
    works(sluice_model_config_named("bert", "nano", &bert));
    works(sluice_model_config_named("vit", "nano", &vit));
    const sluice_model_options good = SLUICE_INIT(sluice_model_options, .batch = 1, .length = 4, .cache_tokens = 8);
    sluice_model_options two = good, shorter = good, longer = good, images = good;
    two.batch = 2;
    shorter.cache_tokens = 3;
    longer.cache_tokens = gpt2.context + 1;
    images.length = 0;
    refused_options(&gpt2, two, "one sequence");
    refused_options(&gpt2, shorter, "no longer than the cache");
    refused_options(&gpt2, longer, "context");
    refused_options(&bert, good, "bert: a cache");
    refused_options(&vit, images, "vit: a cache");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_logits_are_those_of_the_whole),
        cmocka_unit_test(a_model_that_only_evaluates_has_the_same_bits),
        cmocka_unit_test(the_budget_counts_the_cache_and_no_gradients),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(caches_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
