/* GPT-2 on its runtime against the float64 reference: losses, logits and every gradient must agree, also for shapes
 * that cut the head's chunks, several micro-batches and ignored targets; bad arguments must be refused. */
#include "tests/support/model/lone_model.h"

#include "lib/base/numbers/random.h"
#include "tests/support/model/gpt2_ref.h"
#include "lib/model/params.h"
#include "tests/support/seed.h"

#include <math.h>

#define GPT2(layers_, channels_, heads_, context_, vocabulary_)                                                        \
    {                                                                                                                  \
        .struct_size = sizeof(sluice_model_config), .family = SLUICE_GPT2, .layers = layers_, .channels = channels_,   \
        .heads = heads_, .hidden = 4 * (channels_), .context = context_, .vocabulary = vocabulary_, .epsilon = 1e-5,   \
        .gelu_tanh = true                                                                                              \
    }

typedef struct {
    sluice_model_config config;
    uint32_t batch, length, micro_batches, threads;
} shape;

typedef struct {
    int32_t *tokens, *targets; /* tokens of all micro-batches */
    uint64_t rows;             /* rows of one micro-batch */
} text;

static sluice_status forward(test_model *t, const int32_t *tokens, const int32_t *targets)
{
    return sluice_model_forward(t->model, &SLUICE_INIT(sluice_batch, .tokens = tokens, .targets = targets));
}

static sluice_status evaluate(test_model *t, const int32_t *tokens, const int32_t *targets, double *loss, float *logits)
{
    return sluice_model_evaluate(t->model, &SLUICE_INIT(sluice_batch, .tokens = tokens, .targets = targets), loss,
                                 logits);
}

/* Some rows have no target (-1). Row 0 always has one, because nothing can be compared with a loss of 0. */
static text random_text(const shape *s)
{
    text t = {.rows = (uint64_t)s->batch * s->length};
    uint64_t count = t.rows * s->micro_batches;
    t.tokens = malloc(count * sizeof *t.tokens);
    t.targets = malloc(count * sizeof *t.targets);
    assert_true(t.tokens && t.targets);
    for (uint64_t i = 0; i < count; i++) {
        t.tokens[i] = (int32_t)slc_random_below(test_seed(1), 0, i, s->config.vocabulary);
        t.targets[i] = (int32_t)slc_random_below(test_seed(1), 1, i, s->config.vocabulary + (i > 0)) - (i > 0);
    }
    return t;
}

static void free_text(text *t)
{
    free(t->targets);
    free(t->tokens);
}

/* Writes random values to the runtime and returns the same for the reference: norms near 1, all else with deviation
 * 0.15. */
static double *random_values(const shape *s, sluice_runtime *rt)
{
    uint64_t total = sluice_model_param_count(&s->config), first = 0;
    double *values = malloc(total * sizeof *values);
    float *piece = malloc(total * sizeof *piece);
    assert_true(values && piece);
    for (uint32_t i = 0; i < sluice_runtime_param_count(rt); i++) {
        slc_param_info info;
        assert_true(slc_param_info_at(&s->config, i, &info));
        slc_random_normal(test_seed(2), i, 0, info.count, piece);
        for (uint64_t k = 0; k < info.count; k++) {
            piece[k] = piece[k] * 0.15f + (info.first == SLC_FIRST_ONE ? 1 : 0);
            values[first + k] = piece[k];
        }
        works(sluice_param_write(sluice_runtime_param(rt, i), 0, info.count, piece));
        first += info.count;
    }
    free(piece);
    return values;
}

/* Adds the reference's gradients over all micro-batches, scaled as the runtime scales: 1 / micro-batches. */
static double reference_gradient(const shape *s, const text *t, const double *values, double *mean)
{
    uint64_t total = sluice_model_param_count(&s->config);
    double *one = malloc(total * sizeof *one), sum = 0;
    assert_non_null(one);
    memset(mean, 0, total * sizeof *mean);
    for (uint32_t m = 0; m < s->micro_batches; m++) {
        double loss = 0;
        works(slc_gpt2_ref(&s->config, s->batch, s->length, t->tokens + m * t->rows, t->targets + m * t->rows, values,
                           &loss, NULL, one));
        for (uint64_t i = 0; i < total; i++) mean[i] += one[i] / s->micro_batches;
        sum += loss;
    }
    free(one);
    return sum / s->micro_batches;
}

