/* The models against transformers, which computed tiny random models in float64 (tests/golden/make_golden.py). Logits,
 * loss and the gradient of every parameter must agree: closely in fp32, within its rounding in bf16; and a run that
 * recomputes every block must equal one that does not, to the bit. All of it holds on a GPU too. */
#include "tests/support/model/lone_model.h"

#include "lib/device/device.h"
#include "lib/model/batch/inputs.h"
#include "lib/model/params.h"
#include "lib/weights/safetensors/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const models[] = {"gpt2",
                                     "bert_masked",
                                     "bert_classifier",
                                     "vit",
                                     "beit",
                                     "beit_masked",
                                     "beit_masked_shared",
                                     "bert_before_masked",
                                     "bert_before_classifier"};
enum { MODELS = sizeof models / sizeof *models };

typedef struct {
    char folder[512];
    sluice_model_config config;
    slc_model_inputs inputs;
    slc_tensors *expected;
} golden;

static void path_in(const golden *g, const char *name, char out[600])
{
    snprintf(out, 600, "%s/%s", g->folder, name);
}

static golden golden_open(const char *model)
{
    golden g = {0};
    char path[600];
    snprintf(g.folder, sizeof g.folder, "%s/%s", SLUICE_GOLDEN_DIR, model);
    g.config = SLUICE_INIT(sluice_model_config);
    works(sluice_model_config_read(g.folder, &g.config));
    path_in(&g, "inputs.safetensors", path);
    works(slc_model_inputs_read(path, &g.config, &g.inputs));
    path_in(&g, "expected.safetensors", path);
    works(slc_safetensors_open(path, &g.expected));
    return g;
}

static void golden_close(golden *g)
{
    slc_tensors_close(g->expected);
    slc_model_inputs_free(&g->inputs);
}

/* The caller frees. */
static float *expected(const golden *g, const char *name, uint64_t *count)
{
    const slc_tensor *tensor = slc_tensors_find(g->expected, name);
    if (!tensor) fail_msg("%s: no %s", g->folder, name);
    float *out = malloc((tensor->elements + 1) * sizeof *out);
    assert_non_null(out);
    works(slc_tensors_read_float(g->expected, tensor, 0, tensor->elements, out));
    *count = tensor->elements;
    return out;
}

static double expected_loss(const golden *g)
{
    uint64_t count;
    float *loss = expected(g, "loss", &count);
    double value = *loss;
    free(loss);
    return value;
}

static bool has_shared_table(const golden *g)
{
    return g->config.head == SLUICE_HEAD_TOKENS && g->config.family != SLUICE_BEIT;
}

/* `tied` matters for models that share a table; a GPU has joint tables only. */
static test_model model_of(const golden *g, sluice_dtype precision, const char *layers, sluice_recompute recompute,
                           sluice_tied tied)
{
    test_model t =
        test_model_create_typed(&g->config, g->inputs.batch, g->inputs.length, 1, 1, recompute, precision, layers,
                                has_shared_table(g) && !test_model_on_gpu() ? tied : SLUICE_TIED_JOINT);
    works(sluice_model_load(t.model, g->folder, false));
    return t;
}

