/* A unit at run time: where the plan in force has its arrays. Private to lib/engine. */
#ifndef SLC_ENGINE_UNIT_STATE_H
#define SLC_ENGINE_UNIT_STATE_H

#include "lib/device/device.h"
#include "lib/plan/job.h"

#include <sluice/runtime.h>

/* An address is NULL where the plan gives the unit no such buffer. */
typedef struct {
    slc_strategy strategy;
    sluice_param **params; /* by ascending `first` */
    uint32_t param_count;
    sluice_dtype dtype;          /* of value, shard and gathered */
    sluice_dtype gradient_dtype; /* of gradient */
    sluice_dtype reduced_dtype;  /* of reduced, or of the sum that takes the gradient's place */
    bool whole_sum;              /* `reduced` holds whole blocks, not shards */
    void *value, *shard, *gradient, *reduced;
    float *master; /* whole (dp) or shard */
    float *state[SLUICE_OPTIMIZER_STATES_MAX];
    void **gathered; /* of each window */
    uint32_t window_count;
    sluice_param *looked_up;     /* a ROWS unit: the parameter whose rows it holds; it has no params */
    struct slc_look_up *look_up; /* a ROWS unit (rows/look_up.h) */
    struct slc_onebit *onebit;   /* a trainable unit of a compressed optimizer (onebit/onebit.h) */
    const void *now;             /* whole values in the slot that runs; NULL: not valid */
    void *gradient_now;
} slc_unit_state;

/* The address of element number `element` of an array. */
static inline void *slc_element(const void *array, sluice_dtype dtype, uint64_t element)
{
    return (unsigned char *)(uintptr_t)array + element * sluice_dtype_bytes(dtype);
}

#endif
