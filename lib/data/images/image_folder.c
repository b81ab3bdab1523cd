/* Reads folders of classes with one image in each file. The beginning of every file is read at once, so that what is no
 * image is passed over before training. images_test.c covers this file. */
#include "lib/data/folder_entries.h"
#include "lib/data/images/images_parts.h"
#include "lib/data/images/picture.h"

#include "lib/base/array.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    slc_images *images;
    uint64_t room; /* of the images' labels */
    int32_t label;
    uint64_t passed_over; /* files that are no images */
    char *first_passed_over;
} folder;

static sluice_status pass_over(folder *f, const char *path)
{
    if (!f->passed_over++) f->first_passed_over = strdup(path);
    return f->first_passed_over ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "names of images");
}

static sluice_status add_image(void *context, const char *path, const struct stat *info)
{
    folder *f = context;
    slc_images *images = f->images;
    slc_picture_kind kind;
    uint64_t bytes;
    if (!S_ISREG(info->st_mode)) return SLUICE_OK;
    sluice_status status = slc_picture_look(path, &kind, &bytes);
    if (status) return status;
    if (kind == SLC_PICTURE_NONE) return pass_over(f, path);
    char *copy = SLC_ROOM_FOR_ONE(images->paths, images->count) ? strdup(path) : NULL;
    if (!copy) return slc_error(SLUICE_ERR_MEMORY, "names of images");
    images->paths[images->count] = copy;
    status = slc_images_add_label(images, f->label, &f->room);
    if (status) {
        free(copy);
        return status;
    }
    const char *name = strrchr(path, '/');
    images->fingerprint = slc_fnv(images->fingerprint, name, strlen(name));
    images->fingerprint = slc_fnv(images->fingerprint, &bytes, sizeof bytes);
    images->bytes += strlen(path) + 1 + sizeof *images->paths + sizeof *images->labels;
    return SLUICE_OK;
}

static sluice_status name_class(folder *f, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    char *copy = SLC_ROOM_FOR_ONE(f->images->names, (size_t)f->label) ? strdup(name) : NULL;
    if (!copy) return slc_error(SLUICE_ERR_MEMORY, "names of classes");
    f->images->names[f->label] = copy;
    f->images->named_classes++;
    f->images->fingerprint = slc_fnv(f->images->fingerprint, name, strlen(name));
    f->images->bytes += strlen(name) + 1 + sizeof *f->images->names;
    f->label++;
    return SLUICE_OK;
}

static sluice_status add_class(void *context, const char *path, const struct stat *info)
{
    folder *f = context;
    if (!S_ISDIR(info->st_mode)) return SLUICE_OK;
    uint64_t before = f->images->count;
    sluice_status status = slc_folder_each(path, true, add_image, f);
    if (f->images->count > before) { /* a folder without images is not a class */
        sluice_status named = name_class(f, path);
        if (!status) status = named;
    }
    return status;
}

sluice_status slc_images_from_folder(const char *path, slc_images *images)
{
    folder f = {.images = images};
    images->fingerprint = SLC_FNV_START;
    sluice_status status = slc_folder_each(path, true, add_class, &f);
    if (!status && images->classes < 2)
        status =
            slc_error(SLUICE_ERR_ARGUMENT,
                      "%s: has not two folders with PNG, JPEG, PGM or PPM files in them, one for each class", path);
    if (!status && f.passed_over &&
        asprintf(&images->passed_over, "%llu file%s no PNG, JPEG, binary PGM or PPM and passed over; the first is %s",
                 (unsigned long long)f.passed_over, f.passed_over == 1 ? " is" : "s are", f.first_passed_over) < 0) {
        images->passed_over = NULL;
        status = slc_error(SLUICE_ERR_MEMORY, "names of images");
    }
    free(f.first_passed_over);
    return status;
}
