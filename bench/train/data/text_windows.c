/* Text as windows: consecutive tokens from drawn places, of files, or of records that are joined to one text. Masks are
 * those of masks.c. data_test.c covers this file. */
#include "bench/cli/path_hints.h"
#include "bench/train/data/class_names.h"
#include "bench/train/data/data_parts.h"
#include "bench/train/options/options.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "lib/data/tokenizer_files/tokenizer_files.h"
#include "lib/weights/family.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_FILE = 17, STREAM_PLACE = 18 };

typedef slc_training_text text_data;

static void close_text(slc_training_data *base)
{
    text_data *d = (text_data *)base;
    slc_text_close(d->text);
    slc_text_close(d->evaluation);
    slc_records_close(d->records);
    slc_records_close(d->evaluation_records);
    free(d->inputs);
    free(d->targets);
    free(d->row);
    free(d->attention_mask);
}

static slc_text *part_of(const text_data *d, bool held_out)
{
    return held_out && d->evaluation ? d->evaluation : d->text;
}

static double passes_of_text(const slc_training_data *base, uint64_t sequences)
{
    const text_data *d = (const text_data *)base;
    return (double)sequences * d->inside / (double)d->base.facts.about.train;
}

static sluice_status hash_text(const slc_training_data *base, uint64_t *hash)
{
    const text_data *d = (const text_data *)base;
    uint64_t other;
    sluice_status status = slc_text_content(d->text, hash);
    if (!status && d->evaluation) status = slc_text_content(d->evaluation, &other);
    if (!status && d->evaluation) *hash = slc_fnv(*hash, &other, sizeof other);
    return status;
}

/* ---- Windows of a text ---- */

/* Returns the place where the text of window `b` of a batch begins. */
static int32_t *window(const text_data *d, int32_t *tokens, uint32_t b)
{
    return tokens + (size_t)b * d->base.length + d->words.framed;
}

/* ---- The shape to train in ---- */

static void set_shape(slc_training_data *base, uint32_t length, uint32_t pieces)
{
    text_data *d = (text_data *)base;
    d->piece_length = length;
    d->pieces = pieces;
    base->targets_each = d->labelled ? pieces : pieces * length;
}

static bool is_whole(const text_data *d, bool held_out)
{
    return held_out || d->piece_length == d->base.length;
}

/* Returns the tokens of the text in a sequence. */
static uint32_t inside_of(const text_data *d, bool held_out)
{
    return is_whole(d, held_out) ? d->inside : d->piece_length - 2 * d->words.framed;
}

/* Returns the tokens of a window that are used. */
static uint32_t used_of(const text_data *d, bool held_out)
{
    return is_whole(d, held_out) ? d->inside : d->pieces * inside_of(d, false);
}

/* Moves the text of each window in `tokens` to where its sequences lie, which begin no later than the window does. */
static void fold_windows(text_data *d, int32_t *tokens)
{
    const uint32_t inside = inside_of(d, false), used = used_of(d, false);
    for (uint32_t b = 0; b < d->base.batch; b++) {
        memcpy(d->row, window(d, tokens, b), used * sizeof *tokens);
        for (uint32_t p = 0; p < d->pieces; p++)
            memcpy(tokens + ((size_t)b * d->pieces + p) * d->piece_length + d->words.framed,
                   d->row + (size_t)p * inside, inside * sizeof *tokens);
    }
}

/* Returns the number of tokens of each sequence of a batch; *count becomes the number of its sequences. */
static uint32_t length_of(const text_data *d, bool held_out, uint32_t *count)
{
    const bool whole = is_whole(d, held_out);
    *count = d->base.batch * (whole ? 1 : d->pieces);
    return whole ? d->base.length : d->piece_length;
}

static void frame_sequences(const text_data *d, bool held_out)
{
    uint32_t count;
    const uint32_t length = length_of(d, held_out, &count);
    for (uint32_t i = 0; d->words.framed && i < count; i++) {
        int32_t *sequence = d->inputs + (size_t)i * length;
        sequence[0] = d->words.special.first;
        sequence[length - 1] = d->words.special.last;
    }
}

