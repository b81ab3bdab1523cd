/* The keys of config.json and the fields they go to: one table for reading and writing. Private to lib/weights. */
#ifndef SLC_WEIGHTS_CONFIG_KEYS_H
#define SLC_WEIGHTS_CONFIG_KEYS_H

#include "lib/weights/config.h"

typedef enum { SLC_KEY_COUNT, SLC_KEY_REAL, SLC_KEY_FLAG, SLC_KEY_ACTIVATION, SLC_KEY_SIDE } slc_key_type;

typedef struct {
    unsigned families; /* bits, 1 << slc_family */
    const char *key;
    slc_key_type type;
    size_t offset;      /* of the field */
    double least, most; /* of counts, sides and reals */
    bool nullable;      /* null: the default */
} slc_config_key;

extern const slc_config_key slc_config_keys[];
extern const size_t slc_config_key_count;

#endif
