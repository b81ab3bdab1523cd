/* The training options as one table: the parser, the defaults and the help are made from its rows. */
#include "bench/train/options.h"

#include "bench/train/onebit_options.h"
#include "lib/base/fnv.h"
#include "lib/base/parse_quantity.h"
#include "lib/base/status.h"
#include "lib/comm/join/launcher.h"
#include "lib/plan/request.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { TEXT, COUNT, REAL, FLAG, PATHS, HEADING } option_type; /* a heading has a doc alone */

typedef struct {
    const char *name, *argument;
    option_type type;
    size_t offset;
    const char *fallback; /* as the user would type it; NULL: not set */
    double least, most;   /* COUNT, REAL */
    const char *doc;
} option_row;

#define FIELD(name) offsetof(slc_training_options, name)
static const double MOST = 4294967295.0;

enum { VISUAL_TOKENS = 8192, VISUAL_TOKENS_SMALL = 64 }; /* BEiT's, and enough for small images */
enum { FIRST_KEY = 1000, KEY_RANKS = 'n', GROUP_RANKS = 4 };

enum { ROW_MODEL = 1, ROW_SIZE }; /* behind the first heading */

static const option_row rows[] = {
    {.type = HEADING, .doc = "What is trained:"},
    {"model", "NAME", TEXT, FIELD(model), "gpt2", 0, 0, "Model: gpt2, bert, vit, beit"},
    {"size", "NAME", TEXT, FIELD(size), "nano", 0, 0,
     "Size: nano, mini; gpt2: small (124M), medium, large, xl; bert, vit, beit: base, large; vit: tiny, small"},
    {"head", "WHAT", TEXT, FIELD(head), "", 0, 0,
     "What is answered: tokens (gpt2, bert: masked tokens, beit: masked patches) or classes (bert, vit, beit); none: "
     "tokens of text, classes of images"},
    {"weights", "PATH", TEXT, FIELD(weights), NULL, 0, 0,
     "Begin with these weights, and with the model that they are of: a folder with Hugging Face's config.json and "
     "model.safetensors, or an llm.c checkpoint; none: first values"},
    {"data", "PATH", PATHS, FIELD(data), "", 0, 0,
     "What to train on: text, llm.c's token files, images; a file or a folder; may be repeated, or a list with commas; "
     "none: the system's licences, or scikit-learn's handwritten digits"},
    {.type = HEADING, .doc = "How it is trained:"},
    {"batch", "N", COUNT, FIELD(batch), "4", 1, MOST, "Sequences (images) a rank and micro-batch"},
    {"context", "N", COUNT, FIELD(context), "0", 0, MOST, "Tokens a sequence; 0: the model's, at most 256"},
    {"micro-batches", "N", COUNT, FIELD(micro_batches), "1", 1, 65536, "Micro-batches a step"},
    {"steps", "N", COUNT, FIELD(steps), "100", 1, MOST, "Steps"},
    {"seed", "N", COUNT, FIELD(seed), "1", 0, MOST, "Of the first values, of the choice of data and of dropout"},
    {"optimizer", "NAME", TEXT, FIELD(optimizer), "", 0, 0,
     "Optimizer: adamw, lamb; onebit_adam, onebit_lamb, zero_one_adam (compressed: after a warm-up ranks exchange one "
     "bit an element); none: adamw, or onebit_adam where onebit is asked for or allowed"},
    {"lr", "X", REAL, FIELD(learning_rate), "0.001", 0, 1e6, "Learning rate"},
    {"warmup", "N", COUNT, FIELD(warmup), "0", 0, MOST, "Steps over which the learning rate grows from 0"},
    {"clip", "X", REAL, FIELD(clip), "0", 0, 1e30, "Clip the gradient's global norm; 0: do not"},
    {"dropout", "X", REAL, FIELD(dropout), "0", 0, 0.99,
     "Share of embeddings, attention probabilities and branches that a step leaves out; 0: none"},
    {"nan", "WHAT", TEXT, FIELD(nan), "stop", 0, 0, "A gradient that is not finite: stop, or skip the step"},
    {"accumulate", "WHEN", TEXT, FIELD(accumulate), "last", 0, 0,
     "Reduce gradients after the last micro-batch, or after each"},
    {"tied", "HOW", TEXT, FIELD(tied), "joint", 0, 0,
     "A token table that is the head's matrix too: joint: one gradient of both uses; split: the rows that are looked "
     "up are gathered and reduced by themselves, so that a step neither begins nor ends with all of the table"},
    {"precision", "NAME", TEXT, FIELD(precision), "fp32", 0, 0,
     "Of values, gradients and activations: fp32, or bf16 with an fp32 master copy"},
    {"layer-precision", "LIST", TEXT, FIELD(layer_precision), NULL, 0, 0, "Layers that differ, as h.0=fp32,h.1=fp32"},
    {"wire", "NAME", TEXT, FIELD(wire), "bf16", 0, 0,
     "Of bf16 layers' gradients, in memory and between ranks: bf16, fp32"},
    {.type = HEADING, .doc = "Compressed optimizers:"},
    {"freeze-step", "N", COUNT, FIELD(freeze_step), "0", 0, MOST,
     "Last step of the warm-up, when the variance is frozen; 0: a fifth of --steps, at least 5, and not before "
     "--warmup "
     "is over"},
    {"freeze-change", "X", REAL, FIELD(freeze_change), "0", 0, 0.999,
     "Instead: freeze when the variance's norm changes by no more than this share, as 0.04; 0: at a step"},
    {"onebit-compat", NULL, FLAG, FIELD(onebit_compat), NULL, 0, 0,
     "To the letter as DeepSpeed executes them: no bias correction, the first step discarded, LAMB in one buffer"},
    {"onebit", "LIST", TEXT, FIELD(onebit), NULL, 0, 0,
     "Their other settings, as factor_max=2,factor_min=0.5 (a wrong name lists all)"},
    {.type = HEADING, .doc = "Memory, communication, ranks:"},
    {"strategy", "NAME", TEXT, FIELD(strategy), "auto", 0, 0,
     "What is sharded: auto (with ilp and portfolio: each unit by itself), dp, oss, sdp, fsdp, mixed, random:SEED, or "
     "a JSON file; "
     "onebit: nothing, and momentum is exchanged compressed"},
    {"lossy", "WHAT", TEXT, FIELD(lossy), "none", 0, 0,
     "onebit: auto, random:SEED and files may choose onebit for some layers; a compressed --optimizer says so too"},
    {"schedule", "NAME", TEXT, FIELD(schedule), SLC_SCHEDULE_DEFAULT, 0, 0,
     "Order of communication: serial, one_ahead, bucketed, random; priority, greedy, ilp and portfolio begin with "
     "serial, "
     "measure, and plan again after the third step"},
    {"recompute", "WHICH", TEXT, FIELD(recompute), "auto", 0, 0,
     "Layers that run their forward again in backward: none, all that can, auto: as the planner chooses"},
    {"budget", "SIZE", TEXT, FIELD(budget), "", 0, 0,
     "Memory a rank may use, as 900MiB, or 60% of what dp needs; none: what the plan needs"},
    {"block", "BYTES", TEXT, FIELD(block), "1MiB", 0, 0, "Base block of communication; fixes who owns what"},
    {"threads", "N", COUNT, FIELD(threads), "1", 1, 1024, "Compute threads a rank"},
    {"device", "NAME", TEXT, FIELD(device), "cpu", 0, 0, "Device: cpu"},
    {"throttle", "RATE", TEXT, FIELD(throttle), "", 0, 0, "Slow the network down, as 1gbit,50us"},
    {"timeout", "S", REAL, FIELD(timeout_s), "0", 0, 1e9,
     "A rank that is silent or absent this long is an error; 0: as settings say"},
    {.type = HEADING, .doc = "What is evaluated, kept and written:"},
    {"eval-every", "N", COUNT, FIELD(eval_every), "0", 0, MOST, "Evaluate every N steps; 0: only at the end"},
    {"eval-batches", "N", COUNT, FIELD(eval_batches), "4", 0, 65536,
     "Micro-batches of held-out data an evaluation takes; 0: never evaluate"},
    {"save", "DIR", TEXT, FIELD(save), NULL, 0, 0,
     "Save checkpoints to this folder: at the end, when Ctrl-C stops the run, and as --save-every says; the last two "
     "stay"},
    {"save-every", "N", COUNT, FIELD(save_every), "0", 0, MOST, "Save every N steps too; 0: not in between"},
    {"on-save-error", "WHAT", TEXT, FIELD(on_save_error), "stop", 0, 0,
     "A checkpoint that cannot be saved, tried once more: stop ends the run with an error and all its other outputs; "
     "warn goes on, with an error at the end if the last one failed"},
    {"resume", "DIR", TEXT, FIELD(resume), NULL, 0, 0,
     "Go on from the latest checkpoint in this folder; --steps counts from the very beginning"},
    {"save-weights", "DIR", TEXT, FIELD(save_weights), NULL, 0, 0,
     "At the end write config.json and model.safetensors as Hugging Face has them into this folder"},
    {"trace", "FILE", TEXT, FIELD(trace), NULL, 0, 0,
     "Record, and write the last steps' timeline of all ranks for Perfetto; '-': standard output"},
    {"json", "FILE", TEXT, FIELD(json), NULL, 0, 0, "Write the results as JSON; '-': standard output"},
    {"csv", "FILE", TEXT, FIELD(csv), NULL, 0, 0, "Write a table as CSV; '-': standard output"},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- Parsing ---- */

static sluice_status parse_number(const option_row *row, const char *text, double *out)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    bool whole = row->type != COUNT || value == floor(value);
    if (end == text || *end || errno || !whole || !(value >= row->least && value <= row->most))
        return slc_error(SLUICE_ERR_ARGUMENT, "--%s %s: give a %s from %.10g to %.10g", row->name, text,
                         row->type == COUNT ? "whole number" : "number", row->least, row->most);
    *out = value;
    return SLUICE_OK;
}