/* Gives the batch whose windows have been read, in the shape of its sequences. */
static void give_batch(text_data *d, bool held_out, sluice_batch *out)
{
    const bool whole = is_whole(d, held_out);
    if (!whole) fold_windows(d, d->inputs);
    frame_sequences(d, held_out);
    *out = SLUICE_INIT(sluice_batch, .tokens = d->inputs, .targets = d->targets);
    if (whole) return;
    out->length = d->piece_length;
    out->sequences = (uint64_t)d->base.batch * d->pieces;
}

/* ---- Kinds of windows ---- */

static sluice_status read_windows(text_data *d, bool held_out, uint64_t first)
{
    const slc_training_data *base = &d->base;
    sluice_status status = SLUICE_OK;
    for (uint32_t b = 0; !status && b < base->batch; b++)
        status = slc_text_windows(part_of(d, held_out), held_out ? d->held_out : d->train, base->seed, first + b, 1,
                                  d->inside, window(d, d->inputs, b), window(d, d->targets, b));
    return status;
}

static sluice_status take_next_tokens(slc_training_data *base, bool held_out, uint64_t first, sluice_batch *out)
{
    text_data *d = (text_data *)base;
    sluice_status status = read_windows(d, held_out, first);
    if (!is_whole(d, held_out)) fold_windows(d, d->targets);
    give_batch(d, held_out, out);
    return status;
}

static slc_token_mask mask_of(const text_data *d, bool held_out)
{
    return (slc_token_mask){.seed = d->base.seed,
                            .held_out = held_out,
                            .length = used_of(d, held_out),
                            .stride = d->inside,
                            .vocabulary = d->words.vocabulary,
                            .mask_token = d->words.special.mask};
}

static uint64_t count_masked_tokens(const slc_training_data *base, uint64_t sequence)
{
    const slc_token_mask mask = mask_of((const text_data *)base, false);
    return slc_mask_tokens_count(&mask, sequence);
}

/* Nobody guesses the tokens of the frame. */
static void unframe_targets(text_data *d, bool held_out)
{
    uint32_t count;
    const uint32_t length = length_of(d, held_out, &count);
    for (uint32_t i = 0; d->words.framed && i < count; i++)
        d->targets[(size_t)i * length] = d->targets[(size_t)(i + 1) * length - 1] = -1;
}

/* The targets become the tokens that were masked. */
static sluice_status take_masked_tokens(slc_training_data *base, bool held_out, uint64_t first, sluice_batch *out)
{
    text_data *d = (text_data *)base;
    sluice_status status = read_windows(d, held_out, first);
    const slc_token_mask mask = mask_of(d, held_out);
    for (uint32_t b = 0; !status && b < base->batch; b++)
        slc_mask_tokens(&mask, first + b, window(d, d->inputs, b), window(d, d->targets, b));
    if (!is_whole(d, held_out)) fold_windows(d, d->targets);
    unframe_targets(d, held_out);
    give_batch(d, held_out, out);
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
        const uint32_t pieces = is_whole(d, held_out) ? 1 : d->pieces;
        for (uint32_t p = 0; p < pieces; p++) d->targets[b * pieces + p] = (int32_t)file;
        status = slc_text_read(d->text, part.first + place, d->inside, window(d, d->inputs, b));
    }
    give_batch(d, held_out, out);
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

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A class is called as its file, by its whole path if two files have one name. */
static sluice_status add_classes(const slc_training_data *base, json_t *beside)
{
    const text_data *d = (const text_data *)base;
    const char **names = calloc(d->file_count + 1, sizeof *names);
    slc_text_range file;
    bool alike = false;
    uint32_t count = 0;
    if (!names) return slc_error(SLUICE_ERR_MEMORY, "names of classes");
    for (size_t i = 0; slc_text_file(d->text, i, &file) && count < d->file_count; i++)
        if (file.first == d->files[count].first) names[count++] = slc_text_path(d->text, i);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++) alike |= !strcmp(last_name(names[i]), last_name(names[k]));
    for (uint32_t i = 0; i < count && !alike; i++) names[i] = last_name(names[i]);
    sluice_status status = count ? slc_beside_add_classes(beside, names, count) : SLUICE_OK;
    free(names);
    return status;
}

