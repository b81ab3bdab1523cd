/* Checks that compressed optimizers share: of exchanged tensors, of the scales in packets, and of the flat array.
 * lib/optim/onebit/onebit_lamb_test.c covers this file. */
#include "lib/optim/compressed.h"

#include "lib/base/status.h"

#include <math.h>
#include <string.h>

uint64_t slc_flat_elements(uint64_t elements, uint32_t ranks)
{
    const slc_compress_shape shape = {.count = elements, .ranks = ranks};
    return ranks * slc_compress_chunk(&shape);
}

static sluice_status not_compressed(const char *name, uint64_t step)
{
    return slc_error(SLUICE_ERR_ORDER, "%s: step %llu is not compressed", name, (unsigned long long)step);
}

sluice_status slc_onebit_check(const char *name, const slc_onebit_unit *unit, uint32_t i, bool compresses)
{
    const sluice_update *u = &unit->tensors[i];
    if (!compresses) return not_compressed(name, u->step);
    if (i >= unit->group->count || u->count != unit->group->shapes[i].count)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: tensor %u has %zu elements, other than what is exchanged of it",
                         name, i, u->count);
    return SLUICE_OK;
}

sluice_status slc_onebit_check_flat(const char *name, const slc_onebit_unit *unit, bool compresses)
{
    const slc_compress_shape *shape = unit->group->shapes;
    uint64_t elements = 0;
    if (!compresses) return not_compressed(name, unit->tensors[0].step);
    for (uint32_t i = 0; i < unit->tensor_count; i++) elements += unit->tensors[i].count;
    if (unit->group->count != 1 || shape->count != slc_flat_elements(elements, shape->ranks))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: %u tensors have %llu elements, %u shapes of %llu are exchanged",
                         name, unit->tensor_count, (unsigned long long)elements, unit->group->count,
                         (unsigned long long)shape->count);
    return SLUICE_OK;
}

static bool all_finite(const slc_compress_group *group, uint32_t i, const void *packets)
{
    const slc_compress_shape *shape = &group->shapes[i];
    if (!shape->count) return true;
    uint64_t scales = slc_compress_scales(shape);
    for (uint32_t r = 0; r < shape->ranks; r++) {
        const char *packet = (const char *)packets + r * group->stride + group->offsets[i];
        for (uint64_t s = 0; s < scales; s++) {
            float scale; /* copied, because it is not aligned */
            memcpy(&scale, packet + s * sizeof scale, sizeof scale);
            if (!isfinite(scale)) return false;
        }
    }
    return true;
}

bool slc_onebit_finite(const slc_onebit_unit *unit, uint32_t i, const void *packets, uint32_t *bad)
{
    bool finite = all_finite(unit->group, i, packets);
    if (!finite && unit->tensors[i].parameter < *bad) *bad = unit->tensors[i].parameter;
    return finite;
}
