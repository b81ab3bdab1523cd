/* Opens the source of micro-batches that the options name: text here, its masks in masks.c, images in images.c. */
#include "bench/train/data/data.h"

#include "bench/train/data/data_parts.h"
#include "bench/train/options/options.h"
#include "lib/base/file/path_error.h"
#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "lib/data/tokenizer_files.h"
#include "lib/weights/family.h"

#include <stdlib.h>
#include <string.h>

/* ---- Text ---- */

enum { STREAM_FILE = 17, STREAM_PLACE = 18 };

typedef slc_training_text text_data;

static void close_text(slc_training_data *base)
{
    text_data *d = (text_data *)base;
    slc_text_close(d->text);
    free(d->inputs);
    free(d->targets);
    free(d->attention_mask);
}

static sluice_status hash_text(const slc_training_data *base, uint64_t *hash)
{
    return slc_text_content(((const text_data *)base)->text, hash);
}

/* ---- Windows of a text ---- */

/* Where the text of window `b` of a batch begins. */
static int32_t *window(const text_data *d, int32_t *tokens, uint32_t b)
{
    return tokens + (size_t)b * d->base.length + d->framed;
}

static void frame_windows(text_data *d)
{
    for (uint32_t b = 0; d->framed && b < d->base.batch; b++) {
        int32_t *inside = window(d, d->inputs, b);
        inside[-1] = d->special.first;
        inside[d->inside] = d->special.last;
    }
}

static sluice_status take_windows(text_data *d, bool held_out, uint64_t first, sluice_batch *out)
{
    const slc_training_data *base = &d->base;
    sluice_status status = SLUICE_OK;
    for (uint32_t b = 0; !status && b < base->batch; b++)
        status = slc_text_windows(d->text, held_out ? d->held_out : d->train, base->seed, first + b, 1, d->inside,
                                  window(d, d->inputs, b), window(d, d->targets, b));
    *out = SLUICE_INIT(sluice_batch, .tokens = d->inputs, .targets = d->targets);
    return status;
}

static sluice_status take_next_tokens(slc_training_data *base, bool held_out, uint64_t first, sluice_batch *out)
{
    return take_windows((text_data *)base, held_out, first, out);
}

static slc_token_mask mask_of(const text_data *d, bool held_out)
{
    return (slc_token_mask){.seed = d->base.seed,
                            .held_out = held_out,
                            .length = d->inside,
                            .vocabulary = d->vocabulary,
                            .mask_token = d->special.mask};
}

static uint64_t count_masked_tokens(const slc_training_data *base, uint64_t sequence)
{
    const slc_token_mask mask = mask_of((const text_data *)base, false);
    return slc_mask_tokens_count(&mask, sequence);
}

/* The targets become the tokens that were masked; nobody guesses the tokens of the frame. */
static sluice_status take_masked_tokens(slc_training_data *base, bool held_out, uint64_t first, sluice_batch *out)
{
    text_data *d = (text_data *)base;
    sluice_status status = take_windows(d, held_out, first, out);
    const slc_token_mask mask = mask_of(d, held_out);
    for (uint32_t b = 0; !status && b < base->batch; b++) {
        int32_t *targets = window(d, d->targets, b);
        slc_mask_tokens(&mask, first + b, window(d, d->inputs, b), targets);
        if (d->framed) targets[-1] = targets[d->inside] = -1;
    }
    frame_windows(d);
    return status;
}

/* The last tenth of every file is held out. */
static slc_text_range part_of_file(slc_text_range file, bool held_out)
{
    uint64_t tenth = file.tokens / 10, rest = file.tokens - tenth;
    return held_out ? (slc_text_range){file.first + rest, tenth} : (slc_text_range){file.first, rest};
}

static sluice_status take_labelled(slc_training_data *base, bool held_out, uint64_t first, sluice_batch *out)
{
    text_data *d = (text_data *)base;
    sluice_status status = SLUICE_OK;
    for (uint32_t b = 0; !status && b < base->batch; b++) {
        uint64_t file = slc_random_below(base->seed, STREAM_FILE + held_out, first + b, d->file_count);
        slc_text_range part = part_of_file(d->files[file], held_out);
        uint64_t place =
            slc_random_below(base->seed, STREAM_PLACE + 2 + held_out, first + b, part.tokens - d->inside + 1);
        d->targets[b] = (int32_t)file;
        status = slc_text_read(d->text, part.first + place, d->inside, window(d, d->inputs, b));
    }
    frame_windows(d);
    *out = SLUICE_INIT(sluice_batch, .tokens = d->inputs, .targets = d->targets);
    return status;
}

