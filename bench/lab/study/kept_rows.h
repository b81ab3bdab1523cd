/* Rows that a long study keeps in its JSON file as they come, so that it goes on where it was ended. */
#pragma once

#include "bench/lab/study/study.h"

/* Appends the rows of the file at `path`, which a study wrote, to `rows`; a file that is not there has none. Errors: IO
 * (it cannot be read), FORMAT (it is no JSON with rows), MEMORY. */
sluice_status slc_study_read_rows(const char *path, json_t *rows);

/* The row in which all members of `key` are equal; the study keeps owning it. NULL: there is none. */
const json_t *slc_study_kept_row(const slc_study *study, const json_t *key);

/* Writes all rows into the study's file, if it has one that is no standard output. Errors: PATH, IO, MEMORY. */
sluice_status slc_study_write_rows(const slc_study *study);
