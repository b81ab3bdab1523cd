/* `sluice eval --data`: loss, and what follows from it, over all of a text or of a folder of images.
 * tests/command/weights/eval_data_test.sh covers this file. */
#include "bench/cli/output/result_file.h"
#include "bench/cli/path_hints.h"
#include "bench/train/cores.h"
#include "bench/train/data/data.h"
#include "bench/eval/eval.h"
#include "bench/train/right_answers.h"
#include "bench/train/data/tokenising.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/weights/family.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const slc_eval_options *options;
    slc_eval_model model;
    uint32_t length; /* 0: images */
    slc_training_data *data;
    slc_training_tokenising tokenising, indexing;
    bool documents;                     /* examples of records, each of its own length */
    uint64_t sequences, targets, right; /* right: answers, of classes */
    uint64_t inputs;                    /* tokens or images that were computed */
    double loss_sum, seconds;
    float *logits; /* of classes; NULL: tokens are answered */
} evaluation;

static bool answers_classes(const evaluation *e)
{
    return e->model.config.head == SLUICE_HEAD_CLASSES;
}

static bool guesses_masked(const evaluation *e)
{
    const slc_family *family = slc_family_of(e->model.config.family);
    return (family->masks || family->sees) && !answers_classes(e);
}

static const char *sequences_word(const evaluation *e)
{
    return e->documents ? "examples" : e->length ? "windows" : "images";
}

/* ---- Opening ---- */

/* Chooses the length of a window: the whole context unless an option says otherwise, because a model guesses better the
 * more it sees. */
static sluice_status choose_length(evaluation *e)
{
    const slc_eval_options *o = e->options;
    const sluice_model_config *c = &e->model.config;
    const uint64_t context = o->data.context;
    e->length = context ? (uint32_t)context : c->context;
    if (!c->context && (context || o->stride))
        return slc_error(SLUICE_ERR_ARGUMENT, "--context, --stride: %s sees images; leave them out",
                         sluice_model_family_name((uint32_t)c->family));
    if (c->context && o->data.image_draft)
        return slc_error(SLUICE_ERR_ARGUMENT, "--image-draft: %s sees no images; leave it out",
                         sluice_model_family_name((uint32_t)c->family));
    if (c->context && o->data.visual_tokens)
        return slc_error(SLUICE_ERR_ARGUMENT, "--visual-tokens: %s sees no images; leave it out",
                         sluice_model_family_name((uint32_t)c->family));
    if (context > c->context)
        return slc_error(SLUICE_ERR_ARGUMENT, "--context %" PRIu64 ": %s has a context of %u", context, o->weights,
                         c->context);
    if (o->stride && slc_family_of(c->family)->masks)
        return slc_error(SLUICE_ERR_ARGUMENT, "--stride: bert's windows do not overlap; leave it out");
    if (o->stride > e->length)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--stride %u: windows are of %u tokens, so some would never be guessed; "
                         "give at most %u",
                         o->stride, e->length, e->length);
    return SLUICE_OK;
}

static sluice_status show_tokenising(uint64_t done, uint64_t bytes, void *context)
{
    slc_training_tokenising_show(&((evaluation *)context)->tokenising, done, bytes);
    return SLUICE_OK;
}

static sluice_status show_indexing(uint64_t done, uint64_t bytes, void *context)
{
    slc_training_indexing_show(&((evaluation *)context)->indexing, done, bytes);
    return SLUICE_OK;
}

static sluice_status open_data(evaluation *e)
{
    slc_cores_use cores;
    slc_cores_look_alone(strcmp(e->options->device, "cpu") ? 1 : e->options->threads, &cores);
    const slc_training_data_watch watch = {show_tokenising, e, show_indexing, 1, slc_cores_idle_each(&cores)};
    sluice_status status = slc_training_data_open_whole(&e->options->data, &e->model.config, e->length,
                                                        e->options->stride, &watch, &e->data);
    if (status) return status;
    for (uint32_t i = 0; slc_training_data_note(e->data, i); i++)
        fprintf(stderr, "sluice eval: %s\n", slc_training_data_note(e->data, i));
    const slc_training_data_facts *facts = slc_training_data_get_facts(e->data);
    e->sequences = facts->sequences;
    e->documents = facts->about.what && !strcmp(facts->about.what, "examples");
    e->model.length_step = facts->length_step;
    if (!answers_classes(e)) return SLUICE_OK;
    const uint64_t count = e->options->data.batch * e->model.config.classes;
    e->logits = malloc(count * sizeof *e->logits);
    return e->logits ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%" PRIu64 " logits", count);
}

/* ---- Going through ---- */

static sluice_status evaluate_batch(evaluation *e, uint64_t first)
{
    sluice_batch batch;
    sluice_status status = slc_training_data_take_in_order(e->data, first, &batch);
    if (status) return status;
    const uint32_t length = batch.length ? batch.length : e->length;
    const uint64_t count = e->options->data.batch * sluice_model_targets(&e->model.config, length);
    uint64_t targets = 0;
    double loss = 0;
    for (uint64_t i = 0; i < count; i++) targets += batch.targets[i] >= 0;
    if (!targets) return SLUICE_OK;
    status = sluice_model_evaluate(e->model.model, &batch, &loss, e->logits);
    if (status) return status;
    if (e->logits) e->right += slc_right_answers(e->logits, batch.targets, count, e->model.config.classes);
    e->targets += targets;
    e->inputs += e->options->data.batch * (length ? length : 1);
    e->loss_sum += loss * (double)targets;
    return SLUICE_OK;
}

