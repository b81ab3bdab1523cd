/* Finds and reads the files that lie beside a tokenizer. tokenizer_files_test.c covers this file. */
#include "lib/base/file/json_file.h"
#include "lib/base/status.h"
#include "lib/data/tokenizer_files/tokenizer_files_parts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *slc_tokenizer_file_path(const char *path, const char *name)
{
    struct stat info;
    char *full = NULL;
    const char *slash = strrchr(path, '/');
    bool folder = !stat(path, &info) && S_ISDIR(info.st_mode);
    int wrote = folder  ? asprintf(&full, "%s/%s", path, name)
                : slash ? asprintf(&full, "%.*s/%s", (int)(slash - path), path, name)
                        : asprintf(&full, "%s", name);
    return wrote < 0 ? NULL : full;
}

sluice_status slc_tokenizer_file_read(const char *path, const char *name, json_t **root)
{
    char *file = slc_tokenizer_file_path(path, name), *text = NULL;
    size_t length;
    json_error_t error;
    *root = NULL;
    sluice_status status = file ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%s", name);
    if (!status && !access(file, F_OK)) {
        status = slc_json_file_read(file, &text, &length);
        if (!status && !(*root = json_loadb(text, length, JSON_DECODE_INT_AS_REAL, &error)))
            status = slc_error(SLUICE_ERR_FORMAT, "%s:%d:%d: %s", file, error.line, error.column, error.text);
    }
    free(text);
    free(file);
    return status;
}
