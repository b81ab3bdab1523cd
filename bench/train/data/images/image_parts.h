/* A folder of images that has its parts in folders: train/, and val/, valid/, validation/ or test/. Private to
 * bench/train/data. */
#pragma once

#include <limits.h>
#include <stdbool.h>

typedef struct {
    char train[PATH_MAX], held_out[PATH_MAX];
} slc_image_parts;

/* False: `path` is no such folder. */
bool slc_image_parts_find(const char *path, slc_image_parts *out);
