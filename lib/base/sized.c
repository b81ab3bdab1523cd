#include "lib/base/sized.h"

#include "lib/base/status.h"

#include <stdbool.h>
#include <string.h>

enum { GROWTH_MAX = 4096 }; /* bytes: what is longer has no size, but what was on the stack */

static bool is_size(size_t size, size_t known)
{
    return size && size % sizeof size == 0 && size <= known + GROWTH_MAX;
}

static size_t size_of(const void *sized)
{
    size_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

sluice_status slc_sized_check(const char *type, const char *maker, const void *given, size_t known)
{
    const size_t size = size_of(given);
    if (!is_size(size, known))
        return maker ? slc_error(SLUICE_ERR_ARGUMENT, "%s.struct_size is %zu; begin with %s", type, size, maker)
                     : slc_error(SLUICE_ERR_ARGUMENT, "%s.struct_size is %zu; begin with SLUICE_INIT(%s)", type, size,
                                 type);
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)given)[i])
            return slc_error(SLUICE_ERR_UNSUPPORTED,
                             "%s has %zu bytes, and sets some after the %zu that this library knows: the program was "
                             "built for a newer one",
                             type, size, known);
    return SLUICE_OK;
}

sluice_status slc_sized_read(const char *type, const char *maker, const void *given, size_t known, void *out)
{
    if (!given) return SLUICE_OK;
    sluice_status status = slc_sized_check(type, maker, given, known);
    if (status) return status;
    const size_t size = size_of(given);
    memcpy(out, given, size < known ? size : known);
    memcpy(out, &known, sizeof known);
    return SLUICE_OK;
}

sluice_status slc_sized_begin(const char *type, const void *made, size_t known, void *out, size_t size)
{
    if (!out || !is_size(size, known))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: %s %zu bytes; give the address and the sizeof of one", type,
                         out ? "it has" : "there is none, of", size);
    memset(out, 0, size);
    memcpy(out, &size, sizeof size);
    slc_sized_write(made, known, out);
    return SLUICE_OK;
}

void slc_sized_write(const void *made, size_t known, void *out)
{
    const size_t size = size_of(out);
    memcpy(out, made, size < known ? size : known);
    memcpy(out, &size, sizeof size);
}
