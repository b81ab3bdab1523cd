/* The state of a runtime: all that the engine knows of a job. Private to lib/engine. */
#pragma once

#include "lib/comm/comm.h"
#include "lib/device/device.h"
#include "lib/engine/model/state.h"
#include "lib/engine/replan/planning.h"
#include "lib/engine/stage_state.h"
#include "lib/engine/step/agreement.h"
#include "lib/engine/step/pass_state.h"
#include "lib/engine/writing/writer.h"
#include "lib/optim/compressed.h"

#include <sluice/runtime.h>

typedef struct {
    sluice_status status; /* SLUICE_OK: nothing has failed */
    char *line;
    bool alike; /* the failure of the current call is the same on every rank */
} slc_runtime_failure;

typedef enum { SLC_IDLE, SLC_IN_STEP, SLC_IN_EVALUATION } slc_mode;

/* A backward slot may begin with recomputing. */
typedef enum { SLC_BETWEEN_SLOTS, SLC_RECOMPUTING, SLC_RECOMPUTED, SLC_IN_SLOT } slc_slot_state;

typedef struct {
    uint32_t cursor; /* next slot of the running pass */
    slc_slot_state state;
    const sluice_layer *layer;  /* between begin and end; else NULL */
    sluice_direction direction; /* of what the layer computes: forward while it recomputes */
    uint32_t slot;              /* that is open */
} slc_position;

/* The phase of a compressed optimizer (onebit/phase.h). */
typedef struct {
    bool on;              /* the optimizer is a compressed one */
    bool fuses;           /* everything trainable is one unit, exchanged as one tensor */
    bool replicas_differ; /* some parameter has moved (sluice_param.moved) */
    bool in_interval;     /* the last step was a local one, so that an exchange of all that it kept is still to come */
    bool waits;           /* it was said that the next phase waits for a parameter (slc_compressed.waits_for) */
    slc_pinned memory;
    uint32_t *bad;  /* [SLC_BADS], in `memory`; on the communication thread, or in kernels that it issues, for the next
                       agreement: the first parameter whose update was not finite, on all ranks; on this one. SLC_NONE:
                       none. NULL if the optimizer is no compressed one */
    uint8_t *roles; /* [parameters] what the step that begins does with each (lib/optim/compressed.h) */
    uint64_t *updates; /* [parameters] how many each has had, for the optimizer at a step's end */
} slc_compression;

enum { SLC_BAD_EXCHANGE, SLC_BAD_LOCAL, SLC_BADS };

/* Layers that steps draw (sluice_step_options.layers_drawn). */
typedef struct {
    double *keeps; /* [layers] the probability with which the last step kept each; 1 for those that are not drawn */
    bool any;      /* the last step drew some */
} slc_drawn_layers;

/* The shapes of steps, and the plans that do not run (replan/shapes.c). */
typedef struct {
    uint32_t now; /* the shape of the job and of the plan that runs */
    slc_shape_plan kept[SLUICE_SHAPES_MOST + 1];
    slc_shape_times measured[SLUICE_SHAPES_MOST + 1];
    uint32_t fitted[SLUICE_SHAPES_MOST + 1]; /* a shape's plan was made from times at so many lengths */
    double took_s;                           /* to move over to the shape of this step */
} slc_shapes;

struct sluice_runtime {
    sluice_world *world;
    slc_comm *comm;
    int rank, size;        /* in the world */
    slc_comm *lane;        /* of the ranks that share units: all, or a stage's replicas */
    int replica, replicas; /* this rank among them, and how many there are */
    sluice_config config;
    slc_runtime_failure failure;
    slc_device *device;
    sluice_stream compute, updates; /* of the caller; of the communication thread (on a device that runs ahead the one
                                       in which its operations work) */

    sluice_optimizer optimizer;
    slc_compressed onebit; /* its functions if the optimizer is a compressed one */
    slc_compression compression;

    slc_registration model;
    slc_stage stage;
    bool committed;
    slc_job job;
    slc_unit_state *units; /* of each unit of the job */
    slc_region *regions;   /* of each slot */
    slc_planning planning;
    slc_current_plan current;
    slc_trials trials;
    slc_shapes shapes;
    slc_drawn_layers drawn;
    slc_runtime_memory memory;

    slc_mode mode;
    slc_pass train, evaluate;
    slc_position at;
    slc_lanes lanes;
    slc_agreement agreement;
    uint64_t step; /* updates applied */
    slc_step_state steps[2];

    struct slc_measure *measure;     /* measure/measure.h */
    slc_pinned progress;             /* step/progress.h */
    struct slc_marks *marks;         /* measure/marks.h; NULL on a device that does not run ahead */
    struct slc_recording *recording; /* measure/recording.h; NULL: off */
    struct slc_check *check;         /* check/check.h; NULL: off */

    struct slc_saving *saving; /* checkpoint/save.c; NULL: no save is under way */
    slc_writer writer;         /* of that save */
};

/* Bytes of an activation or a workspace in the shape of the job. */
static inline uint64_t slc_shape_bytes(const sluice_runtime *rt, uint64_t bytes, const uint64_t by_shape[])
{
    const uint64_t own = by_shape[rt->shapes.now];
    return own ? own : bytes;
}

/* Steps that the run has left. A program that does not say how many it makes is expected to make 1000 more. */
static inline uint64_t slc_runtime_steps_left(const sluice_runtime *rt)
{
    if (!rt->config.steps) return 1000;
    return rt->config.steps > rt->step ? rt->config.steps - rt->step : 1;
}

/* True if steps measure the norm of the gradient. */
static inline bool slc_measures_norm(const sluice_runtime *rt)
{
    return rt->config.clip > 0 || rt->config.measure_norm;
}

/* True if the parameter is left out of a step: it belongs to a layer that is, and to no other. */
static inline bool slc_left_out_param(const slc_step_state *step, const sluice_param *param)
{
    return step->leaves_out && !param->tied && step->left_out[param->layer];
}
