/* Two plans of one profile next to each other: what their steps take, and layer by layer what was decided, which bytes
 * a rank keeps and holds at the peak, and how long compute waits for what. */
#pragma once

#include "lib/plan/profile.h"
#include "sched/simulate/trace_json.h"

#include <jansson.h>
#include <stdio.h>

enum { SLC_COMPARED = 2 };

/* A layer in one of the plans, or a parameter that several layers share. */
typedef struct {
    char strategy[48];         /* "sdp", of several units "sdp, dp"; "-": it has no unit */
    const char *recomputed;    /* "yes" or "-" */
    const char *updates;       /* the lane on which it is updated: "compute", "thread", "both"; "-": neither */
    uint64_t kept, at_peak;    /* bytes: all the time; at the plan's fullest moment */
    double waits_s, longest_s; /* in which compute waits before its slots, and before its updates on the compute lane */
    char waits_for[SLC_ITEM_LABEL]; /* the operation that the longest of these waits was for; "": none */
} slc_compared_part;

typedef struct {
    const char *name;
    slc_compared_part of[SLC_COMPARED];
} slc_compared_layer;

typedef struct {
    const slc_profile *profile;
    const slc_plan *plans[SLC_COMPARED];
    const char *names[SLC_COMPARED];
    slc_forecast forecasts[SLC_COMPARED];
    uint64_t peaks[SLC_COMPARED]; /* planned bytes of a rank, reserved ones included */
    slc_compared_layer *layers;   /* in the order of the model; the last is what belongs to no layer */
    uint32_t count;
} slc_comparison;

/* Simulates both plans and fills *out, which slc_comparison_fini frees; profile, plans and names must outlive it.
 * Errors: MEMORY, FORMAT. */
sluice_status slc_comparison_make(const slc_profile *profile, const slc_plan *const plans[SLC_COMPARED],
                                  const char *const names[SLC_COMPARED], slc_comparison *out);
void slc_comparison_fini(slc_comparison *comparison);

/* Prints step, waiting and memory of both plans, then a row for neighbouring layers in which the same differs. */
void slc_comparison_print(FILE *out, const slc_comparison *comparison);
/* All layers as JSON (docs/formats.md). NULL: no memory. */
json_t *slc_comparison_json(const slc_comparison *comparison);
