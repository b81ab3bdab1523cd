/* Reads the text that was typed for an option, as the option's row says. */
#include "bench/cli/options/option.h"

#include "lib/base/status.h"
#include "lib/base/text/parse_quantity.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const slc_option *slc_option_find(const slc_option *rows, const char *name)
{
    for (; rows->name; rows++)
        if (!strcmp(rows->name, name)) return rows;
    return NULL;
}

const char *slc_option_typed(const slc_option *rows, const char *const *typed, const char *name)
{
    return typed[slc_option_find(rows, name) - rows];
}

int slc_option_place(const char *list, const char *value)
{
    size_t length = strlen(value), named;
    for (int place = 0; list && *list; place++, list += named + (list[named] != 0)) {
        named = strcspn(list, ",");
        if (named == length && !strncmp(list, value, length)) return place;
    }
    return -1;
}

/* ---- Numbers ---- */

sluice_status slc_option_number(const slc_option *row, const char *text, double *out)
{
    const bool whole = row->type == SLC_OPTION_COUNT;
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || errno || (whole && value != floor(value)) ||
        !(value >= row->least && value <= row->most))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         whole ? "--%s %s: give a whole number from %.10g to %.10g"
                               : "--%s %s: give a number from %.10g to %.10g",
                         row->name, text, row->least, row->most);
    *out = value;
    return SLUICE_OK;
}

static void store_count(const slc_option *row, char *field, uint64_t count)
{
    if (row->bytes == sizeof(uint64_t)) {
        memcpy(field, &count, sizeof count);
    } else if (row->bytes == sizeof(uint32_t)) {
        memcpy(field, &(uint32_t){(uint32_t)count}, sizeof(uint32_t));
    } else {
        assert(row->bytes == 1);
        *field = (char)count;
    }
}

static sluice_status set_number(const slc_option *row, char *field, const char *text)
{
    double value = 0;
    sluice_status status = slc_option_number(row, text, &value);
    if (status) return status;
    if (row->type == SLC_OPTION_COUNT)
        store_count(row, field, (uint64_t)value);
    else
        memcpy(field, &value, sizeof value);
    return SLUICE_OK;
}

/* Each number of a list is checked, and the first one is set. */
static sluice_status set_numbers(const slc_option *row, char *field, const char *text)
{
    char *copy = strdup(text), *rest = copy, *item;
    sluice_status status = copy ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "--%s", row->name);
    while (!status && (item = strsep(&rest, ",")) != NULL) status = set_number(row, field, item);
    if (!status) status = set_number(row, field, copy);
    free(copy);
    return status;
}

/* ---- Sizes, times, words ---- */

static const char *size_words(double size, char room[32])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    if (size < 1024) {
        snprintf(room, 32, "%.0f%s", size, size > 1 ? " bytes" : size > 0 ? " byte" : "");
        return room;
    }
    for (size /= 1024; size >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++) size /= 1024;
    snprintf(room, 32, "%.4g %s", size, units[unit]);
    return room;
}

static sluice_status set_size(const slc_option *row, char *field, const char *text)
{
    char least[32], most[32];
    uint64_t bytes;
    const bool wrong = slc_parse_bytes(text, &bytes) || (double)bytes < row->least;
    if (wrong && row->most <= 0)
        return slc_error(SLUICE_ERR_ARGUMENT, "--%s: \"%s\" is no size; give bytes, as 900MiB", row->name, text);
    if (wrong || (row->most > 0 && (double)bytes > row->most))
        return slc_error(SLUICE_ERR_ARGUMENT, "--%s: \"%s\" is no size from %s to %s", row->name, text,
                         size_words(row->least, least), size_words(row->most, most));
    memcpy(field, &bytes, sizeof bytes);
    return SLUICE_OK;
}

static sluice_status set_time(const slc_option *row, char *field, const char *text)
{
    double seconds;
    if (slc_parse_seconds(text, &seconds) || seconds < row->least)
        return slc_error(SLUICE_ERR_ARGUMENT, "--%s: \"%s\" is no time%s", row->name, text,
                         row->least > 0 ? " above 0" : "");
    memcpy(field, &seconds, sizeof seconds);
    return SLUICE_OK;
}

/* "a, b or c" */
static void list_choices(const char *choices, char *out, size_t bytes)
{
    *out = 0;
    for (size_t used = 0, length; *choices && used < bytes; choices += length + (choices[length] != 0)) {
        length = strcspn(choices, ",");
        const char *between = !used ? "" : choices[length] ? ", " : " or ";
        used += (size_t)snprintf(out + used, bytes - used, "%s%.*s", between, (int)length, choices);
    }
}

static sluice_status set_word(const slc_option *row, char *field, char *text)
{
    char choices[512];
    if (slc_option_place(row->choices, text) < 0) {
        list_choices(row->choices, choices, sizeof choices);
        return slc_error(SLUICE_ERR_ARGUMENT, "--%s %s: use %s", row->name, text, choices);
    }
    memcpy(field, &text, sizeof text);
    return SLUICE_OK;
}

/* ---- Any option ---- */

sluice_status slc_option_set(const slc_option *row, void *options, char *text)
{
    char *field = (char *)options + row->field;
    switch (row->type) {
    case SLC_OPTION_TEXT: memcpy(field, &text, sizeof text); return SLUICE_OK;
    case SLC_OPTION_WORD: return set_word(row, field, text);
    case SLC_OPTION_COUNT:
    case SLC_OPTION_REAL: return (row->list ? set_numbers : set_number)(row, field, text);
    case SLC_OPTION_SIZE: return set_size(row, field, text);
    case SLC_OPTION_TIME: return set_time(row, field, text);
    case SLC_OPTION_FLAG: store_count(row, field, 1); return SLUICE_OK;
    case SLC_OPTION_SET: return row->set(options, row, text);
    }
    return SLUICE_OK;
}

void slc_option_defaults(const slc_option *rows, void *options)
{
    for (; rows->name; rows++) {
        sluice_status status = rows->fallback ? slc_option_set(rows, options, (char *)rows->fallback) : SLUICE_OK;
        assert(!status);
        (void)status;
    }
}

char *slc_option_keep(const char *text)
{
    typedef struct kept_text {
        struct kept_text *before;
        char text[];
    } kept_text;
    static kept_text *last; /* so that a leak checker finds all of them */
    const size_t bytes = strlen(text) + 1;
    kept_text *kept = malloc(sizeof *kept + bytes);
    if (!kept) return NULL;
    kept->before = last;
    last = kept;
    return memcpy(kept->text, text, bytes);
}
