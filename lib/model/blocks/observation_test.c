/* An observed model must say of its blocks what float64 says of their inputs and outputs, for every row of the
 * last micro-batch; observing changes no weight, with recomputation and in bf16 too; the extent of a state is that of
 * its elements. */
#include "tests/support/model/lone_model.h"

#include "lib/base/numbers/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, LENGTH = 8, CHANNELS = 32, LAYERS = 3, VOCABULARY = 61, MICRO_BATCHES = 2 };

static const sluice_model_config gpt2 = {.struct_size = sizeof gpt2,
                                         .family = SLUICE_GPT2,
                                         .layers = LAYERS,
                                         .channels = CHANNELS,
                                         .heads = 2,
                                         .hidden = 64,
                                         .vocabulary = VOCABULARY,
                                         .context = LENGTH,
                                         .epsilon = 1e-5,
                                         .gelu_tanh = true};

static test_model create(const sluice_model_config *c, sluice_dtype precision, sluice_recompute recompute, bool observe)
{
    sluice_config config;
    sluice_config_init(&config);
    config.schedule = "serial";
    config.precision = precision;
    config.recompute = recompute;
    config.micro_batches = MICRO_BATCHES;
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = LENGTH, .dropout_seed = 3, .observe = observe);
    const test_model t = test_model_open(&config, c, &options);
    works(sluice_model_init(t.model, 7));
    return t;
}

static sluice_batch batch_of(int32_t tokens[BATCH * LENGTH], uint64_t number)
{
    for (uint32_t i = 0; i < BATCH * LENGTH; i++) tokens[i] = (int32_t)slc_random_below(5, number, i, VOCABULARY);
    return SLUICE_INIT(sluice_batch, .tokens = tokens, .targets = tokens);
}

static void run_step(test_model *t, uint64_t number)
{
    int32_t tokens[BATCH * LENGTH];
    works(sluice_step_begin(t->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-2)));
    for (uint64_t m = 0; m < MICRO_BATCHES; m++) {
        const sluice_batch batch = batch_of(tokens, number * MICRO_BATCHES + m);
        works(sluice_model_forward(t->model, &batch));
        works(sluice_model_backward(t->model, NULL));
    }
    works(sluice_step_end(t->rt, NULL));
}

/* ---- Figures ---- */

static sluice_param *param_named(const test_model *t, const char *name)
{
    for (uint32_t i = 0; i < sluice_runtime_param_count(t->rt); i++)
        if (!strcmp(sluice_param_name(sluice_runtime_param(t->rt, i)), name)) return sluice_runtime_param(t->rt, i);
    fail_msg("there is no %s", name);
    return NULL;
}

static float *read_param(const test_model *t, const char *name)
{
    sluice_param *param = param_named(t, name);
    float *values = malloc(sluice_param_count(param) * sizeof *values);
    assert_non_null(values);
    works(sluice_param_read(param, 0, sluice_param_count(param), values));
    return values;
}

/* Lets each branch of a block add its bias alone, and adds both to the rows. */
static void make_plain(const test_model *t, uint32_t block, double bias[CHANNELS])
{
    static const char *const branches[] = {"attn.c_proj", "mlp.c_proj"};
    memset(bias, 0, CHANNELS * sizeof *bias);
    for (int b = 0; b < 2; b++) {
        char name[64];
        float values[CHANNELS];
        snprintf(name, sizeof name, "h.%u.%s.weight", block, branches[b]);
        sluice_param *weight = param_named(t, name);
        float *zeros = calloc(sluice_param_count(weight), sizeof *zeros);
        assert_non_null(zeros);
        works(sluice_param_write(weight, 0, sluice_param_count(weight), zeros));
        free(zeros);
        for (uint32_t c = 0; c < CHANNELS; c++) {
            values[c] = (float)slc_random_below(9, 2 * block + (uint64_t)b, c, 1000) / 20000.0f - 0.03f;
            bias[c] += values[c];
        }
        snprintf(name, sizeof name, "h.%u.%s.bias", block, branches[b]);
        works(sluice_param_write(param_named(t, name), 0, CHANNELS, values));
    }
}

/* Moves the rows through a block; the means of both figures over all of them. */
static void move_rows(double rows[BATCH * LENGTH][CHANNELS], const double bias[CHANNELS], double *ratio, double *cosine)
{
    *ratio = *cosine = 0;
    for (uint32_t r = 0; r < BATCH * LENGTH; r++) {
        double xx = 0, yy = 0, xy = 0;
        for (uint32_t c = 0; c < CHANNELS; c++) {
            const double x = rows[r][c], y = x + bias[c];
            xx += x * x, yy += y * y, xy += x * y;
            rows[r][c] = y;
        }
        *ratio += sqrt(yy / xx) / (BATCH * LENGTH);
        *cosine += xy / sqrt(xx * yy) / (BATCH * LENGTH);
    }
}

