/* Micro-batches of real data in the form that a model wants. The content of a micro-batch is a function of
 * (seed, numbers of its sequences) alone, so a job that is resumed, or split in another way, sees the same.
 *
 *   gpt2             the next token of text
 *   bert, tokens     text with 15 % of its tokens to be guessed: 80 % of them masked, 10 % replaced, 10 % as they are
 *                    (Devlin et al., arXiv 1810.04805, section 3.1)
 *   bert, classes    which of the files a window is from
 *   vit, beit        images and their classes
 *   beit, tokens     images with 40 % of their patches masked in blocks, whose visual tokens are to be guessed (Bao et
 *                    al., arXiv 2106.08254, algorithm 1); the tokens are those of a codebook of patches (k-means) */
#ifndef SLC_BENCH_TRAINING_DATA_H
#define SLC_BENCH_TRAINING_DATA_H

#include "bench/train/options.h"

typedef struct slc_training_data slc_training_data;

/* Opens the data that the options name, and sets the fields of the model that the data decides (classes of labelled
 * data). The caller closes it. Errors: IO, ARGUMENT
 * (data that this model cannot read, or too little of it), MEMORY. */
sluice_status slc_training_data_open(const slc_training_options *options, sluice_model_config *model, uint32_t length,
                                     slc_training_data **out);
void slc_training_data_close(slc_training_data *data); /* NULL is allowed */

/* What the data are, for people. */
typedef struct {
    const char *own_path;     /* where it was read from if no --data was given */
    const char *what;         /* what is counted: "bytes", "tokens", "images" */
    uint64_t files;           /* of text; 0: not counted */
    uint64_t train, held_out; /* of what is counted */
} slc_training_data_about;
const slc_training_data_about *slc_training_data_get_about(const slc_training_data *data);

uint64_t slc_training_data_fingerprint(const slc_training_data *data); /* ranks compare it */
/* Hashes every byte of the data, reading each once. Errors: IO, MEMORY. */
sluice_status slc_training_data_content(const slc_training_data *data, uint64_t *hash);
uint64_t slc_training_data_bytes(const slc_training_data *data); /* bytes that the data keeps in memory */

/* Takes the sequences (images) [first, first + batch) of the training or the held-out part. *out points into `data` and
 * is valid until the next call. */
sluice_status slc_training_data_take(slc_training_data *data, bool held_out, uint64_t first, sluice_batch *out);

#endif
