/* The record that the shim makes of the program's own process, for programs that know what it must hold. */
#pragma once

#include "plugins/nccl/record/record.h"
#include <stdbool.h>

typedef struct {
    const slc_record_header *header;
    const slc_record_communicator *rows;
    const slc_record_entry *entries;
    const slc_record_time *times; /* NULL: it has none */
} slc_own_record;

/* Maps it; stays mapped. False if the shim wrote none. */
bool slc_own_record_open(slc_own_record *record);
