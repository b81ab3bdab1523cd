/* Checkpoints in several files, and how a path is read. The index and the headers must agree.
 * safetensors_test.c covers this file. */
#include "lib/weights/safetensors/safetensors_parts.h"

#include "lib/base/file/json_file.h"
#include "lib/base/file/path_error.h"
#include "lib/base/file/path_in.h"
#include "lib/base/status.h"
#include "lib/base/text/ending.h"
#include "lib/weights/tensors_parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 4096 };

/* The name must be that of a file in the index's own folder: an index may come from anywhere, and decides which files
 * are opened. */
static bool plain_name(const char *name)
{
    return slc_tensor_name_valid(name, strlen(name)) && !strchr(name, '/') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static sluice_status path_beside(const char *path, const char *name, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path + 1) : 0;
    if (snprintf(out, PATH_MAX, "%.*s%s", folder, path, name) >= PATH_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: the path of \"%s\" beside it is too long", path, name);
    return SLUICE_OK;
}

/* Adds each file once; `opened` maps a file's name to its index in the set. */
static sluice_status add_files(slc_tensors *tensors, const char *path, json_t *map, json_t *opened)
{
    const char *name;
    json_t *value;
    json_object_foreach (map, name, value) {
        const char *file = json_string_value(value);
        char full[PATH_MAX];
        if (!file || !plain_name(file))
            return slc_error(SLUICE_ERR_FORMAT, "%s: the file of tensor \"%.1023s\" is no name of a file beside it",
                             path, name);
        if (json_object_get(opened, file)) continue;
        if (tensors->file_count == FILES_MAX)
            return slc_error(SLUICE_ERR_FORMAT, "%s: names more than %d files", path, FILES_MAX);
        if (json_object_set_new(opened, file, json_integer(tensors->file_count)))
            return slc_error(SLUICE_ERR_MEMORY, "%s: its files", path);
        sluice_status status = path_beside(path, file, full);
        if (!status) status = slc_safetensors_add(tensors, full);
        if (status) return slc_error_context(status, "%s", path);
    }
    return SLUICE_OK;
}

/* Every tensor of the files must be in the map with its file, and the map must have no more tensors than the files. */
static sluice_status compare(const slc_tensors *tensors, const char *path, const json_t *map, const json_t *opened)
{
    for (size_t i = 0; i < tensors->count; i++) {
        const slc_tensor *tensor = &tensors->tensors[i];
        const json_t *file = json_object_get(map, tensor->name);
        if (!file)
            return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" is in %s, but not in the index", path, tensor->name,
                             slc_tensors_path(tensors, tensor));
        if ((uint32_t)json_integer_value(json_object_get(opened, json_string_value(file))) != tensor->file)
            return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%s\" is in %s; the index says %s", path, tensor->name,
                             slc_tensors_path(tensors, tensor), json_string_value(file));
    }
    return SLUICE_OK;
}

static sluice_status find_all(const slc_tensors *tensors, const char *path, json_t *map)
{
    const char *name;
    json_t *file;
    json_object_foreach (map, name, file)
        if (!slc_tensors_find(tensors, name))
            return slc_error(SLUICE_ERR_FORMAT, "%s: tensor \"%.1023s\" is not in %s", path, name,
                             json_string_value(file));
    return SLUICE_OK;
}

sluice_status slc_safetensors_add_index(slc_tensors *tensors, const char *path, const char *text, size_t length)
{
    json_error_t error;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error), *opened = json_object();
    json_t *map = json_object_get(root, "weight_map");
    sluice_status status = SLUICE_OK;
    if (!opened)
        status = slc_error(SLUICE_ERR_MEMORY, "%s", path);
    else if (!root)
        status = slc_error(SLUICE_ERR_FORMAT, "%s:%d:%d: %s", path, error.line, error.column, error.text);
    else if (!json_is_object(map) || !json_object_size(map))
        status = slc_error(SLUICE_ERR_FORMAT, "%s: has no \"weight_map\" with tensors in it", path);
    if (!status) status = add_files(tensors, path, map, opened);
    if (!status) status = slc_error_context(slc_tensors_finish(tensors), "%s", path);
    if (!status) status = compare(tensors, path, map, opened);
    if (!status) status = find_all(tensors, path, map);
    json_decref(opened);
    json_decref(root);
    return status;
}

/* ---- Kinds of paths ---- */

static sluice_status add_path(slc_tensors *tensors, const char *path)
{
    if (!slc_ends_with(path, ".json")) {
        sluice_status status = slc_safetensors_add(tensors, path);
        return status ? status : slc_tensors_finish(tensors);
    }
    char *text;
    size_t length;
    sluice_status status = slc_json_file_read(path, &text, &length);
    if (status) return status;
    status = slc_safetensors_add_index(tensors, path, text, length);
    free(text);
    return status;
}

static sluice_status find_in_folder(const char *folder, char path[PATH_MAX])
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    struct stat info;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sluice_status status = slc_path_in(folder, names[i], path);
        if (status) return status;
        if (!stat(path, &info)) return SLUICE_OK;
    }
    return slc_error(SLUICE_ERR_PATH, "%s: has neither %s nor %s", folder, names[0], names[1]);
}

sluice_status slc_safetensors_open(const char *path, slc_tensors **out)
{
    char inside[PATH_MAX];
    struct stat info;
    slc_tensors *tensors = NULL;
    if (stat(path, &info)) return slc_path_error("cannot read", path, errno);
    sluice_status status = SLUICE_OK;
    if (S_ISDIR(info.st_mode)) {
        status = find_in_folder(path, inside);
        path = inside;
    }
    if (!status) status = slc_tensors_create(&tensors);
    if (!status) status = add_path(tensors, path);
    if (status) {
        slc_tensors_close(tensors);
        return status;
    }
    *out = tensors;
    return SLUICE_OK;
}
