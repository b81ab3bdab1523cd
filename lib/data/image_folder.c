/* Folders of classes with one image in each file. Every header is read at once, so that a bad file is found before
 * training. */
#include "lib/data/folder_entries.h"
#include "lib/data/images_parts.h"

#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    slc_images *images;
    uint64_t room, path_room;
    int32_t label;
} folder;

static sluice_status add_image(void *context, const char *path, const struct stat *info)
{
    folder *f = context;
    slc_images *images = f->images;
    if (!S_ISREG(info->st_mode)) return SLUICE_OK;
    slc_raster raster = {0};
    sluice_status status = slc_pnm_read(path, &raster, NULL);
    if (status) return status;
    if (images->count == f->path_room) {
        uint64_t larger = f->path_room ? 2 * f->path_room : 256;
        char **grown = realloc(images->paths, larger * sizeof *grown);
        if (!grown) return slc_error(SLUICE_ERR_MEMORY, "names of images");
        images->paths = grown;
        f->path_room = larger;
    }
    char *copy = strdup(path);
    if (!copy) return slc_error(SLUICE_ERR_MEMORY, "names of images");
    images->paths[images->count] = copy;
    status = slc_images_add_label(images, f->label, &f->room);
    if (status) {
        free(copy);
        return status;
    }
    const char *name = strrchr(path, '/');
    images->fingerprint = slc_fnv(images->fingerprint, name, strlen(name));
    images->fingerprint = slc_fnv(images->fingerprint, &raster.height, 3 * sizeof raster.height); /* width, channels */
    images->bytes += strlen(path) + 1 + sizeof *images->paths + sizeof *images->labels;
    return SLUICE_OK;
}

static sluice_status add_class(void *context, const char *path, const struct stat *info)
{
    folder *f = context;
    if (!S_ISDIR(info->st_mode)) return SLUICE_OK;
    uint64_t before = f->images->count;
    sluice_status status = slc_folder_each(path, true, add_image, f);
    if (!status && f->images->count > before) f->label++; /* a folder without files is not a class */
    return status;
}

sluice_status slc_images_from_folder(const char *path, slc_images *images)
{
    folder f = {.images = images};
    images->fingerprint = SLC_FNV_START;
    sluice_status status = slc_folder_each(path, true, add_class, &f);
    if (!status && images->classes < 2)
        status = slc_error(SLUICE_ERR_ARGUMENT,
                           "%s: has not two folders with PGM or PPM files in them, one for each class", path);
    return status;
}
