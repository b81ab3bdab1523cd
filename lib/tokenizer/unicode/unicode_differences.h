/* Lists the characters whose classes in Hugging Face's tokenizers differ from utf8proc's. Private to lib/tokenizer. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Code points from `first` to `last`, both included. */
typedef struct {
    uint32_t first, last;
} slc_rune_range;

/* Ranges ascend. */
typedef struct {
    const slc_rune_range *also, *but; /* in tokenizers' class only; in utf8proc's only */
    size_t also_count, but_count;
} slc_rune_difference;

extern const slc_rune_difference slc_letter_difference, slc_number_difference, slc_word_difference,
    slc_control_difference, slc_punctuation_difference, slc_accent_difference, slc_mark_difference,
    slc_combining_difference, slc_decomposed_difference;

/* The lower case of each code point of a range is `distance` away. */
typedef struct {
    uint32_t first, last;
    int32_t distance;
} slc_lowercase_range;

extern const slc_lowercase_range slc_lowercase_differences[];
extern const size_t slc_lowercase_difference_count;
