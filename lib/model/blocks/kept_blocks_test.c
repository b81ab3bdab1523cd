/* A step that leaves blocks out gives the loss and the gradients of a model that never had them, to the bit, and their
 * own stay; evaluation has all blocks. Branches scaled by a power of two are to the bit those of a model whose last
 * weights in each branch are that many times as large, and their gradients follow; with dropout and layer scale too.
 * What cannot be left out or scaled is refused. */
#include "tests/support/model/lone_model.h"

#include "lib/base/numbers/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, LENGTH = 12, IMAGE = 16, PATCH = 4, BLOCKS = 5, MOST = 1024, LINE = 160 };

#define SMALL                                                                                                          \
    .struct_size = sizeof(sluice_model_config), .layers = BLOCKS, .channels = 32, .heads = 2, .hidden = 64,            \
    .epsilon = 1e-5
#define OF_IMAGES .image_size = IMAGE, .patch_size = PATCH, .image_channels = 1

static const sluice_model_config kinds[] = {
    {SMALL, .family = SLUICE_GPT2, .vocabulary = 61, .context = LENGTH, .gelu_tanh = true},
    {SMALL, .family = SLUICE_VIT, OF_IMAGES, .head = SLUICE_HEAD_CLASSES, .classes = 7},
    {SMALL, .family = SLUICE_BEIT, OF_IMAGES, .vocabulary = 50, .mask_token = true, .layer_scale = 0.5,
     .relative_positions = true},
    {SMALL, .family = SLUICE_BEIT, OF_IMAGES, .vocabulary = 50, .mask_token = true, .shared_positions = true},
    {SMALL, .family = SLUICE_ROBERTA_PRELAYERNORM, .vocabulary = 61, .context = LENGTH, .types = 2, .padding = 1},
    {SMALL, .family = SLUICE_ROBERTA_PRELAYERNORM, .vocabulary = 61, .context = LENGTH, .types = 2, .padding = 1,
     .head = SLUICE_HEAD_CLASSES, .classes = 7},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const bool kept[BLOCKS] = {true, false, true, false, false};
static const uint32_t kept_blocks = 2;

static bool sees(const sluice_model_config *c)
{
    return c->family == SLUICE_VIT || c->family == SLUICE_BEIT;
}

static test_model make(const sluice_model_config *c, sluice_recompute recompute, sluice_dtype precision)
{
    test_model t =
        test_model_create_typed(c, BATCH, sees(c) ? 0 : LENGTH, 1, 1, recompute, precision, NULL, SLUICE_TIED_JOINT);
    works(sluice_model_init(t.model, 3));
    return t;
}

typedef struct {
    int32_t tokens[MOST], targets[MOST];
    float pixels[BATCH * IMAGE * IMAGE];
    sluice_batch batch;
} inputs;

static inputs *make_inputs(const sluice_model_config *c)
{
    inputs *in = calloc(1, sizeof *in);
    assert_non_null(in);
    const uint32_t limit = c->head == SLUICE_HEAD_CLASSES ? c->classes : c->vocabulary;
    for (uint64_t i = 0; i < MOST; i++) {
        in->tokens[i] = (int32_t)slc_random_below(1, 0, i, c->vocabulary ? c->vocabulary : 1);
        in->targets[i] = (int32_t)slc_random_below(1, 1, i, limit);
    }
    for (uint64_t i = 0; i < sizeof in->pixels / sizeof *in->pixels; i++)
        in->pixels[i] = (float)slc_random_below(1, 3, i, 1000) / 500 - 1;
    in->batch = SLUICE_INIT(sluice_batch, .targets = in->targets);
    if (sees(c))
        in->batch.pixels = in->pixels;
    else
        in->batch.tokens = in->tokens;
    return in;
}

/* One step; `leaves_out`: without the blocks that are not kept. */
static double run_step(test_model *t, const inputs *in, bool leaves_out)
{
    const sluice_layer *left_out[BLOCKS];
    sluice_step_options options = SLUICE_INIT(sluice_step_options, .gradient_scale = 1, .layers_left_out = left_out);
    double loss;
    for (uint32_t b = 0; leaves_out && b < BLOCKS; b++)
        if (!kept[b]) left_out[options.layer_left_out_count++] = sluice_model_block(t->model, b);
    works(sluice_step_begin(t->rt, &options));
    works(sluice_model_forward(t->model, &in->batch));
    works(sluice_model_backward(t->model, &loss));
    works(sluice_step_end(t->rt, NULL));
    works(sluice_runtime_sync(t->rt));
    return loss;
}

static double evaluate(test_model *t, const inputs *in)
{
    double loss;
    works(sluice_model_evaluate(t->model, &in->batch, &loss, NULL));
    return loss;
}

static sluice_param *param_named(sluice_runtime *rt, const char *name)
{
    for (uint32_t p = 0; p < sluice_runtime_param_count(rt); p++)
        if (!strcmp(sluice_param_name(sluice_runtime_param(rt, p)), name)) return sluice_runtime_param(rt, p);
    fail_msg("no parameter %s", name);
    return NULL;
}

/* The name that a parameter has in the model of kept blocks; false: it has none there. */
static bool name_among_kept(const char *name, char out[LINE])
{
    uint32_t block, number = 0;
    int used = 0;
    snprintf(out, LINE, "%s", name);
    if (sscanf(name, "h.%u%n", &block, &used) != 1) return true;
    for (uint32_t b = 0; b < block; b++) number += kept[b];
    snprintf(out, LINE, "h.%u%s", number, name + used);
    return kept[block];
}

static float *read_values(sluice_param *param)
{
    float *values = malloc(sluice_param_count(param) * sizeof *values);
    assert_non_null(values);
    works(sluice_param_read(param, 0, sluice_param_count(param), values));
    return values;
}

static void copy_kept(test_model *from, test_model *to)
{
    char name[LINE];
    for (uint32_t p = 0; p < sluice_runtime_param_count(from->rt); p++) {
        sluice_param *param = sluice_runtime_param(from->rt, p);
        if (!name_among_kept(sluice_param_name(param), name)) continue;
        float *values = read_values(param);
        works(sluice_param_write(param_named(to->rt, name), 0, sluice_param_count(param), values));
        free(values);
    }
}

static void compare_gradients(test_model *whole, test_model *few)
{
    char name[LINE];
    for (uint32_t p = 0; p < sluice_runtime_param_count(whole->rt); p++) {
        sluice_param *param = sluice_runtime_param(whole->rt, p);
        const uint64_t count = sluice_param_count(param);
        const bool is_kept = name_among_kept(sluice_param_name(param), name);
        float *got = read_gradient(param),
              *want = is_kept ? read_gradient(param_named(few->rt, name)) : calloc(count, sizeof *want);
        if (memcmp(got, want, count * sizeof *got)) fail_msg("the gradient of %s", sluice_param_name(param));
        assert_int_equal(sluice_param_updates(param), is_kept);
        free(got);
        free(want);
    }
}

static void leaving_out_is_never_having_had(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++)
        for (int bf16 = 0; bf16 < 2; bf16++)
            for (int recompute = 0; recompute < 2; recompute++) {
                sluice_model_config small = kinds[k];
                small.layers = kept_blocks;
                const sluice_recompute how = recompute ? SLUICE_RECOMPUTE_ALL : SLUICE_RECOMPUTE_NONE;
                const sluice_dtype precision = bf16 ? SLUICE_BF16 : SLUICE_FP32;
                test_model whole = make(&kinds[k], how, precision);
                test_model few = make(&small, SLUICE_RECOMPUTE_NONE, precision);
                inputs *in = make_inputs(&kinds[k]);
                copy_kept(&whole, &few);
                const double all = evaluate(&whole, in), loss = run_step(&whole, in, true);
                assert_true(loss == run_step(&few, in, false));
                compare_gradients(&whole, &few);
                assert_true(evaluate(&whole, in) == all && loss != all);
                free(in);
                test_model_destroy(&few);
                test_model_destroy(&whole);
            }
}

