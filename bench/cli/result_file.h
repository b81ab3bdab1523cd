/* A file of results that is either whole or not there: written beside its place as PATH.part and renamed when all of it
 * is on the disk. "-" is standard output; what is no regular file (a pipe, a device) is written directly.
 * Errors of any step, a full disk first, name the path. */
#ifndef SLC_BENCH_RESULT_FILE_H
#define SLC_BENCH_RESULT_FILE_H

#include <jansson.h>
#include <sluice/status.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct {
    const char *path; /* the caller's; NULL: no file wanted, every call succeeds and does nothing */
    char *part;       /* NULL: written directly */
    FILE *file;
    int why; /* errno of the first write that failed, as far as slc_result_file_check was called in time */
} slc_result_file;

/* Opens at once, so that a path that cannot be written is known before hours of work. Errors: IO, MEMORY. */
sluice_status slc_result_file_open(const char *path, slc_result_file *out);
/* Call after writing, while errno still says why that failed. Results: whether all is well so far; the rest of the file
 * can be left out where it is not, and commit is to say so. */
bool slc_result_file_check(slc_result_file *file);
/* Puts it in its place. Afterwards the struct is empty, whatever the result. Errors: IO. */
sluice_status slc_result_file_commit(slc_result_file *file);
/* The text and the end of its line. What fails shows at commit. */
void slc_result_file_put_text(slc_result_file *file, const char *text);
/* JSON on indented lines. What fails shows at commit. */
void slc_result_file_put_json(slc_result_file *file, const json_t *content);
/* Open, JSON, commit. */
sluice_status slc_result_file_write_json(const char *path, const json_t *content);
/* Leaves what was there before. */
void slc_result_file_abandon(slc_result_file *file);

#endif