/* A repeated --data adds to the earlier ones; the default counts only while none is given. */
static sluice_status add_paths(slc_training_options *options, char *list)
{
    for (char *rest = list, *path; (path = strsep(&rest, ",")) != NULL;) {
        if (!*path) continue;
        if (options->data_count == SLC_TRAINING_DATA_MAX)
            return slc_error(SLUICE_ERR_ARGUMENT, "--data: more than %d paths; put the files in one folder",
                             SLC_TRAINING_DATA_MAX);
        options->data[options->data_count++] = path;
    }
    return SLUICE_OK;
}

/* `text` stays valid: it is of argv or of the table. */
static sluice_status set_option(slc_training_options *options, const option_row *row, char *text)
{
    char *field = (char *)options + row->offset;
    double number = 0;
    sluice_status status = SLUICE_OK;
    switch (row->type) {
    case TEXT: memcpy(field, &text, sizeof text); break;
    case PATHS: return add_paths(options, text);
    case REAL:
        status = parse_number(row, text, &number);
        if (!status) memcpy(field, &number, sizeof number);
        break;
    case COUNT:
        status = parse_number(row, text, &number);
        if (!status) memcpy(field, &(uint64_t){(uint64_t)number}, sizeof(uint64_t));
        break;
    case FLAG: memcpy(field, &(uint64_t){1}, sizeof(uint64_t)); break;
    case HEADING: break;
    }
    return status;
}

