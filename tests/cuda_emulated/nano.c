#include "tests/cuda_emulated/nano.h"

enum { ROWS = NANO_BATCH * NANO_LENGTH };

static sluice_status create(sluice_config config, const char *size, const sluice_model_options *options, nano *out)
{
    sluice_model_config gpt2 = SLUICE_INIT(sluice_model_config);
    *out = (nano){.batch = options->batch, .length = options->length};
    config.device = "cuda";
    sluice_status status = sluice_model_config_named("gpt2", size, &gpt2);
    if (!status) status = sluice_world_create(NULL, &out->world);
    if (!status) status = sluice_runtime_create(out->world, &config, &out->rt);
    if (!status) status = sluice_model_create(out->rt, &gpt2, options, &out->model);
    if (!status) status = sluice_runtime_commit(out->rt);
    return status ? status : sluice_model_init(out->model, 1);
}

sluice_status nano_create_size(sluice_config config, const char *size, uint32_t batch, uint32_t length, nano *out)
{
    const sluice_model_options options = SLUICE_INIT(sluice_model_options, .batch = batch, .length = length);
    return create(config, size, &options, out);
}

sluice_status nano_create_for_recipes(sluice_config config, nano *out)
{
    static const uint32_t shapes[] = {NANO_SHORT};
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = NANO_BATCH, .length = NANO_LENGTH, .length_step = NANO_SHORT,
                    .length_least = NANO_SHORT, .shape_lengths = shapes, .shape_count = 1, .scales_branches = 1);
    return create(config, "nano", &options, out);
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

sluice_status nano_step_of(const nano *n, const sluice_step_options *options, uint32_t micro_batches, uint32_t first,
                           uint32_t length)
{
    int32_t tokens[ROWS];
    const sluice_batch batch =
        SLUICE_INIT(sluice_batch, .tokens = tokens, .targets = tokens, .length = length == n->length ? 0 : length);
    sluice_status status = sluice_step_begin(n->rt, options);
    for (uint32_t m = first; !status && m < first + micro_batches; m++) {
        for (uint32_t i = 0; i < n->batch * length; i++) tokens[i] = (int32_t)((m * 31 + i * 7) % 256);
        status = sluice_model_forward(n->model, &batch);
        if (!status) status = sluice_model_backward(n->model, NULL);
    }
    return status ? status : sluice_step_end(n->rt, NULL);
}

sluice_status nano_step(const nano *n, uint32_t micro_batches, uint32_t first)
{
    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3);
    return nano_step_of(n, &options, micro_batches, first, n->length);
}

sluice_status nano_recipe_step(const nano *n, uint32_t step, bool is_short, uint32_t first)
{
    const sluice_layer *left_out[8];
    const uint32_t blocks = sluice_model_get_config(n->model)->layers, length = is_short ? NANO_SHORT : NANO_LENGTH;
    sluice_step_options options =
        SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3, .layers_left_out = left_out,
                    .shape = sluice_model_shape(n->model, length), .extent = (double)length / NANO_LENGTH);
    sluice_status status = SLUICE_OK;
    for (uint32_t b = 0; !status && b < blocks && b < 8; b++)
        if (step * 5 % 7 >> b % 3 & 1)
            left_out[options.layer_left_out_count++] = sluice_model_block(n->model, b);
        else
            status = sluice_model_scale_branches(n->model, b, 1 + 0.25 * (step % 3));
    return status ? status : nano_step_of(n, &options, 1, first, length);
}
