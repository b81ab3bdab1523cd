/* `sluice eval`: writes loss and logits of given weights on given inputs, and the gradients if they are wanted, in
 * safetensors under Hugging Face's names, so that anyone can compare with another implementation. */
#include "bench/cli/command.h"
#include "bench/cli/outcome.h"
#include "bench/cli/result_file.h"
#include "bench/cli/parse.h"
#include "lib/base/status.h"
#include "lib/model/gradient_keeper.h"
#include "lib/model/inputs.h"
#include "lib/model/params.h"
#include "lib/weights/safetensors.h"

#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16 };

typedef struct {
    const char *weights, *inputs, *logits, *gradients, *precision, *device, *json;
    uint32_t threads;
} eval_options;

typedef struct {
    const eval_options *options;
    sluice_model_config config;
    slc_model_inputs inputs;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
    double loss; /* NaN: no labels */
    slc_outcome outcome;
} evaluation;

/* ---- Gradients ---- */

static sluice_status make_gradients(evaluation *e)
{
    const sluice_step_options options = SLUICE_INIT(sluice_step_options);
    sluice_status status = sluice_step_begin(e->rt, &options);
    if (!status) status = sluice_model_forward(e->model, &e->inputs.given);
    if (!status) status = sluice_model_backward(e->model, &e->loss);
    if (!status) status = sluice_step_end(e->rt, NULL);
    return status ? status : sluice_runtime_sync(e->rt);
}

static sluice_status write_gradient(slc_safetensors_writer *writer, uint32_t index, sluice_param *param, float *piece)
{
    sluice_status status = SLUICE_OK;
    uint64_t elements = sluice_param_count(param);
    for (uint64_t first = 0; !status && first < elements; first += PIECE) {
        uint64_t count = elements - first < PIECE ? elements - first : PIECE;
        status = sluice_param_state_read(param, "gradient", first, count, piece);
        if (!status) status = slc_safetensors_write_float(writer, index, count, piece);
    }
    return status;
}

static sluice_status write_gradients(evaluation *e)
{
    slc_safetensors_writer *writer = NULL;
    slc_param_info info;
    float *piece = malloc(PIECE * sizeof *piece);
    sluice_status status =
        piece ? slc_safetensors_create(e->options->gradients, &writer) : slc_error(SLUICE_ERR_MEMORY, "gradients");
    for (uint32_t i = 0, index; !status && slc_param_info_at(&e->config, i, &info); i++)
        status = slc_safetensors_declare(writer, info.full_name, SLC_TENSOR_F32, info.rank, info.shape, &index);
    for (uint32_t i = 0; !status && i < sluice_runtime_param_count(e->rt); i++)
        status = write_gradient(writer, i, sluice_runtime_param(e->rt, i), piece);
    if (!status) status = slc_safetensors_commit(writer);
    slc_safetensors_destroy(writer);
    free(piece);
    return status;
}

/* ---- Logits ---- */

static uint32_t logits_shape(const evaluation *e, uint64_t shape[3])
{
    const sluice_model_config *c = &e->config;
    shape[0] = e->inputs.batch;
    if (c->head == SLUICE_HEAD_CLASSES) {
        shape[1] = c->classes;
        return 2;
    }
    shape[1] = sluice_model_targets(c, e->inputs.length);
    shape[2] = c->vocabulary;
    return 3;
}

static sluice_status write_logits(const evaluation *e, const float *logits, uint32_t rank, const uint64_t *shape,
                                  uint64_t count)
{
    slc_safetensors_writer *writer = NULL;
    uint32_t index;
    sluice_status status = slc_safetensors_create(e->options->logits, &writer);
    if (!status) status = slc_safetensors_declare(writer, "logits", SLC_TENSOR_F32, rank, shape, &index);
    if (!status) status = slc_safetensors_write_float(writer, index, count, logits);
    if (!status) status = slc_safetensors_commit(writer);
    slc_safetensors_destroy(writer);
    return status;
}

static sluice_status evaluate(evaluation *e)
{
    uint64_t shape[3], count = 1;
    uint32_t rank = logits_shape(e, shape);
    for (uint32_t i = 0; i < rank; i++) count *= shape[i];
    float *logits = e->options->logits ? malloc(count * sizeof *logits) : NULL;
    if (e->options->logits && !logits) return slc_error(SLUICE_ERR_MEMORY, "%" PRIu64 " logits", count);
    sluice_status status = sluice_model_evaluate(e->model, &e->inputs.given, &e->loss, logits);
    if (!status && logits) slc_outcome_add(&e->outcome, write_logits(e, logits, rank, shape, count));
    free(logits);
    return status;
}

/* ---- The command ---- */

static sluice_status create(evaluation *e)
{
    const eval_options *o = e->options;
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = e->inputs.batch, .length = e->inputs.length);
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = "dp";
    config.schedule = "serial";
    config.recompute = SLUICE_RECOMPUTE_NONE;
    config.optimizer = &slc_gradient_keeper;
    config.threads = o->threads;
    config.device = o->device;
    config.precision = !strcmp(o->precision, "bf16") ? SLUICE_BF16 : SLUICE_FP32;
    sluice_status status = sluice_world_create(NULL, &e->world);
    if (status) return status;
    if (sluice_world_size(e->world) > 1)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "one rank evaluates; start it without a launcher");
    status = sluice_runtime_create(e->world, &config, &e->rt);
    if (!status) status = sluice_model_create(e->rt, &e->config, &options, &e->model);
    if (!status) status = sluice_runtime_commit(e->rt);
    return status ? status : sluice_model_load(e->model, o->weights, false);
}

