/* Opens the source of micro-batches that the options name: text here, its masks in masks.c, images in images.c. */
#include "bench/train/data_parts.h"

#include "lib/base/random.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

/* ---- Text ---- */

enum { FILES_MAX = 1024, STREAM_FILE = 17, STREAM_PLACE = 18 };

typedef struct {
    slc_training_data base;
    slc_text *text;
    slc_text_range train, held_out;
    uint32_t vocabulary; /* tokens of the text are below it; the next one masks */
    uint32_t file_count;
    slc_text_range files[FILES_MAX]; /* for labelled windows: the files that are long enough */
    int32_t *inputs, *targets;
} text_data;

static void close_text(slc_training_data *base)
{
    text_data *d = (text_data *)base;
    slc_text_close(d->text);
    free(d->inputs);
    free(d->targets);
}

static sluice_status hash_text(const slc_training_data *base, uint64_t *hash)
{
    return slc_text_content(((const text_data *)base)->text, hash);
}

static sluice_status take_windows(text_data *d, bool held_out, uint64_t first, sluice_batch *out)
{
    const slc_training_data *base = &d->base;
    *out = SLUICE_INIT(sluice_batch, .tokens = d->inputs, .targets = d->targets);
    return slc_text_windows(d->text, held_out ? d->held_out : d->train, base->seed, first, base->batch, base->length,
                            d->inputs, d->targets);
}

static sluice_status take_next_tokens(slc_training_data *base, bool held_out, uint64_t first, sluice_batch *out)
{
    return take_windows((text_data *)base, held_out, first, out);
}

/* The targets become the tokens that were masked. */
static sluice_status take_masked_tokens(slc_training_data *base, bool held_out, uint64_t first, sluice_batch *out)
{
    text_data *d = (text_data *)base;
    sluice_status status = take_windows(d, held_out, first, out);
    const slc_token_mask mask = {.seed = base->seed,
                                 .held_out = held_out,
                                 .length = base->length,
                                 .vocabulary = d->vocabulary,
                                 .mask_token = d->vocabulary};
    for (uint32_t b = 0; !status && b < base->batch; b++)
        slc_mask_tokens(&mask, first + b, d->inputs + (size_t)b * base->length, d->targets + (size_t)b * base->length);
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
            slc_random_below(base->seed, STREAM_PLACE + 2 + held_out, first + b, part.tokens - base->length + 1);
        d->targets[b] = (int32_t)file;
        status = slc_text_read(d->text, part.first + place, base->length, d->inputs + (size_t)b * base->length);
    }
    *out = SLUICE_INIT(sluice_batch, .tokens = d->inputs, .targets = d->targets);
    return status;
}

static sluice_status find_files(text_data *d, sluice_model_config *model)
{
    slc_text_range file;
    for (size_t i = 0; slc_text_file(d->text, i, &file) && d->file_count < FILES_MAX; i++)
        if (file.tokens / 10 >= d->base.length) d->files[d->file_count++] = file;
    if (d->file_count < 2)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--head classes: the class of a window is the file it is from; give --data "
                         "with at least two files of %llu tokens, or a shorter --context",
                         10ull * d->base.length);
    model->classes = d->file_count;
    return SLUICE_OK;
}

/* Bytes need 256 places of the vocabulary, other tokens all that the model has. A model that guesses masked tokens
 * keeps one place to mask with. */
static sluice_status limit_tokens(text_data *d, const sluice_model_config *model)
{
    uint32_t kept = model->family == SLUICE_BERT, all = slc_text_vocabulary(d->text);
    if (model->vocabulary < 256 + kept)
        return slc_error(SLUICE_ERR_ARGUMENT, "a vocabulary of %u is too small for text; %u is the least",
                         model->vocabulary, 256 + kept);
    d->vocabulary = all == 256 ? all : model->vocabulary - kept;
    slc_text_limit(d->text, d->vocabulary);
    return SLUICE_OK;
}

static void describe_text(text_data *d, bool bytes, const char *own_path)
{
    slc_text_range file;
    slc_training_data_about *about = &d->base.about;
    *about = (slc_training_data_about){.own_path = own_path,
                                       .what = bytes ? "bytes" : "tokens",
                                       .train = d->train.tokens,
                                       .held_out = d->held_out.tokens};
    while (slc_text_file(d->text, about->files, &file)) about->files++;
}

static sluice_status open_text(const slc_training_options *o, sluice_model_config *model, text_data *d)
{
    size_t count = (size_t)d->base.batch * d->base.length;
    bool classes = model->head == SLUICE_HEAD_CLASSES, masks = model->family == SLUICE_BERT;
    d->base.close = close_text;
    d->base.content = hash_text;
    d->base.take = classes ? take_labelled : masks ? take_masked_tokens : take_next_tokens;
    d->inputs = malloc(count * sizeof *d->inputs);
    d->targets = malloc(count * sizeof *d->targets);
    d->base.bytes = 2 * count * sizeof *d->inputs;
    if (!d->inputs || !d->targets) return slc_error(SLUICE_ERR_MEMORY, "a batch of %zu tokens", count);
    static const char *const licences[] = {"/usr/share/common-licenses"};
    sluice_status status =
        slc_text_open(o->data_count ? o->data : licences, o->data_count ? o->data_count : 1, &d->text);
    if (!status) status = slc_text_split(d->text, d->base.length, &d->train, &d->held_out);
    if (!status) describe_text(d, slc_text_vocabulary(d->text) == 256, *licences);
    if (!status) status = limit_tokens(d, model);
    if (!status && classes) status = find_files(d, model);
    if (!status) d->base.fingerprint = slc_text_fingerprint(d->text);
    return status;
}

/* ---- Any source ---- */

static void begin_data(const slc_training_options *o, uint32_t length, slc_training_data *base)
{
    base->seed = o->seed;
    base->batch = (uint32_t)o->batch;
    base->length = length;
}

sluice_status slc_training_data_open(const slc_training_options *o, sluice_model_config *model, uint32_t length,
                                     slc_training_data **out)
{
    bool sees = model->family == SLUICE_VIT || model->family == SLUICE_BEIT;
    slc_training_data *data = sees ? slc_training_images_create() : calloc(1, sizeof(text_data));
    if (!data) return slc_error(SLUICE_ERR_MEMORY, "training data");
    begin_data(o, length, data);
    sluice_status status = sees ? slc_training_images_open(o, model, data) : open_text(o, model, (text_data *)data);
    if (status) {
        slc_training_data_close(data);
        return status;
    }
    *out = data;
    return SLUICE_OK;
}

void slc_training_data_close(slc_training_data *data)
{
    if (!data) return;
    if (data->close) data->close(data);
    free(data);
}

const slc_training_data_about *slc_training_data_get_about(const slc_training_data *data)
{
    return &data->about;
}

uint64_t slc_training_data_fingerprint(const slc_training_data *data)
{
    return data->fingerprint;
}

sluice_status slc_training_data_content(const slc_training_data *data, uint64_t *hash)
{
    return data->content(data, hash);
}

uint64_t slc_training_data_bytes(const slc_training_data *data)
{
    return data->bytes;
}

sluice_status slc_training_data_take(slc_training_data *data, bool held_out, uint64_t first, sluice_batch *out)
{
    return data->take(data, held_out, first, out);
}
