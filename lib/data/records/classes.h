/* The classes of a set of records: the different labels that they have. */
#pragma once

#include "lib/data/records/records.h"

typedef struct {
    char **names; /* class i is names[i]; malloc'ed */
    uint32_t count;
    bool numbers; /* the labels are 0, 1, ..., count - 1, and have no other names */
} slc_classes;

/* Takes all labels of a set that has them. Whole numbers are in their order, words in the order of their bytes. Errors:
 * ARGUMENT (too many for classes), MEMORY. */
sluice_status slc_classes_find(const slc_records *records, slc_classes *out);
/* Takes these names, in this order. Error: MEMORY. */
sluice_status slc_classes_take(const char *const *names, uint32_t count, slc_classes *out);
void slc_classes_free(slc_classes *classes); /* a zeroed one is allowed */

/* The number of a label; -1: it is none of the classes. */
int32_t slc_classes_number(const slc_classes *classes, slc_span label);
