/* The table of families, and what follows from a row.
 * config_test.c covers this file. */
#include "lib/weights/family.h"

#include <stdio.h>

#define PLACE(enumerator, name) [enumerator] = &slc_family_##name,
static const slc_family *const families[SLUICE_MODEL_FAMILIES] = {SLUICE_MODEL_FAMILY_LIST(PLACE)};

const slc_family *slc_family_of(sluice_model_family family)
{
    static const slc_family none = {0};
    return (uint32_t)family < SLUICE_MODEL_FAMILIES ? families[family] : &none;
}

sluice_model_head slc_usual_head(sluice_model_family family)
{
    return slc_family_of(family)->sees ? SLUICE_HEAD_CLASSES : SLUICE_HEAD_TOKENS;
}

void slc_config_defaults(sluice_model_family family, sluice_model_head head, slc_config *out)
{
    *out = slc_family_of(family)->base;
    out->family = family;
    out->head = head;
}

const char *slc_family_names(char *out, size_t size)
{
    size_t used = 0;
    for (int f = 0; f < SLUICE_MODEL_FAMILIES && used < size; f++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", f ? ", " : "", families[f]->name);
    return out;
}
