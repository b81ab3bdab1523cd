/* Writes, next to a model's weights, what data say about its inputs and answers: the names of classes in config.json
 * (id2label, label2id), preprocessor_config.json, which says how an image becomes pixels, and the codebook of a BEiT's
 * visual tokens. One thread. */
#pragma once

#include <jansson.h>
#include <sluice/status.h>
#include <stdint.h>

/* Adds the names of classes to an object: class i is names[i]. Errors: ARGUMENT (a name that is no UTF-8), MEMORY. */
sluice_status slc_beside_add_classes(json_t *beside, const char *const *names, uint32_t count);
/* Adds the content of preprocessor_config.json, which it takes over; NULL stands for no memory. Error: MEMORY. */
sluice_status slc_beside_add_preprocessor(json_t *beside, json_t *preprocessor);

/* The name of the file that a codebook becomes beside weights. */
#define SLC_VISUAL_TOKENS_FILE "visual_tokens.safetensors"

/* Writes what an object has of these into a folder that holds saved weights. Errors: PATH, IO, FORMAT (a damaged
 * config.json or codebook), MEMORY. */
sluice_status slc_beside_write(const json_t *beside, const char *folder);
