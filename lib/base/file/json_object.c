/* Reads a file at once and parses it. */
#include "lib/base/file/json_object.h"

#include "lib/base/file/json_file.h"
#include "lib/base/status.h"
#include "lib/base/text/python_json.h"

#include <stdlib.h>

sluice_status slc_json_object_read(const char *path, json_t **root)
{
    char *text;
    size_t length;
    json_t *read = NULL;
    sluice_status status = slc_json_file_read(path, &text, &length);
    if (status) return status;
    status = slc_python_json_read(path, text, length, 0, &read);
    free(text);
    if (status) return status;
    if (json_is_object(read)) {
        *root = read;
        return SLUICE_OK;
    }
    json_decref(read);
    return slc_error(SLUICE_ERR_FORMAT, "%s: is no JSON object", path);
}