/* ---- The tokens of a text ---- */

static bool is_of_bytes(const text_data *d)
{
    return d->records ? !d->words.fingerprint : slc_text_is_bytes(d->text);
}

static void describe_text(text_data *d, const char *tokenizer, const char *own_path)
{
    slc_text_range file;
    slc_training_data_about *about = &d->base.facts.about;
    *about = (slc_training_data_about){.own_path = own_path,
                                       .what = is_of_bytes(d) ? "bytes" : "tokens",
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

/* ---- Opening ---- */

/* The options, the watch and the words with which all texts of a run are read. */
typedef struct {
    const slc_training_options *options;
    const slc_training_data_watch *watch;
    slc_tokenizer *tokenizer; /* NULL: none is needed, or not yet */
    sluice_model_config *model;
    slc_text_cache cache; /* folder "": there is none */
    char folder[PATH_MAX];
} reading;

/* Tokens are not kept for a text that is so small that making them takes no time. */
static void find_cache(reading *r)
{
    enum { LEAST_BYTES = 1 << 20 };
    const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool named = caches && *caches == '/';
    if (!r->options->token_cache || (!named && (!home || *home != '/'))) return;
    snprintf(r->folder, sizeof r->folder, "%s%s/sluice/tokens", named ? caches : home, named ? "" : "/.cache");
    r->cache = (slc_text_cache){r->folder, r->options->token_cache, LEAST_BYTES};
}

static slc_text_encoding encoding_of(const reading *r, const text_data *d)
{
    const bool frames = slc_family_of(r->model->family)->frames;
    const slc_special_tokens *special = &d->words.special;
    slc_text_encoding how = {.tokenizer = r->tokenizer, .between = frames ? special->last : special->end};
    if (!r->tokenizer) how.between = '\n'; /* of records; files of bytes are not encoded */
    if (*r->folder) how.cache = &r->cache;
    if (r->watch) {
        how.progress = r->watch->tokenised;
        how.context = r->watch->context;
    }
    return how;
}

/* Tells where files, or the weights, say otherwise than the tokenizer. */
static sluice_status note_differences(const reading *r, const char *path, text_data *d)
{
    char *line;
    sluice_status status = slc_tokenizer_files_compare(r->tokenizer, path, &line);
    if (!status && line) status = slc_training_data_add_note(&d->base, "%s", line);
    free(line);
    if (status) return status;
    status = slc_training_words_compare(r->options, r->tokenizer, r->model, &line);
    if (!status && line) status = slc_training_data_add_note(&d->base, "%s", line);
    free(line);
    return status;
}

static sluice_status open_tokenizer(reading *r, text_data *d)
{
    const char *path = slc_training_tokenizer(r->options);
    if (!path) return slc_training_words_of_bytes(r->options, r->model, &d->words);
    sluice_status status = slc_hint_tokenizer(slc_tokenizer_open(path, &r->tokenizer), path);
    if (!status) status = note_differences(r, path, d);
    if (!status) status = slc_training_words_of(r->options, r->tokenizer, d->base.length, r->model, &d->words);
    return status;
}

/* Gives a model with first values a vocabulary that has room for the tokens that are there. */
static sluice_status fit_uint16(const reading *r, const slc_text *text)
{
    uint32_t largest;
    if (r->options->weights || r->options->shape.struct_size) return SLUICE_OK;
    sluice_status status = slc_text_largest(text, &largest);
    const uint32_t least = 256 + slc_family_of(r->model->family)->masks;
    r->model->vocabulary = largest + 1 > least ? largest + 1 : least;
    return status;
}

/* Decides what the tokens of the text are. */
static sluice_status read_tokens(reading *r, text_data *d)
{
    const slc_training_options *o = r->options;
    bool bytes = slc_text_is_bytes(d->text);
    if (o->tokenizer && !bytes)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--tokenizer %s: --data holds tokens already; leave --tokenizer out, or "
                         "give plain text",
                         o->tokenizer);
    sluice_status status = SLUICE_OK;
    if (!bytes) {
        if (d->type == SLC_DATA_UINT16) status = fit_uint16(r, d->text);
        return status ? status : slc_training_words_of_tokens(slc_text_vocabulary(d->text), r->model, &d->words);
    }
    status = open_tokenizer(r, d);
    if (status || !r->tokenizer) return status;
    const slc_text_encoding how = encoding_of(r, d);
    return slc_text_encode(d->text, &how);
}

/* Opens the text that is evaluated on, and reads it as the training text is read. */
static sluice_status read_evaluation(const reading *r, text_data *d)
{
    if (slc_text_is_bytes(d->evaluation) && r->tokenizer) {
        const slc_text_encoding how = encoding_of(r, d);
        return slc_text_encode(d->evaluation, &how);
    }
    if (slc_text_vocabulary(d->evaluation) == slc_text_vocabulary(d->text) || d->type == SLC_DATA_UINT16)
        return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "--eval-data %s holds other tokens than --data; give files of one kind",
                     r->options->eval_data[0]);
}

