/* Reads and writes the keys of config.json and preprocessor_config.json that are about images. Their meaning is that of
 * transformers' ViTImageProcessor and BeitImageProcessor (5.x). tests/command/data/train_images_test.sh covers this
 * file. */
#include "bench/train/data/images/image_files.h"

#include "bench/train/data/beside.h"
#include "bench/train/data/class_names.h"
#include "lib/base/file/json_object.h"
#include "lib/base/file/path_in.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"
#include "lib/weights/family.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Pixels ---- */

typedef struct {
    slc_image_filter filter;
    int number; /* Pillow's, which "resample" holds */
} resampling;

static const resampling resamplings[] = {{SLC_FILTER_NEAREST, 0}, {SLC_FILTER_BILINEAR, 2}, {SLC_FILTER_BICUBIC, 3}};
enum { RESAMPLINGS = sizeof resamplings / sizeof *resamplings };

static bool is_on(const json_t *root, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(root, key);
    return value && !json_is_null(value) ? json_is_true(value) : otherwise;
}

static sluice_status read_filter(const char *path, const json_t *root, sluice_model_family family,
                                 slc_image_filter *out)
{
    const json_t *value = json_object_get(root, "resample");
    int number = slc_family_of(family)->resample;
    if (value && !json_is_null(value)) number = json_is_integer(value) ? (int)json_integer_value(value) : -1;
    for (int i = 0; i < RESAMPLINGS; i++)
        if (resamplings[i].number == number) {
            *out = resamplings[i].filter;
            return SLUICE_OK;
        }
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "%s: resample is %d; Sluice resizes by 0 (nearest), 2 (bilinear) or 3 (bicubic)", path, number);
}

/* Reads one number for all channels, or one for each. */
static sluice_status read_channels(const char *path, const json_t *root, const char *key, uint32_t channels,
                                   bool positive, float *out)
{
    const json_t *value = json_object_get(root, key);
    if (!value || json_is_null(value)) return SLUICE_OK;
    const bool list = json_is_array(value);
    if (list && json_array_size(value) != channels)
        return slc_error(SLUICE_ERR_FORMAT, "%s: %s has %zu numbers; the model has %u channels", path, key,
                         json_array_size(value), channels);
    for (uint32_t c = 0; c < channels; c++) {
        const json_t *number = list ? json_array_get(value, c) : value;
        out[c] = (float)json_number_value(number);
        if (!json_is_number(number) || !isfinite(out[c]) || (positive && !(out[c] > 0)))
            return slc_error(SLUICE_ERR_FORMAT, "%s: %s is not a %snumber for each channel", path, key,
                             positive ? "positive " : "");
    }
    return SLUICE_OK;
}

static sluice_status refuse_other_steps(const char *path, const json_t *root)
{
    const json_t *factor = json_object_get(root, "rescale_factor");
    if (is_on(root, "do_center_crop", false))
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "%s: do_center_crop is true, and Sluice resizes the whole image; set it to false to train so",
                         path);
    if (!is_on(root, "do_resize", true) || !is_on(root, "do_rescale", true))
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: do_resize and do_rescale must be true", path);
    if (factor && fabs(json_number_value(factor) * 255 - 1) > 1e-6)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: rescale_factor must be 1/255", path);
    return SLUICE_OK;
}

static sluice_status read_shape(const char *path, const json_t *root, sluice_model_family family, slc_image_shape *out)
{
    sluice_status status = refuse_other_steps(path, root);
    if (!status) status = read_filter(path, root, family, &out->filter);
    if (!status && !is_on(root, "do_normalize", true)) {
        for (int c = 0; c < 3; c++) out->mean[c] = 0, out->deviation[c] = 1;
        return SLUICE_OK;
    }
    if (!status) status = read_channels(path, root, "image_mean", out->channels, false, out->mean);
    if (!status) status = read_channels(path, root, "image_std", out->channels, true, out->deviation);
    return status;
}

sluice_status slc_image_shape_read(const char *weights, const sluice_model_config *model, slc_image_shape *out)
{
    char path[PATH_MAX];
    json_t *root;
    *out = (slc_image_shape){.channels = model->image_channels, .side = model->image_size};
    for (int c = 0; c < 3; c++) out->mean[c] = out->deviation[c] = .5f;
    if (out->channels != 1 && out->channels != 3)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "images have 1 or 3 channels; the model wants %u", out->channels);
    if (!weights) return SLUICE_OK;
    sluice_status status = slc_path_in(weights, "preprocessor_config.json", path);
    if (status || access(path, F_OK)) return status;
    status = slc_json_object_read(path, &root);
    if (status) return status;
    status = read_shape(path, root, model->family, out);
    json_decref(root);
    return status;
}

/* ---- Classes ---- */

