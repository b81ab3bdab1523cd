/* The settings of the job that all ranks must have alike, as text. Private to lib/engine. Pure functions. */
#pragma once

#include "lib/engine/runtime.h"

enum { SLC_SETTINGS_BYTES = 4096 };

/* One line a setting, "NAME VALUE", in an order of its own. Equal texts are equal settings: numbers are whole, and a
 * name that is too long to be shown ends in its hash. Bytes behind the text are 0. */
void slc_settings_text(const sluice_runtime *rt, char out[SLC_SETTINGS_BYTES]);

/* slc_settings_differ finds the first line in which two texts differ, cuts it into its name and both values, and
 * returns how many lines differ; 0: none. */
typedef struct {
    char name[64], first[192], second[192];
} slc_settings_difference;
uint32_t slc_settings_differ(const char *first, const char *second, slc_settings_difference *out);
