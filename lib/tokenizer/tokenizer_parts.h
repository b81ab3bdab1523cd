/* The parts of a tokenizer. Private to lib/tokenizer. */
#pragma once

#include "lib/tokenizer/added.h"
#include "lib/tokenizer/bpe.h"
#include "lib/tokenizer/unicode/normalize.h"
#include "lib/tokenizer/pretokenize.h"
#include "lib/tokenizer/tokenizer.h"
#include "lib/tokenizer/vocabulary.h"
#include "lib/tokenizer/wordpiece.h"

typedef enum { SLC_MODEL_BPE, SLC_MODEL_WORDPIECE } slc_token_model;

typedef enum { SLC_DECODE_SPACES, SLC_DECODE_BYTE_LEVEL, SLC_DECODE_WORDPIECE } slc_decoding;

/* The kinds of white space before which a text may be cut (cuts.h). */
enum { SLC_CUT_SPACE = 1, SLC_CUT_LINE = 2 };

/* The kinds of white space before which a text may be cut, as a sum, for each character that the cut comes after. */
typedef struct {
    uint8_t after[128]; /* after this character of ASCII */
    uint8_t after_others;
} slc_cuts;

struct slc_tokenizer {
    uint64_t fingerprint;
    slc_token_model model;
    slc_vocabulary vocabulary; /* the model's */
    slc_bpe bpe;
    slc_wordpiece wordpiece;

    slc_added_token *added;
    size_t added_count;
    slc_added_finder in_text, in_normalized; /* normalized tokens are in the second one */
    slc_chars *normalized;                   /* of added tokens, their normalised texts; NULL: there is no normaliser */

    slc_normalizer normalizer;
    bool bert_normalizer; /* the file has a BertNormalizer for it */
    slc_words words;
    bool add_prefix_space;
    slc_cuts cuts;

    slc_token_list before, after; /* the special tokens of a text */

    slc_decoding decoding;
    char *decode_prefix; /* WordPiece: leads a token that continues a word */
    bool decode_cleanup;

    /* The arrays below have an element for each token number. */
    const char **texts; /* as the file has them; NULL: no token */
    const char **told;  /* as they are decoded: an added token that is normalized is its normalised text */
    bool *special;
    uint32_t size; /* one more than the largest number */
};
