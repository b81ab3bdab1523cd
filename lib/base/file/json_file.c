/* Files are read at once, and written next to their place and renamed. */
#include "lib/base/file/json_file.h"

#include "lib/base/file/file.h"
#include "lib/base/file/path_error.h"
#include "lib/base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static sluice_status failed(const char *verb, const char *path, int why)
{
    return slc_error(slc_path_status(why), "cannot %s %s: %s", verb, path, strerror(why));
}

sluice_status slc_json_file_read(const char *path, char **text, size_t *length)
{
    slc_file file;
    char *bytes = NULL;
    sluice_status status = slc_file_open(path, &file);
    if (status) return status;
    if (file.bytes > SLC_JSON_FILE_BYTES)
        status = slc_error(SLUICE_ERR_FORMAT, "%s has %llu bytes, more than the %llu that a file of JSON may have",
                           path, (unsigned long long)file.bytes, (unsigned long long)SLC_JSON_FILE_BYTES);
    else if (!(bytes = malloc((size_t)file.bytes + 1))) /* never of 0 bytes */
        status = slc_error(SLUICE_ERR_MEMORY, "%s: no memory for %llu bytes", path, (unsigned long long)file.bytes);
    if (!status) status = slc_file_read(&file, 0, (size_t)file.bytes, bytes);
    if (status)
        free(bytes);
    else
        *text = bytes, *length = (size_t)file.bytes;
    slc_file_close(&file);
    return status;
}

/* Writes the text to the file, and to the disk; returns 0 or errno. */
static int write_text(const char *path, const char *text)
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
        int why = write_text(path, text);
        return why ? failed("write", path, why) : SLUICE_OK;
    }
    size_t bytes = strlen(path) + sizeof ".part";
    char *part = malloc(bytes);
    if (!part) return slc_error(SLUICE_ERR_MEMORY, "name of %s", path);
    snprintf(part, bytes, "%s.part", path);
    int why = write_text(part, text);
    if (!why && rename(part, path)) why = errno;
    if (why) unlink(part);
    free(part);
    return why ? failed("write", path, why) : SLUICE_OK;
}
