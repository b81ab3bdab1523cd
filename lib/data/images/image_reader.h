/* Batches of images, decoded and resized by several threads, the next one while the caller computes with the last. A
 * batch holds what its request asks for, whatever number of threads reads it, and whenever they do. */
#pragma once

#include "lib/data/images/images.h"

/* A request for images [first, first + count): samples of the endless sequence that goes through `range` in epochs, as
 * slc_images_batch has them, or, where range.count is 0, places of the shuffled order. */
typedef struct {
    const slc_images *images;
    slc_image_range range;
    uint64_t seed, first;
    uint32_t count; /* at most the reader's batch */
} slc_image_request;

typedef struct {
    slc_image_shape shape;
    uint32_t batch;   /* images that a batch has room for */
    uint32_t threads; /* that read a batch for which the caller waits, itself among them; at least 1 */
    uint32_t ahead;   /* threads that read the next batch while the caller does not wait; 0: it is not read ahead */
} slc_image_reader_how;

typedef struct slc_image_reader slc_image_reader;

/* The threads start with the first batch. Where one cannot be started, the others do its work. The caller closes; an
 * image that is being read is finished first. Error: MEMORY. */
sluice_status slc_image_reader_open(const slc_image_reader_how *how, slc_image_reader **out);
void slc_image_reader_close(slc_image_reader *reader); /* NULL is allowed */

/* The bytes of the batches that a reader keeps; `ahead` does not change them. */
uint64_t slc_image_reader_bytes(const slc_image_shape *shape, uint32_t batch);

/* Waits for the images of a request, and then begins to read those of `next` ahead. If `next` is NULL, what an earlier
 * call gave as next goes on. The sets of both requests are open until the reader is closed. *pixels and *labels have
 * room for `batch` images, which the caller may write to, and are valid until the next call. One thread calls. Errors:
 * those of slc_images_batch; of several images that cannot be read, the first in the batch is named. */
sluice_status slc_image_reader_take(slc_image_reader *reader, const slc_image_request *wanted,
                                    const slc_image_request *next, float **pixels, int32_t **labels);
