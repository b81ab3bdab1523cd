/* Compressed optimizers share these checks of exchanged tensors and of the flat array, and the work on all tensors of a
 * unit, which is handed over so that a GPU does it in few launches.
 * lib/optim/onebit/onebit_lamb_test.c covers this file. */
#include "lib/optim/compressed.h"

#include "lib/base/status.h"

#include <math.h>

uint64_t slc_flat_elements(uint64_t elements, uint32_t ranks)
{
    const slc_compress_shape shape = {.count = elements, .ranks = ranks};
    return ranks * slc_compress_chunk(&shape);
}

static uint64_t number_of(const sluice_update *update, const uint64_t *numbers, size_t stride)
{
    return *(const uint64_t *)(const void *)((const char *)numbers + update->parameter * stride);
}

uint32_t slc_updates_alike(const sluice_update *updates, uint32_t first, uint32_t count, const uint64_t *numbers,
                           size_t stride)
{
    const uint64_t wanted = number_of(&updates[first], numbers, stride);
    uint32_t alike = 1;
    while (first + alike < count && number_of(&updates[first + alike], numbers, stride) == wanted) alike++;
    return alike;
}

bool slc_is_counter(double x)
{
    return x >= 0 && x < 0x1p53 && x == floor(x);
}

sluice_status slc_read_own_count(const char *name, const char *what, uint32_t parameter, double value, uint64_t of_job,
                                 uint64_t *count)
{
    if (!isnan(value) && (!slc_is_counter(value) || value > (double)of_job))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s, parameter %u: %s %g must be a whole number, not above the job's %llu", name, parameter,
                         what, value, (unsigned long long)of_job);
    *count = isnan(value) ? of_job : (uint64_t)value;
    return SLUICE_OK;
}

static sluice_status not_compressed(const char *name, uint64_t step)
{
    return slc_error(SLUICE_ERR_ORDER, "%s: step %llu is not compressed", name, (unsigned long long)step);
}

sluice_status slc_onebit_check(const char *name, const slc_onebit_unit *unit, uint32_t i, bool compresses)
{
    const sluice_update *u = &unit->tensors[i];
    if (!compresses) return not_compressed(name, slc_job_step_of(u));
    if (i >= unit->group->count || u->count != unit->group->shapes[i].count)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: tensor %u has %zu elements, other than what is exchanged of it",
                         name, i, u->count);
    return SLUICE_OK;
}

sluice_status slc_onebit_check_flat(const char *name, const slc_onebit_unit *unit, bool compresses)
{
    const slc_compress_shape *shape = unit->group->shapes;
    uint64_t elements = 0;
    if (!compresses) return not_compressed(name, slc_job_step_of(&unit->tensors[0]));
    for (uint32_t i = 0; i < unit->tensor_count; i++) elements += unit->tensors[i].count;
    if (unit->group->count != 1 || shape->count != slc_flat_elements(elements, shape->ranks))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: %u tensors have %llu elements, %u shapes of %llu are exchanged",
                         name, unit->tensor_count, (unsigned long long)elements, unit->group->count,
                         (unsigned long long)shape->count);
    return SLUICE_OK;
}

static slc_compress_look_args look_args(const slc_onebit_unit *unit, uint32_t i, bool results, uint32_t *bad)
{
    const slc_compress_group *group = unit->group;
    slc_compress_room *room = slc_compress_room_of(&unit->workers[i]);
    slc_compress_look_args args = {.shape = &group->shapes[i],
                                   .packets =
                                       (const char *)(results ? unit->results : unit->packets) + group->offsets[i],
                                   .stride = group->stride,
                                   .words = unit->tensors[i].words,
                                   .bad = bad,
                                   .number = unit->tensors[i].parameter};
    if (!results) return args;
    args.told = &room->told;
    args.cleared = (int64_t *)(void *)room;
    args.cleared_count = offsetof(slc_compress_room, product) / sizeof(int64_t);
    return args;
}

sluice_status slc_onebit_look(sluice_stream *stream, const slc_onebit_unit *unit, bool results, uint32_t *bad)
{
    const uint32_t count = unit->group->count;
    slc_compress_look_args args[SLC_ONEBIT_TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t first = 0; !status && first < count; first += SLC_ONEBIT_TOGETHER) {
        const uint32_t left = count - first, own = left < SLC_ONEBIT_TOGETHER ? left : SLC_ONEBIT_TOGETHER;
        for (uint32_t i = 0; i < own; i++) args[i] = look_args(unit, first + i, results, bad);
        status = slc_compress_look_many(stream, own, args);
    }
    return status;
}

sluice_status slc_onebit_compress_each(sluice_stream *stream, const slc_onebit_unit *unit, slc_onebit_input *input,
                                       const void *context, uint32_t *bad)
{
    const slc_compress_group *group = unit->group;
    slc_compress_tensor tensors[SLC_ONEBIT_TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t first = 0; !status && first < unit->tensor_count; first += SLC_ONEBIT_TOGETHER) {
        const uint32_t left = unit->tensor_count - first, own = left < SLC_ONEBIT_TOGETHER ? left : SLC_ONEBIT_TOGETHER;
        for (uint32_t k = 0; k < own; k++) {
            const uint32_t i = first + k;
            tensors[k] = (slc_compress_tensor){&group->shapes[i], input(context, unit, i), &unit->workers[i],
                                               (char *)unit->packets + group->offsets[i], group->stride};
        }
        status = slc_compress_worker_many(stream, own, tensors);
    }
    return status ? status : slc_onebit_look(stream, unit, false, bad);
}

slc_compress_results slc_onebit_results(const slc_onebit_unit *unit, uint32_t i)
{
    const slc_compress_group *group = unit->group;
    return (slc_compress_results){.shape = &group->shapes[i],
                                  .packets = (const char *)unit->results + group->offsets[i],
                                  .stride = group->stride,
                                  .count = unit->tensors[i].count};
}
