/* Files that hold one JSON object, written by us or by a program in Python. Any thread. */
#pragma once

#include <jansson.h>
#include <sluice/status.h>

/* Reads the file as lib/base/text/python_json.h does. The caller decrefs *root, which is set on success only. Errors
 * are those of slc_json_file_read and slc_python_json_read; FORMAT too if the file holds something else than an
 * object. */
sluice_status slc_json_object_read(const char *path, json_t **root);