static sluice_status open_files(text_data *d, const char *const *paths, size_t count, slc_text **out)
{
    return d->type == SLC_DATA_UINT16 ? slc_text_open_uint16(paths, count, out) : slc_text_open(paths, count, out);
}

static sluice_status read_files(reading *r, text_data *d, const char *const *paths, size_t count)
{
    const slc_training_options *o = r->options;
    sluice_status status = open_files(d, paths, count, &d->text);
    if (!status) status = read_tokens(r, d);
    if (!status) slc_text_limit(d->text, d->words.vocabulary);
    if (status || !o->eval_data_count || d->base.whole) return status;
    status = open_files(d, o->eval_data, o->eval_data_count, &d->evaluation);
    if (!status) status = read_evaluation(r, d);
    if (!status) slc_text_limit(d->evaluation, d->words.vocabulary);
    return slc_error_context(status, "--eval-data");
}

/* ---- Records as one text ---- */

static sluice_status records_to_text(const reading *r, text_data *d, slc_records *records, slc_text **out)
{
    const slc_text_encoding how = encoding_of(r, d);
    if (!slc_records_have(records, SLC_FIELD_TEXT))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--sequences windows: %s has no field \"%s\"; say what it is called: --fields text=NAME",
                         slc_records_path(records), slc_records_name(records, SLC_FIELD_TEXT));
    return slc_text_of_records(records, &how, out);
}

static sluice_status read_records(reading *r, text_data *d)
{
    sluice_status status = open_tokenizer(r, d);
    if (!status) status = records_to_text(r, d, d->records, &d->text);
    if (!status && d->evaluation_records)
        status = slc_error_context(records_to_text(r, d, d->evaluation_records, &d->evaluation), "--eval-data");
    return status;
}

/* ---- All ---- */

static sluice_status split_text(text_data *d)
{
    const uint64_t window = (uint64_t)d->inside + 1;
    if (!d->evaluation) return slc_text_split(d->text, d->inside, &d->train, &d->held_out);
    d->train = (slc_text_range){0, slc_text_tokens(d->text)};
    d->held_out = (slc_text_range){0, slc_text_tokens(d->evaluation)};
    for (int held_out = 0; held_out < 2; held_out++) {
        const slc_text *text = part_of(d, held_out);
        if (slc_text_tokens(text) >= window) continue;
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s%s: %llu tokens are too short a text: a context of %u needs %llu; give more text or a "
                         "shorter context",
                         held_out ? "--eval-data " : "", slc_text_path(text, 0),
                         (unsigned long long)slc_text_tokens(text), d->inside, (unsigned long long)window);
    }
    return SLUICE_OK;
}