/* The larger error; one that is no number is larger than any (fmax would drop it). */
static double worse(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

typedef struct {
    double logits; /* the largest difference of one */
    double loss;
} evaluation;

/* Evaluates the golden inputs. Logits that evaluation leaves out stay NaN. */
static evaluation evaluate(const golden *g, test_model *t)
{
    uint64_t count;
    float *truth = expected(g, "logits", &count), *logits = malloc(count * sizeof *logits);
    evaluation out = {.loss = NAN};
    double loss = NAN;
    assert_non_null(logits);
    for (uint64_t i = 0; i < count; i++) logits[i] = NAN;
    works(sluice_model_evaluate(t->model, &g->inputs.given, &loss, logits));
    for (uint64_t i = 0; i < count; i++) out.logits = worse(out.logits, fabs((double)logits[i] - truth[i]));
    out.loss = fabs(loss - expected_loss(g));
    free(logits);
    free(truth);
    return out;
}

static double train_step(const golden *g, test_model *t)
{
    const sluice_step_options options = SLUICE_INIT(sluice_step_options);
    double loss = 0;
    works(sluice_step_begin(t->rt, &options));
    works(sluice_model_forward(t->model, &g->inputs.given));
    works(sluice_model_backward(t->model, &loss));
    works(sluice_step_end(t->rt, NULL));
    works(sluice_runtime_sync(t->rt));
    return loss;
}

/* Returns the relative error; if the true gradient vanishes (a bias of keys), the size of ours. */
static double error_of(const float *ours, const float *truth, uint64_t count)
{
    double error = 0, size = 0;
    for (uint64_t k = 0; k < count; k++) {
        error += ((double)ours[k] - truth[k]) * ((double)ours[k] - truth[k]);
        size += (double)truth[k] * truth[k];
    }
    return size > 1e-14 ? sqrt(error / size) : sqrt(error);
}

/* Returns the largest error of a parameter's gradient. */
static double compare_gradients(const golden *g, test_model *t)
{
    slc_param_info info;
    double worst = 0;
    for (uint32_t i = 0; slc_param_info_at(&g->config, i, &info); i++) {
        char name[128];
        uint64_t count;
        snprintf(name, sizeof name, "grad.%s", info.full_name);
        float *truth = expected(g, name, &count), *ours = read_gradient(sluice_runtime_param(t->rt, i));
        assert_int_equal(count, info.count);
        worst = worse(worst, error_of(ours, truth, count));
        free(truth);
        free(ours);
    }
    return worst;
}

/* A value that is no number, in a model or in a gradient, passes no comparison, wherever it stands. */
static void what_is_no_number_agrees_with_nothing(void **state)
{
    (void)state;
    golden g = golden_open(models[0]);
    test_model t = model_of(&g, SLUICE_FP32, NULL, SLUICE_RECOMPUTE_NONE, SLUICE_TIED_JOINT);
    const uint32_t last = sluice_runtime_param_count(t.rt) - 1;
    assert_true(evaluate(&g, &t).logits <= 2e-5);
    works(sluice_param_write(sluice_runtime_param(t.rt, last), 0, 1, &(float){NAN}));
    const evaluation e = evaluate(&g, &t);
    assert_false(e.logits <= 2e-5);
    assert_false(e.loss <= 1e-5);
    test_model_destroy(&t);
    golden_close(&g);

    const float truth[] = {1, 2, 3};
    for (int at = 0; at < 3; at++) {
        float ours[] = {1, 2, 3};
        assert_true(error_of(ours, truth, 3) <= 0);
        ours[at] = NAN;
        assert_false(worse(worse(0.5, error_of(ours, truth, 3)), 0.5) <= 1);
    }
}

static void fp32_agrees_tied(sluice_tied tied)
{
    for (int i = 0; i < MODELS; i++) {
        golden g = golden_open(models[i]);
        if (tied == SLUICE_TIED_SPLIT && !has_shared_table(&g)) {
            golden_close(&g);
            continue;
        }
        test_model t = model_of(&g, SLUICE_FP32, NULL, SLUICE_RECOMPUTE_NONE, tied);
        const evaluation e = evaluate(&g, &t);
        assert_true(fabs(train_step(&g, &t) - expected_loss(&g)) < 1e-5);
        double gradients = compare_gradients(&g, &t);
        print_message("%s%s: largest difference of a logit %g, of a gradient %g; of the loss %g\n", models[i],
                      tied == SLUICE_TIED_SPLIT ? ", split" : "", e.logits, gradients, e.loss);
        assert_true(e.logits <= 2e-5);
        assert_true(e.loss <= 1e-5);
        assert_true(gradients <= 2e-5);
        test_model_destroy(&t);
        golden_close(&g);
    }
}

static void fp32_agrees(void **state)
{
    (void)state;
    fp32_agrees_tied(SLUICE_TIED_JOINT);
}

static void fp32_agrees_with_split_tables(void **state)
{
    (void)state;
    fp32_agrees_tied(SLUICE_TIED_SPLIT);
}

/* The loss with smoothed targets, in float64 from the golden logits, of which there is a row for each target. */
static double smoothed_loss(const golden *g, double smoothing)
{
    uint64_t count, targets = 0, rows = g->inputs.batch * sluice_model_targets(&g->config, g->inputs.length);
    float *logits = expected(g, "logits", &count);
    uint64_t classes = count / rows;
    double sum = 0;
    assert_true(rows * classes == count);
    for (uint64_t row = 0; row < rows; row++) {
        const float *x = logits + row * classes;
        double exponentials = 0, mean = 0;
        if (g->inputs.given.targets[row] < 0) continue;
        targets++;
        for (uint64_t c = 0; c < classes; c++)
            exponentials += exp((double)x[c]), mean += (double)x[c] / (double)classes;
        sum += log(exponentials) - (1 - smoothing) * (double)x[g->inputs.given.targets[row]] - smoothing * mean;
    }
    free(logits);
    return sum / (double)targets;
}

static void training_is_smoothed_and_evaluations_are_not(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        golden g = golden_open(models[i]);
        test_models_smooth(0.3);
        test_model t = model_of(&g, SLUICE_FP32, NULL, SLUICE_RECOMPUTE_NONE, SLUICE_TIED_JOINT);
        test_models_smooth(0);
        assert_true(fabs(smoothed_loss(&g, 0) - expected_loss(&g)) < 1e-5);
        assert_true(fabs(smoothed_loss(&g, 0.3) - expected_loss(&g)) > 1e-3);
        assert_true(evaluate(&g, &t).loss <= 1e-5);
        assert_true(fabs(train_step(&g, &t) - smoothed_loss(&g, 0.3)) < 1e-5);
        test_model_destroy(&t);
        golden_close(&g);
    }
}