static sluice_status find_files(text_data *d, sluice_model_config *model)
{
    const unsigned long long least = 10ull * d->inside;
    const char *first_short = NULL;
    slc_text_range file;
    size_t files = 0;
    for (; slc_text_file(d->text, files, &file); files++) {
        if (file.tokens < least) {
            if (!first_short) first_short = slc_text_path(d->text, files);
            continue;
        }
        if (d->file_count == SLC_TRAINING_FILES_MAX)
            return slc_error(SLUICE_ERR_ARGUMENT, "--head classes: each file is a class, and --data has more than %d",
                             SLC_TRAINING_FILES_MAX);
        d->files[d->file_count++] = file;
    }
    if (d->file_count < 2)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--head classes: the class of a window is the file it is from; give --data "
                         "with at least two files of %llu tokens, or a shorter --context",
                         least);
    model->classes = d->file_count;
    if (!first_short) return SLUICE_OK;
    return slc_training_data_add_note(
        &d->base,
        "--data: %zu of %zu files have fewer than the %llu tokens that a class needs with this --context, and are left "
        "out; the first is %s; the classes are the other %u, in their order",
        files - d->file_count, files, least, first_short, d->file_count);
}

/* ---- The tokens of a text ---- */

/* Bytes need 256 places of the vocabulary, other tokens all that the model has. A model that guesses masked tokens
 * keeps one place to mask with. */
static sluice_status limit_tokens(text_data *d, const sluice_model_config *model)
{
    uint32_t kept = slc_family_of(model->family)->masks, all = slc_text_vocabulary(d->text);
    if (model->vocabulary < 256 + kept)
        return slc_error(SLUICE_ERR_ARGUMENT, "a vocabulary of %u is too small for text; %u is the least",
                         model->vocabulary, 256 + kept);
    d->vocabulary = all == 256 ? all : model->vocabulary - kept;
    d->special.mask = (int32_t)d->vocabulary;
    slc_text_limit(d->text, d->vocabulary);
    return SLUICE_OK;
}

static void describe_text(text_data *d, const char *tokenizer, const char *own_path)
{
    slc_text_range file;
    slc_training_data_about *about = &d->base.facts.about;
    *about = (slc_training_data_about){.own_path = own_path,
                                       .what = slc_text_is_bytes(d->text) ? "bytes" : "tokens",
                                       .tokenizer = tokenizer,
                                       .train = d->train.tokens,
                                       .held_out = d->held_out.tokens};
    while (slc_text_file(d->text, about->files, &file)) about->files++;
    if (!d->file_count) return;
    about->files = d->file_count;
    about->train = about->held_out = 0;
    for (uint32_t i = 0; i < d->file_count; i++) {
        about->train += part_of_file(d->files[i], false).tokens;
        about->held_out += part_of_file(d->files[i], true).tokens;
    }
}

/* Weights that learned other tokens than bytes would only be spoiled by bytes. */
static sluice_status bytes_suit(const slc_training_options *o, const sluice_model_config *model)
{
    bool masks = slc_family_of(model->family)->masks;
    if (!o->weights || (masks ? model->vocabulary > 256 && model->vocabulary <= 264 : model->vocabulary == 256))
        return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "--weights %s has a vocabulary of %u tokens, and without a tokenizer text is read as bytes, which "
        "these weights have never seen; put their tokenizer.json next to them, or give --tokenizer PATH, or "
        "--data in llm.c's token files",
        o->weights, model->vocabulary);
}

/* A model with first values gets the vocabulary, one that has been trained must have room for it. */
static sluice_status fit_model(const slc_training_options *o, const text_data *d, uint32_t tokens,
                               sluice_model_config *model)
{
    bool trained = o->weights || o->shape.struct_size;
    if (trained && tokens > model->vocabulary)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "the tokenizer of %s has %u tokens, and the model of %s a vocabulary of %u; give --tokenizer "
                         "the one that the weights were trained with",
                         slc_training_tokenizer(o), tokens, o->weights ? o->weights : o->resume, model->vocabulary);
    if (trained) return SLUICE_OK;
    model->vocabulary = tokens;
    model->begin_token = (uint64_t)(d->special.begin + 1);
    model->end_token = (uint64_t)(d->special.end + 1);
    if (slc_family_of(model->family)->padding)
        model->padding = d->special.padding < 0 ? 0 : (uint32_t)d->special.padding;
    return SLUICE_OK;
}