/* ---- Factors ---- */

static bool ends_branch(const sluice_model_config *c, const char *name)
{
    static const char *const ends[] = {"attn.c_proj.", "mlp.c_proj.", "attention.output.dense.", ".output.dense."};
    if (c->layer_scale > 0) return strstr(name, "lambda_") != NULL;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strstr(name, ends[i])) return true;
    return false;
}

static bool is_scaled(const sluice_model_config *c, const char *name, uint32_t block)
{
    uint32_t number;
    return sscanf(name, "h.%u", &number) == 1 && number == block && ends_branch(c, name);
}

enum { SCALED = 3 };
static const float FACTOR = 4;

static void scale_weights(const sluice_model_config *c, test_model *t)
{
    uint32_t found = 0;
    for (uint32_t p = 0; p < sluice_runtime_param_count(t->rt); p++) {
        sluice_param *param = sluice_runtime_param(t->rt, p);
        if (!is_scaled(c, sluice_param_name(param), SCALED)) continue;
        float *values = read_values(param);
        for (uint64_t i = 0; i < sluice_param_count(param); i++) values[i] *= FACTOR;
        works(sluice_param_write(param, 0, sluice_param_count(param), values));
        free(values);
        found++;
    }
    assert_int_equal(found, c->layer_scale > 0 ? 2 : 4);
}

