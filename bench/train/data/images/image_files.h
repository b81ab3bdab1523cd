/* The files next to a vision model's weights that say what its images and answers are: the names of classes in
 * config.json (id2label), and how an image becomes pixels in preprocessor_config.json, as Hugging Face's processors of
 * ViT and BEiT have them. One thread. */
#pragma once

#include "lib/data/images/images.h"

#include <jansson.h>
#include <sluice/model.h>

/* Reads how a model wants its pixels: the sizes are those of `model`, and the rest is in preprocessor_config.json in
 * the folder `weights`. If `weights` is NULL or lacks the file, mean and deviation are .5 and the filter is bilinear.
 * Errors: UNSUPPORTED (channels; a key by which the file asks for what Sluice does not do), FORMAT (a damaged file),
 * PATH, IO, MEMORY. */
sluice_status slc_image_shape_read(const char *weights, const sluice_model_config *model, slc_image_shape *out);

/* Numbers the classes of the set as config.json in the folder `weights` does, if it names them all; else they keep
 * their order. `needed`: folders whose names are none of the weights' classes are refused, as are fewer folders than
 * classes if the file has no names. Errors: FORMAT (a damaged file), ARGUMENT (what is refused), PATH, IO, MEMORY.
 */
sluice_status slc_image_classes_read(const char *weights, slc_images *images, uint32_t classes, bool needed);

/* A hash of what decides the pixels of an image and the number of its class. */
uint64_t slc_image_reading(const slc_image_shape *shape, const slc_images *images);

/* Checks that the names of all classes can be written as JSON. Errors: ARGUMENT (a name that is no UTF-8). */
sluice_status slc_image_classes_check(const slc_images *images);

/* Adds preprocessor_config.json to what lies beside weights (beside.h), and if `images` is not NULL the names of its
 * classes. Errors: MEMORY. */
sluice_status slc_image_files_add(json_t *beside, sluice_model_family family, const slc_image_shape *shape,
                                  const slc_images *images);
