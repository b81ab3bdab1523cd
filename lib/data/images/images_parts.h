/* The functions by which readers of formats fill a set of images. Private to lib/data/images. */
#pragma once

#include "lib/data/images/raster.h"

#include <stdbool.h>

typedef struct slc_images slc_images;

struct slc_images {
    uint64_t count;
    uint32_t classes;
    uint64_t fingerprint, bytes;
    int32_t *labels;  /* count */
    uint8_t *samples; /* count rasters like this one, in memory; NULL: files */
    slc_raster raster;
    char **paths; /* count, or NULL */
    char **names; /* of classes, named_classes of them; NULL: their numbers */
    uint32_t named_classes;
    char *passed_over; /* as slc_images_facts says */
};

/* Reads a whole file and inflates it if it is compressed. The caller frees *bytes; *count < 2^32. */
sluice_status slc_table_read(const char *path, uint8_t **bytes, size_t *count);

/* Fill a set from the bytes of files, or from a folder. `path` is for messages; after an error too, slc_images_close
 * frees all that has been set. */
sluice_status slc_images_from_idx(const char *path, const uint8_t *bytes, size_t count, const char *labels_path,
                                  const uint8_t *labels, size_t label_count, slc_images *images);
sluice_status slc_images_from_csv(const char *path, const uint8_t *bytes, size_t count, slc_images *images);
sluice_status slc_images_from_folder(const char *path, slc_images *images);

bool slc_table_is_idx(const uint8_t *bytes, size_t count); /* true if it is IDX with images */

/* Adds the class of one more image; *room is the number of elements for which `labels` has memory. */
sluice_status slc_images_add_label(slc_images *images, int32_t label, uint64_t *room);
