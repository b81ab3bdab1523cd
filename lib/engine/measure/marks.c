/* lib/model/golden_models_test.c covers this file. */
#include "lib/engine/measure/marks.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/runtime.h"
#include "lib/plan/strategy_table.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { PLACES = 4096 }; /* marks of a lane that are not read yet */

typedef struct {
    slc_event event;
    slc_moment record; /* its ns is not set */
    uint64_t elements;
} mark;

/* One thread puts marks, another one reads them. */
typedef struct {
    mark *marks;
    _Atomic uint32_t put, read;
    mark waiting, working; /* the last marks of a wait that has not ended, of work that has not ended */
    uint64_t waiting_ns, working_ns;
    double recomputed_s; /* of the slot that runs */
} ring;

struct slc_marks {
    ring lanes[SLC_MOMENT_LANES];
    /* Two points of time, of which one is known. Each step's begin is told by its distance from the begin of the step
     * before, because a device tells distances in single precision. */
    slc_event points[2];
    uint32_t known;
    uint64_t known_ns;
    bool pending; /* the other point is recorded */
};

static sluice_status create_events(slc_device *device, slc_marks *marks)
{
    sluice_status status = SLUICE_OK;
    for (int p = 0; !status && p < 2; p++) status = slc_event_create(device, &marks->points[p]);
    for (int lane = 0; lane < SLC_MOMENT_LANES; lane++) {
        ring *r = &marks->lanes[lane];
        r->marks = calloc(PLACES, sizeof *r->marks);
        if (!r->marks) return slc_error(SLUICE_ERR_MEMORY, "%d marks of time", PLACES);
        for (uint32_t i = 0; !status && i < PLACES; i++) status = slc_event_create(device, &r->marks[i].event);
    }
    return status;
}

sluice_status slc_marks_create(sluice_runtime *rt, slc_marks **out)
{
    *out = NULL;
    if (!slc_device_runs_ahead(rt->device)) return SLUICE_OK;
    slc_marks *marks = calloc(1, sizeof *marks);
    if (!marks) return slc_error(SLUICE_ERR_MEMORY, "marks of time");
    sluice_status status = create_events(rt->device, marks);
    if (!status) status = slc_event_record(&rt->compute, &marks->points[0]);
    if (!status) status = slc_event_synchronize(&marks->points[0]);
    marks->known_ns = slc_clock_ns();
    if (status)
        slc_marks_destroy(marks);
    else
        *out = marks;
    return status;
}

void slc_marks_destroy(slc_marks *marks)
{
    if (!marks) return;
    for (int lane = 0; lane < SLC_MOMENT_LANES; lane++) {
        for (uint32_t i = 0; marks->lanes[lane].marks && i < PLACES; i++)
            slc_event_destroy(&marks->lanes[lane].marks[i].event);
        free(marks->lanes[lane].marks);
    }
    for (int p = 0; p < 2; p++) slc_event_destroy(&marks->points[p]);
    free(marks);
}

void slc_mark(sluice_runtime *rt, slc_moment_lane lane, slc_moment record, uint64_t elements)
{
    ring *r = &rt->marks->lanes[lane];
    uint32_t put = atomic_load_explicit(&r->put, memory_order_relaxed);
    if (put - atomic_load_explicit(&r->read, memory_order_acquire) == PLACES) return;
    mark *m = &r->marks[put % PLACES];
    m->record = record;
    m->elements = elements;
    if (slc_event_record(lane == SLC_MOMENT_COMPUTE ? &rt->compute : &rt->updates, &m->event)) return;
    atomic_store_explicit(&r->put, put + 1, memory_order_release);
}

void slc_marks_begin_step(sluice_runtime *rt)
{
    slc_marks *marks = rt->marks;
    if (!marks || marks->pending) return;
    marks->pending = !slc_event_record(&rt->compute, &marks->points[marks->known ^ 1]);
}

/* ---- Reading ---- */

static bool same_item(const mark *begun, const mark *ended)
{
    return begun->record.item == ended->record.item && begun->record.pass == ended->record.pass;
}

/* Ends a wait of the compute stream. Its time is exposed, if the wait was in the step that ends now. */
static void end_wait(sluice_runtime *rt, ring *r, const mark *m, uint64_t ns)
{
    if (r->waiting_ns && same_item(&r->waiting, m) && m->record.pass == rt->train.number)
        rt->steps[rt->train.parity].exposed_s += slc_seconds(ns - r->waiting_ns);
    r->waiting_ns = 0;
}

static bool exchanges(const sluice_runtime *rt, const slc_item *item)
{
    return item->unit != SLC_NONE && slc_exchanges(rt->units[item->unit].strategy);
}

/* True if an item did nothing that could be measured. A skipped step's updates do nothing, and the passes around an
 * exchange are measured only in a step that exchanges. Such a step's state is kept until the next but one begins. */
static bool skipped(const sluice_runtime *rt, const mark *m, const slc_item *item)
{
    const uint32_t ago = rt->train.number - m->record.pass + item->late;
    const slc_step_state *step = ago < 2 ? &rt->steps[rt->train.parity ^ ago] : NULL;
    if (item->kind != SLC_ITEM_UPDATE && item->kind != SLC_ITEM_COMPRESS) return false;
    if (!step) return exchanges(rt, item);
    return step->skip || (exchanges(rt, item) && step->exchange_off);
}

