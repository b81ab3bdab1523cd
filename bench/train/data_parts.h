/* The sources of training data share these types and functions. Private to bench/train. */
#ifndef SLC_BENCH_TRAINING_DATA_PARTS_H
#define SLC_BENCH_TRAINING_DATA_PARTS_H

#include "bench/train/data.h"
#include "bench/train/masks.h"
#include "lib/data/text.h"

/* The first member of every source. */
struct slc_training_data {
    sluice_status (*content)(const slc_training_data *data, uint64_t *hash);
    sluice_status (*take)(slc_training_data *data, bool held_out, uint64_t first, sluice_batch *out);
    void (*close)(slc_training_data *data); /* frees all but the struct itself; also called after a failed opening */
    uint64_t seed, fingerprint, tokenizer, bytes;
    uint32_t batch, length;
    const char *note; /* the source's; NULL: none */
};

slc_training_data *slc_training_images_create(void); /* zeroed; NULL: no memory */
sluice_status slc_training_images_open(const slc_training_options *options, sluice_model_config *model,
                                       slc_training_data *data);

#endif
