/* Images with a class each, from a file or a folder, as a model's pixel_values.
 *
 * Read are, recognised by their content:
 *   - a folder of folders: each folder is a class, in order of their names' bytes; in it PNG, JPEG, binary PGM and PPM
 *     files (P5, P6; netpbm's pgm(5), ppm(5), at most 255 a sample). They are decoded each time they are asked for.
 *     Other files are passed over (slc_images_facts), as are folders in a class and files next to the classes.
 *   - IDX as MNIST has it (http://yann.lecun.com/exdb/mnist): NAMEimages-idx3-ubyte with NAMElabels-idx1-ubyte next to
 *     it.
 *   - CSV: a row an image: the samples of a square grey image, whole numbers from 0 to 255, and its class; the largest
 *     sample of the file is white. The first line may name the columns: the class is the one called "label" or "class".
 *     Without such a line it is the last column; a file whose first column looks like classes beside a last one that
 *     looks like samples is refused.
 * IDX and CSV may be compressed by gzip (their names do not matter), if the build has zlib; they are kept in memory.
 *
 * An open set is read by any thread. Errors name the file: PATH, IO, FORMAT, ARGUMENT, MEMORY; UNSUPPORTED without
 * zlib. */
#pragma once

#include "lib/data/images/image_shape.h"

#include <sluice/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct slc_images slc_images;

sluice_status slc_images_open(const char *path, slc_images **out); /* the caller closes */
void slc_images_close(slc_images *images);                         /* NULL is allowed */

typedef struct {
    uint64_t count;
    uint32_t classes;        /* labels are below it */
    bool named;              /* the classes have names, those of folders */
    uint64_t bytes;          /* of memory that it holds */
    uint64_t fingerprint;    /* ranks compare it: a hash of contents in memory, of names and sizes of files */
    const char *passed_over; /* one line on the files that were passed over because they are no images; NULL: there are
                                none. Valid as long as the set */
} slc_images_facts;
slc_images_facts slc_images_get_facts(const slc_images *images);

/* Returns true if there are images of at least two classes. A folder has them always; a table may have one, and be
 * evaluated. */
bool slc_images_have_two_classes(const slc_images *images);
/* The name of a class below the number of classes: its folder's, or its number. */
enum { SLC_CLASS_NAME_ROOM = 256 };
void slc_images_class_name(const slc_images *images, uint32_t class, char out[SLC_CLASS_NAME_ROOM]);
/* Numbers the classes as `names` does (name i is class i), if every class of the set is among them: a model that was
 * trained before has its own order, and a set may lack some of its classes. *done says whether that was so; if not,
 * nothing has changed. Before the set is split or read. Errors: MEMORY. */
sluice_status slc_images_number_classes(slc_images *images, const char *const *names, uint32_t count, bool *done);
/* A hash of every byte and class, as slc_text_content is one: files are read once. */
sluice_status slc_images_content(const slc_images *images, uint64_t *hash);

/* Places in a fixed shuffled order, so that each part has images of every class. */
typedef struct {
    uint64_t first, count;
} slc_image_range;

/* The last tenth is held out for evaluation. Errors: ARGUMENT with fewer than 10 images. */
sluice_status slc_images_split(const slc_images *images, slc_image_range *train, slc_image_range *held_out);

/* Samples [first_sample, first_sample + batch) of an endless sequence that goes through the range in epochs, each in an
 * order of its own: every image once an epoch. A sample is a function of (seed, its number) alone; a job numbers its
 * samples as text.h says, so what resumes it is the number of its step. pixels: batch x channels x side x side; labels:
 * batch. */
sluice_status slc_images_batch(const slc_images *images, const slc_image_shape *shape, slc_image_range range,
                               uint64_t seed, uint64_t first_sample, uint32_t batch, float *pixels, int32_t *labels);

/* The place of a sample of that sequence, and the number of the image at a place in the set's own order, in which a
 * folder's classes and files come by their names' bytes and a table's rows as they stand. */
uint64_t slc_image_range_place(slc_image_range range, uint64_t seed, uint64_t sample);
uint64_t slc_images_number(const slc_images *images, uint64_t place);

/* The image at a place of the shuffled order. */
sluice_status slc_images_read(const slc_images *images, const slc_image_shape *shape, uint64_t place, float *pixels,
                              int32_t *label);
