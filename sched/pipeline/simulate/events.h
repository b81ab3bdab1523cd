/* Moments that a simulation has still to come to, the earliest first; of equal ones the one that was added first.
 * Private to sched/pipeline. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double at_s;
    uint64_t number;
    uint32_t kind, stage, index;
} slc_pipeline_event;

typedef struct {
    slc_pipeline_event *heap;
    uint32_t count, capacity;
    uint64_t added;
    bool failed; /* there was no memory for an event */
} slc_pipeline_events;

void slc_pipeline_events_add(slc_pipeline_events *events, double at_s, uint32_t kind, uint32_t stage, uint32_t index);
bool slc_pipeline_events_next(slc_pipeline_events *events,
                              slc_pipeline_event *out); /* takes the earliest one out; false: there is none */
void slc_pipeline_events_fini(slc_pipeline_events *events);