static sluice_status need_frame(const slc_training_options *o, text_data *d, const sluice_model_config *model)
{
    const slc_special_tokens *s = &d->special;
    const char *lacks = s->first < 0                                       ? "[CLS] (cls_token)"
                        : s->last < 0                                      ? "[SEP] (sep_token)"
                        : s->mask < 0 && model->head == SLUICE_HEAD_TOKENS ? "[MASK] (mask_token)"
                                                                           : NULL;
    if (lacks)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "the tokenizer of %s has no token %s, which bert needs; give --tokenizer "
                         "one of BERT",
                         slc_training_tokenizer(o), lacks);
    if (d->base.length < 3)
        return slc_error(SLUICE_ERR_ARGUMENT, "--context %u: [CLS] and [SEP] take two of the tokens; give at least 3",
                         d->base.length);
    d->framed = true;
    d->inside = d->base.length - 2;
    return SLUICE_OK;
}

static sluice_status encode_text(const slc_training_options *o, const slc_tokenizer *tokenizer,
                                 const slc_training_data_watch *watch, sluice_model_config *model, text_data *d)
{
    bool frames = slc_family_of(model->family)->frames;
    uint32_t tokens = slc_tokenizer_vocabulary(tokenizer);
    sluice_status status = slc_special_tokens_find(tokenizer, slc_training_tokenizer(o), &d->special);
    if (!status) status = fit_model(o, d, tokens, model);
    if (!status && frames) status = need_frame(o, d, model);
    if (status) return status;
    slc_text_encoding how = {.tokenizer = tokenizer, .between = frames ? d->special.last : d->special.end};
    if (watch) {
        how.progress = watch->tokenised;
        how.context = watch->context;
    }
    d->vocabulary = tokens;
    d->base.facts.tokenizer = slc_tokenizer_fingerprint(tokenizer) | 1; /* never 0 */
    return slc_text_encode(d->text, &how);
}

static sluice_status note_difference(const slc_tokenizer *tokenizer, const char *path, text_data *d)
{
    char *line;
    sluice_status status = slc_tokenizer_files_compare(tokenizer, path, &line);
    if (!status && line) status = slc_training_data_add_note(&d->base, "%s", line);
    free(line);
    return status;
}

/* Decides what the tokens of the text are. */
static sluice_status read_tokens(const slc_training_options *o, const slc_training_data_watch *watch,
                                 sluice_model_config *model, text_data *d)
{
    const char *path = slc_training_tokenizer(o);
    slc_tokenizer *tokenizer = NULL;
    bool bytes = slc_text_is_bytes(d->text);
    if (o->tokenizer && !bytes)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--tokenizer %s: --data holds tokens already; leave --tokenizer out, or "
                         "give plain text",
                         o->tokenizer);
    if (bytes && path) {
        sluice_status status = slc_tokenizer_open(path, &tokenizer);
        if (!status) status = note_difference(tokenizer, path, d);
        if (!status) status = encode_text(o, tokenizer, watch, model, d);
        slc_tokenizer_close(tokenizer);
        return status;
    }
    sluice_status status = bytes ? bytes_suit(o, model) : SLUICE_OK;
    return status ? status : limit_tokens(d, model);
}