static double train_step(const shape *s, const text *t, test_model *model)
{
    const sluice_step_options options = SLUICE_INIT(sluice_step_options);
    double sum = 0;
    works(sluice_step_begin(model->rt, &options));
    for (uint32_t m = 0; m < s->micro_batches; m++) {
        double loss = 0;
        works(forward(model, t->tokens + m * t->rows, t->targets + m * t->rows));
        works(sluice_model_backward(model->model, &loss));
        sum += loss;
    }
    works(sluice_step_end(model->rt, NULL));
    works(sluice_runtime_sync(model->rt));
    return sum / s->micro_batches;
}

static void compare_gradients(const shape *s, sluice_runtime *rt, const double *truth)
{
    uint64_t first = 0;
    double worst = 0;
    for (uint32_t i = 0; i < sluice_runtime_param_count(rt); i++) {
        sluice_param *param = sluice_runtime_param(rt, i);
        uint64_t count = sluice_param_count(param);
        slc_param_info info;
        assert_true(slc_param_info_at(&s->config, i, &info));
        assert_int_equal(count, info.count);
        float *gradient = read_gradient(param);
        double error = relative_error(gradient, truth + first, count);
        if (error > 1e-5) fail_msg("gradient of %s: relative error %g", sluice_param_name(param), error);
        if (error > worst) worst = error;
        free(gradient);
        first += count;
    }
    print_message("%u x %u tokens, %u micro-batches: largest relative error of a gradient %g\n", s->batch, s->length,
                  s->micro_batches, worst);
}

static void compare(const shape *s, sluice_recompute recompute)
{
    text t = random_text(s);
    test_model model = test_model_create(&s->config, s->batch, s->length, s->micro_batches, s->threads, recompute);
    double *values = random_values(s, model.rt);
    double *truth = malloc(sluice_model_param_count(&s->config) * sizeof *truth);
    assert_non_null(truth);
    double expected = reference_gradient(s, &t, values, truth);
    for (int step = 0; step < 2; step++) { /* the second step shows that nothing of the first is left */
        assert_true(fabs(train_step(s, &t, &model) - expected) < 1e-5 * expected);
        compare_gradients(s, model.rt, truth);
    }
    test_model_destroy(&model);
    free(truth);
    free(values);
    free_text(&t);
}

