/* record_files_test.c covers this file. */
#include "lib/data/records/classes.h"

#include "lib/base/status.h"
#include "lib/data/records/records_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

sluice_status slc_classes_find(const slc_records *records, slc_classes *out)
{
    slc_labels all = {0};
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < records->count; i++) {
        const slc_labels *part = &records->files[i].index.labels;
        all.many = all.many || part->many;
        for (uint32_t k = 0; !status && k < part->count; k++)
            status = slc_labels_add(&all, (slc_span){part->names[k], strlen(part->names[k])});
    }
    if (!status && all.many)
        status = slc_error(SLUICE_ERR_ARGUMENT,
                           "more than %d different labels, or %d MiB of them; a class is one of a few, so name another "
                           "field as the label",
                           SLC_LABELS_MAX, SLC_LABELS_BYTES_MAX >> 20);
    *out = (slc_classes){.names = all.names, .count = all.count};
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
        if (!slc_label_compare(c->names[i], label)) return (int32_t)i;
    return -1;
}
