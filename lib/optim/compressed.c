/* Checks that compressed optimizers share: of exchanged tensors, of the scales in packets, and of the flat array.
 * lib/optim/onebit/onebit_lamb_test.c covers this file. */
#include "lib/optim/compressed.h"

#include "lib/base/status.h"

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

sluice_status slc_onebit_look(sluice_stream *stream, const slc_onebit_unit *unit, uint32_t i, const void *packets,
                              sluice_step_words *told, uint32_t *bad)
{
    const slc_compress_look_args args = {.shape = &unit->group->shapes[i],
                                         .packets = (const char *)packets + unit->group->offsets[i],
                                         .stride = unit->group->stride,
                                         .words = unit->tensors[i].words,
                                         .told = told,
                                         .bad = bad,
                                         .number = unit->tensors[i].parameter};
    return slc_compress_look(stream, &args);
}
