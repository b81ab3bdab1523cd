/* The visual tokens of images, which a BEiT guesses: those of a codebook that is made of the images, of a codebook in a
 * file, or tokens that another program has found and a file holds. One thread. */
#pragma once

#include "bench/train/data/images/codebook.h"

typedef struct {
    const char *file;                      /* --visual-tokens; NULL: none */
    const char *weights;                   /* a folder that may have SLC_VISUAL_TOKENS_FILE; NULL: none */
    const slc_images *images, *evaluation; /* evaluation: NULL if there is no second set */
    const slc_image_shape *shape;
    slc_image_range train; /* of `images`, of which a codebook is made; count 0: none is made */
    uint32_t patch;        /* pixels a side */
    uint32_t vocabulary;   /* tokens are below it */
} slc_visual_tokens_source;

typedef struct {
    slc_codebook codebook; /* codes 0: tokens are those of a file */
    int32_t *tokens[2];    /* of the two sets, images x patches, in the sets' own order; NULL: a codebook names them */
    uint32_t patches;      /* of an image */
    uint64_t reading;      /* a hash of what a file has; 0: the codebook is made of the images */
} slc_visual_tokens;

/* Opens source->file if it is given, else the file in source->weights if there is one, else makes a codebook of the
 * images. A file has the tensor "codebook", or "tokens" (images x patches, whole numbers) and, if there is a second
 * set, "evaluation_tokens". The caller frees *out, also after an error. Errors: ARGUMENT (no file, and no codebook can
 * be made), FORMAT (other numbers of images or patches too), PATH, IO, MEMORY. */
sluice_status slc_visual_tokens_open(const slc_visual_tokens_source *source, slc_visual_tokens *out);
void slc_visual_tokens_free(slc_visual_tokens *tokens); /* a zeroed one is allowed */
uint64_t slc_visual_tokens_bytes(const slc_visual_tokens *tokens, const slc_visual_tokens_source *source);

/* Writes the tokens of the masked patches of an image, -1 for the others. evaluation: of the second set; `number`:
 * slc_images_number. */
void slc_visual_tokens_take(const slc_visual_tokens *tokens, bool evaluation, uint64_t number, const float *pixels,
                            const uint8_t *masked, int32_t *targets);