static void figures_are_those_of_the_rows(void **state)
{
    (void)state;
    test_model t = create(&gpt2, SLUICE_FP32, SLUICE_RECOMPUTE_NONE, true);
    float *table = read_param(&t, "embed.wte.weight"), *positions = read_param(&t, "embed.wpe.weight");
    double bias[LAYERS][CHANNELS], rows[BATCH * LENGTH][CHANNELS], ratio, cosine, wanted[2];
    int32_t tokens[BATCH * LENGTH];
    for (uint32_t i = 0; i < LAYERS; i++) make_plain(&t, i, bias[i]);
    works(sluice_model_observed(t.model, 0, &ratio, &cosine));
    assert_true(isnan(ratio) && isnan(cosine)); /* nothing was observed */
    works(sluice_model_observe(t.model, true));
    run_step(&t, 1);
    batch_of(tokens, MICRO_BATCHES + MICRO_BATCHES - 1); /* the last one */
    for (uint32_t r = 0; r < BATCH * LENGTH; r++)
        for (uint32_t c = 0; c < CHANNELS; c++)
            rows[r][c] =
                (double)table[tokens[r] * CHANNELS + (int32_t)c] + (double)positions[r % LENGTH * CHANNELS + c];
    for (uint32_t i = 0; i < LAYERS; i++) {
        move_rows(rows, bias[i], &wanted[0], &wanted[1]);
        works(sluice_model_observed(t.model, i, &ratio, &cosine));
        assert_true(fabs(ratio - wanted[0]) < 1e-5 * wanted[0]);
        assert_true(fabs(cosine - wanted[1]) < 1e-5);
    }
    assert_int_equal(sluice_model_observed(t.model, LAYERS, &ratio, &cosine), SLUICE_ERR_ARGUMENT);
    works(sluice_model_observe(t.model, false));
    works(sluice_model_observed(t.model, LAYERS - 1, &ratio, &cosine));
    run_step(&t, 2);
    double later[2];
    works(sluice_model_observed(t.model, LAYERS - 1, &later[0], &later[1]));
    assert_true(later[0] == ratio && later[1] == cosine); /* a step that nobody observed leaves them */
    free(table);
    free(positions);
    test_model_destroy(&t);
}

/* ---- Weights ---- */

static void train(const sluice_model_config *c, sluice_dtype precision, sluice_recompute recompute, int observe,
                  char hash[65])
{
    test_model t = create(c, precision, recompute, observe > 0);
    for (uint64_t step = 0; step < 3; step++) {
        if (observe > 0) works(sluice_model_observe(t.model, observe == 1 || step % 2));
        run_step(&t, step);
    }
    works(sluice_runtime_weights_sha256(t.rt, hash));
    test_model_destroy(&t);
}

static void no_weight_changes(void **state)
{
    (void)state;
    sluice_model_config bert = gpt2, dropped = gpt2;
    bert.family = SLUICE_BERT, bert.gelu_tanh = false, bert.types = 2;
    dropped.dropout = 0.2, dropped.drop_path = 0.5;
    const sluice_model_config *const models[] = {&gpt2, &bert, &dropped};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (sluice_dtype precision = SLUICE_FP32; precision <= SLUICE_BF16; precision++)
            for (int all = 0; all < 2; all++) {
                const sluice_recompute recompute = all ? SLUICE_RECOMPUTE_ALL : SLUICE_RECOMPUTE_NONE;
                char plain[65], observed[65];
                train(models[m], precision, recompute, 0, plain);
                for (int observe = 1; observe <= 2; observe++) {
                    train(models[m], precision, recompute, observe, observed);
                    assert_string_equal(plain, observed);
                }
            }
}

/* ---- States ---- */

static void extents_are_those_of_the_elements(void **state)
{
    (void)state;
    test_model t = create(&gpt2, SLUICE_FP32, SLUICE_RECOMPUTE_NONE, false);
    double squares, largest;
    for (uint64_t step = 0; step < 2; step++) run_step(&t, step);
    for (uint32_t p = 0; p < sluice_runtime_param_count(t.rt); p++) {
        sluice_param *param = sluice_runtime_param(t.rt, p);
        const uint64_t count = sluice_param_count(param);
        double sum = 0, most = 0;
        float *values = malloc(count * sizeof *values);
        assert_non_null(values);
        works(sluice_param_state_read(param, "exp_avg_sq", 0, count, values));
        for (uint64_t i = 0; i < count; i++) {
            sum += (double)values[i] * (double)values[i];
            most = fmax(most, fabs((double)values[i]));
        }
        works(sluice_param_state_extent(param, "exp_avg_sq", &squares, &largest));
        assert_true(fabs(squares - sum) <= 1e-12 * sum && largest == most && most > 0);
        assert_int_equal(sluice_param_state_extent(param, "exp_avg_cube", &squares, &largest), SLUICE_ERR_ARGUMENT);
        free(values);
    }
    assert_int_equal(sluice_model_observe(t.model, true), SLUICE_ERR_UNSUPPORTED);
    test_model_destroy(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_those_of_the_rows),
        cmocka_unit_test(no_weight_changes),
        cmocka_unit_test(extents_are_those_of_the_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
