/* GPT-2 against PyTorch's: the committed tensors (tests/golden/gpt2_golden.py, which says their format) hold for the
 * float64 reference and for the model on its runtime. */
#include "lib/model/model_test.h"

#include "lib/model/gpt2_params.h"
#include "lib/model/gpt2_ref.h"

#include <stdio.h>

enum { ARRAYS_MAX = 64 };

typedef struct {
    char name[64];
    uint64_t count;
    void *data;
} golden_array;

typedef struct {
    golden_array arrays[ARRAYS_MAX];
    uint32_t count;
    sluice_gpt2_config config;
    uint32_t batch, length;
} golden;

static bool read_array(FILE *file, golden_array *out)
{
    uint32_t length = 0, type = 0;
    if (fread(&length, sizeof length, 1, file) != 1) return false;
    assert_true(length < sizeof out->name);
    assert_int_equal(fread(out->name, 1, length, file), length);
    out->name[length] = 0;
    assert_int_equal(fread(&type, sizeof type, 1, file), 1);
    assert_true(type < 2);
    assert_int_equal(fread(&out->count, sizeof out->count, 1, file), 1);
    assert_true(out->count < 1000000);
    out->data = malloc(out->count * 4);
    assert_non_null(out->data);
    assert_int_equal(fread(out->data, 4, out->count, file), out->count);
    return true;
}

static const golden_array *find(const golden *g, const char *prefix, const char *name)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    for (uint32_t i = 0; i < g->count; i++)
        if (!strcmp(g->arrays[i].name, full)) return &g->arrays[i];
    return NULL;
}

static int load(void **state)
{
    static golden g;
    FILE *file = fopen(SLUICE_GOLDEN_DIR "/gpt2_golden.bin", "rb");
    assert_non_null(file);
    char magic[8];
    assert_int_equal(fread(magic, 1, 8, file), 8);
    assert_memory_equal(magic, "SLUGOLD1", 8);
    while (g.count < ARRAYS_MAX && read_array(file, &g.arrays[g.count])) g.count++;
    fclose(file);

    const int32_t *shape = find(&g, "config", "")->data;
    g.config = (sluice_gpt2_config){.layers = (uint32_t)shape[0],
                                    .channels = (uint32_t)shape[1],
                                    .heads = (uint32_t)shape[2],
                                    .context = (uint32_t)shape[3],
                                    .vocabulary = (uint32_t)shape[4]};
    g.batch = (uint32_t)shape[5];
    g.length = (uint32_t)shape[6];
    *state = &g;
    return 0;
}

static int unload(void **state)
{
    golden *g = *state;
    for (uint32_t i = 0; i < g->count; i++) free(g->arrays[i].data);
    return 0;
}

/* LAYER.NAME of the index-th parameter. */
static void full_name(const sluice_gpt2_config *config, uint32_t index, char out[64])
{
    slc_gpt2_param_info info = slc_gpt2_param_info_at(config, index);
    uint32_t last = slc_gpt2_param_total(config) - 2;
    if (index < 2)
        snprintf(out, 64, "embed.%s", info.name);
    else if (index >= last)
        snprintf(out, 64, "head.%s", info.name);
    else
        snprintf(out, 64, "h.%u.%s", (index - 2) / SLC_GPT2_BLOCK_PARAMS, info.name);
}

static double largest_difference(const double *x, const float *truth, uint64_t count)
{
    double largest = 0;
    for (uint64_t i = 0; i < count; i++) largest = fmax(largest, fabs(x[i] - truth[i]));
    return largest;
}

