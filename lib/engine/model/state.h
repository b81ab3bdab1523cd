/* The model as the program registers it before commit, its units at run time, and the memory in which they lie. Private
 * to lib/engine. */
#pragma once

#include "lib/base/row_list.h"
#include "lib/engine/bounce.h"
#include "lib/memory/arena.h"
#include "lib/plan/job.h"

#include <sluice/runtime.h>
#include <uthash.h>

/* ---- Registration ---- */

enum { SLC_GRAIN = 16 }; /* elements: parameters and shards start at multiples of it */

struct sluice_param {
    sluice_runtime *rt;
    uint32_t number;           /* position in registration order */
    uint32_t layer;            /* the layer that added it; SLC_NONE: that lies in another stage (making/stage.h) */
    const sluice_layer *adder; /* the same, wherever it lies */
    uint32_t holder;           /* in a pipeline: the stage that holds it */
    char *name;                /* LAYER.NAME */
    uint64_t count;
    sluice_dtype dtype;
    bool frozen, no_decay, tied, no_backward_value;
    bool apart;      /* replicas differ by roundings: whatever reads it takes each element from its owner */
    bool moved;      /* in a onebit unit: by local steps since its last exchange, so that replicas differ */
    uint32_t group;  /* of the step's rates */
    uint32_t unit;   /* SLC_NONE: it lies in another stage */
    uint64_t first;  /* its first element in the unit */
    uint64_t missed; /* steps that were applied without it, because they left its layer out */
    bool fresh;      /* nothing has been added to its gradient yet: the content is undefined */
    uint32_t norm;   /* index of its first norm in slc_step_state.norms; valid if the optimizer asks
                        for norms and the parameter is trainable */
    uint64_t row_elements, most_rows; /* its layer reads at most so many rows of so many elements; 0: all of it */
    uint32_t rows_set;   /* micro-batches of this step (in evaluation: of this pass) whose rows are known */
    uint32_t rows_unit;  /* the unit of rows that its layer reads and adds to; SLC_NONE: not split */
    slc_row_mark *marks; /* of all rows; NULL if it is split */
    bool told;           /* the log has been told that it had no address; `told` below means the same */
    UT_hash_handle hh;   /* by name */
};

struct sluice_layer {
    sluice_runtime *rt;
    uint32_t index;
    char *name;
    slc_strategy forced; /* SLC_STRATEGIES: as the runtime's */
    sluice_dtype precision;
    bool can_recompute;
    double told_s[2]; /* of a micro-batch's forward and backward, as the program says; 0: it does not */
    uint32_t *units;  /* those that it uses, own and tied; known after commit */
    uint32_t unit_count;
    sluice_param **uses; /* tied parameters of earlier layers */
    uint32_t use_count;
    UT_hash_handle hh; /* by name */
};

struct sluice_activation {
    sluice_runtime *rt;
    uint32_t index, layer;
    char *name, *last_layer, *last_forward_layer;
    uint64_t bytes;
    uint64_t shape_bytes[SLUICE_SHAPES_MOST + 1]; /* by shape; 0: `bytes` */
    sluice_direction first, last;
    bool recomputable;
    void *data;
    bool told;
};

struct sluice_workspace {
    sluice_runtime *rt;
    uint32_t layer;
    char *name;
    uint64_t bytes;
    uint64_t shape_bytes[SLUICE_SHAPES_MOST + 1]; /* by shape; 0: `bytes` */
    sluice_direction direction;
    uint32_t first, last; /* operations of the slot */
    uint64_t offset;      /* in the region of its slot, in the shape of the step */
    bool told;
};

/* Everything that was registered, each kind in registration order. */
typedef struct {
    sluice_layer **layers;
    sluice_param **params;
    sluice_activation **activations;
    sluice_workspace **workspaces;
    sluice_layer *layers_by_name; /* hash tables of all layers and of all parameters */
    sluice_param *params_by_name;
    uint32_t layer_count, param_count, activation_count, workspace_count;
    uint32_t last_shape;                                  /* the highest that something was said of */
    uint32_t group_count;                                 /* one more than the highest group of a parameter */
    uint64_t reserved_bytes;                              /* after commit the most that any rank reserves */
    uint64_t elements, activation_bytes, workspace_bytes; /* sums; elements with the padding of each parameter */
} slc_registration;

/* ---- Units ---- */

/* A unit at run time: where the plan in force has its arrays. An address is NULL if the plan gives the unit no such
 * buffer. */
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
    void **gathered;             /* by slc_gathered_number */
    sluice_param *looked_up;     /* a ROWS unit: the parameter whose rows it holds; it has no params */
    struct slc_look_up *look_up; /* a ROWS unit (rows/look_up.h) */
    struct slc_onebit *onebit;   /* a trainable unit of a compressed optimizer (onebit/onebit.h) */
    const void *now;             /* whole values in the slot that runs; NULL: not valid */
    void *gradient_now;
} slc_unit_state;

/* ---- Memory ---- */

/* Each number is the largest of all ranks. */
typedef struct {
    uint64_t bytes;      /* packed; 0: the slot has no workspaces */
    uint64_t live_bytes; /* most that lives at one operation */
    uint64_t sum_bytes;  /* of all its workspaces */
} slc_region_sizes;

typedef struct {
    slc_region_sizes sizes;
    uint32_t workspace; /* of the job; SLC_NONE */
    unsigned char *data;
} slc_region;

/* The arena, and what lies in it and around it besides the plan's buffers. */
typedef struct {
    slc_arena *arena;
    unsigned char *base; /* of the arena */
    void *staging;
    slc_bounce bounce; /* to and from the caller's memory */
    bool attached;     /* peers know the arena, with the scratch for messages at `scratch` */
    void *scratch;
    uint64_t rss_commit_bytes;
    uint64_t most_planned_bytes; /* the largest arena of all plans so far */
} slc_runtime_memory;