static void gradients_agree(void **state)
{
    (void)state;
    const shape shapes[] = {
        {GPT2(2, 48, 3, 32, 67), 3, 20, 1, 1},
        {GPT2(1, 16, 2, 8, 19), 1, 1, 1, 1},
        {GPT2(2, 32, 2, 64, 33), 5, 61, 3, 1},
        {GPT2(1, 64, 1, 256, 50), 2, 256, 2, 2},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        compare(&shapes[i], i % 2 ? SLUICE_RECOMPUTE_NONE : SLUICE_RECOMPUTE_ALL);
}

/* Returns all gradients after two steps, and the bytes that the plan needs. The caller frees the gradients. */
static float *gradients_of(const shape *s, const text *t, sluice_recompute recompute, uint64_t *planned_bytes)
{
    test_model model = test_model_create(&s->config, s->batch, s->length, s->micro_batches, s->threads, recompute);
    free(random_values(s, model.rt));
    for (int step = 0; step < 2; step++) train_step(s, t, &model);
    float *all = malloc(sluice_model_param_count(&s->config) * sizeof *all), *to = all;
    assert_non_null(all);
    for (uint32_t i = 0; i < sluice_runtime_param_count(model.rt); i++) {
        sluice_param *param = sluice_runtime_param(model.rt, i);
        works(sluice_param_state_read(param, "gradient", 0, sluice_param_count(param), to));
        to += sluice_param_count(param);
    }
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    works(sluice_runtime_memory(model.rt, &memory));
    *planned_bytes = memory.planned_bytes;
    test_model_destroy(&model);
    return all;
}

static void recomputing_changes_no_bit(void **state)
{
    (void)state;
    const shape s = {GPT2(4, 48, 3, 64, 67), 3, 50, 2, 1};
    text t = random_text(&s);
    uint64_t kept_bytes, again_bytes, layer = (uint64_t)s.batch * s.length * s.config.channels * 9 * sizeof(float);
    float *kept = gradients_of(&s, &t, SLUICE_RECOMPUTE_NONE, &kept_bytes),
          *again = gradients_of(&s, &t, SLUICE_RECOMPUTE_ALL, &again_bytes);
    assert_memory_equal(kept, again, sluice_model_param_count(&s.config) * sizeof *kept);
    /* Only one of the four layers may hold its activations at a time. */
    assert_true(again_bytes + 2 * layer < kept_bytes);
    free(kept);
    free(again);
    free_text(&t);
}

static void evaluation_agrees(void **state)
{
    (void)state;
    const shape s = {GPT2(3, 32, 4, 100, 41), 3, 99, 1, 1};
    text t = random_text(&s);
    test_model model = test_model_create(&s.config, s.batch, s.length, 1, s.threads, SLUICE_RECOMPUTE_NONE);
    double *values = random_values(&s, model.rt), expected = 0, loss = 0;
    uint64_t count = t.rows * s.config.vocabulary;
    double *truth = malloc(count * sizeof *truth);
    float *logits = malloc(count * sizeof *logits);
    assert_true(truth && logits);
    works(slc_gpt2_ref(&s.config, s.batch, s.length, t.tokens, t.targets, values, &expected, truth, NULL));
    works(evaluate(&model, t.tokens, t.targets, &loss, logits));
    assert_true(fabs(loss - expected) < 1e-5 * expected);
    assert_true(relative_error(logits, truth, count) < 1e-5);
    works(evaluate(&model, t.tokens, t.targets, &loss, NULL));
    assert_true(fabs(loss - expected) < 1e-5 * expected);
    test_model_destroy(&model);
    free(logits);
    free(truth);
    free(values);
    free_text(&t);
}

static void first_values_are_gpt2s(void **state)
{
    (void)state;
    sluice_model_config config = GPT2(2, 64, 4, 128, 256);
    test_model t = test_model_create(&config, 1, 8, 1, 1, SLUICE_RECOMPUTE_NONE);
    works(sluice_model_init(t.model, 42));
    for (uint32_t i = 0; i < sluice_runtime_param_count(t.rt); i++) {
        slc_param_info info;
        assert_true(slc_param_info_at(&config, i, &info));
        float *value = malloc(info.count * sizeof *value);
        assert_non_null(value);
        works(sluice_param_read(sluice_runtime_param(t.rt, i), 0, info.count, value));
        double sum = 0, square = 0;
        for (uint64_t k = 0; k < info.count; k++) {
            sum += value[k];
            square += (double)value[k] * value[k];
        }
        double count = (double)info.count, deviation = info.first == SLC_FIRST_RESIDUAL ? 0.01 : 0.02;
        if (info.first == SLC_FIRST_ZERO)
            assert_true(square == 0);
        else if (info.first == SLC_FIRST_ONE)
            assert_true(sum == count && square == count);
        else
            assert_true(fabs(sqrt(square / count) / deviation - 1) < 6 / sqrt(2 * count));
        free(value);
    }
    test_model_destroy(&t);
}

static void refused(sluice_runtime *rt, sluice_model_config config, uint32_t batch, uint32_t tokens, const char *why)
{
    sluice_model *model = NULL;
    const sluice_model_options options = SLUICE_INIT(sluice_model_options, .batch = batch, .length = tokens);
    assert_int_equal(sluice_model_create(rt, &config, &options, &model), SLUICE_ERR_ARGUMENT);
    assert_null(model);
    assert_non_null(strstr(sluice_last_error(), why));
}

static void bad_shapes_are_refused(void **state)
{
    (void)state;
    sluice_world *world = NULL;
    sluice_runtime *rt = NULL;
    sluice_config config;
    sluice_config_init(&config);
    works(sluice_world_create(NULL, &world));
    works(sluice_runtime_create(world, &config, &rt));
    const sluice_model_config good = GPT2(1, 16, 2, 8, 16);
    sluice_model_config bad = good;
    bad.heads = 3;
    refused(rt, bad, 1, 8, "heads");
    refused(rt, good, 1, 9, "context");
    refused(rt, good, 0, 8, "token");
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
}

static sluice_status stop_at_third(void *context)
{
    int *calls = context;
    return ++*calls == 3 ? SLUICE_ERR_INTERRUPTED : SLUICE_OK;
}

static void a_bad_batch_and_a_stop_are_passed_on(void **state)
{
    (void)state;
    sluice_model_config config = GPT2(2, 16, 2, 8, 16);
    test_model t = test_model_create(&config, 1, 4, 1, 1, SLUICE_RECOMPUTE_NONE);
    works(sluice_model_init(t.model, 1));
    const int32_t good[4] = {0, 1, 2, 3}, high[4] = {0, 1, 16, 3}, none[4] = {-1, -1, -1, -1};
    double loss = 0;
    assert_int_equal(evaluate(&t, high, good, &loss, NULL), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "16"));
    assert_int_equal(evaluate(&t, good, high, &loss, NULL), SLUICE_ERR_ARGUMENT);
    works(evaluate(&t, good, none, &loss, NULL));
    assert_true(isnan(loss));
    const double divisors[] = {-1, NAN, INFINITY, 1e300, 1e-300};
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++) {
        const sluice_batch bad =
            SLUICE_INIT(sluice_batch, .tokens = good, .targets = good, .loss_divisor = divisors[i]);
        assert_int_equal(sluice_model_evaluate(t.model, &bad, &loss, NULL), SLUICE_ERR_ARGUMENT);
        assert_non_null(strstr(sluice_last_error(), "loss_divisor"));
    }
    works(evaluate(&t, good, good, &loss, NULL)); /* the refusals above came before anything began */
    assert_true(fabs(loss - log(16)) < 0.2);

    int calls = 0;
    const sluice_step_options options = SLUICE_INIT(sluice_step_options);
    sluice_model_check(t.model, stop_at_third, &calls);
    works(sluice_step_begin(t.rt, &options));
    assert_int_equal(forward(&t, good, good), SLUICE_ERR_INTERRUPTED);
    assert_string_equal(sluice_last_error(), "the program's check: returned interrupted (-13)");
    assert_int_equal(calls, 3);
    test_model_destroy(&t);
}

