/* Normalisers: text to text, one step after another. Private to lib/tokenizer. */
#pragma once

#include "lib/tokenizer/unicode/chars.h"

typedef enum {
    SLC_NORMALIZE_CLEAN,         /* BERT's: control characters go, white space becomes U+0020 */
    SLC_NORMALIZE_CHINESE,       /* BERT's: spaces around ideographs */
    SLC_NORMALIZE_STRIP_ACCENTS, /* BERT's: Mn goes */
    SLC_NORMALIZE_STRIP_MARKS,   /* M goes */
    SLC_NORMALIZE_LOWERCASE,
    SLC_NORMALIZE_NFC,
    SLC_NORMALIZE_NFD,
    SLC_NORMALIZE_NFKC,
    SLC_NORMALIZE_NFKD,
} slc_normalize_step;

enum { SLC_NORMALIZE_STEPS = 16 };

typedef struct {
    slc_normalize_step steps[SLC_NORMALIZE_STEPS];
    size_t count;
} slc_normalizer;

/* Writes the normalised text to *out, in the place of what is there; `work` has the text between two steps. Both are
 * the caller's, and keep their room. Error: MEMORY. */
sluice_status slc_normalize(const slc_normalizer *normalizer, const char *text, size_t bytes, slc_chars *out,
                            slc_chars *work);