void slc_training_options_init(slc_training_options *options)
{
    *options = (slc_training_options){0};
    for (int i = 0; i < ROWS; i++)
        if (rows[i].fallback && rows[i].type != PATHS) set_option(options, &rows[i], (char *)rows[i].fallback);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    slc_training_options *options = state->input;
    if (key == ARGP_KEY_INIT) {
        slc_training_options_init(options);
        return 0;
    }
    if (key == ARGP_KEY_END) return 0;
    static const option_row ranks = {"ranks", "N", COUNT, FIELD(ranks), NULL, 1, SLC_RANKS_MOST, NULL};
    const option_row *row = NULL;
    if (key == KEY_RANKS)
        row = &ranks;
    else if (key >= FIRST_KEY && key < FIRST_KEY + ROWS)
        row = &rows[key - FIRST_KEY];
    if (!row) return ARGP_ERR_UNKNOWN;
    if (set_option(options, row, text)) argp_error(state, "%s", sluice_last_error());
    return 0;
}

/* ---- Help ---- */

/* argp wants its rows in its own form. */
static struct argp_option argp_rows[ROWS + 2];

static void make_argp_rows(void)
{
    int group = 0;
    for (int i = 0; i < ROWS; i++) {
        bool heading = rows[i].type == HEADING;
        argp_rows[i] = (struct argp_option){.name = rows[i].name,
                                            .key = heading ? 0 : FIRST_KEY + i,
                                            .arg = rows[i].argument,
                                            .doc = rows[i].doc,
                                            .group = group += heading};
    }
    argp_rows[ROWS] = (struct argp_option){
        .name = "ranks", .key = KEY_RANKS, .arg = "N", .doc = "Start N ranks on this machine", .group = GROUP_RANKS};
}

