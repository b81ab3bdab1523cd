/* Small blocking collectives over the star: every rank brings a part to rank 0, which answers all with the result. A
 * rank brings its next part only after it has the result, so rank 0 holds at most one part of each rank.
 * watch_test.c covers this file. */
#include "lib/comm/control/collect.h"

#include "lib/comm/control/socket.h"

#include <stdio.h>
#include <string.h>

const char *slc_collect_name(slc_collect_kind kind)
{
    static const char *const names[] = {"barrier", "broadcast", "all_gather", "all_reduce", "call of all ranks"};
    return kind <= SLC_COLLECT_MEET ? names[kind] : "nonsense";
}

/* Writes "broadcast (8 bytes)", or the call that a rank brought, to `name`. */
static void name_call(int kind, uint64_t bytes, const void *text, char *name, size_t room)
{
    if (kind == SLC_COLLECT_MEET)
        snprintf(name, room, "%.*s", (int)(bytes < room ? bytes : room - 1), (const char *)text);
    else if (kind == SLC_COLLECT_BARRIER)
        snprintf(name, room, "barrier");
    else
        snprintf(name, room, "%s (%llu bytes)", slc_collect_name((slc_collect_kind)kind), (unsigned long long)bytes);
}

static void fail_mismatch(slc_control *control, const slc_socket *link)
{
    const slc_collect *own = control->collect;
    char here[256], there[256];
    name_call((int)own->kind, own->bytes, own->src, here, sizeof here);
    name_call(link->part.status, link->part.status == SLC_COLLECT_MEET ? link->part_data.used : link->part.value[0],
              link->part_data.data, there, sizeof there);
    slc_failure_set(control->failure, SLUICE_ERR_MISMATCH, SLC_TELL_FACT,
                    "rank %d called %s where rank 0 called %s: all ranks must make the same calls in the same order",
                    link->rank, there, here);
}

static bool agrees(const slc_collect *own, const slc_socket *link, size_t bytes)
{
    return link->part.status == (int)own->kind && link->part.root == own->root &&
           link->part.value[0] == (uint32_t)own->bytes && link->part.bytes == bytes &&
           (own->kind != SLC_COLLECT_MEET || !memcmp(link->part_data.data, own->src, bytes));
}

/* The number of bytes that `rank` brings. */
static size_t part_bytes(const slc_collect *collect, int rank)
{
    if (collect->kind == SLC_COLLECT_BARRIER) return 0;
    if (collect->kind == SLC_COLLECT_BROADCAST && rank != collect->root) return 0;
    return collect->bytes;
}

static const void *part_of(slc_control *control, int rank)
{
    return rank == 0 ? control->collect->src : control->links[rank - 1].part_data.data;
}

static bool add_sum(slc_control *control)
{
    const slc_collect *collect = control->collect;
    if (!slc_bytes_add(&control->scratch, collect->src, collect->bytes)) return false;
    double *sum = (double *)(void *)control->scratch.data; /* aligned, because the sum begins a buffer from malloc */
    for (int rank = 1; rank < control->size; rank++) {
        const char *part = part_of(control, rank);
        for (size_t i = 0; i < collect->bytes / sizeof *sum; i++) {
            double value;
            memcpy(&value, part + i * sizeof value, sizeof value);
            sum[i] += value;
        }
    }
    return true;
}

static bool make_result(slc_control *control)
{
    const slc_collect *collect = control->collect;
    bool fits = true;
    control->scratch.used = 0;
    switch (collect->kind) {
    case SLC_COLLECT_BARRIER:
    case SLC_COLLECT_MEET: break;
    case SLC_COLLECT_BROADCAST:
        fits = slc_bytes_add(&control->scratch, part_of(control, collect->root), collect->bytes);
        break;
    case SLC_COLLECT_GATHER:
        for (int rank = 0; fits && rank < control->size; rank++)
            fits = slc_bytes_add(&control->scratch, part_of(control, rank), collect->bytes);
        break;
    case SLC_COLLECT_SUM: fits = add_sum(control); break;
    }
    return fits;
}

static void finish(slc_control *control)
{
    slc_collect *collect = control->collect;
    if (control->scratch.used) memcpy(collect->dst, control->scratch.data, control->scratch.used);
    control->collect = NULL;
    control->collects++;
    control->collect_done = true;
}

/* Makes the result on rank 0 and sends it to all ranks, once every part is here. A part that differs fails the world at
 * once, before the others come. */
static void try_finish(slc_control *control)
{
    if (!control->collect || slc_failed(control->failure)) return;
    int missing = 0;
    for (int i = 0; i < control->link_count; i++) {
        const slc_socket *link = &control->links[i];
        missing += !link->has_part;
        if (!link->has_part || agrees(control->collect, link, part_bytes(control->collect, link->rank))) continue;
        fail_mismatch(control, link);
        return;
    }
    if (missing) return;
    if (!make_result(control)) {
        slc_failure_set(control->failure, SLUICE_ERR_MEMORY, SLC_TELL_OWN, "no memory for a small collective");
        return;
    }
    slc_frame frame = {.kind = SLC_FRAME_RESULT, .bytes = control->scratch.used};
    for (int i = 0; i < control->link_count; i++) {
        control->links[i].has_part = false;
        control->links[i].part_data.used = 0;
        slc_socket_send(control, &control->links[i], frame, control->scratch.data);
    }
    finish(control);
}

void slc_collect_begin(slc_control *control, slc_collect *collect)
{
    control->collect = collect;
    control->collect_done = false;
    if (control->rank == 0) {
        try_finish(control);
    } else {
        slc_frame frame = {.kind = SLC_FRAME_COLLECT,
                           .rank = control->rank,
                           .status = (int32_t)collect->kind,
                           .root = collect->root,
                           .value = {(uint32_t)collect->bytes},
                           .bytes = part_bytes(collect, control->rank)};
        slc_socket_send(control, &control->links[0], frame, collect->src);
    }
}

void slc_collect_part(slc_control *control, slc_socket *link, const slc_frame *frame, const char *data)
{
    if (control->rank != 0 || link->has_part) {
        slc_failure_set(control->failure, SLUICE_ERR_FORMAT, SLC_TELL_FACT, "rank %d sent two parts of one collective",
                        link->rank);
        return;
    }
    link->part = *frame;
    link->part_data.used = 0;
    link->has_part = slc_bytes_add(&link->part_data, data, frame->bytes);
    if (!link->has_part)
        slc_failure_set(control->failure, SLUICE_ERR_MEMORY, SLC_TELL_OWN, "no memory for a small collective");
    try_finish(control);
}

static size_t result_bytes(const slc_control *control, const slc_collect *collect)
{
    if (!collect || collect->kind == SLC_COLLECT_BARRIER || collect->kind == SLC_COLLECT_MEET) return 0;
    return collect->kind == SLC_COLLECT_GATHER ? collect->bytes * (size_t)control->size : collect->bytes;
}

void slc_collect_result(slc_control *control, const slc_frame *frame, const char *data)
{
    slc_collect *collect = control->collect;
    if (slc_failed(control->failure)) return; /* the caller no longer waits */
    size_t expected = result_bytes(control, collect);
    control->scratch.used = 0;
    if (!collect || frame->bytes != expected || !slc_bytes_add(&control->scratch, data, frame->bytes)) {
        slc_failure_set(control->failure, SLUICE_ERR_FORMAT, SLC_TELL_OWN, "rank 0 sent %llu bytes where %zu belong",
                        (unsigned long long)frame->bytes, expected);
        return;
    }
    finish(control);
}
