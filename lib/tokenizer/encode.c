/* Text to tokens: added tokens, normalisation, words, model, special tokens, in this order.
 * tokenizer_test.c covers this file. */
#include "lib/tokenizer/tokenizer_parts.h"

#include "lib/base/text/utf8.h"

#include <stdlib.h>

typedef struct {
    const slc_tokenizer *tokenizer;
    slc_token_list *list;
    slc_chars repaired, normalized, step, spaced;
    slc_bpe_work bpe;
} encoding;

static sluice_status encode_word(encoding *e, const char *word, size_t bytes)
{
    const slc_tokenizer *t = e->tokenizer;
    if (t->model == SLC_MODEL_BPE) return slc_bpe_encode(&t->bpe, &t->vocabulary, &e->bpe, word, bytes, e->list);
    return slc_wordpiece_encode(&t->wordpiece, &t->vocabulary, word, bytes, e->list);
}

/* Encodes normalised text that has no added token. */
static sluice_status encode_plain(encoding *e, const char *text, size_t bytes)
{
    sluice_status status = SLUICE_OK;
    if (e->tokenizer->add_prefix_space && bytes && text[0] != ' ') {
        e->spaced.count = 0;
        status = slc_chars_append(&e->spaced, " ", 1);
        if (!status) status = slc_chars_append(&e->spaced, text, bytes);
        text = e->spaced.data, bytes = e->spaced.count;
    }
    for (size_t at = 0, first; !status && slc_words_next(e->tokenizer->words, text, bytes, &at, &first);)
        status = encode_word(e, text + first, at - first);
    return status;
}

static sluice_status encode_normalized(encoding *e, const char *text, size_t bytes)
{
    slc_added_search search = {0};
    slc_added_part part;
    sluice_status status = SLUICE_OK;
    while (!status && slc_added_next(&e->tokenizer->in_normalized, text, bytes, &search, &part))
        status = part.token ? slc_token_list_append(e->list, &part.token->number, 1)
                            : encode_plain(e, text + part.first, part.end - part.first);
    return status;
}

/* Encodes text that has no added token but those that are looked for in normalised text. */
static sluice_status encode_part(encoding *e, const char *text, size_t bytes)
{
    if (!e->tokenizer->normalizer.count) return encode_normalized(e, text, bytes);
    sluice_status status = slc_normalize(&e->tokenizer->normalizer, text, bytes, &e->normalized, &e->step);
    return status ? status : encode_normalized(e, e->normalized.data, e->normalized.count);
}

static sluice_status encode_text(encoding *e, const char *text, size_t bytes)
{
    slc_added_search search = {0};
    slc_added_part part;
    sluice_status status = SLUICE_OK;
    if (slc_utf8_valid(text, bytes) < bytes) {
        status = slc_chars_append_repaired(&e->repaired, text, bytes);
        text = e->repaired.data, bytes = e->repaired.count;
    }
    while (!status && slc_added_next(&e->tokenizer->in_text, text, bytes, &search, &part))
        status = part.token ? slc_token_list_append(e->list, &part.token->number, 1)
                            : encode_part(e, text + part.first, part.end - part.first);
    return status;
}

sluice_status slc_tokenizer_encode(const slc_tokenizer *tokenizer, const char *text, size_t bytes, bool special,
                                   slc_token_list *list)
{
    encoding e = {.tokenizer = tokenizer, .list = list};
    size_t before = list->count;
    sluice_status status = SLUICE_OK;
    if (tokenizer->model == SLC_MODEL_BPE) slc_bpe_work_expect(&e.bpe, bytes);
    if (special) status = slc_token_list_append(list, tokenizer->before.tokens, tokenizer->before.count);
    if (!status) status = encode_text(&e, text, bytes);
    if (!status && special) status = slc_token_list_append(list, tokenizer->after.tokens, tokenizer->after.count);
    if (status) list->count = before;
    free(e.repaired.data);
    free(e.normalized.data);
    free(e.step.data);
    free(e.spaced.data);
    slc_bpe_work_fini(&e.bpe);
    return status;
}
