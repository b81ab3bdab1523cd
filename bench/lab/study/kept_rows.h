/* Rows that a long study keeps in its JSON file as they come, so that it goes on where it was ended. */
#pragma once

#include "bench/lab/study/study.h"

/* Appends the rows of the study's file, which an earlier run wrote, to the study's, if the study goes on; a file that
 * is not there has none. Errors: IO (it cannot be read), FORMAT (it is no JSON with rows), MEMORY. */
sluice_status slc_study_read_rows(const slc_study *study);

/* The row in which all members of `key` are equal; the study keeps owning it. NULL: there is none. */
const json_t *slc_study_kept_row(const slc_study *study, const json_t *key);

/* Adds a row of all members of `key` and `figures`, and writes all rows into the study's file, if it has one that is no
 * standard output. It takes `figures` from its caller, who keeps `key`; if one of them is NULL there was no memory for
 * it. Errors: PATH, IO, MEMORY. */
sluice_status slc_study_keep_row(const slc_study *study, json_t *key, json_t *figures);
