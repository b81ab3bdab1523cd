/* Collects the labels of a set of images while it is opened, in every form that it may have. images_test.c covers this
 * file. */
#include "lib/base/status.h"
#include "lib/data/images/images_parts.h"

#include <stdlib.h>

sluice_status slc_images_add_label(slc_images *images, int32_t label, uint64_t *room)
{
    if (images->count == *room) {
        uint64_t larger = *room ? 2 * *room : 256;
        int32_t *grown = realloc(images->labels, larger * sizeof *grown);
        if (!grown) return slc_error(SLUICE_ERR_MEMORY, "labels of images");
        images->labels = grown;
        *room = larger;
    }
    images->labels[images->count++] = label;
    if ((uint32_t)label >= images->classes) images->classes = (uint32_t)label + 1;
    return SLUICE_OK;
}