static void bf16_agrees_within_its_rounding(void **state)
{
    (void)state;
    const char *const layers[] = {NULL, "embed=fp32,head=fp32", "h.0=fp32"};
    for (int i = 0; i < MODELS; i++)
        for (int k = 0; k < 3; k++) {
            golden g = golden_open(models[i]);
            if (k && g.config.shared_positions) { /* the embedding and every block share them */
                golden_close(&g);
                continue;
            }
            test_model t = model_of(&g, SLUICE_BF16, layers[k], k == 2 ? SLUICE_RECOMPUTE_ALL : SLUICE_RECOMPUTE_NONE,
                                    (sluice_tied)(k % 2));
            const evaluation e = evaluate(&g, &t);
            assert_true(fabs(train_step(&g, &t) - expected_loss(&g)) < 0.02);
            double gradients = compare_gradients(&g, &t);
            if (!(e.logits <= 0.15 && gradients <= 0.1 && e.loss <= 0.02))
                fail_msg("%s, %s: logit %g, gradient %g, loss %g", models[i], layers[k] ? layers[k] : "bf16", e.logits,
                         gradients, e.loss);
            test_model_destroy(&t);
            golden_close(&g);
        }
}

static void recomputing_changes_no_bit(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++)
        for (int setting = 0; setting < (test_model_on_gpu() ? 2 : 4); setting++) {
            sluice_dtype dtype = setting % 2 ? SLUICE_BF16 : SLUICE_FP32;
            sluice_tied tied = setting / 2 ? SLUICE_TIED_SPLIT : SLUICE_TIED_JOINT;
            golden g = golden_open(models[i]);
            g.config.dropout = 0.1; /* recomputation must draw the same mask again */
            test_model t[2] = {model_of(&g, dtype, NULL, SLUICE_RECOMPUTE_NONE, tied),
                               model_of(&g, dtype, NULL, SLUICE_RECOMPUTE_ALL, tied)};
            for (int step = 0; step < 2; step++) assert_true(train_step(&g, &t[0]) == train_step(&g, &t[1]));
            for (uint32_t p = 0; p < sluice_runtime_param_count(t[0].rt); p++) {
                float *kept = read_gradient(sluice_runtime_param(t[0].rt, p));
                float *again = read_gradient(sluice_runtime_param(t[1].rt, p));
                assert_memory_equal(kept, again, sluice_param_count(sluice_runtime_param(t[0].rt, p)) * sizeof *kept);
                free(kept);
                free(again);
            }
            test_model_destroy(&t[0]);
            test_model_destroy(&t[1]);
            golden_close(&g);
        }
}

