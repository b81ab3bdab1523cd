/* An object has "classes", a list of names, "preprocessor", an object, and "codebook" (beside_codebook.c).
 * tests/command/weights/saved_weights_test.sh covers this file. */
#include "bench/train/data/beside.h"

#include "bench/train/data/beside_codebook.h"
#include "bench/train/data/class_names.h"
#include "lib/base/file/json_file.h"
#include "lib/base/file/path_in.h"
#include "lib/base/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static sluice_status no_memory(void)
{
    return slc_error(SLUICE_ERR_MEMORY, "what lies beside weights");
}

sluice_status slc_beside_add_classes(json_t *beside, const char *const *names, uint32_t count)
{
    json_t *list = json_array();
    if (json_object_set_new(beside, "classes", list)) return no_memory();
    for (uint32_t i = 0; i < count; i++)
        if (json_array_append_new(list, json_string(names[i])))
            return slc_error(SLUICE_ERR_ARGUMENT, "the class \"%s\" is no UTF-8", names[i]);
    return SLUICE_OK;
}

sluice_status slc_beside_add_preprocessor(json_t *beside, json_t *preprocessor)
{
    return json_object_set_new(beside, "preprocessor", preprocessor) ? no_memory() : SLUICE_OK;
}

static sluice_status write_codebook(const json_t *book, const char *folder)
{
    char path[PATH_MAX];
    sluice_status status = slc_path_in(folder, SLC_VISUAL_TOKENS_FILE, path);
    return status ? status : slc_beside_codebook_write(book, path);
}

static sluice_status write_classes(const json_t *list, const char *folder)
{
    const size_t count = json_array_size(list);
    const char **names = calloc(count + 1, sizeof *names);
    bool whole = names;
    for (size_t i = 0; whole && i < count; i++) whole = (names[i] = json_string_value(json_array_get(list, i))) != NULL;
    sluice_status status = whole ? slc_class_names_write(folder, names, (uint32_t)count)
                                 : slc_error(SLUICE_ERR_FORMAT, "%s: names of classes that are no texts", folder);
    free(names);
    return status;
}

static sluice_status write_preprocessor(const json_t *preprocessor, const char *folder)
{
    char path[PATH_MAX];
    sluice_status status = slc_path_in(folder, "preprocessor_config.json", path);
    if (status) return status;
    char *text = json_dumps(preprocessor, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    status = text ? slc_json_file_write(path, text) : no_memory();
    free(text);
    return status;
}

sluice_status slc_beside_write(const json_t *beside, const char *folder)
{
    const json_t *preprocessor = json_object_get(beside, "preprocessor"), *classes = json_object_get(beside, "classes");
    sluice_status status = preprocessor ? write_preprocessor(preprocessor, folder) : SLUICE_OK;
    if (!status && json_array_size(classes)) status = write_classes(classes, folder);
    const json_t *codebook = json_object_get(beside, "codebook");
    return !status && codebook ? write_codebook(codebook, folder) : status;
}
