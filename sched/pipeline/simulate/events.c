/* A binary heap. pipeline_simulate_test.c covers this file. */
#include "sched/pipeline/simulate/events.h"

#include <stdlib.h>

static bool is_before(const slc_pipeline_event *a, const slc_pipeline_event *b)
{
    return a->at_s != b->at_s ? a->at_s < b->at_s : a->number < b->number;
}

static void swap(slc_pipeline_event *a, slc_pipeline_event *b)
{
    const slc_pipeline_event kept = *a;
    *a = *b;
    *b = kept;
}

void slc_pipeline_events_add(slc_pipeline_events *events, double at_s, uint32_t kind, uint32_t stage, uint32_t index)
{
    if (events->count == events->capacity) {
        const uint32_t capacity = events->capacity ? 2 * events->capacity : 64;
        slc_pipeline_event *grown = realloc(events->heap, capacity * sizeof *grown);
        if (!grown) {
            events->failed = true;
            return;
        }
        events->heap = grown;
        events->capacity = capacity;
    }
    uint32_t at = events->count++;
    events->heap[at] = (slc_pipeline_event){at_s, events->added++, kind, stage, index};
    for (; at && is_before(&events->heap[at], &events->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&events->heap[at], &events->heap[(at - 1) / 2]);
}

bool slc_pipeline_events_next(slc_pipeline_events *events, slc_pipeline_event *out)
{
    if (!events->count) return false;
    *out = events->heap[0];
    events->heap[0] = events->heap[--events->count];
    for (uint32_t at = 0, child; (child = 2 * at + 1) < events->count; at = child) {
        if (child + 1 < events->count && is_before(&events->heap[child + 1], &events->heap[child])) child++;
        if (!is_before(&events->heap[child], &events->heap[at])) break;
        swap(&events->heap[child], &events->heap[at]);
    }
    return true;
}

void slc_pipeline_events_fini(slc_pipeline_events *events)
{
    free(events->heap);
    *events = (slc_pipeline_events){0};
}
