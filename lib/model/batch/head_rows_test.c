/* A head that takes only the rows with targets gives the gradient and the loss of one that takes all rows: the targets
 * of a micro-batch are dealt out to two, in any shares, and the sum of what both give is what all of them give at once.
 */
#include "tests/support/model/lone_model.h"

#include "lib/base/numbers/random.h"
#include "lib/model/state.h"
#include "tests/support/scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, LENGTH = 24, IMAGE = 28, PATCH = 4, MOST = 4096 };

#define SMALL                                                                                                          \
    .struct_size = sizeof(sluice_model_config), .layers = 2, .channels = 32, .heads = 2, .hidden = 64, .epsilon = 1e-5

static const sluice_model_config kinds[] = {
    {SMALL, .family = SLUICE_BERT, .vocabulary = 61, .context = LENGTH, .types = 2},
    {SMALL, .family = SLUICE_BEIT, .vocabulary = 50, .image_size = IMAGE, .patch_size = PATCH, .image_channels = 3,
     .mask_token = true, .layer_scale = 0.1},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct {
    int32_t tokens[MOST], targets[MOST];
    float pixels[BATCH * IMAGE * IMAGE * 3];
    uint8_t masked[MOST];
    uint64_t count;
} inputs;

static inputs *make_inputs(const sluice_model_config *c)
{
    inputs *in = calloc(1, sizeof *in);
    assert_non_null(in);
    in->count = BATCH * sluice_model_targets(c, LENGTH);
    assert_true(in->count <= MOST);
    for (uint64_t i = 0; i < in->count; i++) {
        in->tokens[i] = (int32_t)slc_random_below(1, 0, i, c->vocabulary);
        in->targets[i] = (int32_t)slc_random_below(1, 1, i, c->vocabulary);
        in->masked[i] = slc_random_below(1, 2, i, 5) < 2;
    }
    for (uint64_t i = 0; i < sizeof in->pixels / sizeof *in->pixels; i++)
        in->pixels[i] = (float)slc_random_below(1, 3, i, 1000) / 500 - 1;
    return in;
}

/* One step over micro-batches, each with some of the targets; the model then holds the gradient. */
static double run_step(test_model *t, const inputs *in, const int32_t (*targets)[MOST], uint32_t micro_batches)
{
    const bool sees = sluice_model_get_config(t->model)->family == SLUICE_BEIT;
    double loss, sum = 0;
    works(sluice_step_begin(t->rt, &SLUICE_INIT(sluice_step_options, .gradient_scale = 1)));
    for (uint32_t m = 0; m < micro_batches; m++) {
        sluice_batch batch = SLUICE_INIT(sluice_batch, .targets = targets[m], .loss_divisor = (double)in->count);
        if (sees)
            batch.pixels = in->pixels, batch.masked_patches = in->masked;
        else
            batch.tokens = in->tokens;
        works(sluice_model_forward(t->model, &batch));
        works(sluice_model_backward(t->model, &loss));
        sum += loss;
    }
    works(sluice_step_end(t->rt, NULL));
    works(sluice_runtime_sync(t->rt));
    return sum;
}

static test_model make(const sluice_model_config *c, uint32_t micro_batches)
{
    test_model t =
        test_model_create(c, BATCH, c->family == SLUICE_BEIT ? 0 : LENGTH, micro_batches, 2, SLUICE_RECOMPUTE_NONE);
    works(sluice_model_init(t.model, 3));
    return t;
}

static double norm_of(const float *x, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += (double)x[i] * x[i];
    return sqrt(sum);
}

/* The gradients of the keys' biases are 0 but for rounding, so that errors are held against the whole model's too. */
static void compare_gradients(test_model *whole, test_model *parts)
{
    double all = 0;
    for (uint32_t p = 0; p < sluice_runtime_param_count(whole->rt); p++) {
        sluice_param *param = sluice_runtime_param(whole->rt, p);
        float *gradient = read_gradient(param);
        all = fmax(all, norm_of(gradient, sluice_param_count(param)));
        free(gradient);
    }
    for (uint32_t p = 0; p < sluice_runtime_param_count(whole->rt); p++) {
        sluice_param *param = sluice_runtime_param(whole->rt, p);
        const uint64_t count = sluice_param_count(param);
        float *want = read_gradient(param), *got = read_gradient(sluice_runtime_param(parts->rt, p));
        const double size = norm_of(want, count);
        for (uint64_t i = 0; i < count; i++) got[i] -= want[i];
        if (norm_of(got, count) > 2e-6 * (size + 0.1 * all))
            fail_msg("%s: apart by %g of %g", sluice_param_name(param), norm_of(got, count), size);
        free(want);
        free(got);
    }
}

/* The first micro-batch gets the first `of_100` in a hundred of the targets, in a drawn order. */
static void deal(const inputs *in, uint64_t of_100, int32_t (*parts)[MOST])
{
    for (uint64_t i = 0; i < in->count; i++) {
        const bool first = slc_random_below(2, of_100, i, 100) < of_100;
        parts[0][i] = first ? in->targets[i] : -1;
        parts[1][i] = first ? -1 : in->targets[i];
    }
}

static void shares_add_up(const sluice_model_config *c, double smoothing)
{
    static const uint64_t shares[] = {0, 1, 15, 40, 50};
    static int32_t parts[2][MOST];
    test_models_smooth(smoothing);
    inputs *in = make_inputs(c);
    test_model whole = make(c, 1), split = make(c, 2);
    memcpy(parts[0], in->targets, sizeof parts[0]);
    const double loss = run_step(&whole, in, parts, 1);
    assert_int_equal(whole.model->memory->picked, 0); /* all rows of text have targets */
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        deal(in, shares[s], parts);
        const double sum = run_step(&split, in, parts, 2);
        assert_true(fabs(sum - loss) <= 1e-6 * loss);
        compare_gradients(&whole, &split);
        if (shares[s] == 50) assert_true(split.model->memory->picked < split.model->rows);
        if (shares[s] == 50) assert_true(split.model->memory->picked >= split.model->memory->target_count);
    }
    test_model_destroy(&whole);
    test_model_destroy(&split);
    free(in);
}

static void picked_rows_are_enough(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        shares_add_up(&kinds[k], 0);
        if (!test_brief()) shares_add_up(&kinds[k], 0.1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(picked_rows_are_enough)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
