/* The word `launching` of a communicator is the number of the last operation whose mark is held, so that it is never
 * the same twice. It has one bit more while a thread takes the marks. measure_test.c covers this file. */
#include "plugins/nccl/shim/measure/launches.h"

#include <sched.h>
#include <stdlib.h>

#define BEING_TAKEN (UINT64_C(1) << 63)

struct slc_shim_launch_marks {
    size_t count, room;
    slc_shim_stream_mark list[];
};

bool slc_shim_launches_hold(const slc_shim_stream_mark *mark)
{
    slc_shim_comm *known = mark->known;
    struct slc_shim_launch_marks *marks = known->marks;
    if (!marks || marks->count == marks->room) {
        size_t room = marks ? 2 * marks->room : 2;
        struct slc_shim_launch_marks *more = realloc(marks, sizeof *more + room * sizeof *more->list);
        if (!more) return false;
        if (!marks) more->count = 0;
        more->room = room;
        known->marks = marks = more;
    }
    marks->list[marks->count++] = *mark;
    return true;
}

void slc_shim_launches_publish(slc_shim_comm *known)
{
    uint64_t last = 0;
    for (size_t i = 0; known->marks && i < known->marks->count; i++)
        if (known->marks->list[i].number > last) last = known->marks->list[i].number;
    atomic_store_explicit(&known->launching, last, memory_order_release);
}

uint64_t slc_shim_launches_noted(const slc_shim_comm *known)
{
    return atomic_load_explicit(&known->launching, memory_order_acquire);
}

const slc_shim_stream_mark *slc_shim_launches_take(slc_shim_comm *known, uint64_t noted, size_t *count)
{
    if (!noted || noted & BEING_TAKEN) return NULL;
    if (!atomic_compare_exchange_strong(&known->launching, &noted, noted | BEING_TAKEN)) return NULL;
    *count = known->marks->count;
    return known->marks->list;
}

void slc_shim_launches_taken(slc_shim_comm *known)
{
    known->marks->count = 0;
    atomic_store_explicit(&known->launching, 0, memory_order_release);
}

void slc_shim_launches_wait(const slc_shim_comm *known)
{
    while (slc_shim_launches_noted(known) & BEING_TAKEN) sched_yield();
}

void slc_shim_launches_end(slc_shim_comm *known)
{
    if (slc_shim_launches_noted(known)) return; /* another thread has them just now */
    free(known->marks);
    known->marks = NULL;
}