/* Refuses folders that the weights do not name: nobody could say which answer is right for their images. */
static sluice_status refuse_folders(const char *weights, const slc_images *images, uint32_t classes,
                                    const char *const *names, uint32_t count)
{
    char name[SLC_CLASS_NAME_ROOM];
    const uint32_t folders = slc_images_get_facts(images).classes;
    if (!slc_images_get_facts(images).named || (!names && folders == classes)) return SLUICE_OK;
    for (uint32_t i = 0, k; names && i < folders; i++) {
        slc_images_class_name(images, i, name);
        for (k = 0; k < count && strcmp(names[k], name); k++) continue;
        if (k == count)
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "--data: the folder \"%s\" is none of the classes that %s answers with (\"%s\"%s); name "
                             "folders as id2label in its config.json does",
                             name, weights, names[0], count > 1 ? " and others" : "");
    }
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--data: folders of %u classes, and %s answers with %u that its config.json (id2label) does not "
                     "name; give a folder for each, in the order of training",
                     folders, weights, classes);
}

sluice_status slc_image_classes_read(const char *weights, slc_images *images, uint32_t classes, bool needed)
{
    char **names;
    uint32_t count;
    bool done = false;
    sluice_status status = slc_class_names_read(weights, &names, &count);
    if (status) return status;
    const char *const *known = (const char *const *)names;
    if (names) status = slc_images_number_classes(images, known, count, &done);
    if (!status && needed && !done) status = refuse_folders(weights, images, classes, known, count);
    slc_class_names_free(names, count);
    return status;
}

uint64_t slc_image_reading(const slc_image_shape *shape, const slc_images *images)
{
    const uint32_t numbers[] = {shape->channels, shape->side, (uint32_t)shape->filter};
    uint64_t hash = slc_fnv(SLC_FNV_START, numbers, sizeof numbers);
    hash = slc_fnv(hash, shape->mean, shape->channels * sizeof *shape->mean);
    hash = slc_fnv(hash, shape->deviation, shape->channels * sizeof *shape->deviation);
    if (shape->draft) hash = slc_fnv(hash, "draft", sizeof "draft");
    for (uint32_t i = 0; images && i < slc_images_get_facts(images).classes; i++) {
        char name[SLC_CLASS_NAME_ROOM];
        slc_images_class_name(images, i, name);
        hash = slc_fnv(hash, name, strlen(name) + 1);
    }
    return hash | 1; /* never 0 */
}

sluice_status slc_image_classes_check(const slc_images *images)
{
    char name[SLC_CLASS_NAME_ROOM];
    for (uint32_t i = 0; i < slc_images_get_facts(images).classes; i++) {
        slc_images_class_name(images, i, name);
        json_t *text = json_string(name);
        if (!text)
            return slc_error(SLUICE_ERR_ARGUMENT, "--data: the folder \"%s\" names a class, and is no UTF-8; rename it",
                             name);
        json_decref(text);
    }
    return SLUICE_OK;
}

/* ---- Beside weights ---- */

static json_t *numbers(const float *values, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) json_array_append_new(list, json_real((double)values[i]));
    return list;
}

static json_t *preprocessor(sluice_model_family family, const slc_image_shape *shape)
{
    int number = 0;
    for (int i = 0; i < RESAMPLINGS; i++)
        if (resamplings[i].filter == shape->filter) number = resamplings[i].number;
    return json_pack("{s:s, s:b, s:{s:i, s:i}, s:i, s:b, s:f, s:b, s:o, s:o, s:b}", "image_processor_type",
                     slc_family_of(family)->image_processor, "do_resize", true, "size", "height", (int)shape->side,
                     "width", (int)shape->side, "resample", number, "do_rescale", true, "rescale_factor", 1. / 255,
                     "do_normalize", true, "image_mean", numbers(shape->mean, shape->channels), "image_std",
                     numbers(shape->deviation, shape->channels), "do_center_crop", false);
}

static sluice_status add_classes(const slc_images *images, json_t *beside)
{
    const uint32_t count = slc_images_get_facts(images).classes;
    char(*names)[SLC_CLASS_NAME_ROOM] = calloc(count + 1, sizeof *names);
    const char **list = calloc(count + 1, sizeof *list);
    for (uint32_t i = 0; names && list && i < count; i++) {
        slc_images_class_name(images, i, names[i]);
        list[i] = names[i];
    }
    sluice_status status =
        names && list ? slc_beside_add_classes(beside, list, count) : slc_error(SLUICE_ERR_MEMORY, "names of classes");
    free(list);
    free(names);
    return status;
}

sluice_status slc_image_files_add(json_t *beside, sluice_model_family family, const slc_image_shape *shape,
                                  const slc_images *images)
{
    sluice_status status = slc_beside_add_preprocessor(beside, preprocessor(family, shape));
    return !status && images ? add_classes(images, beside) : status;
}
