/* The decisions of a plan for each layer, their savings and costs, and the reasons in words. `sluice plan` and
 * `sluice train` show the same. */
#pragma once

#include "lib/plan/request.h"
#include "sched/planner/other_choice.h"

#include <jansson.h>

/* A plan, what it was made from, and what was said of it. Everything belongs to the caller. */
typedef struct {
    const slc_profile *profile;
    const slc_plan *plan;
    slc_plan_forecast forecast; /* step_s 0: no step is predicted */
    uint64_t budget_bytes;      /* 0: none */
    const char *chosen, *note;  /* slc_plan_answer's member and note */
    bool timed; /* the profile's times are known, so costs are told; else they were estimated from sizes */
    const slc_other_choice *others; /* [units] the next best choice for all units of the row; NULL: nobody asked */
} slc_shown_plan;

/* The decision for one unit, or for all units of a row: bytes and seconds are sums. A layer's recomputation is told
 * with its first unit; a layer that has none and recomputes is an element without a unit. */
typedef struct {
    uint32_t unit; /* the first; SLC_NONE: none */
    uint32_t first_layer, last_layer;
    uint32_t row; /* which row of the table it belongs to */
    slc_strategy strategy;
    uint32_t layers, recomputed;             /* layers of its own, and how many of them recompute */
    uint64_t resident_bytes;                 /* that a rank keeps for good */
    int64_t more_bytes;                      /* that a rank keeps more as sdp than as fsdp; onebit: more than as sdp */
    double gathers_s;                        /* communication that fsdp adds to a step, or would add */
    double exchange_s, passes_s, averaged_s; /* onebit: moving and computing, and what averaging gradients takes */
    double rows_gather_s, rows_reduce_s;     /* of the rows that a layer looks up */
    double fused_s;                          /* latency that being sent as one saves */
    uint64_t recompute_bytes;                /* activations that are not kept */
    double recompute_s;                      /* forward again */
} slc_decision;

/* Lists the decisions in the order of the layers, and folds equal ones into *rows rows: those of units alike, or if
 * that makes too many rows, all with the same strategy and recomputation. The caller frees *out. Errors: MEMORY. */
sluice_status slc_decisions_list(const slc_shown_plan *shown, slc_decision **out, uint32_t *count, uint32_t *rows);
/* Adds the numbers of `one` to `sum`. */
void slc_decision_add(slc_decision *sum, const slc_decision *one);
/* Writes why: "sharded: saves 96 KiB a rank, free". */
void slc_decision_words(const slc_shown_plan *shown, const slc_decision *decision, char *out, size_t size);
/* Writes the name of a decision, or of those of neighbouring layers from `first` to `last`: "h.3", "h.0-h.11", or for a
 * tied parameter its own. */
void slc_decision_name(const slc_shown_plan *shown, const slc_decision *first, const slc_decision *last, char *out,
                       size_t size);

/* Finds the next best choice of each row of the table, by planning again (sched/planner/other_choice.h) with
 * `effort_s` nominal seconds for all of them together, and writes it to others [units] for each of the row's units.
 * Errors: those of slc_other_choice_find. */
sluice_status slc_decisions_weigh_others(const slc_shown_plan *shown, const slc_plan_request *made_by, double effort_s,
                                         slc_other_choice *others);

/* Returns the decisions as a JSON object (docs/formats.md, "plan" of a run), with an element for each unit. NULL: no
 * memory. */
json_t *slc_decisions_json(const slc_shown_plan *shown);
