/* The names of a model's classes in the config.json next to its weights: id2label and label2id, as Hugging Face's
 * transformers has them. One thread. */
#pragma once

#include <sluice/status.h>
#include <stdint.h>

/* Reads the names if the file has one of its own for each number; "LABEL_0" and so on are transformers' for none.
 * *names is NULL without names; the caller frees it with slc_class_names_free. Errors: FORMAT, PATH, IO, MEMORY. */
sluice_status slc_class_names_read(const char *weights, char ***names, uint32_t *count);
void slc_class_names_free(char **names, uint32_t count); /* NULL is allowed */

/* Writes them into the config.json of a folder that holds saved weights. Errors: as above; ARGUMENT (a name that is no
 * UTF-8). */
sluice_status slc_class_names_write(const char *folder, const char *const *names, uint32_t count);
