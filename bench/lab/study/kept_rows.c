/* The file is written anew for each row: it is small next to what a row takes.
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/lab/study/kept_rows.h"

#include "bench/cli/output/result_file.h"
#include "lib/base/status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

sluice_status slc_study_read_rows(const slc_study *study)
{
    if (!study->go_on) return SLUICE_OK;
    const char *path = study->json;
    json_error_t error;
    FILE *file = fopen(path, "r");
    if (!file && errno == ENOENT) return SLUICE_OK;
    if (!file) return slc_error(SLUICE_ERR_IO, "%s: %s", path, strerror(errno));
    json_t *read = json_loadf(file, 0, &error);
    fclose(file);
    if (!read) return slc_error(SLUICE_ERR_FORMAT, "%s:%d: %s", path, error.line, error.text);
    const json_t *kept = json_object_get(read, "rows");
    sluice_status status = SLUICE_OK;
    if (!json_is_array(kept))
        status = slc_error(SLUICE_ERR_FORMAT, "%s: no rows of a study; name another file", path);
    else if (json_array_extend(study->rows, (json_t *)kept))
        status = slc_error(SLUICE_ERR_MEMORY, "study");
    json_decref(read);
    return status;
}

static bool has_all(const json_t *row, const json_t *key)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)key, name, value)
        if (!json_equal(json_object_get(row, name), value)) return false;
    return true;
}

const json_t *slc_study_kept_row(const slc_study *study, const json_t *key)
{
    size_t i;
    json_t *row;
    json_array_foreach (study->rows, i, row)
        if (has_all(row, key)) return row;
    return NULL;
}

static sluice_status write_rows(const slc_study *study)
{
    if (!study->json || slc_is_standard_output(study->json)) return SLUICE_OK;
    return slc_result_file_write_json(study->json, json_pack("{s:O}", "rows", study->rows));
}

sluice_status slc_study_keep_row(const slc_study *study, json_t *key, json_t *figures)
{
    json_t *row = key ? json_copy(key) : NULL;
    const bool failed = !row || !figures || json_object_update(row, figures) || json_array_append(study->rows, row);
    json_decref(row);
    json_decref(figures);
    return failed ? slc_error(SLUICE_ERR_MEMORY, "study") : write_rows(study);
}
