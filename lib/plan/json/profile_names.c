/* Names in a profile: numbers by name, and layers and types by their names. profile_json_test.c covers this file. */
#include "lib/plan/json/profile_reader.h"

#include "lib/base/status.h"

#include <string.h>

sluice_status slc_profile_add_name(const slc_json_place *at, json_t *index, const char *name)
{
    slc_json_place place = {at, "name", 0};
    if (json_object_get(index, name)) return slc_json_fault(&place, "\"%s\" is there already", name);
    if (json_object_set_new(index, name, json_integer((json_int_t)json_object_size(index))))
        return slc_error(SLUICE_ERR_MEMORY, "name \"%s\"", name);
    return SLUICE_OK;
}

bool slc_profile_layer_of(const slc_profile_reader *r, const char *name, uint32_t *layer)
{
    const json_t *number = json_object_get(r->layer_index, name);
    if (number) *layer = (uint32_t)json_integer_value(number);
    return number != NULL;
}

sluice_status slc_profile_find_layer(const slc_profile_reader *r, const slc_json_place *at, const char *name,
                                     uint32_t *layer)
{
    return slc_profile_layer_of(r, name, layer) ? SLUICE_OK : slc_json_fault(at, "there is no layer \"%s\"", name);
}

sluice_status slc_profile_read_dtype(const slc_json_place *object, const char *key, const char *name, sluice_dtype *out)
{
    slc_json_place at = {object, key, 0};
    bool bf16 = !strcmp(name, sluice_dtype_name(SLUICE_BF16));
    *out = bf16 ? SLUICE_BF16 : SLUICE_FP32;
    return bf16 || !strcmp(name, sluice_dtype_name(SLUICE_FP32))
               ? SLUICE_OK
               : slc_json_fault(&at, "\"%s\"; give \"fp32\" or \"bf16\"", name);
}
