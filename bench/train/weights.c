/* `sluice weights`: makes weights as Hugging Face has them of a checkpoint, without data and without training. One rank
 * reads the checkpoint, whatever number of ranks has saved it. tests/command/weights/saved_weights_test.sh covers this
 * file. */
#include "bench/cli/command.h"
#include "bench/cli/options/command_line.h"
#include "bench/cli/rank_report.h"
#include "bench/launch/stop_signals.h"
#include "bench/train/checkpoint/checkpoint.h"
#include "bench/train/options/options.h"
#include "bench/train/saved_weights.h"
#include "lib/base/status.h"

#include <inttypes.h>
#include <sluice/checkpoint.h>
#include <stdio.h>
#include <string.h>

static const char command[] = "sluice weights";
static volatile sig_atomic_t stops;

typedef struct {
    const char *output, *checkpoint, *tokenizer, *like;
    bool overwrite;
} weights_options;

typedef struct {
    slc_training_options training; /* of the run that saved it */
    sluice_model_config model;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *trained;
    json_t *beside; /* its weights: names of classes, how an image becomes pixels */
} conversion;

/* Makes the model for one sequence of one token, or one image, so that activations take next to nothing: nothing is
 * computed. */
static sluice_status create(conversion *c)
{
    sluice_config config;
    sluice_model_options options = SLUICE_INIT(sluice_model_options, .batch = 1, .length = c->model.context ? 1 : 0,
                                               .precision = c->training.layer_precision);
    sluice_status status = slc_training_config(&c->training, &config);
    if (!status) status = sluice_world_create(NULL, &c->world);
    if (!status) status = sluice_runtime_create(c->world, &config, &c->rt);
    if (!status) status = sluice_model_create(c->rt, &c->model, &options, &c->trained);
    return status ? status : sluice_runtime_commit(c->rt);
}

static sluice_status read_run(conversion *c, const weights_options *o)
{
    uint32_t length;
    slc_training_options_init(&c->training);
    sluice_status status = slc_training_saved_run(o->checkpoint, &c->training, &c->beside);
    c->training.save_weights = o->output;
    c->training.overwrite = o->overwrite;
    c->training.tokenizer = o->tokenizer;
    if (!status) status = slc_training_options_check(&c->training);
    c->model = SLUICE_INIT(sluice_model_config);
    if (!status) status = slc_training_model(&c->training, &c->model, &length);
    c->training.weights = o->like; /* after the model is known, which is the checkpoint's */
    return status;
}

static sluice_status convert(conversion *c, const weights_options *o)
{
    sluice_status status = read_run(c, o);
    if (!status) status = slc_saved_weights_check(&c->training);
    if (!status) status = slc_saved_weights_check_room(&c->training, sluice_model_param_count(&c->model));
    if (!status) status = create(c);
    if (!status) status = sluice_checkpoint_load(c->rt, o->checkpoint, NULL, NULL);
    if (status) return status;
    const slc_saved_weights saved = {c->world, &c->training, c->trained, NULL, &stops, c->beside};
    return slc_saved_weights_write(&saved);
}

/* ---- The command ---- */

#define FIELD(name) SLC_OPTION_FIELD(weights_options, name)

static const slc_option option_rows[] = {
    {"output", "DIR", 1, SLC_OPTION_TEXT, FIELD(output), NULL, 0,
     "Write config.json and model.safetensors into this folder", .letter = 'o'},
    {"tokenizer", "PATH", 1, SLC_OPTION_TEXT, FIELD(tokenizer), NULL, 0,
     "Put this tokenizer's files into the folder, or those of --like"},
    {"like", "DIR", 1, SLC_OPTION_TEXT, FIELD(like), NULL, 0,
     "The weights that the run began with, whose tokenizer, dropout, drop_path_rate and generation_config.json the "
     "folder gets"},
    {"overwrite", NULL, 1, SLC_OPTION_FLAG, FIELD(overwrite), NULL, 0, "Replace weights that the folder has"},
    {0},
};

static sluice_status check_options(void *options)
{
    const weights_options *o = options;
    if (!o->checkpoint) return slc_error(SLUICE_ERR_ARGUMENT, "name the folder of --save, or one checkpoint in it");
    if (!o->output) return slc_error(SLUICE_ERR_ARGUMENT, "--output is needed: the folder for the weights");
    return SLUICE_OK;
}

static int run_weights(int argc, char **argv)
{
    weights_options options = {0};
    const slc_command_line line = {
        .rows = option_rows,
        .arguments = "DIR",
        .argument = offsetof(weights_options, checkpoint),
        .check = check_options,
        .doc = "Makes weights for transformers, sluice eval and sluice generate of a checkpoint that sluice train has "
               "saved.\v"
               "Examples:\n"
               "  sluice weights run/ -o model/\n"
               "  sluice weights run/step-000120 -o model/ --like gpt2/\n\n"
               "It takes as much memory as one rank that trains the model with everything on it (dp), without "
               "activations. Nobody must be saving to the folder meanwhile.\n"
               "More: docs/models.md",
    };
    slc_command_line_parse(&line, argc, argv, &options);
    if (slc_is_one_of_several_ranks()) {
        slc_error(SLUICE_ERR_UNSUPPORTED, "one rank makes weights of a checkpoint; start it without a launcher");
        return slc_rank_refuse(command);
    }
    conversion c = {0};
    sluice_status status = slc_stop_signals_take();
    slc_stop_signals_count(&stops);
    if (!status) status = convert(&c, &options);
    const int code = status ? slc_fail(command) : 0;
    if (!code)
        printf("weights in %s: %s %s, step %" PRIu64 "\n", options.output, c.training.model, c.training.size,
               sluice_runtime_step(c.rt));
    json_decref(c.beside);
    sluice_model_destroy(c.trained);
    sluice_runtime_destroy(c.rt);
    sluice_world_destroy(c.world);
    return code;
}

const sluice_command slc_command_weights = {"weights", "makes weights of a checkpoint", run_weights};