static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    if (key < FIRST_KEY || key >= FIRST_KEY + ROWS || !text) return (char *)text;
    const char *fallback = rows[key - FIRST_KEY].fallback;
    if (!fallback || !*fallback || !strcmp(fallback, "0")) return (char *)text;
    char *longer = NULL;
    return asprintf(&longer, "%s (default %s)", text, fallback) < 0 ? (char *)text : longer;
}

const struct argp *slc_training_argp(void)
{
    static const struct argp parser = {.options = argp_rows, .parser = parse_option, .help_filter = help_filter};
    make_argp_rows();
    return &parser;
}

/* ---- Checking ---- */

/* `have` are the names that work, `later` those that are known but not built; both with commas around each. */
static sluice_status check_name(const char *option, const char *value, const char *have, const char *later)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, ",%s,", value);
    if (strlen(value) < sizeof wanted - 3 && !strchr(value, ',')) {
        if (strstr(have, wanted)) return SLUICE_OK;
        if (strstr(later, wanted))
            return slc_error(SLUICE_ERR_UNSUPPORTED, "--%s %s: not built in this version; use %.*s", option, value,
                             (int)strlen(have) - 2, have + 1);
    }
    return slc_error(SLUICE_ERR_ARGUMENT, "--%s %s: unknown; use %.*s", option, value, (int)strlen(have) - 2, have + 1);
}

/* What the user typed is not the table's own text, so its address tells. The options may be checked twice: then the
 * size is the path. */
static sluice_status check_weights(const slc_training_options *o, const char *family)
{
    bool named = o->model != rows[ROW_MODEL].fallback, sized = o->size != rows[ROW_SIZE].fallback;
    if (!o->weights) return SLUICE_OK;
    if (named && strcmp(o->model, family))
        return slc_error(SLUICE_ERR_ARGUMENT, "--model %s: %s holds a model of the family %s", o->model, o->weights,
                         family);
    if (sized && strcmp(o->size, o->weights))
        return slc_error(SLUICE_ERR_ARGUMENT, "--size %s: the size is that of --weights %s; leave --size out", o->size,
                         o->weights);
    return SLUICE_OK;
}

