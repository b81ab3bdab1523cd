/* See cuts.h. Cuts come before white space. After ASCII they come only after letters, digits, full stop and comma:
 * every normaliser leaves these what they are, but for their case, and both kinds of tokenizers split words apart
 * before they look for tokens. A cut is forbidden if anything reaches over it: added tokens with white space in them or
 * around them, merges if the text is one word, prefixes of a text, normalisers that may leave a space where a character
 * was. lib/data/encode_test.c covers this file. */
#include "lib/tokenizer/cuts.h"

#include "lib/tokenizer/tokenizer_parts.h"

enum { BOTH = SLC_CUT_SPACE | SLC_CUT_LINE };

static bool is_letter_or_digit(unsigned c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void allow(slc_cuts *cuts, uint8_t kinds)
{
    for (unsigned c = 0; c < 128; c++) cuts->after[c] = is_letter_or_digit(c) || c == '.' || c == ',' ? kinds : 0;
    cuts->after_others = kinds;
}

/* ---- Added tokens ---- */

/* Forbids cuts after this character of an added token. If the text is normalised first, it may have had another
 * character there before, or this letter in the other case. */
static void forbid(slc_cuts *cuts, unsigned char before, bool normalized)
{
    if (before < 128) cuts->after[before] = 0;
    if (before >= 128 || normalized) cuts->after_others = 0;
    if (normalized && is_letter_or_digit(before) && before > '9') cuts->after[before ^ ('a' ^ 'A')] = 0;
}

static void forbid_words(slc_cuts *cuts)
{
    for (unsigned c = 0; c < 128; c++)
        if (is_letter_or_digit(c)) cuts->after[c] = 0;
    cuts->after_others = 0;
}

/* Forbids cuts for the sake of added tokens. A token with white space inside would be cut in two. A token that takes
 * the white space after it would leave that space to the next part. A token that begins with white space and stands
 * alone must see the character before it. */
static void learn_added(slc_cuts *cuts, const slc_added_finder *finder, bool normalized)
{
    for (size_t i = 0; i < finder->count; i++) {
        const slc_added_pattern *pattern = &finder->patterns[i];
        const char *text = pattern->text;
        for (size_t at = 1; at < pattern->bytes; at++)
            if (text[at] == ' ' || text[at] == '\n') forbid(cuts, (unsigned char)text[at - 1], normalized);
        if (pattern->token->rstrip) forbid(cuts, (unsigned char)text[pattern->bytes - 1], normalized);
        if (pattern->token->single_word && (text[0] == ' ' || text[0] == '\n')) forbid_words(cuts);
    }
}

/* ---- A text that is one word ---- */

static bool has_byte(const slc_tokenizer *tokenizer, unsigned char byte)
{
    return tokenizer->bpe.byte_tokens[byte] >= 0;
}

/* Merges go over a cut only if one of them makes a token with this character and this white space in it. A byte that
 * the vocabulary lacks may be left out, so that others come together. */
static void learn_merges(slc_cuts *cuts, const slc_tokenizer *tokenizer)
{
    for (unsigned c = 0; c < 128; c++) {
        if (!has_byte(tokenizer, (unsigned char)c)) cuts->after[c] = 0;
        if (!has_byte(tokenizer, ' ')) cuts->after[c] &= (uint8_t)~SLC_CUT_SPACE;
        if (!has_byte(tokenizer, '\n')) cuts->after[c] &= (uint8_t)~SLC_CUT_LINE;
    }
    for (size_t i = 0; i < tokenizer->vocabulary.count; i++) {
        const slc_token_entry *entry = &tokenizer->vocabulary.entries[i];
        int before = -1;
        for (size_t at = 0; at < entry->bytes;) {
            int byte = slc_bpe_byte_of(slc_rune_next(entry->text, &at));
            if (before >= 0 && before < 128 && byte == ' ') cuts->after[before] &= (uint8_t)~SLC_CUT_SPACE;
            if (before >= 0 && before < 128 && byte == '\n') cuts->after[before] &= (uint8_t)~SLC_CUT_LINE;
            before = byte;
        }
    }
}

static void learn_one_word(slc_cuts *cuts, const slc_tokenizer *tokenizer)
{
    cuts->after_others = 0;
    if (tokenizer->model != SLC_MODEL_BPE || tokenizer->bpe.ignore_merges || tokenizer->normalizer.count)
        allow(cuts, 0);
    else
        learn_merges(cuts, tokenizer);
}

/* ---- All of it ---- */

/* Returns true if a character that is no space may become one, or vanish and leave the space before it. */
static bool makes_spaces(const slc_normalizer *normalizer)
{
    for (size_t i = 0; i < normalizer->count; i++) {
        const slc_normalize_step step = normalizer->steps[i];
        if (step != SLC_NORMALIZE_NFC && step != SLC_NORMALIZE_NFD && step != SLC_NORMALIZE_LOWERCASE) return true;
    }
    return false;
}

void slc_cuts_learn(slc_tokenizer *tokenizer)
{
    slc_cuts *cuts = &tokenizer->cuts;
    const bool whole = tokenizer->words == SLC_WORDS_WHOLE, runs = whole || tokenizer->words == SLC_WORDS_BYTE_LEVEL;
    /* A part that begins with the end of a line would get a prefix, one that begins with a space does not. */
    allow(cuts, tokenizer->add_prefix_space ? SLC_CUT_SPACE : BOTH);
    if (runs && makes_spaces(&tokenizer->normalizer)) cuts->after_others = 0;
    if (whole) learn_one_word(cuts, tokenizer);
    learn_added(cuts, &tokenizer->in_text, false);
    learn_added(cuts, &tokenizer->in_normalized, tokenizer->normalizer.count > 0);
}

/* ---- Cutting ---- */

/* Returns true if a character beyond ASCII that is surely no space ends before place `at`. Spaces beyond ASCII begin
 * with the bytes c2, e1 9a, e2 80, e2 81 and e3 80 80; other signs with these bytes do no harm if they are not cut
 * after. */
static bool ends_no_space(const unsigned char *text, size_t at)
{
    if (at < 3 || text[at - 2] < 0x80 || text[at - 2] == 0xc2 || text[at - 3] < 0x80) return false;
    unsigned lead = text[at - 3], next = text[at - 2];
    return !(lead == 0xe1 && next == 0x9a) && !(lead == 0xe2 && (next == 0x80 || next == 0x81)) &&
           !(lead == 0xe3 && next == 0x80 && text[at - 1] == 0x80);
}

size_t slc_tokenizer_last_cut(const slc_tokenizer *tokenizer, const char *text, size_t from, size_t bytes)
{
    const unsigned char *byte = (const unsigned char *)text;
    const slc_cuts *cuts = &tokenizer->cuts;
    for (size_t at = bytes; at-- > from && at > 0;) {
        const uint8_t kind = byte[at] == ' ' ? SLC_CUT_SPACE : byte[at] == '\n' ? SLC_CUT_LINE : 0;
        if (!kind) continue;
        if (byte[at - 1] < 0x80 ? cuts->after[byte[at - 1]] & kind
                                : cuts->after_others & kind && ends_no_space(byte, at))
            return at;
    }
    return 0;
}
