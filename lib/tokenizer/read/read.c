/* See read.h: what the readers of sections share. lib/tokenizer/tokenizer_test.c covers this file. */
#include "lib/tokenizer/read/read.h"

#include "lib/base/status.h"

const char *slc_read_type(const json_t *section)
{
    const char *type = json_string_value(json_object_get(section, "type"));
    return type ? type : "";
}

sluice_status slc_read_fault(const char *path, const char *section, const char *key, const char *wanted)
{
    return slc_error(SLUICE_ERR_FORMAT, "%s: %s: \"%.100s\" is no %s", path, section, key, wanted);
}

sluice_status slc_read_unsupported(const char *path, const char *section, const char *type, const char *can)
{
    return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: the %s \"%.100s\" is not supported; %s", path, section, type, can);
}

sluice_status slc_read_flag(const char *path, const char *section, const json_t *from, const char *key, bool *out)
{
    const json_t *value = json_object_get(from, key);
    if (!value || json_is_null(value)) return SLUICE_OK;
    if (!json_is_boolean(value)) return slc_read_fault(path, section, key, "true or false");
    *out = json_is_true(value);
    return SLUICE_OK;
}

sluice_status slc_read_text(const char *path, const char *section, const json_t *from, const char *key,
                            const char **out)
{
    const json_t *value = json_object_get(from, key);
    if (!value || json_is_null(value)) return SLUICE_OK;
    if (!json_is_string(value)) return slc_read_fault(path, section, key, "text");
    *out = json_string_value(value);
    return SLUICE_OK;
}
