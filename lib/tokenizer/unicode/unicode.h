/* The classes of code points that tokenizers know. They come from utf8proc's tables, with the differences that
 * unicode_differences.c lists: Hugging Face's tokenizers takes each class from another library, and each of these has
 * another version of Unicode. Every function takes any code point, and runs on any thread. Private to lib/tokenizer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool slc_rune_is_space(uint32_t rune);   /* White_Space */
bool slc_rune_is_letter(uint32_t rune);  /* \p{L} */
bool slc_rune_is_number(uint32_t rune);  /* \p{N} */
bool slc_rune_is_word(uint32_t rune);    /* \w: Alphabetic, M, Nd, Pc, Join_Control (Unicode TS 18, annex C) */
bool slc_rune_is_control(uint32_t rune); /* what BERT's clean_text removes: Cc, Cf, Co, but \t, \n, \r; and U+FFFD */
bool slc_rune_is_punctuation(uint32_t rune); /* ASCII's 32 and P, as BERT splits at them */
bool slc_rune_is_chinese(uint32_t rune);     /* the ideographs that BERT puts between spaces */
bool slc_rune_is_accent(uint32_t rune);      /* Mn, as BERT strips them */
bool slc_rune_is_mark(uint32_t rune);        /* M, as the normaliser StripAccents strips them */

uint8_t slc_rune_combining_class(uint32_t rune);
uint32_t slc_rune_lowercase(uint32_t rune); /* U+0130, whose lower case has two, gives itself */
/* Writes the full decomposition of `rune`, canonical or of compatibility, at most 18 code points; returns how many. */
size_t slc_rune_decompose(uint32_t rune, bool compatibility, uint32_t out[18]);
/* The code point that the two of a canonical decomposition compose to; 0: they compose to none. */
uint32_t slc_rune_compose(uint32_t first, uint32_t second);
