/* The different labels of records, in the order of their bytes. Private to lib/data/records. */
#pragma once

#include "lib/data/records/records.h"

enum { SLC_LABELS_MAX = 65536, SLC_LABELS_BYTES_MAX = 1 << 24 };

/* Begun as {0}. Beyond these limits there are too many for classes: `many` is set, and no name is kept. */
typedef struct {
    char **names; /* malloc'ed */
    uint32_t count;
    uint64_t bytes; /* of all names */
    bool many;
} slc_labels;

/* Adds a label that is not there yet. Error: MEMORY. */
sluice_status slc_labels_add(slc_labels *labels, slc_span label);
void slc_labels_free(slc_labels *labels); /* a zeroed one is allowed */

/* Below, equal to or above 0, as strcmp. */
int slc_label_compare(const char *name, slc_span label);
