/* Labels are kept sorted while they are found, since there are few of them. record_files_test.c covers this file. */
#include "lib/data/records/classes.h"

#include "lib/base/array.h"
#include "lib/base/bisect.h"
#include "lib/base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_EVERY = 4096 };

static int compare_span(const char *name, slc_span label)
{
    const size_t length = strlen(name), least = length < label.bytes ? length : label.bytes;
    const int order = memcmp(name, label.text, least);
    return order ? order : length < label.bytes ? -1 : length > label.bytes;
}

static sluice_status add_label(slc_classes *c, slc_span label)
{
    SLC_BISECT(uint32_t, at, 0, c->count, compare_span(c->names[at], label) < 0);
    if (at < c->count && !compare_span(c->names[at], label)) return SLUICE_OK;
    if (c->count == SLC_CLASSES_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "more than %d different labels; a class is one of a few, so name another field as the label",
                         SLC_CLASSES_MAX);
    char *name = strndup(label.text, label.bytes);
    if (!name || !SLC_ROOM_FOR_ONE(c->names, c->count)) {
        free(name);
        return slc_error(SLUICE_ERR_MEMORY, "names of classes");
    }
    memmove(c->names + at + 1, c->names + at, (c->count - at) * sizeof *c->names);
    c->names[at] = name;
    c->count++;
    return SLUICE_OK;
}

static bool is_number(const char *name, long long *out)
{
    char *end, again[32];
    *out = strtoll(name, &end, 10);
    snprintf(again, sizeof again, "%lld", *out);
    return *name && !*end && !strcmp(again, name);
}

static int by_number(const void *a, const void *b)
{
    long long x, y;
    is_number(*(char *const *)a, &x);
    is_number(*(char *const *)b, &y);
    return x < y ? -1 : x > y;
}

static void order_numbers(slc_classes *c)
{
    long long number;
    for (uint32_t i = 0; i < c->count; i++)
        if (!is_number(c->names[i], &number)) return;
    qsort(c->names, c->count, sizeof *c->names, by_number);
    c->numbers = true;
    for (uint32_t i = 0; i < c->count; i++) {
        is_number(c->names[i], &number);
        c->numbers = c->numbers && number == i;
    }
}

sluice_status slc_classes_find(const slc_records *records,
                               sluice_status (*progress)(uint64_t done, uint64_t all, void *context), void *context,
                               slc_classes *out)
{
    slc_records_item record = {0};
    const uint64_t count = slc_records_count(records), bytes = slc_records_bytes(records);
    sluice_status status = SLUICE_OK;
    *out = (slc_classes){0};
    for (uint64_t i = 0; !status && i < count; i++) {
        status = slc_records_read(records, i, &record);
        if (!status) status = add_label(out, record.label);
        if (!status && progress && i % PROGRESS_EVERY == 0)
            status = progress((uint64_t)((double)bytes * (double)i / (double)count), bytes, context);
    }
    slc_records_item_free(&record);
    if (!status) order_numbers(out);
    if (status) slc_classes_free(out);
    return status;
}

sluice_status slc_classes_take(const char *const *names, uint32_t count, slc_classes *out)
{
    *out = (slc_classes){.names = calloc(count + 1, sizeof *out->names), .count = count};
    bool whole = out->names;
    for (uint32_t i = 0; whole && i < count; i++) whole = (out->names[i] = strdup(names[i])) != NULL;
    if (whole) return SLUICE_OK;
    slc_classes_free(out);
    return slc_error(SLUICE_ERR_MEMORY, "names of classes");
}

void slc_classes_free(slc_classes *c)
{
    for (uint32_t i = 0; c->names && i < c->count; i++) free(c->names[i]);
    free(c->names);
    *c = (slc_classes){0};
}

int32_t slc_classes_number(const slc_classes *c, slc_span label)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (!compare_span(c->names[i], label)) return (int32_t)i;
    return -1;
}