static sluice_status open_text(const slc_training_options *o, const slc_training_data_watch *watch,
                               sluice_model_config *model, text_data *d)
{
    size_t count = (size_t)d->base.batch * d->base.length;
    bool classes = model->head == SLUICE_HEAD_CLASSES, masks = slc_family_of(model->family)->masks;
    d->base.close = close_text;
    d->base.content = hash_text;
    d->base.take = classes ? take_labelled : masks ? take_masked_tokens : take_next_tokens;
    if (masks && !classes) d->base.targets = count_masked_tokens;
    d->inside = d->base.length;
    d->inputs = malloc(count * sizeof *d->inputs);
    d->targets = malloc(count * sizeof *d->targets);
    d->base.facts.bytes = 2 * count * sizeof *d->inputs;
    if (!d->inputs || !d->targets) return slc_error(SLUICE_ERR_MEMORY, "a batch of %zu tokens", count);
    static const char *const licences[] = {"/usr/share/common-licenses"};
    sluice_status status =
        slc_text_open(o->data_count ? o->data : licences, o->data_count ? o->data_count : 1, &d->text);
    if (!status) status = read_tokens(o, watch, model, d);
    if (!status && d->base.whole) status = slc_training_text_in_order(d, model);
    if (!status && !d->base.whole) status = slc_text_split(d->text, d->inside, &d->train, &d->held_out);
    if (!status && !d->base.whole && classes) status = find_files(d, model);
    if (status) return status;
    if (!d->base.whole) describe_text(d, d->base.facts.tokenizer ? slc_training_tokenizer(o) : NULL, *licences);
    d->base.facts.fingerprint = slc_text_fingerprint(d->text);
    const char *passed_over = slc_text_passed_over(d->text);
    return passed_over ? slc_training_data_add_note(&d->base, "--data: %s", passed_over) : SLUICE_OK;
}

/* ---- Any source ---- */

static void begin_data(const slc_training_options *o, const sluice_model_config *model, uint32_t length,
                       slc_training_data *base)
{
    base->seed = o->seed;
    base->batch = (uint32_t)o->batch;
    base->length = length;
    base->targets_each = sluice_model_targets(model, length);
    base->facts.held_out = UINT64_MAX;
}

static sluice_status open_data(const slc_training_options *o, sluice_model_config *model, uint32_t length,
                               uint32_t stride, const slc_training_data_watch *watch, slc_training_data **out)
{
    bool sees = slc_family_of(model->family)->sees;
    slc_training_data *data = sees ? slc_training_images_create() : calloc(1, sizeof(text_data));
    if (!data) return slc_error(SLUICE_ERR_MEMORY, "training data");
    if (sees && o->tokenizer) {
        free(data);
        return slc_error(SLUICE_ERR_ARGUMENT, "--tokenizer %s: %s sees images; leave --tokenizer out", o->tokenizer,
                         sluice_model_family_name((uint32_t)model->family));
    }
    begin_data(o, model, length, data);
    data->whole = stride > 0;
    data->stride = stride;
    sluice_status status =
        sees ? slc_training_images_open(o, model, data) : open_text(o, watch, model, (text_data *)data);
    if (status) {
        slc_training_data_close(data);
        return status;
    }
    *out = data;
    return SLUICE_OK;
}

sluice_status slc_training_data_open(const slc_training_options *o, sluice_model_config *model, uint32_t length,
                                     const slc_training_data_watch *watch, slc_training_data **out)
{
    return open_data(o, model, length, 0, watch, out);
}

sluice_status slc_training_data_open_whole(const slc_training_options *o, sluice_model_config *model, uint32_t length,
                                           uint32_t stride, const slc_training_data_watch *watch,
                                           slc_training_data **out)
{
    return open_data(o, model, length, stride ? stride : length + !length, watch, out);
}

void slc_training_data_close(slc_training_data *data)
{
    if (!data) return;
    if (data->close) data->close(data);
    for (uint32_t i = 0; i < data->note_count; i++) free(data->notes[i]);
    free(data);
}

const slc_training_data_facts *slc_training_data_get_facts(const slc_training_data *data)
{
    return &data->facts;
}

sluice_status slc_training_data_content(const slc_training_data *data, uint64_t *hash)
{
    return data->content(data, hash);
}

sluice_status slc_training_data_save(const slc_training_data *data, const char *folder)
{
    return data->save ? data->save(data, folder) : SLUICE_OK;
}

sluice_status slc_training_data_take(slc_training_data *data, bool held_out, uint64_t first, sluice_batch *out)
{
    return slc_path_was_good(data->take(data, held_out, first, out));
}

uint64_t slc_training_data_targets(const slc_training_data *data, uint64_t first)
{
    uint64_t count = 0;
    if (!data->targets) return (uint64_t)data->batch * data->targets_each;
    for (uint32_t b = 0; b < data->batch; b++) count += data->targets(data, first + b);
    return count;
}

sluice_status slc_training_data_take_in_order(slc_training_data *data, uint64_t first, sluice_batch *out)
{
    return slc_path_was_good(data->take_in_order(data, first, out));
}