static void compare_scaled(const sluice_model_config *c, test_model *by_factor, test_model *by_weights)
{
    for (uint32_t p = 0; p < sluice_runtime_param_count(by_factor->rt); p++) {
        sluice_param *param = sluice_runtime_param(by_factor->rt, p);
        const uint64_t count = sluice_param_count(param);
        float *got = read_gradient(param), *want = read_gradient(sluice_runtime_param(by_weights->rt, p));
        if (is_scaled(c, sluice_param_name(param), SCALED))
            for (uint64_t i = 0; i < count; i++) want[i] *= FACTOR;
        if (memcmp(got, want, count * sizeof *got)) fail_msg("the gradient of %s", sluice_param_name(param));
        free(got);
        free(want);
    }
}

static void factors_are_larger_weights(void **state)
{
    (void)state;
    test_models_scale_branches(true);
    for (int k = 0; k < KINDS; k++)
        for (int drops = 0; drops < 2; drops++)
            for (int recompute = 0; recompute < 2; recompute++) {
                sluice_model_config c = kinds[k];
                c.dropout = drops ? 0.25 : 0;
                const sluice_recompute how = recompute ? SLUICE_RECOMPUTE_ALL : SLUICE_RECOMPUTE_NONE;
                test_model by_factor = make(&c, how, SLUICE_FP32), by_weights = make(&c, how, SLUICE_FP32);
                inputs *in = make_inputs(&c);
                const double plain = evaluate(&by_factor, in);
                works(sluice_model_scale_branches(by_factor.model, SCALED, FACTOR));
                scale_weights(&c, &by_weights);
                assert_true(run_step(&by_factor, in, false) == run_step(&by_weights, in, false));
                compare_scaled(&c, &by_factor, &by_weights);
                assert_true(evaluate(&by_factor, in) == plain); /* without factors */
                free(in);
                test_model_destroy(&by_weights);
                test_model_destroy(&by_factor);
            }
    test_models_scale_branches(false);
}

/* ---- Refusals ---- */

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    const sluice_model_config bert = {SMALL, .family = SLUICE_BERT, .vocabulary = 61, .context = LENGTH, .types = 2};
    test_model t = make(&bert, SLUICE_RECOMPUTE_NONE, SLUICE_FP32);
    inputs *in = make_inputs(&bert);
    const sluice_layer *one[] = {sluice_model_block(t.model, 1)};
    works(
        sluice_step_begin(t.rt, &SLUICE_INIT(sluice_step_options, .layers_left_out = one, .layer_left_out_count = 1)));
    assert_int_equal(sluice_model_forward(t.model, &in->batch), SLUICE_ERR_UNSUPPORTED);
    assert_non_null(strstr(sluice_last_error(), "its norms come after the branches"));
    assert_int_equal(sluice_model_scale_branches(t.model, 0, 2), SLUICE_ERR_UNSUPPORTED);
    assert_null(sluice_model_block(t.model, BLOCKS));
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = LENGTH, .scales_branches = 1);
    sluice_model *other;
    assert_int_equal(sluice_model_create(t.rt, &bert, &options, &other), SLUICE_ERR_UNSUPPORTED);
    test_model_destroy(&t);
    free(in);

    test_models_scale_branches(true);
    t = make(&kinds[0], SLUICE_RECOMPUTE_NONE, SLUICE_FP32);
    test_models_scale_branches(false);
    assert_int_equal(sluice_model_scale_branches(t.model, BLOCKS, 2), SLUICE_ERR_ARGUMENT);
    assert_int_equal(sluice_model_scale_branches(t.model, 0, 0), SLUICE_ERR_ARGUMENT);
    assert_int_equal(sluice_model_scale_branches(t.model, 0, 1e300), SLUICE_ERR_ARGUMENT);
    assert_int_equal(sluice_model_scale_branches(t.model, 0, 1e-60), SLUICE_ERR_ARGUMENT); /* 0 as a float */
    test_model_destroy(&t);
}

/* A block of another precision converts what it reads. */
static void other_precisions_are_refused(void **state)
{
    (void)state;
    test_model t = test_model_create_typed(&kinds[0], BATCH, LENGTH, 1, 1, SLUICE_RECOMPUTE_NONE, SLUICE_FP32,
                                           "h.2=bf16", SLUICE_TIED_JOINT);
    inputs *in = make_inputs(&kinds[0]);
    works(sluice_model_init(t.model, 3));
    const sluice_layer *one[] = {sluice_model_block(t.model, 1)};
    works(
        sluice_step_begin(t.rt, &SLUICE_INIT(sluice_step_options, .layers_left_out = one, .layer_left_out_count = 1)));
    assert_int_equal(sluice_model_forward(t.model, &in->batch), SLUICE_ERR_UNSUPPORTED);
    assert_non_null(strstr(sluice_last_error(), "layer \"h.1\" is left out, but layers next to it"));
    free(in);
    test_model_destroy(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaving_out_is_never_having_had), cmocka_unit_test(factors_are_larger_weights),
        cmocka_unit_test(what_cannot_be_is_refused), cmocka_unit_test(other_precisions_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
