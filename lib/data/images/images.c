/* A set of images: what its path is, the order of its samples, one image as pixels. */
#include "lib/data/images/images.h"

#include "lib/base/file/file.h"
#include "lib/base/file/path_error.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/numbers/permutation.h"
#include "lib/base/status.h"
#include "lib/data/images/images_parts.h"
#include "lib/data/images/picture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { STREAM_ORDER = 0x696d6167, ROUNDS = 4 }; /* keeps these draws apart from others */

/* ---- Opening ---- */

/* "train-images-idx3-ubyte" -> "train-labels-idx1-ubyte" */
static sluice_status path_of_labels(const char *path, char out[PATH_MAX])
{
    static const char images[] = "images-idx3", labels[] = "labels-idx1";
    const char *slash = strrchr(path, '/'), *name = strstr(slash ? slash : path, images);
    if (!name ||
        snprintf(out, PATH_MAX, "%.*s%s%s", (int)(name - path), path, labels, name + strlen(images)) >= PATH_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: name it ...%s-ubyte, with its labels in ...%s-ubyte", path, images,
                         labels);
    return SLUICE_OK;
}

static sluice_status open_table(const char *path, slc_images *images)
{
    uint8_t *bytes, *labels;
    size_t count, label_count;
    char labels_path[PATH_MAX];
    sluice_status status = slc_table_read(path, &bytes, &count);
    if (status) return status;
    if (!slc_table_is_idx(bytes, count)) {
        status = slc_images_from_csv(path, bytes, count, images);
    } else {
        status = path_of_labels(path, labels_path);
        if (!status) status = slc_table_read(labels_path, &labels, &label_count);
        if (!status) {
            status = slc_images_from_idx(path, bytes, count, labels_path, labels, label_count, images);
            free(labels);
        }
    }
    images->fingerprint = slc_fnv(SLC_FNV_START, bytes, count);
    if (!status) images->fingerprint = slc_fnv(images->fingerprint, images->labels, images->count * sizeof(int32_t));
    free(bytes);
    return status;
}

sluice_status slc_images_open(const char *path, slc_images **out)
{
    struct stat info;
    if (stat(path, &info)) return slc_path_error("cannot read", path, errno);
    slc_images *images = calloc(1, sizeof *images);
    if (!images) return slc_error(SLUICE_ERR_MEMORY, "set of images");
    sluice_status status = S_ISDIR(info.st_mode) ? slc_images_from_folder(path, images) : open_table(path, images);
    if (status) {
        slc_images_close(images);
        return status;
    }
    *out = images;
    return SLUICE_OK;
}

static void free_names(slc_images *images)
{
    for (uint32_t i = 0; images->names && i < images->named_classes; i++) free(images->names[i]);
    free(images->names);
}

void slc_images_close(slc_images *images)
{
    if (!images) return;
    for (uint64_t i = 0; images->paths && i < images->count; i++) free(images->paths[i]);
    free(images->paths);
    free_names(images);
    free(images->passed_over);
    free(images->samples);
    free(images->labels);
    free(images);
}

slc_images_facts slc_images_get_facts(const slc_images *images)
{
    return (slc_images_facts){.count = images->count,
                              .classes = images->classes,
                              .named = images->names,
                              .bytes = images->bytes,
                              .fingerprint = images->fingerprint,
                              .passed_over = images->passed_over};
}

/* ---- Classes ---- */

bool slc_images_have_two_classes(const slc_images *images)
{
    for (uint64_t i = 1; i < images->count; i++)
        if (images->labels[i] != images->labels[0]) return true;
    return false;
}

void slc_images_class_name(const slc_images *images, uint32_t class, char out[SLC_CLASS_NAME_ROOM])
{
    if (images->names)
        snprintf(out, SLC_CLASS_NAME_ROOM, "%s", images->names[class]);
    else
        snprintf(out, SLC_CLASS_NAME_ROOM, "%u", class);
}

/* The number that `names` gives to a class; -1: it is not there. */
static int32_t place_of(const slc_images *images, uint32_t class, const char *const *names, uint32_t count)
{
    char name[SLC_CLASS_NAME_ROOM];
    slc_images_class_name(images, class, name);
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return (int32_t)i;
    return -1;
}

