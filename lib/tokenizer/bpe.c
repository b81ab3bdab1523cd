/* See bpe.h. A word is a chain of symbols, and a heap has the pairs that may be merged: the least rank first, then the
 * leftmost. A merge makes pairs stale; they are recognised when they leave the heap.
 * tokenizer_test.c covers this file. */
#include "lib/tokenizer/bpe.h"

#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

/* ---- Bytes as characters ---- */

static bool is_visible(unsigned char byte)
{
    return (byte > ' ' && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
}

uint32_t slc_bpe_rune_of(unsigned char byte)
{
    if (is_visible(byte)) return byte;
    return byte <= ' ' ? 0x100u + byte : byte <= 0xA0 ? 0x100u + 33 + (byte - 0x7Fu) : 0x143;
}

int slc_bpe_byte_of(uint32_t rune)
{
    if (rune < 0x100) return is_visible((unsigned char)rune) ? (int)rune : -1;
    if (rune <= 0x120) return (int)rune - 0x100;
    if (rune <= 0x142) return (int)rune - 0x121 + 0x7F;
    return rune == 0x143 ? 0xAD : -1;
}

/* ---- Tables ---- */

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* The pair's place, or the empty one where it belongs. */
static slc_bpe_merge *place_of(const slc_bpe *bpe, uint64_t pair)
{
    size_t at = (size_t)((pair * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & bpe->mask;
    while (bpe->merges[at].merged >= 0 && bpe->merges[at].pair != pair) at = (at + 1) & bpe->mask;
    return &bpe->merges[at];
}

sluice_status slc_bpe_init(slc_bpe *bpe, const slc_vocabulary *vocabulary, const slc_bpe_merge *pairs, size_t count)
{
    size_t places = 16;
    while (places < 2 * count) places *= 2;
    bpe->mask = places - 1;
    bpe->merges = malloc(places * sizeof *bpe->merges);
    if (!bpe->merges) return slc_error(SLUICE_ERR_MEMORY, "%zu merges of a tokenizer", count);
    for (size_t i = 0; i < places; i++) bpe->merges[i].merged = -1;
    for (size_t i = 0; i < count; i++) *place_of(bpe, pairs[i].pair) = pairs[i];

    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t rune = slc_bpe_rune_of((unsigned char)byte);
        char text[2] = {(char)rune};
        if (rune >= 0x80) text[0] = (char)(0xC0 | rune >> 6), text[1] = (char)(0x80 | (rune & 0x3F));
        bpe->byte_tokens[byte] = slc_vocabulary_find(vocabulary, text, rune < 0x80 ? 1 : 2);
    }
    return SLUICE_OK;
}

void slc_bpe_fini(slc_bpe *bpe)
{
    free(bpe->merges);
    bpe->merges = NULL;
}

/* ---- The heap ---- */

typedef struct slc_bpe_symbol {
    int32_t token;        /* -1: it became a part of the one before */
    size_t before, after; /* places of the neighbours; SIZE_MAX: none */
} symbol;

typedef struct slc_bpe_candidate {
    size_t left; /* place of the pair's first symbol */
    uint32_t rank;
    int32_t merged;
} candidate;

static bool goes_first(const candidate *a, const candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->left < b->left;
}

static sluice_status heap_push(slc_bpe_work *work, candidate new)
{
    if (work->heap_count == work->heap_room) {
        size_t room = work->heap_room * 2 + 64;
        candidate *heap = realloc(work->heap, room * sizeof *heap);
        if (!heap) return slc_error(SLUICE_ERR_MEMORY, "%zu pairs of a long word", room);
        work->heap = heap;
        work->heap_room = room;
    }
    size_t at = work->heap_count++;
    for (; at && goes_first(&new, &work->heap[(at - 1) / 2]); at = (at - 1) / 2)
        work->heap[at] = work->heap[(at - 1) / 2];
    work->heap[at] = new;
    return SLUICE_OK;
}

static candidate heap_pop(slc_bpe_work *work)
{
    candidate *heap = work->heap, top = heap[0], last = heap[--work->heap_count];
    size_t at = 0, count = work->heap_count;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && goes_first(&heap[child + 1], &heap[child])) child++;
        if (!goes_first(&heap[child], &last)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

/* Adds the pair that begins at `left`, if it can be merged. */
static sluice_status offer_pair(const slc_bpe *bpe, slc_bpe_work *work, size_t left)
{
    size_t right = work->symbols[left].after;
    if (right == SIZE_MAX) return SLUICE_OK;
    const slc_bpe_merge *merge = place_of(bpe, pair_of(work->symbols[left].token, work->symbols[right].token));
    return merge->merged < 0 ? SLUICE_OK : heap_push(work, (candidate){left, merge->rank, merge->merged});
}

/* ---- Words ---- */

/* Writes the symbols of the word's bytes to work->symbols; returns how many. */
static size_t symbols_of(const slc_bpe *bpe, slc_bpe_work *work, const char *word, size_t bytes)
{
    size_t count = 0;
    bool after_unknown = false;
    for (size_t i = 0; i < bytes; i++) {
        int32_t token = bpe->byte_tokens[(unsigned char)word[i]];
        bool unknown = token < 0, skipped = unknown && (bpe->unknown < 0 || (after_unknown && bpe->fuse_unknown));
        after_unknown = unknown;
        if (skipped) continue;
        work->symbols[count] = (symbol){unknown ? bpe->unknown : token, count - 1, count + 1};
        count++;
    }
    if (count) work->symbols[0].before = work->symbols[count - 1].after = SIZE_MAX;
    return count;
}

static sluice_status merge_pair(const slc_bpe *bpe, slc_bpe_work *work, candidate pair)
{
    symbol *left = &work->symbols[pair.left];
    if (left->token < 0 || left->after == SIZE_MAX) return SLUICE_OK;
    symbol *right = &work->symbols[left->after];
    const slc_bpe_merge *now = place_of(bpe, pair_of(left->token, right->token));
    if (now->merged != pair.merged || now->rank != pair.rank) return SLUICE_OK; /* stale */
    left->token = pair.merged;
    left->after = right->after;
    right->token = -1;
    if (left->after != SIZE_MAX) work->symbols[left->after].before = pair.left;
    sluice_status status = left->before == SIZE_MAX ? SLUICE_OK : offer_pair(bpe, work, left->before);
    return status ? status : offer_pair(bpe, work, pair.left);
}

static sluice_status merge_word(const slc_bpe *bpe, slc_bpe_work *work, const char *word, size_t bytes,
                                slc_token_list *list)
{
    if (bytes > work->symbol_room) {
        symbol *symbols = realloc(work->symbols, bytes * sizeof *symbols);
        if (!symbols) return slc_error(SLUICE_ERR_MEMORY, "word of %zu bytes", bytes);
        work->symbols = symbols;
        work->symbol_room = bytes;
    }
    size_t count = symbols_of(bpe, work, word, bytes);
    sluice_status status = SLUICE_OK;
    work->heap_count = 0;
    for (size_t i = 0; i < count && !status; i++) status = offer_pair(bpe, work, i);
    while (work->heap_count && !status) status = merge_pair(bpe, work, heap_pop(work));
    for (size_t at = count ? 0 : SIZE_MAX; at != SIZE_MAX && !status; at = work->symbols[at].after)
        status = slc_token_list_append(list, &work->symbols[at].token, 1);
    return status;
}

/* The word as one token; -1: it is none. */
static int32_t whole_token(const slc_vocabulary *vocabulary, slc_bpe_work *work, const char *word, size_t bytes,
                           sluice_status *status)
{
    work->word.count = 0;
    if (bytes > vocabulary->longest) return -1;
    for (size_t i = 0; i < bytes && !*status; i++)
        *status = slc_chars_append_rune(&work->word, slc_bpe_rune_of((unsigned char)word[i]));
    return *status ? -1 : slc_vocabulary_find(vocabulary, work->word.data, work->word.count);
}

/* ---- Words that came before ---- */

enum { KNOWN_BYTES = 31, KNOWN_TOKENS = 8, KNOWN_WORDS = 1 << 14 };

/* A word that was encoded, and its tokens. The table has one place where a word can be, and a later word of the same
 * place replaces it. */
typedef struct slc_bpe_known {
    unsigned char bytes; /* 0: nothing is here */
    char word[KNOWN_BYTES];
    int32_t tokens[KNOWN_TOKENS], count;
} known_word;

void slc_bpe_work_expect(slc_bpe_work *work, size_t bytes)
{
    size_t words = 64;
    if (work->known || bytes < 1024) return;
    while (words < KNOWN_WORDS && words < bytes / 16) words *= 2;
    work->known = calloc(words, sizeof *work->known);
    work->known_mask = words - 1;
}

sluice_status slc_bpe_encode(const slc_bpe *bpe, const slc_vocabulary *vocabulary, slc_bpe_work *work, const char *word,
                             size_t bytes, slc_token_list *list)
{
    sluice_status status = SLUICE_OK;
    size_t before = list->count;
    known_word *known = NULL;
    if (work->known && bytes <= KNOWN_BYTES)
        known = &work->known[slc_fnv(SLC_FNV_START, word, bytes) & work->known_mask];
    if (known && known->bytes == bytes && !memcmp(known->word, word, bytes))
        return slc_token_list_append(list, known->tokens, (size_t)known->count);

    int32_t whole = bpe->ignore_merges ? whole_token(vocabulary, work, word, bytes, &status) : -1;
    if (!status) status = whole < 0 ? merge_word(bpe, work, word, bytes, list) : slc_token_list_append(list, &whole, 1);
    size_t count = list->count - before;
    if (status || !known || count > KNOWN_TOKENS) return status;
    known->bytes = (unsigned char)bytes;
    memcpy(known->word, word, bytes);
    if (count) memcpy(known->tokens, list->tokens + before, count * sizeof *list->tokens);
    known->count = (int32_t)count;
    return SLUICE_OK;
}

void slc_bpe_work_fini(slc_bpe_work *work)
{
    free(work->symbols);
    free(work->heap);
    free(work->known);
    free(work->word.data);
    *work = (slc_bpe_work){0};
}
