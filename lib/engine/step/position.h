/* Where a runtime is: between steps or in one, at which slot, and how far the two lanes have come. Private to
 * lib/engine. */
#ifndef SLC_ENGINE_POSITION_H
#define SLC_ENGINE_POSITION_H

#include "lib/base/gate.h"

#include <sluice/runtime.h>

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

/* Counts over all passes. */
typedef struct {
    slc_gate computed;        /* finished items of the compute lane: slots, and updates that run there */
    uint32_t computed_posted; /* the same count, for the caller's thread */
    uint32_t next_operation;  /* number that the next submitted operation will get */
} slc_lanes;

#endif
