/* tests/command/mistakes_test.sh covers this file. */
#include "bench/train/data/class_names.h"

#include "lib/base/file/json_file.h"
#include "lib/base/file/json_object.h"
#include "lib/base/file/path_in.h"
#include "lib/base/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The caller decrefs *root, which is an object. */
static sluice_status read_config(const char *folder, char path[PATH_MAX], json_t **root)
{
    sluice_status status = slc_path_in(folder, "config.json", path);
    return status ? status : slc_json_object_read(path, root);
}

sluice_status slc_class_names_read(const char *weights, char ***names, uint32_t *count)
{
    char path[PATH_MAX];
    json_t *root;
    *names = NULL;
    *count = 0;
    sluice_status status = read_config(weights, path, &root);
    if (status) return status;
    const json_t *ids = json_object_get(root, "id2label");
    const size_t all = json_object_size(ids);
    char **out = calloc(all + 1, sizeof *out);
    bool own = false, whole = all > 0 && all <= UINT32_MAX;
    if (!out) status = slc_error(SLUICE_ERR_MEMORY, "names of classes");
    for (size_t i = 0; !status && whole && i < all; i++) {
        char key[24], none[32];
        snprintf(key, sizeof key, "%zu", i);
        snprintf(none, sizeof none, "LABEL_%zu", i);
        const char *name = json_string_value(json_object_get(ids, key));
        whole = name;
        own |= name && strcmp(name, none) != 0;
        if (name && !(out[i] = strdup(name))) status = slc_error(SLUICE_ERR_MEMORY, "names of classes");
    }
    json_decref(root);
    if (!status && whole && own) {
        *names = out;
        *count = (uint32_t)all;
        return SLUICE_OK;
    }
    slc_class_names_free(out, (uint32_t)all);
    return status;
}

void slc_class_names_free(char **names, uint32_t count)
{
    for (uint32_t i = 0; names && i < count; i++) free(names[i]);
    free(names);
}

sluice_status slc_class_names_write(const char *folder, const char *const *names, uint32_t count)
{
    char path[PATH_MAX], id[16];
    json_t *root;
    sluice_status status = read_config(folder, path, &root);
    if (status) return status;
    json_t *texts = json_object(), *ids = json_object();
    int failed = json_object_set_new(root, "id2label", texts) | json_object_set_new(root, "label2id", ids);
    for (uint32_t i = 0; !failed && i < count; i++) {
        json_t *name = json_string(names[i]);
        if (!name) {
            status = slc_error(SLUICE_ERR_ARGUMENT, "the class \"%s\" is no UTF-8", names[i]);
            break;
        }
        snprintf(id, sizeof id, "%u", i);
        failed = json_object_set_new(texts, id, name) | json_object_set_new(ids, names[i], json_integer(i));
    }
    if (!status && failed) status = slc_error(SLUICE_ERR_MEMORY, "%s: names of classes", path);
    char *text = status ? NULL : json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    if (!status) status = text ? slc_json_file_write(path, text) : slc_error(SLUICE_ERR_MEMORY, "%s", path);
    free(text);
    json_decref(root);
    return status;
}
