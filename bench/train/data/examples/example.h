/* One record as a model's sequence of tokens.
 *
 *   gpt2            the text's tokens and the end token; each position is asked for the next token
 *   gpt2, messages  a conversation as its template lays it out (lib/data/chat.h); the next token is asked for where it
 *                   is the assistant's
 *   bert            [CLS] text [SEP], or [CLS] text [SEP] pair [SEP] with types 0 and 1 (Devlin et al., arXiv
 *                   1810.04805, section 3)
 *
 * Without a tokenizer each byte is a token, and nothing stands around a text. An example that is too long is cut as
 * Hugging Face's tokenizers cut it: the end of a text; of a pair the end of the longer one ("longest_first"). One
 * thread. Private to bench/train/data/examples. */
#pragma once

#include "bench/train/data/words.h"
#include "lib/data/chat.h"
#include "lib/data/records/classes.h"

/* The tokenizer, the template and the limits that all examples of a run share. */
typedef struct {
    const slc_tokenizer *tokenizer; /* NULL: bytes */
    slc_training_words words;
    const slc_chat_template *template; /* of messages; NULL: the records have none */
    const slc_classes *classes;        /* NULL: labels are not read */
    uint32_t context;                  /* tokens of the longest example */
    bool causal, pairs;
} slc_example_kind;

/* Begun as {0}, used for one record after the other, and freed. */
typedef struct {
    slc_token_list tokens; /* of the whole example, cut */
    uint8_t *types;        /* of each token */
    uint8_t *trained;      /* messages: the token is the assistant's */
    size_t room;
    uint32_t targets; /* tokens that are asked for, of causal models */
    int32_t class;
    bool cut; /* it was longer than the context */
    slc_records_item record;
    slc_token_list pair;
    slc_chat_text chat;
} slc_example;

/* Makes the example of a record. Errors: those of slc_records_read; FORMAT (a class that is none of those known, an
 * empty text, a conversation that the template cannot lay out), MEMORY. */
sluice_status slc_example_make(const slc_example_kind *kind, const slc_records *records, uint64_t index,
                               slc_example *example);
void slc_example_free(slc_example *example);