static sluice_status copy_names(const char *const *names, uint32_t count, char ***out)
{
    char **copies = calloc(count, sizeof *copies);
    bool whole = copies;
    for (uint32_t i = 0; whole && i < count; i++) whole = (copies[i] = strdup(names[i]));
    *out = copies;
    if (whole) return SLUICE_OK;
    for (uint32_t i = 0; copies && i < count; i++) free(copies[i]);
    free(copies);
    return slc_error(SLUICE_ERR_MEMORY, "names of classes");
}

sluice_status slc_images_number_classes(slc_images *images, const char *const *names, uint32_t count, bool *done)
{
    int32_t *places = malloc(images->classes * sizeof *places);
    char **copies = NULL;
    *done = places;
    for (uint32_t i = 0; *done && i < images->classes; i++)
        *done = (places[i] = place_of(images, i, names, count)) >= 0;
    sluice_status status = places ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "numbers of classes");
    if (*done) status = copy_names(names, count, &copies);
    if (*done && !status) {
        for (uint64_t i = 0; i < images->count; i++) images->labels[i] = places[images->labels[i]];
        free_names(images);
        images->names = copies;
        images->named_classes = count;
        images->classes = count;
        images->fingerprint = slc_fnv(images->fingerprint, images->labels, images->count * sizeof *images->labels);
    }
    free(places);
    return status;
}

/* ---- Content ---- */

static sluice_status hash_file(const char *path, uint64_t *hash)
{
    slc_file file;
    sluice_status status = slc_file_open(path, &file);
    if (!status) status = slc_file_hash(&file, hash);
    slc_file_close(&file);
    return status;
}

sluice_status slc_images_content(const slc_images *images, uint64_t *hash)
{
    sluice_status status = SLUICE_OK;
    *hash = images->fingerprint; /* of contents, if they are in memory */
    for (uint64_t i = 0; !status && images->paths && i < images->count; i++) {
        *hash = slc_fnv(*hash, &images->labels[i], sizeof images->labels[i]);
        status = hash_file(images->paths[i], hash);
    }
    return status;
}

/* ---- Order ---- */

sluice_status slc_images_split(const slc_images *images, slc_image_range *train, slc_image_range *held_out)
{
    uint64_t tenth = images->count / 10;
    if (!tenth)
        return slc_error(SLUICE_ERR_ARGUMENT, "%llu images are too few: a tenth is held out, so give at least 10",
                         (unsigned long long)images->count);
    *train = (slc_image_range){0, images->count - tenth};
    *held_out = (slc_image_range){images->count - tenth, tenth};
    return SLUICE_OK;
}

/* ---- Reading ---- */

uint64_t slc_image_range_place(slc_image_range range, uint64_t seed, uint64_t sample)
{
    const uint64_t epoch = sample / range.count;
    return range.first + slc_permutation_place(seed, STREAM_ORDER + 1 + epoch, range.count, sample % range.count);
}

uint64_t slc_images_number(const slc_images *images, uint64_t place)
{
    return slc_permutation_place(0, STREAM_ORDER, images->count, place);
}

sluice_status slc_images_read(const slc_images *images, const slc_image_shape *shape, uint64_t place, float *pixels,
                              int32_t *label)
{
    uint64_t image = slc_images_number(images, place);
    slc_raster raster = images->raster;
    *label = images->labels[image];
    if (images->samples) {
        raster.samples = images->samples + image * raster.height * raster.width * raster.channels;
        return slc_raster_pixels(&raster, shape, pixels);
    }
    uint8_t *samples;
    sluice_status status = slc_picture_read(images->paths[image], shape->draft ? shape->side : 0, &raster, &samples);
    if (status) return status;
    status = slc_raster_pixels(&raster, shape, pixels);
    free(samples);
    return status;
}

sluice_status slc_images_batch(const slc_images *images, const slc_image_shape *shape, slc_image_range range,
                               uint64_t seed, uint64_t first_sample, uint32_t batch, float *pixels, int32_t *labels)
{
    sluice_status status = SLUICE_OK;
    size_t size = (size_t)shape->channels * shape->side * shape->side;
    for (uint32_t b = 0; b < batch && !status; b++) {
        const uint64_t place = slc_image_range_place(range, seed, first_sample + b);
        status = slc_images_read(images, shape, place, pixels + b * size, &labels[b]);
    }
    return status;
}