/* A step of which nothing is asked leaves a gradient of zeros, and its loss is 0, whatever was in memory before. */
static void no_target_adds_zero(void **state)
{
    (void)state;
    const shape s = {GPT2(2, 16, 2, 8, 31), 2, 5, 2, 1};
    text t = random_text(&s);
    test_model model =
        test_model_create(&s.config, s.batch, s.length, s.micro_batches, s.threads, SLUICE_RECOMPUTE_NONE);
    free(random_values(&s, model.rt));
    assert_true(train_step(&s, &t, &model) > 0);
    for (uint64_t i = 0; i < t.rows * s.micro_batches; i++) t.targets[i] = -1;
    assert_true(train_step(&s, &t, &model) == 0);
    for (uint32_t i = 0; i < sluice_runtime_param_count(model.rt); i++) {
        sluice_param *param = sluice_runtime_param(model.rt, i);
        float *gradient = read_gradient(param);
        for (uint64_t k = 0; k < sluice_param_count(param); k++) assert_true(gradient[k] == 0);
        free(gradient);
    }
    const sluice_batch batch = SLUICE_INIT(sluice_batch, .tokens = t.tokens, .targets = t.targets, .loss_divisor = 3);
    double loss;
    t.targets[0] = 1; /* whose loss is in memory when nothing is asked */
    works(sluice_model_evaluate(model.model, &batch, &loss, NULL));
    assert_true(loss > 0);
    t.targets[0] = -1;
    works(sluice_model_evaluate(model.model, &batch, &loss, NULL));
    assert_true(loss == 0);
    test_model_destroy(&model);
    free_text(&t);
}