/* No model is made with the options, and the error line has `why` in it; `what` names them if it has not. */
static void options_are_refused(const sluice_model_options *options, const char *why, const char *what)
{
    golden g = golden_open("gpt2");
    sluice_world *world = NULL;
    sluice_runtime *rt = NULL;
    sluice_model *model = NULL;
    sluice_config config;
    sluice_config_init(&config);
    works(sluice_world_create(NULL, &world));
    works(sluice_runtime_create(world, &config, &rt));
    assert_int_equal(sluice_model_create(rt, &g.config, options, &model), SLUICE_ERR_ARGUMENT);
    if (!strstr(sluice_last_error(), why)) fail_msg("%s: %s", what, sluice_last_error());
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    golden_close(&g);
}

static void shared_parameters_need_one_type(void **state)
{
    (void)state;
    const struct {
        const char *precision, *why;
    } bad[] = {{"head=bf16", "embed.wte.weight"}, {"h.7=bf16", "h.7"}, {"h.0=fp64", "fp64"}, {"h.0", "h.0"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const sluice_model_options options =
            SLUICE_INIT(sluice_model_options, .batch = 1, .length = 4, .precision = bad[i].precision);
        options_are_refused(&options, bad[i].why, bad[i].precision);
    }
}

static void smoothing_beyond_its_range_is_refused(void **state)
{
    (void)state;
    const double bad[] = {-0.1, 1, 1 - 1e-12, NAN, INFINITY}; /* the third is 1 in fp32 */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const sluice_model_options options =
            SLUICE_INIT(sluice_model_options, .batch = 1, .length = 4, .label_smoothing = bad[i]);
        options_are_refused(&options, "label_smoothing", "smoothing");
    }
}

/* Saved weights must load again, to the bit. */
static void weights_come_back(void **state)
{
    (void)state;
    char folder[64];
    make_own_folder(folder);
    for (int i = 0; i < MODELS; i++) {
        golden g = golden_open(models[i]);
        test_model t = model_of(&g, SLUICE_FP32, NULL, SLUICE_RECOMPUTE_NONE, SLUICE_TIED_SPLIT), u;
        sluice_model_config config = SLUICE_INIT(sluice_model_config);
        char sha[2][65];
        works(sluice_model_save(t.model, folder));
        works(sluice_model_config_read(folder, &config));
        assert_memory_equal(&config, &g.config, sizeof config);
        u = test_model_create(&config, g.inputs.batch, g.inputs.length, 1, 1, SLUICE_RECOMPUTE_NONE);
        works(sluice_model_load(u.model, folder, false));
        works(sluice_runtime_weights_sha256(t.rt, sha[0]));
        works(sluice_runtime_weights_sha256(u.rt, sha[1]));
        assert_string_equal(sha[0], sha[1]);
        test_model_destroy(&u);
        test_model_destroy(&t);
        golden_close(&g);
    }
    remove_tree(folder);
}

static int on_a_gpu(void)
{
    slc_device *device = NULL;
    const char *what = slc_device_describe("cuda");
    if (!what || slc_device_open("cuda", &device)) {
        print_message("SKIP: models on a GPU: %s\n", what ? sluice_last_error() : "this build lacks the device cuda");
        return 0;
    }
    slc_device_close(device);
    print_message("models on %s\n", what);
    test_models_on("cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_number_agrees_with_nothing),
        cmocka_unit_test(fp32_agrees),
        cmocka_unit_test(bf16_agrees_within_its_rounding),
        cmocka_unit_test(training_is_smoothed_and_evaluations_are_not),
        cmocka_unit_test(recomputing_changes_no_bit),
        cmocka_unit_test(weights_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_number_agrees_with_nothing),
        cmocka_unit_test(fp32_agrees),
        cmocka_unit_test(fp32_agrees_with_split_tables),
        cmocka_unit_test(bf16_agrees_within_its_rounding),
        cmocka_unit_test(training_is_smoothed_and_evaluations_are_not),
        cmocka_unit_test(recomputing_changes_no_bit),
        cmocka_unit_test(shared_parameters_need_one_type),
        cmocka_unit_test(smoothing_beyond_its_range_is_refused),
        cmocka_unit_test(weights_come_back),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + on_a_gpu();
}
