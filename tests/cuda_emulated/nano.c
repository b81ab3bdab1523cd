#include "tests/cuda_emulated/nano.h"

enum { ROWS = NANO_BATCH * NANO_LENGTH };

sluice_status nano_create_size(sluice_config config, const char *size, uint32_t batch, uint32_t length, nano *out)
{
    sluice_model_config gpt2 = SLUICE_INIT(sluice_model_config);
    const sluice_model_options options = SLUICE_INIT(sluice_model_options, .batch = batch, .length = length);
    *out = (nano){.batch = batch, .length = length};
    config.device = "cuda";
    sluice_status status = sluice_model_config_named("gpt2", size, &gpt2);
    if (!status) status = sluice_world_create(NULL, &out->world);
    if (!status) status = sluice_runtime_create(out->world, &config, &out->rt);
    if (!status) status = sluice_model_create(out->rt, &gpt2, &options, &out->model);
    if (!status) status = sluice_runtime_commit(out->rt);
    return status ? status : sluice_model_init(out->model, 1);
}

sluice_status nano_create(sluice_config config, nano *out)
{
    return nano_create_size(config, "nano", NANO_BATCH, NANO_LENGTH, out);
}

void nano_destroy(nano *n)
{
    sluice_model_destroy(n->model);
    sluice_runtime_destroy(n->rt);
    sluice_world_destroy(n->world);
}

sluice_status nano_step(const nano *n, uint32_t micro_batches, uint32_t first)
{
    int32_t tokens[ROWS];
    const sluice_batch batch = SLUICE_INIT(sluice_batch, .tokens = tokens, .targets = tokens);
    sluice_status status = sluice_step_begin(n->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3));
    for (uint32_t m = first; !status && m < first + micro_batches; m++) {
        for (uint32_t i = 0; i < n->batch * n->length; i++) tokens[i] = (int32_t)((m * 31 + i * 7) % 256);
        status = sluice_model_forward(n->model, &batch);
        if (!status) status = sluice_model_backward(n->model, NULL);
    }
    return status ? status : sluice_step_end(n->rt, NULL);
}
