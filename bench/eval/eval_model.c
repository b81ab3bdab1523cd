/* The runtime of `sluice eval`: one rank, which trains nothing. tests/command/weights/eval_test.sh covers this file. */
#include "bench/eval/eval.h"
#include "lib/base/status.h"
#include "lib/model/gradient_keeper.h"

#include <string.h>

sluice_status slc_eval_model_create(const slc_eval_options *o, uint32_t batch, uint32_t length, uint64_t data_bytes,
                                    bool keeps_gradients, slc_eval_model *on)
{
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = batch, .length = length, .evaluates_only = !keeps_gradients,
                    .length_step = on->length_step);
    sluice_config config;
    sluice_config_init(&config);
    config.budget_bytes = o->budget_bytes;
    config.strategy = "dp";
    config.schedule = "serial";
    config.recompute = SLUICE_RECOMPUTE_NONE;
    if (keeps_gradients) config.optimizer = &slc_gradient_keeper;
    config.threads = (uint32_t)o->threads;
    config.device = o->device;
    config.precision = !strcmp(o->precision, "bf16") ? SLUICE_BF16 : SLUICE_FP32;
    sluice_status status = sluice_world_create(NULL, &on->world);
    if (status) return status;
    if (sluice_world_size(on->world) > 1)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "one rank evaluates; start it without a launcher");
    status = sluice_runtime_create(on->world, &config, &on->rt);
    if (!status) status = sluice_model_create(on->rt, &on->config, &options, &on->model);
    if (!status && !strcmp(o->device, "cpu")) status = sluice_runtime_reserve(on->rt, "evaluated data", data_bytes);
    if (!status) status = sluice_runtime_commit(on->rt);
    return status ? status : sluice_model_load(on->model, o->weights, false);
}

void slc_eval_model_destroy(slc_eval_model *on)
{
    sluice_model_destroy(on->model);
    sluice_runtime_destroy(on->rt);
    sluice_world_destroy(on->world);
}
