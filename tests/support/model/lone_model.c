#include "tests/support/model/lone_model.h"

#include "lib/model/gradient_keeper.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *test_device = "cpu"; /* of the models that are made */
static double test_label_smoothing;     /* the same */
static bool test_scales_branches;       /* the same */

void test_models_on(const char *device)
{
    test_device = device;
}

void test_models_smooth(double label_smoothing)
{
    test_label_smoothing = label_smoothing;
}

void test_models_scale_branches(bool may)
{
    test_scales_branches = may;
}

bool test_model_on_gpu(void)
{
    return strcmp(test_device, "cpu") != 0;
}

test_model test_model_open(const sluice_config *config, const sluice_model_config *model,
                           const sluice_model_options *options)
{
    test_model t = {0};
    works(sluice_world_create(NULL, &t.world));
    works(sluice_runtime_create(t.world, config, &t.rt));
    works(sluice_model_create(t.rt, model, options, &t.model));
    works(sluice_runtime_commit(t.rt));
    return t;
}

test_model test_model_create_typed(const sluice_model_config *model, uint32_t batch, uint32_t length,
                                   uint32_t micro_batches, uint32_t threads, sluice_recompute recompute,
                                   sluice_dtype precision, const char *layers, sluice_tied tied)
{
    sluice_config config;
    sluice_config_init(&config);
    config.device = test_device;
    config.strategy = "dp";
    config.schedule = "serial";
    config.recompute = recompute;
    config.optimizer = &slc_gradient_keeper;
    config.tied = tied;
    config.micro_batches = micro_batches;
    config.threads = threads;
    config.precision = config.wire = precision;
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = batch, .length = length, .precision = layers,
                    .label_smoothing = test_label_smoothing, .scales_branches = test_scales_branches);
    return test_model_open(&config, model, &options);
}

test_model test_model_create(const sluice_model_config *model, uint32_t batch, uint32_t length, uint32_t micro_batches,
                             uint32_t threads, sluice_recompute recompute)
{
    return test_model_create_typed(model, batch, length, micro_batches, threads, recompute, SLUICE_FP32, NULL,
                                   SLUICE_TIED_JOINT);
}

void test_model_destroy(test_model *t)
{
    sluice_model_destroy(t->model);
    sluice_runtime_destroy(t->rt);
    sluice_world_destroy(t->world);
}

float *read_gradient(sluice_param *param)
{
    uint64_t count = sluice_param_count(param);
    float *gradient = malloc(count * sizeof *gradient);
    assert_non_null(gradient);
    works(sluice_param_state_read(param, "gradient", 0, count, gradient));
    return gradient;
}

double relative_error(const float *x, const double *truth, uint64_t count)
{
    double error = 0, size = 0;
    for (uint64_t i = 0; i < count; i++) {
        error += (x[i] - truth[i]) * (x[i] - truth[i]);
        size += truth[i] * truth[i];
    }
    return sqrt(error / (size > 0 ? size : 1));
}
