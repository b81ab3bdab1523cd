/* Byte-level BPE (Sennrich et al., arXiv 1508.07909; on bytes: Radford et al., 2019, section 2.2). Each byte is written
 * as one character, so that a token is text. Private to lib/tokenizer. */
#pragma once

#include "lib/tokenizer/unicode/chars.h"
#include "lib/tokenizer/tokenizer.h"
#include "lib/tokenizer/vocabulary.h"

#include <stdbool.h>

/* The two tokens of `pair` (left << 32 | right) become `merged`; the least rank goes first. */
typedef struct {
    uint64_t pair;
    uint32_t rank;
    int32_t merged; /* -1: an empty place of the table */
} slc_bpe_merge;

typedef struct {
    slc_bpe_merge *merges; /* a hash table with open addressing; mask + 1 places, a power of 2 */
    size_t mask;
    int32_t byte_tokens[256]; /* -1: the vocabulary lacks the byte */
    int32_t unknown;          /* for bytes that it lacks; -1: they are left out */
    bool fuse_unknown;        /* one for a run of such bytes */
    bool ignore_merges;       /* a word that is a token is that token, whatever the merges make of it */
} slc_bpe;

/* The character that stands for a byte: itself if ISO 8859-1 has a visible character, else U+0100 and on. */
uint32_t slc_bpe_rune_of(unsigned char byte);
/* The byte that a character stands for; -1: none. */
int slc_bpe_byte_of(uint32_t rune);

/* Makes the table of merges and that of bytes; `pairs` holds the merges by rank, each with its `merged`. Of equal pairs
 * the last counts. Error: MEMORY. */
sluice_status slc_bpe_init(slc_bpe *bpe, const slc_vocabulary *vocabulary, const slc_bpe_merge *pairs, size_t count);
void slc_bpe_fini(slc_bpe *bpe);

/* The scratch memory of one encoding; begins as {0}, belongs to one thread. */
typedef struct {
    struct slc_bpe_symbol *symbols;
    struct slc_bpe_candidate *heap;
    size_t symbol_room, heap_count, heap_room;
    struct slc_bpe_known *known; /* words that came before; NULL: none are kept */
    size_t known_mask;
    slc_chars word;
} slc_bpe_work;
/* Makes room for words to remember, as much as pays for a text of this length. Without it encoding is only slower, so
 * there is no error. */
void slc_bpe_work_expect(slc_bpe_work *work, size_t bytes);
void slc_bpe_work_fini(slc_bpe_work *work);

/* Appends the tokens of a word, in time linear in it but for a logarithm. Error: MEMORY. */
sluice_status slc_bpe_encode(const slc_bpe *bpe, const slc_vocabulary *vocabulary, slc_bpe_work *work, const char *word,
                             size_t bytes, slc_token_list *list);
