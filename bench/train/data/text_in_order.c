/* A whole text, window by window. If windows overlap, a token that an earlier window has guessed is only read.
 * tests/command/weights/eval_data_test.sh covers this file. */
#include "bench/train/data/data_parts.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/weights/family.h"

#include <stdlib.h>
#include <string.h>

/* Returns the number of windows, each of which begins `stride` tokens after the one before, until one reaches the end;
 * a last window without a target is left out. A window of masked or labelled text has targets of its own; in other text
 * the first token of a window is no target. */
static uint64_t windows_of(uint64_t tokens, uint32_t inside, uint32_t stride, bool own_targets)
{
    if (tokens <= inside) return tokens > !own_targets;
    const uint64_t windows = 1 + (tokens - inside + stride - 1) / stride;
    return windows - (!own_targets && stride == inside && (windows - 1) * stride + 1 == tokens);
}

/* ---- The next token ---- */

static sluice_status take_next_tokens(slc_training_data *base, uint64_t first, sluice_batch *out)
{
    slc_training_text *d = (slc_training_text *)base;
    const uint64_t all = slc_text_tokens(d->text);
    sluice_status status = SLUICE_OK;
    for (uint32_t b = 0; !status && b < base->batch; b++) {
        int32_t *inputs = d->inputs + (size_t)b * base->length, *targets = d->targets + (size_t)b * base->length;
        const uint64_t window = first + b, begin = window * base->stride;
        const uint64_t end = slc_least(begin + base->length, all);
        const uint64_t guessed = window ? begin - base->stride + base->length : 0;
        memset(inputs, 0, base->length * sizeof *inputs);
        for (uint32_t i = 0; i < base->length; i++) targets[i] = -1;
        if (window >= base->facts.sequences) continue;
        status = slc_text_read(d->text, begin, (size_t)(end - begin), inputs);
        for (uint64_t t = slc_most(begin + 1, guessed); t < end; t++) targets[t - begin - 1] = inputs[t - begin];
    }
    *out = SLUICE_INIT(sluice_batch, .tokens = d->inputs, .targets = d->targets);
    return status;
}

/* ---- Masked tokens, and files as classes ---- */

/* The tokens of a window, and what stands around them; the rest of a short one is hidden. Without a window all is
 * shown, because something must be. */
static sluice_status read_window(slc_training_text *d, uint32_t b, slc_text_range window)
{
    const uint32_t length = d->base.length, used = (uint32_t)window.tokens + 2 * d->words.framed;
    int32_t *inputs = d->inputs + (size_t)b * length;
    uint8_t *seen = d->attention_mask + (size_t)b * length;
    memset(inputs, 0, length * sizeof *inputs);
    memset(seen, window.tokens == 0, length);
    if (!window.tokens) return SLUICE_OK;
    memset(seen, 1, used);
    if (d->words.framed) {
        inputs[0] = d->words.special.first;
        inputs[used - 1] = d->words.special.last;
    }
    return slc_text_read(d->text, window.first, (size_t)window.tokens, inputs + d->words.framed);
}

static slc_text_range window_in(slc_text_range range, uint64_t window, uint32_t inside)
{
    const uint64_t begin = window * inside;
    if (begin >= range.tokens) return (slc_text_range){0};
    return (slc_text_range){range.first + begin, slc_least(inside, range.tokens - begin)};
}

static sluice_status take_masked_tokens(slc_training_data *base, uint64_t first, sluice_batch *out)
{
    slc_training_text *d = (slc_training_text *)base;
    const slc_text_range all = {0, slc_text_tokens(d->text)};
    sluice_status status = SLUICE_OK;
    for (uint32_t b = 0; !status && b < base->batch; b++) {
        const size_t at = (size_t)b * base->length;
        const slc_text_range window = window_in(all, first + b, d->inside);
        const slc_token_mask mask = {.seed = base->seed,
                                     .held_out = true,
                                     .length = (uint32_t)window.tokens,
                                     .vocabulary = d->words.vocabulary,
                                     .mask_token = d->words.special.mask};
        for (uint32_t i = 0; i < base->length; i++) d->targets[at + i] = -1;
        status = read_window(d, b, window);
        if (!status && window.tokens)
            slc_mask_tokens(&mask, first + b, d->inputs + at + d->words.framed, d->targets + at + d->words.framed);
    }
    *out = SLUICE_INIT(sluice_batch, .tokens = d->inputs, .targets = d->targets, .attention_mask = d->attention_mask);
    return status;
}

static sluice_status take_labelled(slc_training_data *base, uint64_t first, sluice_batch *out)
{
    slc_training_text *d = (slc_training_text *)base;
    sluice_status status = SLUICE_OK;
    for (uint32_t b = 0; !status && b < base->batch; b++) {
        uint64_t window = first + b;
        uint32_t file = 0;
        for (; file < d->file_count; file++) {
            const uint64_t windows = windows_of(d->files[file].tokens, d->inside, d->inside, true);
            if (window < windows) break;
            window -= windows;
        }
        const bool there = file < d->file_count;
        d->targets[b] = there ? (int32_t)file : -1;
        status = read_window(d, b, there ? window_in(d->files[file], window, d->inside) : (slc_text_range){0});
    }
    *out = SLUICE_INIT(sluice_batch, .tokens = d->inputs, .targets = d->targets, .attention_mask = d->attention_mask);
    return status;
}

/* ---- Opening ---- */

static sluice_status take_files(slc_training_text *d, const sluice_model_config *model)
{
    slc_text_range file;
    size_t files = 0;
    for (; slc_text_file(d->text, files, &file); files++)
        if (files < SLC_TRAINING_FILES_MAX) {
            d->files[files] = file;
            d->base.facts.sequences += windows_of(file.tokens, d->inside, d->inside, true);
        }
    d->file_count = (uint32_t)files;
    if (files == model->classes && files <= SLC_TRAINING_FILES_MAX) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--data: %zu files, and the model answers with %u classes; give one file for each class, in the "
                     "order in which it was trained on them",
                     files, model->classes);
}

sluice_status slc_training_text_in_order(slc_training_text *d, const sluice_model_config *model)
{
    slc_training_data *base = &d->base;
    const bool masks = slc_family_of(model->family)->masks, classes = model->head == SLUICE_HEAD_CLASSES;
    const size_t count = (size_t)base->batch * base->length;
    base->take_in_order = classes ? take_labelled : masks ? take_masked_tokens : take_next_tokens;
    if (masks) {
        d->attention_mask = malloc(count);
        if (!d->attention_mask) return slc_error(SLUICE_ERR_MEMORY, "a batch of %zu tokens", count);
        base->stride = d->inside;
        base->facts.bytes += count;
    }
    if (classes) return take_files(d, model);
    base->facts.sequences = windows_of(slc_text_tokens(d->text), d->inside, base->stride, masks);
    if (base->facts.sequences) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "--data: a text of one token has no next one to guess; give a longer one");
}