static void add_work(sluice_runtime *rt, const slc_item *item, const ring *r, uint64_t ns)
{
    const uint64_t took_ns = ns - r->working_ns;
    if (skipped(rt, &r->working, item)) return;
    if (item->kind == SLC_ITEM_COMPRESS)
        slc_measure_took(&rt->measure->compression[SLC_MEASURE_COMPRESS], took_ns, r->working.elements);
    else if (item->kind == SLC_ITEM_UPDATE)
        slc_measure_took(exchanges(rt, item) ? &rt->measure->compression[SLC_MEASURE_APPLY] : &rt->measure->update,
                         took_ns, r->working.elements);
    else
        slc_measure_took(&rt->measure->inspection, took_ns, 0);
}

static void take_communication(sluice_runtime *rt, ring *r, const mark *m, const slc_item *item, uint64_t ns)
{
    if (m->record.kind == SLC_MOMENT_WORKS) {
        r->working = *m;
        r->working_ns = ns;
    }
    if (m->record.kind == SLC_MOMENT_WORKED && r->working_ns && same_item(&r->working, m)) add_work(rt, item, r, ns);
}

static void take_compute(sluice_runtime *rt, ring *r, const mark *m, const slc_item *item, uint64_t ns)
{
    const bool begun = r->working_ns && same_item(&r->working, m);
    switch ((slc_moment_kind)m->record.kind) {
    case SLC_MOMENT_WAITS:
    case SLC_MOMENT_STEP_WAITS:
        r->waiting = *m;
        r->waiting_ns = ns;
        return;
    case SLC_MOMENT_STEP_WAITED: end_wait(rt, r, m, ns); return;
    case SLC_MOMENT_BEGINS:
        end_wait(rt, r, m, ns);
        r->working = *m;
        r->working_ns = ns;
        r->recomputed_s = 0;
        return;
    case SLC_MOMENT_RECOMPUTED:
        if (!begun) return;
        r->recomputed_s = slc_seconds(ns - r->working_ns);
        slc_measure_add_recompute(rt->measure, slc_slot_layer(&rt->job, item->slot), r->recomputed_s);
        return;
    case SLC_MOMENT_ENDS:
        if (!begun) return;
        if (item->kind == SLC_ITEM_SLOT)
            slc_measure_add_slot(rt->measure, item->slot, slc_seconds(ns - r->working_ns) - r->recomputed_s);
        else if (!skipped(rt, m, item))
            slc_measure_took(&rt->measure->computed_update, ns - r->working_ns, m->elements);
        return;
    default: return;
    }
}

/* A recording on the host tells of the work of updates alone, and of no recomputing. */
static bool recorded(const mark *m, const slc_item *item)
{
    if (m->record.kind == SLC_MOMENT_RECOMPUTED) return false;
    return (m->record.kind != SLC_MOMENT_WORKS && m->record.kind != SLC_MOMENT_WORKED) ||
           item->kind == SLC_ITEM_UPDATE || item->kind == SLC_ITEM_COMPRESS;
}

static bool time_of(const slc_marks *marks, const slc_event *event, uint64_t *ns)
{
    double seconds;
    if (slc_event_elapsed(&marks->points[marks->known], event, &seconds)) return false;
    *ns = marks->known_ns + (uint64_t)(seconds > 0 ? 1e9 * seconds : 0);
    return true;
}

static void read_lane(sluice_runtime *rt, slc_moment_lane lane)
{
    ring *r = &rt->marks->lanes[lane];
    uint32_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
    const uint32_t put = atomic_load_explicit(&r->put, memory_order_acquire);
    for (; read != put && slc_event_done(&r->marks[read % PLACES].event); read++) {
        mark *m = &r->marks[read % PLACES];
        uint64_t ns;
        /* A mark of an earlier plan, whose items are no longer known. */
        if (m->record.plan != rt->current.number || !time_of(rt->marks, &m->event, &ns)) continue;
        const slc_item *item = &rt->train.program->items[m->record.item];
        if (lane == SLC_MOMENT_COMPUTE)
            take_compute(rt, r, m, item, ns);
        else
            take_communication(rt, r, m, item, ns);
        if (rt->recording && recorded(m, item)) slc_recording_put_at(rt->recording, lane, m->record, ns);
    }
    atomic_store_explicit(&r->read, read, memory_order_release);
}

void slc_marks_read(sluice_runtime *rt)
{
    slc_marks *marks = rt->marks;
    if (!marks) return;
    for (int lane = 0; lane < SLC_MOMENT_LANES; lane++) read_lane(rt, (slc_moment_lane)lane);
    uint64_t ns;
    if (!marks->pending || !slc_event_done(&marks->points[marks->known ^ 1]) ||
        !time_of(marks, &marks->points[marks->known ^ 1], &ns))
        return;
    marks->known ^= 1;
    marks->known_ns = ns;
    marks->pending = false;
}

void slc_marks_make_room(sluice_runtime *rt)
{
    for (int lane = 0; rt->marks && lane < SLC_MOMENT_LANES; lane++) {
        const ring *r = &rt->marks->lanes[lane];
        const uint32_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
        if (atomic_load_explicit(&r->put, memory_order_relaxed) - read > PLACES / 2)
            read_lane(rt, (slc_moment_lane)lane);
    }
}