static void show_progress(const evaluation *e, uint64_t done, uint64_t *shown_ns)
{
    const uint64_t now = slc_clock_ns(), every = 500000000;
    if (now - *shown_ns < every || !isatty(STDERR_FILENO)) return;
    *shown_ns = now;
    fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " %s, loss %.4f\x1b[K\r", done, e->sequences, sequences_word(e),
            e->loss_sum / (double)e->targets);
}

static sluice_status go_through(evaluation *e)
{
    const uint64_t start = slc_clock_ns(), batch = e->options->data.batch;
    uint64_t shown = start;
    sluice_status status = SLUICE_OK;
    for (uint64_t first = 0; !status && first < e->sequences; first += batch) {
        status = evaluate_batch(e, first);
        if (!status) show_progress(e, first + batch, &shown);
    }
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\x1b[K");
    e->seconds = slc_seconds(slc_clock_ns() - start);
    return status;
}

/* ---- The report ---- */

static double mean_loss(const evaluation *e)
{
    return e->loss_sum / (double)e->targets;
}

static double per_s(const evaluation *e)
{
    const double windows = (double)e->sequences * (e->length ? e->length : 1);
    return (e->documents ? (double)e->inputs : windows) / e->seconds;
}

static void print_report(const evaluation *e, const sluice_memory_report *memory)
{
    FILE *text = slc_is_standard_output(e->options->json) ? stderr : stdout;
    const char *family = sluice_model_family_name((uint32_t)e->model.config.family);
    if (e->documents)
        fprintf(text, "%s, %" PRIu64 " examples", family, e->sequences);
    else if (e->length)
        fprintf(text, "%s, %" PRIu64 " windows of %u tokens", family, e->sequences, e->length);
    else
        fprintf(text, "%s, %" PRIu64 " images", family, e->sequences);
    if (guesses_masked(e))
        fprintf(text, ", %" PRIu64 " tokens masked: masked loss %.6f", e->targets, mean_loss(e));
    else if (answers_classes(e))
        fprintf(text, ": loss %.6f, accuracy %.2f %%", mean_loss(e), 100 * (double)e->right / (double)e->targets);
    else
        fprintf(text, ", %" PRIu64 " tokens guessed: loss %.6f, perplexity %.4f", e->targets, mean_loss(e),
                exp(mean_loss(e)));
    fprintf(text, "\n%.0f %s a second, memory %.1f MiB\n", per_s(e), e->length ? "tokens" : "images",
            (double)memory->peak_bytes / 0x1p20);
}

static json_t *report_json(const evaluation *e, const sluice_memory_report *memory)
{
    const slc_eval_options *o = e->options;
    const double loss = mean_loss(e);
    json_t *content =
        json_pack("{s:f, s:I, s:I, s:f, s:o, s:I, s:I, s:{s:s, s:I, s:I, s:I, s:s, s:I, s:s}}", "loss", loss,
                  sequences_word(e), (json_int_t)e->sequences, !answers_classes(e) ? "tokens" : "answers",
                  (json_int_t)e->targets, e->length ? "tokens_per_s" : "images_per_s", per_s(e), "budget_bytes",
                  memory->budget_bytes ? json_integer((json_int_t)memory->budget_bytes) : json_null(), "planned_bytes",
                  (json_int_t)memory->planned_bytes, "peak_bytes", (json_int_t)memory->peak_bytes, "settings",
                  "weights", o->weights, "batch", (json_int_t)o->data.batch, "context", (json_int_t)e->length, "stride",
                  (json_int_t)(o->stride ? o->stride : e->length), "precision", o->precision, "threads",
                  (json_int_t)o->threads, "device", sluice_runtime_device(e->model.rt));
    if (content && answers_classes(e))
        json_object_set_new(content, "accuracy", json_real((double)e->right / (double)e->targets));
    if (content && !answers_classes(e) && !guesses_masked(e))
        json_object_set_new(content, "perplexity", json_real(exp(loss)));
    return content;
}

static sluice_status report(const evaluation *e)
{
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    sluice_status status = sluice_runtime_memory(e->model.rt, &memory);
    if (status) return status;
    if (!isfinite(e->loss_sum))
        return slc_error(SLUICE_ERR_NON_FINITE,
                         "the loss is %f: the weights are damaged, or too large for --precision %s", mean_loss(e),
                         e->options->precision);
    print_report(e, &memory);
    return slc_result_file_write_json(e->options->json, report_json(e, &memory));
}

/* Bytes that the data keep in memory, and those of the answers. */
static uint64_t data_bytes(const evaluation *e)
{
    const uint64_t answers = e->logits ? e->options->data.batch * e->model.config.classes : 0;
    return slc_training_data_get_facts(e->data)->bytes + answers * sizeof *e->logits;
}

sluice_status slc_eval_data(const slc_eval_options *o)
{
    evaluation e = {.options = o, .model = {.config = SLUICE_INIT(sluice_model_config)}};
    sluice_status status = slc_hint_weights(sluice_model_config_read(o->weights, &e.model.config), o->weights);
    if (!status) status = choose_length(&e);
    if (!status) status = open_data(&e);
    if (!status) status = slc_eval_model_create(o, (uint32_t)o->data.batch, e.length, data_bytes(&e), false, &e.model);
    if (!status) status = go_through(&e);
    if (!status) status = report(&e);
    slc_eval_model_destroy(&e.model);
    slc_training_data_close(e.data);
    free(e.logits);
    return status;
}
