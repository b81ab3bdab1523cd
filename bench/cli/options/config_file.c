/* Each value becomes the text that would be typed. tests/command/train/log_test.sh covers this file. */
#include "bench/cli/options/config_file.h"

#include "lib/base/file/json_file.h"
#include "lib/base/status.h"
#include "lib/base/text/list_item.h"
#include "lib/base/text/nearest.h"
#include "lib/base/text/python_json.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 16 * PATH_MAX };

static sluice_status not_taken(const char *where, const slc_option *row)
{
    return slc_error(SLUICE_ERR_ARGUMENT, "%s: \"%s\" takes %s", where, row->name,
                     row->type == SLC_OPTION_FLAG  ? "true or false"
                     : row->type == SLC_OPTION_SET ? "a text or a list of texts"
                                                   : "a text or a number");
}

/* Joins a list with commas, as it would be typed. */
static bool join_list(const json_t *list, char text[TEXT_BYTES])
{
    size_t used = 0, i;
    json_t *item;
    *text = 0;
    json_array_foreach ((json_t *)list, i, item) {
        char word[2 * PATH_MAX];
        if (!json_is_string(item)) return false;
        slc_item_write(json_string_value(item), word, sizeof word);
        const int length = snprintf(text + used, TEXT_BYTES - used, "%s%s", used ? "," : "", word);
        if (length < 0 || used + (size_t)length >= TEXT_BYTES) return false;
        used += (size_t)length;
    }
    return true;
}

/* Returns whether the option takes the value, whose text is then written. */
static bool write_text(const slc_option *row, const json_t *value, char text[TEXT_BYTES])
{
    int length = 0;
    if (row->type == SLC_OPTION_FLAG) {
        *text = 0;
        return json_is_true(value);
    }
    if (json_is_array(value)) return row->type == SLC_OPTION_SET && join_list(value, text);
    if (json_is_string(value))
        length = snprintf(text, TEXT_BYTES, "%s", json_string_value(value));
    else if (json_is_integer(value))
        length = snprintf(text, TEXT_BYTES, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        length = snprintf(text, TEXT_BYTES, "%.17g", json_real_value(value));
    else
        return false;
    return length >= 0 && length < TEXT_BYTES;
}

sluice_status slc_config_value_take(const char *where, const slc_option *rows, const slc_option *row, void *options,
                                    const char **typed, const json_t *value)
{
    const char **said = &typed[row - rows];
    if (*said || json_is_null(value) || json_is_false(value)) return SLUICE_OK;
    char *text = malloc(TEXT_BYTES), *kept = NULL;
    if (!text) return slc_error(SLUICE_ERR_MEMORY, "%s", where);
    sluice_status status = write_text(row, value, text) ? SLUICE_OK : not_taken(where, row);
    if (!status && !(kept = slc_option_keep(text))) status = slc_error(SLUICE_ERR_MEMORY, "%s", where);
    free(text);
    if (status) return status;
    *said = kept;
    return slc_error_context(slc_option_set(row, options, kept), "%s", where);
}

typedef struct {
    const char *path;
    const slc_option *rows;
    void *options;
    const char **typed;
} reading;

static sluice_status take_value(const reading *r, const slc_option *row, const json_t *value)
{
    char where[PATH_MAX + 16];
    snprintf(where, sizeof where, "--config %s", r->path);
    return slc_config_value_take(where, r->rows, row, r->options, r->typed, value);
}

static sluice_status refuse_key(const reading *r, const char *key)
{
    slc_nearest nearest = {0};
    for (const slc_option *row = r->rows; row->name; row++) slc_nearest_offer(&nearest, key, strlen(key), row->name);
    const char *near = slc_nearest_suggestion(&nearest, strlen(key));
    return slc_error(SLUICE_ERR_ARGUMENT, "--config %s: there is no option \"%s\"%s%s%s; --help-all lists them",
                     r->path, key, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static sluice_status take_values(const reading *r, json_t *all)
{
    json_t *value;
    const char *key;
    if (!json_is_object(all))
        return slc_error(SLUICE_ERR_FORMAT, "--config %s: give an object, as {\"steps\": 200}", r->path);
    json_object_foreach (all, key, value) {
        const slc_option *row = slc_option_find(r->rows, key);
        const bool known = row && strcmp(key, "config");
        sluice_status status = known ? take_value(r, row, value) : refuse_key(r, key);
        if (status) return status;
    }
    return SLUICE_OK;
}

sluice_status slc_config_file_read(const char *path, const slc_option *rows, void *options, const char **typed)
{
    const reading r = {path, rows, options, typed};
    char *file = NULL;
    size_t bytes = 0;
    json_t *all = NULL;
    sluice_status status = slc_error_context(slc_json_file_read(path, &file, &bytes), "--config");
    if (!status) status = slc_error_context(slc_python_json_read(path, file, bytes, 0, &all), "--config");
    if (!status) status = take_values(&r, all);
    json_decref(all);
    free(file);
    return status;
}
