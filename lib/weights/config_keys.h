/* The keys of config.json and the fields that hold their values: a family's list of them serves reading and writing.
 * Private to lib/weights. */
#pragma once

#include "lib/weights/family.h"

typedef enum { SLC_KEY_COUNT, SLC_KEY_REAL, SLC_KEY_FLAG, SLC_KEY_ACTIVATION, SLC_KEY_SIDE } slc_key_type;

/* A list ends with a row without a key. */
struct slc_config_key {
    const char *key;
    slc_key_type type;
    size_t offset;      /* offset of the field in slc_config */
    double least, most; /* limits of counts, sides and reals */
    bool nullable;      /* null is allowed and means the default */
};
