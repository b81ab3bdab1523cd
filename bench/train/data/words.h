/* The tokens that a model reads text in: what its vocabulary holds, and which stand around a text. Private to
 * bench/train/data. */
#pragma once

#include "bench/train/options/training_options.h"
#include "lib/data/tokenizer_files/special_tokens.h"

typedef struct {
    slc_special_tokens special;
    bool framed;          /* [CLS] and [SEP] stand around a text */
    uint32_t vocabulary;  /* tokens of a text are below it, and so are replacements of masked ones */
    uint64_t fingerprint; /* a hash of the tokenizer; 0: none */
} slc_training_words;

/* Fills *out for text that `tokenizer` reads, in sequences of `length` tokens. A model with first values gets the
 * tokenizer's vocabulary; a model that has been trained must have room for it. Errors: ARGUMENT (no room; a tokenizer
 * without the tokens that the model needs, too short a length), those of slc_special_tokens_find. */
sluice_status slc_training_words_of(const slc_training_options *options, const slc_tokenizer *tokenizer,
                                    uint32_t length, sluice_model_config *model, slc_training_words *out);

/* Looks whether a tokenizer that the user names is that of the weights. *line says what speaks against it, malloc'ed;
 * NULL: nothing. Errors: those of reading the weights' tokenizer, MEMORY. */
sluice_status slc_training_words_compare(const slc_training_options *options, const slc_tokenizer *tokenizer,
                                         const sluice_model_config *model, char **line);

/* Fills *out for text that is read as bytes. Errors: ARGUMENT (weights that learned other tokens; too small a
 * vocabulary). */
sluice_status slc_training_words_of_bytes(const slc_training_options *options, const sluice_model_config *model,
                                          slc_training_words *out);

/* Fills *out for data that are tokens already, each below `vocabulary`, as far as their format says. Errors:
 * ARGUMENT. */
sluice_status slc_training_words_of_tokens(uint32_t vocabulary, const sluice_model_config *model,
                                           slc_training_words *out);
