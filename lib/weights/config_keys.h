/* The keys of config.json and the fields that hold their values: one table for reading and writing. Private to
 * lib/weights. */
#ifndef SLC_WEIGHTS_CONFIG_KEYS_H
#define SLC_WEIGHTS_CONFIG_KEYS_H

#include "lib/weights/config.h"

typedef enum { SLC_KEY_COUNT, SLC_KEY_REAL, SLC_KEY_FLAG, SLC_KEY_ACTIVATION, SLC_KEY_SIDE } slc_key_type;

typedef struct {
    unsigned families; /* the families that have the key, as bits 1 << sluice_model_family */
    const char *key;
    slc_key_type type;
    size_t offset;      /* offset of the field in slc_config */
    double least, most; /* limits of counts, sides and reals */
    bool nullable;      /* null is allowed and means the default */
} slc_config_key;

extern const slc_config_key slc_config_keys[];
extern const size_t slc_config_key_count;

#endif