static void reference_agrees(void **state)
{
    const golden *g = *state;
    uint64_t count = sluice_gpt2_param_count(&g->config), first = 0;
    double *params = malloc(count * sizeof *params), *gradients = malloc(count * sizeof *gradients), loss;
    const golden_array *truth = find(g, "logits", "");
    double *logits = malloc(truth->count * sizeof *logits);
    assert_true(params && gradients && logits);
    char name[64];
    for (uint32_t i = 0; i < slc_gpt2_param_total(&g->config); i++) {
        full_name(&g->config, i, name);
        const golden_array *value = find(g, "value/", name);
        assert_non_null(value);
        assert_int_equal(value->count, slc_gpt2_param_info_at(&g->config, i).count);
        for (uint64_t k = 0; k < value->count; k++) params[first + k] = ((const float *)value->data)[k];
        first += value->count;
    }
    must(slc_gpt2_ref(&g->config, g->batch, g->length, find(g, "tokens", "")->data, find(g, "targets", "")->data,
                      params, &loss, logits, gradients));
    assert_true(largest_difference(logits, truth->data, truth->count) < 2e-5);
    assert_true(fabs(loss - *(const float *)find(g, "loss", "")->data) < 1e-5);
    first = 0;
    uint32_t compared = 0;
    for (uint32_t i = 0; i < slc_gpt2_param_total(&g->config); i++) {
        full_name(&g->config, i, name);
        const golden_array *gradient = find(g, "gradient/", name);
        if (gradient) assert_true(relative_error(gradient->data, gradients + first, gradient->count) < 1e-5);
        compared += gradient != NULL;
        first += slc_gpt2_param_info_at(&g->config, i).count;
    }
    assert_int_equal(compared, 11);
    free(logits);
    free(gradients);
    free(params);
}

static void write_values(const golden *g, sluice_runtime *rt)
{
    assert_int_equal(sluice_runtime_param_count(rt), slc_gpt2_param_total(&g->config));
    for (uint32_t i = 0; i < sluice_runtime_param_count(rt); i++) {
        sluice_param *param = sluice_runtime_param(rt, i);
        const golden_array *value = find(g, "value/", sluice_param_name(param));
        assert_non_null(value);
        assert_int_equal(value->count, sluice_param_count(param));
        must(sluice_param_write(param, 0, value->count, value->data));
    }
}

static void model_agrees(void **state)
{
    const golden *g = *state;
    const int32_t *tokens = find(g, "tokens", "")->data, *targets = find(g, "targets", "")->data;
    const golden_array *truth = find(g, "logits", "");
    float *logits = malloc(truth->count * sizeof *logits);
    assert_non_null(logits);
    double golden_loss = *(const float *)find(g, "loss", "")->data, loss = 0;

    test_model t = test_model_create(&g->config, g->batch, g->length, 1, 1, "none");
    write_values(g, t.rt);
    must(sluice_gpt2_evaluate(t.model, tokens, targets, &loss, logits));
    double largest = 0;
    for (uint64_t i = 0; i < truth->count; i++)
        largest = fmax(largest, fabs(logits[i] - ((const float *)truth->data)[i]));
    print_message("largest difference of a logit from PyTorch's: %g\n", largest);
    assert_true(largest <= 1e-4);
    assert_true(fabs(loss - golden_loss) < 1e-5);

    const sluice_step_options options = {0};
    must(sluice_step_begin(t.rt, &options));
    must(sluice_gpt2_forward(t.model, tokens, targets));
    must(sluice_gpt2_backward(t.model, &loss));
    must(sluice_step_end(t.rt, NULL));
    must(sluice_runtime_sync(t.rt));
    assert_true(fabs(loss - golden_loss) < 1e-5);
    uint32_t compared = 0;
    for (uint32_t i = 0; i < sluice_runtime_param_count(t.rt); i++) {
        sluice_param *param = sluice_runtime_param(t.rt, i);
        const golden_array *gradient = find(g, "gradient/", sluice_param_name(param));
        if (!gradient) continue;
        float *ours = read_gradient(param);
        double *theirs = malloc(gradient->count * sizeof *theirs);
        assert_non_null(theirs);
        for (uint64_t k = 0; k < gradient->count; k++) theirs[k] = ((const float *)gradient->data)[k];
        double error = relative_error(ours, theirs, gradient->count);
        if (error > 1e-4) fail_msg("gradient of %s: relative error %g", sluice_param_name(param), error);
        free(theirs);
        free(ours);
        compared++;
    }
    assert_int_equal(compared, 11);
    test_model_destroy(&t);
    free(logits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_agrees),
        cmocka_unit_test(model_agrees),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