sluice_status slc_training_options_check(slc_training_options *o)
{
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    sluice_config config;
    uint32_t length;
    sluice_status status = check_name("model", o->model, ",gpt2,bert,vit,beit,", ",");
    if (!status && *o->head) status = check_name("head", o->head, ",tokens,classes,", ",");
    if (!status) status = check_name("device", o->device, ",cpu,", ",cuda,");
    if (!status) status = check_name("precision", o->precision, ",fp32,bf16,", ",fp16,");
    if (!status) status = check_name("wire", o->wire, ",fp32,bf16,", ",");
    if (!status) status = check_name("lossy", o->lossy, ",none,onebit,", ",");
    o->optimizer = slc_training_optimizer(o);
    if (!status)
        status = check_name("optimizer", o->optimizer, ",adamw,lamb,onebit_adam,onebit_lamb,zero_one_adam,", ",");
    if (!status) status = slc_training_onebit_check(o);
    if (!status) status = check_name("nan", o->nan, ",stop,skip,", ",");
    if (!status) status = check_name("accumulate", o->accumulate, ",last,each,", ",");
    if (!status) status = check_name("tied", o->tied, ",joint,split,", ",");
    if (!status)
        status = check_name("schedule", o->schedule, ",serial,one_ahead,bucketed,priority,greedy,random,ilp,portfolio,",
                            ",");
    if (!status) status = check_name("recompute", o->recompute, ",auto,none,all,", ",");
    if (!status) status = check_name("on-save-error", o->on_save_error, ",stop,warn,", ",");
    if (!status && o->save_every && !o->save)
        status = slc_error(SLUICE_ERR_ARGUMENT, "--save-every: give a folder with --save");
    if (!status) status = slc_training_model(o, &model, &length);
    if (!status) status = check_weights(o, sluice_model_family_name((uint32_t)model.family));
    if (!status) o->model = sluice_model_family_name((uint32_t)model.family);
    if (!status) o->head = model.head == SLUICE_HEAD_CLASSES ? "classes" : "tokens";
    if (!status && o->weights) o->size = o->weights;
    if (!status) status = slc_training_config(o, &config);
    return status;
}

sluice_status slc_training_options_keep_nothing(const slc_training_options *o)
{
    if (!o->save && !o->resume && !o->save_weights) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "--save, --resume, --save-weights: only sluice train keeps what it trains");
}

/* ---- Between ranks ---- */

/* What each rank may have its own of: hosts keep files at different places, and a budget is the least of all. */
static bool rank_has_its_own(const option_row *row)
{
    static const char *const own[] = {"size",    "weights", "data",     "budget", "device",
                                      "timeout", "json",    "throttle", "csv"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(row->name, own[i])) return true;
    return false;
}

static uint64_t digest(const slc_training_options *o, const option_row *row)
{
    const char *field = (const char *)o + row->offset, *text;
    if (row->type == HEADING || rank_has_its_own(row)) return 0;
    if (row->type != TEXT) return slc_fnv(SLC_FNV_START, field, 8);
    memcpy(&text, field, sizeof text);
    return slc_fnv(SLC_FNV_START, text ? text : "", text ? strlen(text) : 0);
}

sluice_status slc_training_options_compare(const slc_training_options *o, sluice_world *world)
{
    uint64_t mine[ROWS], ranks = (uint64_t)sluice_world_size(world), (*all)[ROWS] = malloc(ranks * sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "options of %llu ranks", (unsigned long long)ranks);
    for (int i = 0; i < ROWS; i++) mine[i] = digest(o, &rows[i]);
    sluice_status status = sluice_world_all_gather(world, mine, sizeof mine, all);
    for (uint64_t r = 1; !status && r < ranks; r++)
        for (int i = 0; !status && i < ROWS; i++)
            if (all[r][i] != all[0][i])
                status =
                    slc_error(SLUICE_ERR_MISMATCH, "rank %llu has another --%s than rank 0; give all ranks the same",
                              (unsigned long long)r, rows[i].name);
    free(all);
    return status;
}

/* ---- What the options describe ---- */

