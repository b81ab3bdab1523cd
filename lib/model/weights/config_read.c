/* Reads a model's configuration with its weights, which must have all of its layers, or without them.
 * weights_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/model/model.h"
#include "lib/model/params.h"
#include "lib/model/shape.h"
#include "lib/model/weights/weights_parts.h"
#include "lib/weights/checkpoint.h"

#include <string.h>
#include <sys/stat.h>

static sluice_status give_config(const slc_config *config, const char *path, sluice_model_config *out)
{
    sluice_model_config model;
    slc_model_config_from_file(config, &model);
    sluice_status status = slc_error_context(sluice_model_config_check(&model), "%s", path);
    return status ? status : slc_model_config_give(&model, out);
}

sluice_status sluice_model_config_read(const char *path, sluice_model_config *out)
{
    slc_config config;
    slc_tensors *tensors = NULL;
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    if (!path || !out) return slc_model_lacks("model_config_read", path ? "place for the result" : "path");
    sluice_status status = slc_checkpoint_open(path, &config, &tensors);
    if (!status) status = give_config(&config, path, &model);
    if (!status) status = slc_weights_have_layers(&model, &config, tensors, path);
    slc_tensors_close(tensors);
    return status ? status : slc_model_config_give(&model, out);
}

sluice_status slc_model_shape_read(const char *path, sluice_model_config *out)
{
    slc_config config;
    struct stat info;
    const char *ending = strrchr(path, '.');
    const bool alone = ending && !strcmp(ending, ".json");
    if (!alone && (stat(path, &info) || !S_ISDIR(info.st_mode))) return sluice_model_config_read(path, out);
    sluice_status status = slc_config_read(path, &config);
    return status ? status : give_config(&config, path, out);
}