static sluice_status report_loss(const evaluation *e)
{
    FILE *text = slc_is_standard_output(e->options->json) ? stderr : stdout;
    fprintf(text, "%s, %u %s", sluice_model_family_name((uint32_t)e->config.family), e->inputs.batch,
            e->inputs.length ? "sequences" : "images");
    if (e->inputs.length) fprintf(text, " of %u tokens", e->inputs.length);
    if (strcmp(e->options->device, "cpu")) fprintf(text, ", %s", sluice_runtime_device(e->rt));
    if (isnan(e->loss))
        fprintf(text, "\n");
    else
        fprintf(text, ": loss %.6f\n", e->loss);
    json_t *content = json_object();
    json_object_set_new(content, "loss", isnan(e->loss) ? json_null() : json_real(e->loss));
    sluice_status status = slc_result_file_write_json(e->options->json, content);
    json_decref(content);
    return status;
}

static sluice_status run_evaluation(evaluation *e)
{
    const eval_options *o = e->options;
    e->config = SLUICE_INIT(sluice_model_config);
    sluice_status status = sluice_model_config_read(o->weights, &e->config);
    if (!status) status = slc_model_inputs_read(o->inputs, &e->config, &e->inputs);
    if (!status && o->gradients && !e->inputs.targets)
        status = slc_error(SLUICE_ERR_ARGUMENT, "--gradients: %s has no \"labels\"", o->inputs);
    if (!status) status = create(e);
    if (!status) status = evaluate(e);
    if (!status && o->gradients) status = make_gradients(e);
    if (status) return status;
    if (o->gradients) slc_outcome_add(&e->outcome, write_gradients(e));
    slc_outcome_add(&e->outcome, report_loss(e));
    return slc_outcome_status(&e->outcome);
}

static const struct argp_option option_rows[] = {
    {"weights", 'w', "PATH", 0, "A folder with config.json and model.safetensors, or an llm.c checkpoint of GPT-2", 1},
    {"inputs", 'i', "FILE", 0,
     "Safetensors with input_ids, attention_mask, token_type_ids (bert), or pixel_values, bool_masked_pos (beit); and "
     "labels, for the loss",
     1},
    {"logits", 'l', "FILE", 0, "Write \"logits\" as safetensors", 1},
    {"gradients", 'g', "FILE", 0, "Write the loss's gradient of every parameter, under its name", 1},
    {"precision", 'p', "NAME=fp32,bf16", 0, "fp32 or bf16 (default fp32)", 1},
    {"threads", 't', "N", 0, "Compute threads (default 1)", 1},
    {"device", 'd', "NAME=cpu,cuda", 0, "Device: cpu, or cuda: a GPU (default cpu)", 1},
    {"json", 'j', "FILE", 0, "Write the loss as JSON; '-': standard output", 1},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    eval_options *o = state->input;
    char *end = NULL;
    switch (key) {
    case 'w': o->weights = text; return 0;
    case 'i': o->inputs = text; return 0;
    case 'l': o->logits = text; return 0;
    case 'g': o->gradients = text; return 0;
    case 'j': o->json = text; return 0;
    case 'd': o->device = text; return 0;
    case 'p':
        o->precision = text;
        if (strcmp(text, "fp32") && strcmp(text, "bf16")) argp_error(state, "--precision %s: use fp32 or bf16", text);
        return 0;
    case 't': {
        unsigned long threads = strtoul(text, &end, 10);
        if (end == text || *end || threads < 1 || threads > 1024)
            argp_error(state, "--threads %s: give a whole number from 1 to 1024", text);
        o->threads = (uint32_t)threads;
        return 0;
    }
    case ARGP_KEY_END:
        if (!o->weights || !o->inputs) argp_error(state, "--weights and --inputs are needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int run_eval(int argc, char **argv)
{
    eval_options options = {.precision = "fp32", .device = "cpu", .threads = 1};
    const struct argp parser = {
        .options = option_rows,
        .parser = parse_option,
        .doc = "Evaluates weights in Hugging Face's files (gpt2, bert, vit, beit) on inputs in a file.\v"
               "Examples:\n"
               "  sluice eval --weights gpt2/ --inputs inputs.safetensors --logits logits.safetensors\n"
               "  sluice eval --weights vit/ --inputs images.safetensors --gradients gradients.safetensors --json -\n\n"
               "Labels are Hugging Face's: -100 is ignored, GPT-2's are the tokens themselves.\n"
               "More: docs/models.md",
    };
    slc_parse(&parser, argc, argv, 0, &options);
    evaluation e = {.options = &options, .loss = NAN};
    sluice_status status = run_evaluation(&e);
    if (status) fprintf(stderr, "sluice eval: %s\n", sluice_last_error());
    sluice_model_destroy(e.model);
    sluice_runtime_destroy(e.rt);
    sluice_world_destroy(e.world);
    slc_model_inputs_free(&e.inputs);
    return status ? EXIT_FAILED : 0;
}

const sluice_command slc_command_eval = {"eval", "loss and logits of given weights on given inputs", run_eval};