/* A head that the size's or the file's configuration does not have gets what it needs; the data completes it. */
static void set_head(sluice_model_config *model, sluice_model_head head)
{
    if (model->head == head) return;
    model->head = head;
    if (head == SLUICE_HEAD_CLASSES) {
        model->classes = 2;
    } else if (model->family == SLUICE_BEIT) {
        model->classes = 0;
        model->mask_token = true;
        if (!model->vocabulary) model->vocabulary = model->image_size < 224 ? VISUAL_TOKENS_SMALL : VISUAL_TOKENS;
    }
}

sluice_status slc_training_model(const slc_training_options *o, sluice_model_config *model, uint32_t *length)
{
    sluice_status status =
        o->weights ? sluice_model_config_read(o->weights, model) : sluice_model_config_named(o->model, o->size, model);
    if (status) return slc_error_context(status, o->weights ? "--weights" : "--model, --size");
    if (*o->head) set_head(model, !strcmp(o->head, "classes") ? SLUICE_HEAD_CLASSES : SLUICE_HEAD_TOKENS);
    model->dropout = o->dropout;
    *length = 0;
    if (model->context) {
        if (o->context > model->context)
            return slc_error(SLUICE_ERR_ARGUMENT, "--context %llu: %s has a context of %u",
                             (unsigned long long)o->context, o->weights ? o->weights : o->size, model->context);
        *length = o->context ? (uint32_t)o->context : model->context < 256 ? model->context : 256;
    } else if (o->context) {
        return slc_error(SLUICE_ERR_ARGUMENT, "--context %llu: %s sees images, whose size is the model's",
                         (unsigned long long)o->context, sluice_model_family_name((uint32_t)model->family));
    }
    return slc_error_context(sluice_model_config_check(model), "--head");
}

sluice_status slc_training_config(const slc_training_options *o, sluice_config *config)
{
    sluice_config_init(config);
    config->strategy = o->strategy;
    config->schedule = o->schedule;
    config->updates = o->updates;
    config->recompute = !strcmp(o->recompute, "none")  ? SLUICE_RECOMPUTE_NONE
                        : !strcmp(o->recompute, "all") ? SLUICE_RECOMPUTE_ALL
                                                       : SLUICE_RECOMPUTE_AUTO;
    config->precision = !strcmp(o->precision, "bf16") ? SLUICE_BF16 : SLUICE_FP32;
    config->wire = !strcmp(o->wire, "bf16") ? SLUICE_BF16 : SLUICE_FP32;
    config->optimizer_name = o->optimizer;
    slc_training_onebit(o, &config->onebit);
    config->clip = o->clip;
    config->nan = !strcmp(o->nan, "skip") ? SLUICE_NAN_SKIP : SLUICE_NAN_STOP;
    config->accumulate = !strcmp(o->accumulate, "each") ? SLUICE_ACCUMULATE_EACH : SLUICE_ACCUMULATE_LAST;
    config->tied = !strcmp(o->tied, "split") ? SLUICE_TIED_SPLIT : SLUICE_TIED_JOINT;
    config->micro_batches = (uint32_t)o->micro_batches;
    config->threads = (uint32_t)o->threads;
    config->device = o->device;
    sluice_status status = slc_parse_bytes(o->block, &config->block_bytes);
    if (status) return slc_error_context(status, "--block");
    if (*o->budget) status = slc_parse_budget(o->budget, &config->budget_bytes, &config->budget_of_dp);
    return slc_error_context(status, "--budget");
}

sluice_status slc_training_world(const slc_training_options *o, sluice_world_config *config)
{
    sluice_status status = sluice_world_config_init(config);
    if (status) return status;
    if (*o->throttle) config->throttle = o->throttle;
    if (o->timeout_s > 0) config->timeout_s = o->timeout_s;
    if (o->ranks && (int)o->ranks != config->size)
        return slc_error(SLUICE_ERR_MISMATCH, "-n %llu, but the launcher started %d ranks",
                         (unsigned long long)o->ranks, config->size);
    return SLUICE_OK;
}
