/* See unicode.h. lib/tokenizer/golden_tokens_test.c covers this file. */
#include "lib/tokenizer/unicode/unicode.h"

#include "lib/base/bisect.h"
#include "lib/tokenizer/unicode/unicode_differences.h"

#include <utf8proc.h>

static bool within(const slc_rune_range *ranges, size_t count, uint32_t rune)
{
    SLC_BISECT(size_t, low, 0, count, rune > ranges[low].last);
    return ranges && ranges[low].first <= rune && rune <= ranges[low].last;
}

static bool corrected(bool is, uint32_t rune, const slc_rune_difference *by)
{
    if (is) return !(by->but_count && within(by->but, by->but_count - 1, rune));
    return by->also_count && within(by->also, by->also_count - 1, rune);
}

static unsigned category(uint32_t rune)
{
    return 1u << utf8proc_category((utf8proc_int32_t)rune);
}

enum {
    LETTER = 1u << UTF8PROC_CATEGORY_LU | 1u << UTF8PROC_CATEGORY_LL | 1u << UTF8PROC_CATEGORY_LT |
             1u << UTF8PROC_CATEGORY_LM | 1u << UTF8PROC_CATEGORY_LO,
    MARK = 1u << UTF8PROC_CATEGORY_MN | 1u << UTF8PROC_CATEGORY_MC | 1u << UTF8PROC_CATEGORY_ME,
    NUMBER = 1u << UTF8PROC_CATEGORY_ND | 1u << UTF8PROC_CATEGORY_NL | 1u << UTF8PROC_CATEGORY_NO,
    PUNCTUATION = 1u << UTF8PROC_CATEGORY_PC | 1u << UTF8PROC_CATEGORY_PD | 1u << UTF8PROC_CATEGORY_PS |
                  1u << UTF8PROC_CATEGORY_PE | 1u << UTF8PROC_CATEGORY_PI | 1u << UTF8PROC_CATEGORY_PF |
                  1u << UTF8PROC_CATEGORY_PO,
    SPACE = 1u << UTF8PROC_CATEGORY_ZS | 1u << UTF8PROC_CATEGORY_ZL | 1u << UTF8PROC_CATEGORY_ZP,
    CONTROL = 1u << UTF8PROC_CATEGORY_CC | 1u << UTF8PROC_CATEGORY_CF | 1u << UTF8PROC_CATEGORY_CO,
};

bool slc_rune_is_space(uint32_t rune)
{
    if (rune < 0x80) return rune == ' ' || (rune >= '\t' && rune <= '\r');
    return rune == 0x85 || category(rune) & SPACE;
}

bool slc_rune_is_letter(uint32_t rune)
{
    if (rune < 0x80) return (rune | 0x20) >= 'a' && (rune | 0x20) <= 'z';
    return corrected(category(rune) & LETTER, rune, &slc_letter_difference);
}

bool slc_rune_is_number(uint32_t rune)
{
    if (rune < 0x80) return rune >= '0' && rune <= '9';
    return corrected(category(rune) & NUMBER, rune, &slc_number_difference);
}

bool slc_rune_is_word(uint32_t rune)
{
    const unsigned known =
        LETTER | MARK | 1u << UTF8PROC_CATEGORY_ND | 1u << UTF8PROC_CATEGORY_NL | 1u << UTF8PROC_CATEGORY_PC;
    return corrected(category(rune) & known, rune, &slc_word_difference);
}

bool slc_rune_is_control(uint32_t rune)
{
    if (rune == '\t' || rune == '\n' || rune == '\r') return false;
    return rune == 0xFFFD || corrected(category(rune) & CONTROL, rune, &slc_control_difference);
}

bool slc_rune_is_punctuation(uint32_t rune)
{
    if (rune < 0x80) return rune > ' ' && rune < 0x7F && !slc_rune_is_letter(rune) && !slc_rune_is_number(rune);
    return corrected(category(rune) & PUNCTUATION, rune, &slc_punctuation_difference);
}

/* https://github.com/google-research/bert, tokenization.py, _is_chinese_char; U+2B820 to U+2B91F are absent from the
 * list of tokenizers. */
bool slc_rune_is_chinese(uint32_t rune)
{
    static const slc_rune_range ranges[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                            {0x20000, 0x2A6DF}, {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF},
                                            {0x2F800, 0x2FA1F}};
    return rune >= 0x3400 && within(ranges, sizeof ranges / sizeof *ranges - 1, rune);
}

bool slc_rune_is_accent(uint32_t rune)
{
    return rune >= 0x80 && corrected(category(rune) & 1u << UTF8PROC_CATEGORY_MN, rune, &slc_accent_difference);
}

bool slc_rune_is_mark(uint32_t rune)
{
    return rune >= 0x80 && corrected(category(rune) & MARK, rune, &slc_mark_difference);
}

uint8_t slc_rune_combining_class(uint32_t rune)
{
    if (rune < 0x300) return 0;
    unsigned class = (unsigned)utf8proc_get_property((utf8proc_int32_t)rune)->combining_class;
    return class && corrected(true, rune, &slc_combining_difference) ? (uint8_t) class : 0;
}

uint32_t slc_rune_lowercase(uint32_t rune)
{
    if (rune < 0x80) return rune >= 'A' && rune <= 'Z' ? rune + 0x20 : rune;
    if (rune == 0x130) return rune;
    for (size_t i = 0; i < slc_lowercase_difference_count; i++) {
        const slc_lowercase_range *range = &slc_lowercase_differences[i];
        if (rune >= range->first && rune <= range->last) return (uint32_t)((int32_t)rune + range->distance);
    }
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)rune);
}

size_t slc_rune_decompose(uint32_t rune, bool compatibility, uint32_t out[18])
{
    utf8proc_int32_t parts[18];
    utf8proc_option_t options = UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0);
    utf8proc_ssize_t count = 1;
    out[0] = rune;
    if (rune < 0x80 || !corrected(true, rune, &slc_decomposed_difference)) return 1;
    count = utf8proc_decompose_char((utf8proc_int32_t)rune, parts, 18, options, NULL);
    if (count < 1 || count > 18) return 1; /* utf8proc knows no code point that has more */
    for (utf8proc_ssize_t i = 0; i < count; i++) out[i] = (uint32_t)parts[i];
    return (size_t)count;
}

uint32_t slc_rune_compose(uint32_t first, uint32_t second)
{
    utf8proc_int32_t pair[2] = {(utf8proc_int32_t)first, (utf8proc_int32_t)second};
    if (second < 0x300) return 0;
    if (utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) != 1) return 0;
    return corrected(true, (uint32_t)pair[0], &slc_decomposed_difference) ? (uint32_t)pair[0] : 0;
}