static sluice_status begin_text(text_data *d, const sluice_model_config *model)
{
    size_t count = (size_t)d->base.batch * d->base.length;
    bool classes = model->head == SLUICE_HEAD_CLASSES, masks = slc_family_of(model->family)->masks;
    d->base.content = hash_text;
    d->base.take = classes ? take_labelled : masks ? take_masked_tokens : take_next_tokens;
    d->base.passes = passes_of_text;
    d->base.set_shape = set_shape;
    d->labelled = classes;
    set_shape(&d->base, d->base.length, 1);
    if (classes) d->base.beside = add_classes;
    if (masks && !classes) d->base.targets = count_masked_tokens;
    d->inputs = malloc(count * sizeof *d->inputs);
    d->targets = malloc(count * sizeof *d->targets);
    d->row = malloc(d->base.length * sizeof *d->row);
    d->base.facts.bytes = (2 * count + d->base.length) * sizeof *d->inputs;
    if (d->inputs && d->targets && d->row) return SLUICE_OK;
    return slc_error(SLUICE_ERR_MEMORY, "a batch of %zu tokens", count);
}

static sluice_status open_text(reading *r, text_data *d)
{
    const slc_training_options *o = r->options;
    static const char *const licences[] = {"/usr/share/common-licenses"};
    const bool classes = r->model->head == SLUICE_HEAD_CLASSES;
    sluice_status status = begin_text(d, r->model);
    if (!status && classes && o->eval_data_count && !d->base.whole)
        status = slc_error(SLUICE_ERR_ARGUMENT,
                           "--eval-data with files as classes: the last tenth of each file is held out; for texts with "
                           "classes of their own give JSON lines with the fields \"text\" and \"label\"");
    if (!status && d->records) status = read_records(r, d);
    if (!status && !d->records)
        status = read_files(r, d, o->data_count ? o->data : licences, o->data_count ? o->data_count : 1);
    if (status) return status;
    d->inside = d->base.length - 2 * d->words.framed;
    d->base.least_length = 1 + 2 * d->words.framed;
    d->base.facts.tokenizer = d->words.fingerprint;
    if (d->base.whole) status = slc_training_text_in_order(d, r->model);
    if (!status && !d->base.whole) status = split_text(d);
    if (!status && !d->base.whole && classes) status = find_files(d, r->model);
    if (status) return status;
    if (!d->base.whole) describe_text(d, d->base.facts.tokenizer ? slc_training_tokenizer(o) : NULL, *licences);
    d->base.facts.fingerprint = slc_text_fingerprint(d->text);
    if (d->evaluation) {
        const uint64_t other = slc_text_fingerprint(d->evaluation);
        d->base.facts.fingerprint = slc_fnv(d->base.facts.fingerprint, &other, sizeof other);
    }
    const char *passed_over = slc_text_passed_over(d->text);
    return passed_over ? slc_training_data_add_note(&d->base, "--data: %s", passed_over) : SLUICE_OK;
}

slc_training_data *slc_training_text_create(slc_data_type type, slc_records *records, slc_records *evaluation)
{
    text_data *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->base.close = close_text;
    d->type = type;
    d->records = records;
    d->evaluation_records = evaluation;
    return &d->base;
}

sluice_status slc_training_text_open(const slc_training_options *o, const slc_training_data_watch *watch,
                                     sluice_model_config *model, slc_training_data *base)
{
    reading r = {.options = o, .watch = watch, .model = model};
    find_cache(&r);
    sluice_status status = open_text(&r, (text_data *)base);
    slc_tokenizer_close(r.tokenizer);
    return status;
}
