/* Reading to the end, writing beside and renaming. */
#include "lib/base/json_file.h"

#include "lib/base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static sluice_status failed(const char *verb, const char *path, int why)
{
    return slc_error(SLUICE_ERR_IO, "cannot %s %s: %s", verb, path, strerror(why));
}

static sluice_status read_all(FILE *file, const char *path, char **text, size_t *length)
{
    size_t used = 0, capacity = 1 << 16;
    char *bytes = malloc(capacity);
    while (bytes) {
        used += fread(bytes + used, 1, capacity - used, file);
        if (used < capacity) break;
        char *grown = realloc(bytes, capacity *= 2);
        if (!grown) free(bytes);
        bytes = grown;
    }
    if (!bytes) return slc_error(SLUICE_ERR_MEMORY, "%s: no memory for %zu bytes", path, capacity);
    if (ferror(file)) {
        free(bytes);
        return failed("read", path, errno);
    }
    *text = bytes;
    *length = used;
    return SLUICE_OK;
}

sluice_status slc_json_file_read(const char *path, char **text, size_t *length)
{
    FILE *file = fopen(path, "re");
    if (!file) return failed("read", path, errno);
    sluice_status status = read_all(file, path, text, length);
    fclose(file);
    return status;
}

/* 0 or errno. */
static int put(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    if (!file) return errno;
    int why = 0;
    if (fputs(text, file) < 0 || fflush(file)) why = errno;
    if (!why && fsync(fileno(file)) && errno != EINVAL && errno != EROFS) why = errno; /* a pipe has no disk */
    if (fclose(file) && !why) why = errno;
    return why;
}

sluice_status slc_json_file_write(const char *path, const char *text)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        int why = put(path, text);
        return why ? failed("write", path, why) : SLUICE_OK;
    }
    size_t bytes = strlen(path) + sizeof ".part";
    char *part = malloc(bytes);
    if (!part) return slc_error(SLUICE_ERR_MEMORY, "name of %s", path);
    snprintf(part, bytes, "%s.part", path);
    int why = put(part, text);
    if (!why && rename(part, path)) why = errno;
    if (why) unlink(part);
    free(part);
    return why ? failed("write", path, why) : SLUICE_OK;
}
