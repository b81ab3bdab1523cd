/* fflush reports every error of the C library's buffers, and fsync every error of the disk.
 * tests/command/output_test.sh covers this file. */
#include "bench/cli/output/result_file.h"

#include "bench/cli/output/provenance.h"
#include "lib/base/file/path_error.h"
#include "lib/base/status.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool written_directly(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

bool slc_is_standard_output(const char *path)
{
    return path && !strcmp(path, "-");
}

sluice_status slc_result_file_open(const char *path, slc_result_file *out)
{
    *out = (slc_result_file){.path = path};
    if (!path) return SLUICE_OK;
    if (slc_is_standard_output(path)) {
        out->file = stdout;
        return SLUICE_OK;
    }
    out->draft = SLC_DRAFT_NONE;
    sluice_status status = written_directly(path) ? SLUICE_OK : slc_draft_open(path, &out->draft);
    if (!status) out->file = out->draft.path ? fdopen(out->draft.fd, "w") : fopen(path, "we");
    if (out->file) {
        out->draft.fd = -1; /* the stream closes it */
        return SLUICE_OK;
    }
    if (!status) status = slc_path_error("cannot write", path, errno);
    slc_draft_drop(&out->draft);
    *out = (slc_result_file){0};
    return status;
}

sluice_status slc_result_file_probe(const char *path)
{
    slc_result_file file;
    struct stat info;
    if (!path || slc_is_standard_output(path)) return SLUICE_OK;
    if (written_directly(path)) {
        if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return slc_path_error("cannot write", path, EISDIR);
        return access(path, W_OK) ? slc_path_error("cannot write", path, errno) : SLUICE_OK;
    }
    sluice_status status = slc_result_file_open(path, &file);
    slc_result_file_abandon(&file);
    return status;
}

bool slc_result_file_check(slc_result_file *file)
{
    if (file->file && !file->why && ferror(file->file)) file->why = errno ? errno : EIO;
    return !file->why;
}

/* Returns 0 or an errno. */
static int finish(slc_result_file *file)
{
    int why = file->why;
    bool lost = ferror(file->file); /* a later write that succeeds does not make the file whole */
    if (fflush(file->file) && !why) why = errno;
    if (lost && !why) why = EIO;
    if (!why && file->draft.path && fsync(fileno(file->file))) why = errno;
    if (file->file != stdout && fclose(file->file) && !why) why = errno;
    file->file = NULL;
    return why;
}

sluice_status slc_result_file_commit(slc_result_file *file)
{
    if (!file->file) return SLUICE_OK;
    int why = finish(file);
    sluice_status status = why ? slc_path_error("cannot write", file->path, why) : SLUICE_OK;
    if (!status && file->draft.path) status = slc_draft_keep(&file->draft, file->path);
    if (why && file->draft.path) slc_draft_drop(&file->draft);
    *file = (slc_result_file){0};
    return status;
}

void slc_result_file_abandon(slc_result_file *file)
{
    if (file->file && file->file != stdout) fclose(file->file);
    if (file->draft.path) slc_draft_drop(&file->draft);
    *file = (slc_result_file){0};
}

void slc_result_file_put_text(slc_result_file *file, const char *text)
{
    errno = 0;
    fprintf(file->file, "%s\n", text);
    slc_result_file_check(file);
}

sluice_status slc_result_file_put_json(slc_result_file *file, json_t *content)
{
    if (file->file && !content) return slc_error(SLUICE_ERR_MEMORY, "results as JSON");
    if (file->file) {
        slc_provenance_add(content);
        errno = 0;
        if (!json_dumpf(content, file->file, JSON_INDENT(2))) fputc('\n', file->file);
        slc_result_file_check(file);
    }
    json_decref(content);
    return SLUICE_OK;
}

sluice_status slc_result_file_write_json(const char *path, json_t *content)
{
    slc_result_file file;
    sluice_status status = slc_result_file_open(path, &file);
    if (status)
        json_decref(content);
    else
        status = slc_result_file_put_json(&file, content);
    if (!status) return slc_result_file_commit(&file);
    slc_result_file_abandon(&file);
    return status;
}

sluice_status slc_result_file_write_text(const char *path, const char *text)
{
    slc_result_file file;
    sluice_status status = slc_result_file_open(path, &file);
    if (status || !file.file) return status;
    slc_result_file_put_text(&file, text);
    return slc_result_file_commit(&file);
}
