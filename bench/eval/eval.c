/* `sluice eval`: loss of given weights on data (eval_data.c), or loss and logits on given inputs, and the gradients if
 * they are wanted, in safetensors under Hugging Face's names, so that anyone can compare with another implementation.
 * tests/command/weights/eval_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/default_threads.h"
#include "bench/cli/outcome.h"
#include "bench/cli/path_hints.h"
#include "bench/cli/options/command_line.h"
#include "bench/cli/rank_report.h"
#include "bench/cli/output/result_file.h"
#include "bench/eval/eval.h"
#include "lib/base/status.h"
#include "lib/data/dataset.h"
#include "lib/model/batch/inputs.h"
#include "lib/model/params.h"
#include "lib/weights/safetensors/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16 };

typedef struct {
    const slc_eval_options *options;
    slc_eval_model on;
    slc_model_inputs inputs;
    double loss; /* NaN: no labels */
    slc_outcome outcome;
} evaluation;

/* ---- Gradients ---- */

static sluice_status make_gradients(evaluation *e)
{
    const sluice_step_options options = SLUICE_INIT(sluice_step_options);
    sluice_status status = sluice_step_begin(e->on.rt, &options);
    if (!status) status = sluice_model_forward(e->on.model, &e->inputs.given);
    if (!status) status = sluice_model_backward(e->on.model, &e->loss);
    if (!status) status = sluice_step_end(e->on.rt, NULL);
    return status ? status : sluice_runtime_sync(e->on.rt);
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
    for (uint32_t i = 0, index; !status && slc_param_info_at(&e->on.config, i, &info); i++)
        status = slc_safetensors_declare(writer, info.full_name, SLC_TENSOR_F32, info.rank, info.shape, &index);
    for (uint32_t i = 0; !status && i < sluice_runtime_param_count(e->on.rt); i++)
        status = write_gradient(writer, i, sluice_runtime_param(e->on.rt, i), piece);
    if (!status) status = slc_safetensors_commit(writer);
    slc_safetensors_destroy(writer);
    free(piece);
    return status;
}

/* ---- Logits ---- */

static uint32_t logits_shape(const evaluation *e, uint64_t shape[3])
{
    const sluice_model_config *c = &e->on.config;
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
    sluice_status status = sluice_model_evaluate(e->on.model, &e->inputs.given, &e->loss, logits);
    if (!status && logits) slc_outcome_add(&e->outcome, write_logits(e, logits, rank, shape, count));
    free(logits);
    return status;
}

/* ---- The command ---- */

/* Refuses labels that ask for nothing: they are a mistake in the file, because there would be no loss. */
static sluice_status check_labels(const evaluation *e)
{
    const uint64_t count = (uint64_t)e->inputs.batch * sluice_model_targets(&e->on.config, e->inputs.length);
    for (uint64_t i = 0; i < count; i++)
        if (!e->inputs.targets || e->inputs.targets[i] >= 0) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--inputs %s: no label asks for anything: -100 is ignored, and so is the first of each of gpt2's "
                     "sequences; leave \"labels\" out",
                     e->options->inputs);
}

static sluice_status report_loss(const evaluation *e)
{
    FILE *text = slc_is_standard_output(e->options->json) ? stderr : stdout;
    fprintf(text, "%s, %u %s", sluice_model_family_name((uint32_t)e->on.config.family), e->inputs.batch,
            e->inputs.length ? "sequences" : "images");
    if (e->inputs.length) fprintf(text, " of %u tokens", e->inputs.length);
    if (strcmp(e->options->device, "cpu")) fprintf(text, ", %s", sluice_runtime_device(e->on.rt));
    if (isnan(e->loss))
        fprintf(text, "\n");
    else
        fprintf(text, ": loss %.6f\n", e->loss);
    json_t *content = json_object();
    json_object_set_new(content, "loss", isnan(e->loss) ? json_null() : json_real(e->loss));
    return slc_result_file_write_json(e->options->json, content);
}

