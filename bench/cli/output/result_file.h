/* A file of results that is either whole or absent: it is written as a draft (lib/base/file/draft.h), which gets
 * its name when all of it is on the disk. "-" is standard output; a path that is no regular file (a pipe, a device) is
 * written directly. The errors of all functions name the path, also those of a full disk. One thread uses a file. */
#pragma once

#include "lib/base/file/draft.h"

#include <jansson.h>
#include <sluice/status.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct {
    const char *path; /* the caller's; NULL: no file is wanted, and every call succeeds and does nothing */
    slc_draft draft;  /* its path is NULL if the file is written directly */
    FILE *file;
    int why; /* errno of the first write that failed, if slc_result_file_check was called in time */
} slc_result_file;

/* Returns true if the path is "-"; false for NULL. */
bool slc_is_standard_output(const char *path);

/* Opens the file at once, so that a path that cannot be written is known before hours of work. Errors: PATH, IO,
 * MEMORY. */
sluice_status slc_result_file_open(const char *path, slc_result_file *out);
/* Checks that the file could be opened, and leaves no trace: not even a pipe's reader notices the check. NULL and "-"
 * can always be opened. Errors: PATH, IO, MEMORY. */
sluice_status slc_result_file_probe(const char *path);
/* Call it after writing, while errno still says why that failed. Returns whether all writes so far succeeded; if not,
 * the caller may leave out the rest of the file, and commit reports the error. */
bool slc_result_file_check(slc_result_file *file);
/* Completes the file and gives it its name. Afterwards the struct is empty, also after an error. Errors: PATH, IO. */
sluice_status slc_result_file_commit(slc_result_file *file);
/* Writes a text and the end of its line; commit reports errors. */
void slc_result_file_put_text(slc_result_file *file, const char *text);
/* Takes over an object, adds where it comes from (bench/cli/output/provenance.h), and writes it on indented lines;
 * commit reports errors of writing. Errors: MEMORY (`content` is NULL, as what jansson returns without memory). */
sluice_status slc_result_file_put_json(slc_result_file *file, json_t *content);
/* Open the file, put and commit; `content` is taken over. Errors: PATH, IO, MEMORY. */
sluice_status slc_result_file_write_text(const char *path, const char *text);
sluice_status slc_result_file_write_json(const char *path, json_t *content);
/* Drops the file and leaves what was at the path before. */
void slc_result_file_abandon(slc_result_file *file);
