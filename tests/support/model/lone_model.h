/* Shared by the tests of bundled models: a model on a runtime of one rank. Its optimizer updates nothing and keeps the
 * gradient that it was given as its state, where a test can read it. */
#pragma once

#include "tests/support/base/folder.h"

#include <sluice/model.h>
#include <sluice/sluice.h>

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
} test_model;

/* Models that are made from now on are on this device ("cpu" before the first call), with this smoothing of labels. */
void test_models_on(const char *device);
void test_models_smooth(double label_smoothing);
/* Branches of models that are made from now on may be scaled. */
void test_models_scale_branches(bool may);

bool test_model_on_gpu(void);

/* Makes a world of one rank, a runtime and a model on it, and commits. */
test_model test_model_open(const sluice_config *config, const sluice_model_config *model,
                           const sluice_model_options *options);

/* length is 0 for images. layers: those whose precision differs, or NULL. */
test_model test_model_create_typed(const sluice_model_config *model, uint32_t batch, uint32_t length,
                                   uint32_t micro_batches, uint32_t threads, sluice_recompute recompute,
                                   sluice_dtype precision, const char *layers, sluice_tied tied);

test_model test_model_create(const sluice_model_config *model, uint32_t batch, uint32_t length, uint32_t micro_batches,
                             uint32_t threads, sluice_recompute recompute);
void test_model_destroy(test_model *t);

/* The caller frees. */
float *read_gradient(sluice_param *param);

/* ||x - truth|| / ||truth|| */
double relative_error(const float *x, const double *truth, uint64_t count);