/* A forward where a backward must come is refused, and the micro-batch that runs keeps its targets. */
static void a_forward_out_of_place_changes_nothing(void **state)
{
    (void)state;
    const shape s = {GPT2(1, 16, 2, 8, 32), 2, 8, 1, 1};
    text t = random_text(&s), other = random_text(&s);
    test_model model = test_model_create(&s.config, s.batch, s.length, 1, 1, SLUICE_RECOMPUTE_NONE);
    double loss = 0;
    free(random_values(&s, model.rt));
    for (uint64_t i = 0; i < t.rows; i++) other.targets[i] = (t.targets[i] + 1) % 32;
    const double alone = train_step(&s, &t, &model);
    const sluice_step_options options = SLUICE_INIT(sluice_step_options);
    works(sluice_step_begin(model.rt, &options));
    works(forward(&model, t.tokens, t.targets));
    assert_int_equal(forward(&model, other.tokens, other.targets), SLUICE_ERR_ORDER);
    works(sluice_model_backward(model.model, &loss));
    assert_true(loss == alone);
    works(sluice_step_end(model.rt, NULL));
    works(sluice_model_loss(model.model, &loss));
    assert_true(loss == alone);
    test_model_destroy(&model);
    free_text(&t);
    free_text(&other);
}

/* Runs a micro-batch without waiting for its loss, with arrays that the caller uses for something else as soon as
 * sluice_model_forward has returned. */
static void run_and_overwrite(test_model *model, const text *t, uint32_t micro_batch)
{
    const uint64_t bytes = t->rows * sizeof *t->tokens;
    int32_t *tokens = malloc(bytes), *targets = malloc(bytes);
    double loss;
    assert_true(tokens && targets);
    memcpy(tokens, t->tokens + micro_batch * t->rows, bytes);
    memcpy(targets, t->targets + micro_batch * t->rows, bytes);
    works(forward(model, tokens, targets));
    memset(tokens, 0xff, bytes);
    memset(targets, 0, bytes);
    assert_int_equal(sluice_model_loss(model->model, &loss), SLUICE_ERR_ORDER);
    works(sluice_model_backward(model->model, NULL));
    free(targets);
    free(tokens);
}

static double loss_of(test_model *model)
{
    double loss = NAN;
    works(sluice_model_loss(model->model, &loss));
    return loss;
}

static void the_loss_of_a_step_is_the_mean_of_its_micro_batches(void **state)
{
    (void)state;
    const shape s = {GPT2(1, 16, 2, 8, 31), 2, 5, 3, 1};
    const sluice_step_options options = SLUICE_INIT(sluice_step_options);
    text t = random_text(&s);
    test_model model =
        test_model_create(&s.config, s.batch, s.length, s.micro_batches, s.threads, SLUICE_RECOMPUTE_NONE);
    double loss, each[3], *values = random_values(&s, model.rt);
    assert_int_equal(sluice_model_loss(model.model, &loss), SLUICE_ERR_ORDER);
    const double mean = train_step(&s, &t, &model);
    assert_true(loss_of(&model) == mean);
    for (uint32_t step = 0; step < 2; step++) {
        works(sluice_step_begin(model.rt, &options));
        for (uint32_t m = 0; m < s.micro_batches; m++) run_and_overwrite(&model, &t, m);
        assert_true(loss_of(&model) == mean);
        works(sluice_step_end(model.rt, NULL));
        assert_true(loss_of(&model) == mean);
        works(evaluate(&model, t.tokens, t.targets, &loss, NULL));
        assert_true(loss_of(&model) == mean);
    }
    /* asked for behind each micro-batch, it is that one's */
    works(sluice_step_begin(model.rt, &options));
    for (uint32_t m = 0; m < s.micro_batches; m++) {
        run_and_overwrite(&model, &t, m);
        each[m] = loss_of(&model);
    }
    assert_true((each[0] + each[1] + each[2]) / 3 == mean);
    works(sluice_step_end(model.rt, NULL));
    test_model_destroy(&model);
    free(values);
    free_text(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_agree),
        cmocka_unit_test(recomputing_changes_no_bit),
        cmocka_unit_test(evaluation_agrees),
        cmocka_unit_test(first_values_are_gpt2s),
        cmocka_unit_test(bad_shapes_are_refused),
        cmocka_unit_test(a_bad_batch_and_a_stop_are_passed_on),
        cmocka_unit_test(no_target_adds_zero),
        cmocka_unit_test(a_forward_out_of_place_changes_nothing),
        cmocka_unit_test(the_loss_of_a_step_is_the_mean_of_its_micro_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
