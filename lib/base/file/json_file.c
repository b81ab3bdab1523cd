/* A file is read as a whole, and written as a draft that then takes the file's name (draft.h).
 * lib/plan/json/profile_json_test.c covers this file. */
#include "lib/base/file/json_file.h"

#include "lib/base/file/draft.h"
#include "lib/base/file/file.h"
#include "lib/base/file/path_error.h"
#include "lib/base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Writes the text to the file, which it closes, and to the disk; returns 0 or errno. */
static int write_text(FILE *file, const char *text)
{
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
        int why = write_text(fopen(path, "we"), text);
        return why ? slc_path_error("cannot write", path, why) : SLUICE_OK;
    }
    slc_draft draft;
    sluice_status status = slc_draft_open(path, &draft);
    if (status) return status;
    FILE *file = fdopen(draft.fd, "w");
    if (file) draft.fd = -1; /* the stream closes it */
    int why = write_text(file, text);
    if (!why) return slc_draft_keep(&draft, path);
    slc_draft_drop(&draft);
    return slc_path_error("cannot write", path, why);
}