static sluice_status evaluate_inputs(evaluation *e)
{
    const slc_eval_options *o = e->options;
    e->on.config = SLUICE_INIT(sluice_model_config);
    sluice_status status = slc_hint_weights(sluice_model_config_read(o->weights, &e->on.config), o->weights);
    if (!status) status = slc_model_inputs_read(o->inputs, &e->on.config, &e->inputs);
    if (!status) status = check_labels(e);
    if (!status && o->gradients && !e->inputs.targets)
        status = slc_error(SLUICE_ERR_ARGUMENT, "--gradients: %s has no \"labels\"", o->inputs);
    if (!status) status = slc_eval_model_create(o, e->inputs.batch, e->inputs.length, 0, o->gradients != NULL, &e->on);
    if (!status) status = evaluate(e);
    if (!status && o->gradients) status = make_gradients(e);
    if (status) return status;
    if (o->gradients) slc_outcome_add(&e->outcome, write_gradients(e));
    slc_outcome_add(&e->outcome, report_loss(e));
    return slc_outcome_status(&e->outcome);
}

#define FIELD(name) SLC_OPTION_FIELD(slc_eval_options, name)
static const double MOST = UINT32_MAX;
static const char *const headings[] = {[2] = "With --data:", [3] = "With --inputs:", [4] = "With both:"};

/* Sets an option of `sluice train` that means the same in `sluice eval`. */
static sluice_status set_data(void *options, const slc_option *row, char *text)
{
    return slc_training_option_set(&((slc_eval_options *)options)->data, row->name, text);
}

static const slc_option option_rows[] = {
    {"weights", "PATH", 1, SLC_OPTION_TEXT, FIELD(weights), NULL, 0,
     "A folder with config.json and model.safetensors, or an llm.c checkpoint of GPT-2", .letter = 'w'},
    {"data", "PATH", 1, SLC_OPTION_SET, FIELD(data), NULL, 0,
     "Evaluate all of it: text, JSON lines, CSV, TSV, llm.c's token files, images; a file or a folder; may be "
     "repeated, "
     "or a list with commas (\\, is a comma of a name)",
     .set = set_data},
    {"inputs", "FILE", 1, SLC_OPTION_TEXT, FIELD(inputs), NULL, 0,
     "Or one batch: safetensors with input_ids, attention_mask, token_type_ids (bert), or pixel_values, "
     "bool_masked_pos "
     "(beit); and labels, for the loss",
     .letter = 'i'},
    {"tokenizer", "PATH", 2, SLC_OPTION_SET, FIELD(data.tokenizer), NULL, 0,
     "Read text with this tokenizer.json (default: that of --weights, or bytes)", .set = set_data},
    {"data-type", "TYPE=" SLC_DATA_TYPE_NAMES, 2, SLC_OPTION_SET, FIELD(data.data_type), NULL, 0,
     "Type of --data: auto: what their content says; text; jsonl, csv, tsv: records; uint16: tokens of 2 bytes "
     "(default: auto)",
     .set = set_data},
    {"fields", "LIST", 2, SLC_OPTION_SET, FIELD(data.fields), NULL, 0,
     "Names of the records' fields, as text=body,label=stars", .set = set_data},
    {"data-index", "DIR", 2, SLC_OPTION_SET, FIELD(data.data_index), NULL, 0,
     "Keep where the records of large files begin in this folder (default: beside each file)", .set = set_data},
    {"sequences", "HOW=auto,windows,documents", 2, SLC_OPTION_SET, FIELD(data.sequences), NULL, 0,
     "Records: windows: joined to one text; documents: one a sequence (default: auto: documents for classes and "
     "conversations)",
     .set = set_data},
    {"chat-template", "NAME", 2, SLC_OPTION_SET, FIELD(data.chat_template), NULL, 0,
     "Template that makes text of conversations: chatml, zephyr, llama-2, plain (default: as the tokenizer says)",
     .set = set_data},
    {"image-draft", NULL, 2, SLC_OPTION_FLAG, FIELD(data.image_draft), NULL, 0,
     "Decode JPEG files at 1/2, 1/4 or 1/8 of their size where that is enough for the model: faster; pixels differ a "
     "little"},
    {"visual-tokens", "FILE", 2, SLC_OPTION_SET, FIELD(data.visual_tokens), NULL, 0,
     "The tokens that BEiT guesses: safetensors with \"codebook\", or with \"tokens\" of the images (default: the "
     "codebook beside "
     "the weights)",
     .set = set_data},
    {"context", "N", 2, SLC_OPTION_COUNT, FIELD(data.context), NULL, 0,
     "Tokens of a window (default: the model's context)", 1, MOST},
    {"stride", "N", 2, SLC_OPTION_COUNT, FIELD(stride), NULL, 0,
     "Tokens from one window to the next; fewer than --context let each token be guessed from more of the text before "
     "it "
     "(default: --context)",
     1, MOST},
    {"batch", "N", 2, SLC_OPTION_COUNT, FIELD(data.batch), "4", 0, "Windows or images at a time", 1, 65536},
    {"seed", "N", 2, SLC_OPTION_COUNT, FIELD(data.seed), "1", 0, "Seed of the draw of tokens that bert and beit guess",
     0, MOST},
    {"logits", "FILE", 3, SLC_OPTION_TEXT, FIELD(logits), NULL, 0, "Write \"logits\" as safetensors", .letter = 'l'},
    {"gradients", "FILE", 3, SLC_OPTION_TEXT, FIELD(gradients), NULL, 0,
     "Write the loss's gradient of every parameter, under its name", .letter = 'g'},
    {"precision", "NAME", 4, SLC_OPTION_WORD, FIELD(precision), "fp32", 0, "fp32 or bf16", .choices = "fp32,bf16",
     .letter = 'p'},
    {"threads", "N", 4, SLC_OPTION_COUNT, FIELD(threads), NULL, 0,
     "Compute threads (default: SLURM_CPUS_PER_TASK, else OMP_NUM_THREADS, else 1)", 1, SLC_THREADS_MOST,
     .letter = 't'},
    {"budget", "SIZE", 4, SLC_OPTION_SIZE, FIELD(budget_bytes), NULL, 0,
     "Memory it may use, as 900MiB (default: what it needs)", 1},
    {"device", "NAME=cpu,cuda", 4, SLC_OPTION_TEXT, FIELD(device), "cpu", 0, "Device: cpu, or cuda: a GPU",
     .letter = 'd'},
    {"json", "FILE", 4, SLC_OPTION_TEXT, FIELD(json), NULL, 0, "Write the results as JSON; '-': standard output",
     .letter = 'j'},
    {0},
};

