/* labels_test.c covers this file. */
#include "bench/train/data/words.h"

#include "bench/train/options/options.h"
#include "lib/base/status.h"
#include "lib/weights/family.h"

#include <stdio.h>

/* Refuses to train weights on bytes if they have learned other tokens: bytes would only spoil them. */
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
static sluice_status fit_model(const slc_training_options *o, const slc_special_tokens *special, uint32_t tokens,
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
    model->begin_token = (uint64_t)(special->begin + 1);
    model->end_token = (uint64_t)(special->end + 1);
    if (slc_family_of(model->family)->padding) model->padding = special->padding < 0 ? 0 : (uint32_t)special->padding;
    return SLUICE_OK;
}

static sluice_status need_frame(const slc_training_options *o, uint32_t length, const sluice_model_config *model,
                                slc_training_words *out)
{
    const slc_special_tokens *s = &out->special;
    const char *lacks = s->first < 0                                       ? "[CLS] (cls_token)"
                        : s->last < 0                                      ? "[SEP] (sep_token)"
                        : s->mask < 0 && model->head == SLUICE_HEAD_TOKENS ? "[MASK] (mask_token)"
                                                                           : NULL;
    if (lacks)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "the tokenizer of %s has no token %s, which bert needs; give --tokenizer "
                         "one of BERT",
                         slc_training_tokenizer(o), lacks);
    if (length < 3)
        return slc_error(SLUICE_ERR_ARGUMENT, "--context %u: [CLS] and [SEP] take two of the tokens; give at least 3",
                         length);
    out->framed = true;
    return SLUICE_OK;
}

sluice_status slc_training_words_of(const slc_training_options *o, const slc_tokenizer *tokenizer, uint32_t length,
                                    sluice_model_config *model, slc_training_words *out)
{
    *out = (slc_training_words){.vocabulary = slc_tokenizer_vocabulary(tokenizer),
                                .fingerprint = slc_tokenizer_fingerprint(tokenizer) | 1 /* never 0 */};
    sluice_status status = slc_special_tokens_find(tokenizer, slc_training_tokenizer(o), &out->special);
    if (!status) status = fit_model(o, &out->special, out->vocabulary, model);
    if (status || !slc_family_of(model->family)->frames) return status;
    return need_frame(o, length, model, out);
}

sluice_status slc_training_words_compare(const slc_training_options *o, const slc_tokenizer *tokenizer,
                                         const sluice_model_config *model, char **line)
{
    const uint32_t tokens = slc_tokenizer_vocabulary(tokenizer);
    slc_tokenizer *own = NULL;
    int wrote = 0;
    *line = NULL;
    if (!o->weights || !o->tokenizer) return SLUICE_OK;
    if (slc_tokenizer_exists(o->weights)) {
        sluice_status status = slc_tokenizer_open(o->weights, &own);
        if (status) return status;
        if (slc_tokenizer_fingerprint(own) != slc_tokenizer_fingerprint(tokenizer))
            wrote = asprintf(line,
                             "--tokenizer %s is another one than the tokenizer.json of --weights %s, so these weights "
                             "have learned other tokens",
                             o->tokenizer, o->weights);
        slc_tokenizer_close(own);
    } else if (tokens < model->vocabulary - model->vocabulary / 10) {
        wrote = asprintf(line, "--tokenizer %s has %u tokens and --weights %s have a vocabulary of %u: is it theirs?",
                         o->tokenizer, tokens, o->weights, model->vocabulary);
    }
    if (wrote >= 0) return SLUICE_OK;
    *line = NULL;
    return slc_error(SLUICE_ERR_MEMORY, "a line on the tokenizer");
}

/* A model that guesses masked tokens keeps one place of the vocabulary to mask with. */
static sluice_status limit_tokens(uint32_t vocabulary, const sluice_model_config *model, slc_training_words *out)
{
    uint32_t kept = slc_family_of(model->family)->masks;
    *out = (slc_training_words){.special = {-1, -1, -1, -1, -1, -1}};
    if (model->vocabulary < 256 + kept)
        return slc_error(SLUICE_ERR_ARGUMENT, "a vocabulary of %u is too small for text; %u is the least",
                         model->vocabulary, 256 + kept);
    out->vocabulary = vocabulary == 256 ? vocabulary : model->vocabulary - kept;
    out->special.mask = (int32_t)out->vocabulary;
    return SLUICE_OK;
}

sluice_status slc_training_words_of_bytes(const slc_training_options *o, const sluice_model_config *model,
                                          slc_training_words *out)
{
    sluice_status status = bytes_suit(o, model);
    return status ? status : limit_tokens(256, model, out);
}

sluice_status slc_training_words_of_tokens(uint32_t vocabulary, const sluice_model_config *model,
                                           slc_training_words *out)
{
    return limit_tokens(vocabulary, model, out);
}
