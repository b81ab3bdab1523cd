/* The names of a model's classes in the config.json next to its weights: id2label and label2id, as Hugging Face's
 * transformers has them. One thread. */
#pragma once

#include <sluice/status.h>
#include <stdint.h>

/* Reads the names if the file has one for each number. *names is NULL if it has not, or if all names are "LABEL_0" and
 * so on, which transformers writes for classes without names. The caller frees them with slc_class_names_free. Errors:
 * FORMAT, PATH, IO, MEMORY. */
sluice_status slc_class_names_read(const char *weights, char ***names, uint32_t *count);
void slc_class_names_free(char **names, uint32_t count); /* NULL is allowed */

/* Writes them into the config.json of a folder that holds saved weights. Errors: as above; ARGUMENT (a name that is no
 * UTF-8). */
sluice_status slc_class_names_write(const char *folder, const char *const *names, uint32_t count);