static sluice_status check_options(void *options)
{
    slc_eval_options *o = options;
    const char *why = NULL;
    if (!o->weights)
        why = "--weights is needed";
    else if (!o->inputs == !o->data.data_count)
        why = "give either --data or --inputs";
    else if (o->inputs && (o->data.tokenizer || o->data.context || o->stride))
        why = "--tokenizer, --context and --stride go with --data; --inputs are tokens already";
    else if (!o->inputs && (o->logits || o->gradients))
        why = "--logits and --gradients go with --inputs";
    o->data.weights = o->weights;
    return why ? slc_error(SLUICE_ERR_ARGUMENT, "%s", why) : SLUICE_OK;
}

static int run_eval(int argc, char **argv)
{
    slc_eval_options options = {0};
    const slc_command_line line = {
        .rows = option_rows,
        .headings = headings,
        .hint = "data are --data PATH",
        .check = check_options,
        .doc = "Evaluates weights in Hugging Face's files (gpt2, bert, vit, beit): loss and perplexity or accuracy on "
               "data, or loss, logits and gradients on one batch of inputs.\v"
               "Examples:\n"
               "  sluice eval --weights gpt2/ --data book.txt --stride 512\n"
               "  sluice eval --weights vit/ --data images/\n"
               "  sluice eval --weights gpt2/ --inputs inputs.safetensors --logits logits.safetensors\n"
               "  sluice eval --weights vit/ --inputs images.safetensors --gradients gradients.safetensors --json -\n\n"
               "Labels of --inputs are Hugging Face's: -100 is ignored, GPT-2's are the tokens themselves.\n"
               "More: docs/models.md",
    };
    slc_training_options_init(&options.data);
    slc_command_line_parse(&line, argc, argv, &options);
    if (slc_is_one_of_several_ranks()) {
        slc_error(SLUICE_ERR_UNSUPPORTED, "one rank evaluates; start it without a launcher");
        return slc_rank_refuse("sluice eval");
    }
    evaluation e = {.options = &options, .loss = NAN};
    sluice_status status = slc_error_context(slc_result_file_probe(options.json), "--json");
    if (!status) status = slc_fill_threads(&options.threads);
    options.data.threads = options.threads;
    if (!status) status = options.inputs ? evaluate_inputs(&e) : slc_eval_data(&options);
    const int code = status ? slc_fail("sluice eval") : 0;
    slc_eval_model_destroy(&e.on);
    slc_model_inputs_free(&e.inputs);
    return code;
}

const sluice_command slc_command_eval = {"eval", "loss, perplexity or accuracy of given weights on data", run_eval};
