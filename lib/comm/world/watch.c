/* Nothing here is a guess where calls cannot meet: a rank in a small collective goes on only when all ranks have
 * brought their parts, and one that waits for an operation only when all ranks have begun it. If the first will begin
 * no further operation before it goes on, and the second needs one, neither ever will, whatever the others do. As both
 * stay where they are, it does not matter that heartbeats tell of different moments. Times decide only whether a rank
 * that does nothing of the sort is absent. */
#include "lib/comm/world/watch.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/comm/world/world.h"

#include <stdio.h>
#include <string.h>

static const uint64_t stopped_ns = 2000000000u; /* a longer gap between two looks: this process was stopped */

void slc_watch_init(slc_watch *watch, uint64_t now_ns, double timeout_s)
{
    const double silence_s = 60, absence_s = 600;
    *watch = (slc_watch){.looked_ns = now_ns, .still_ns = now_ns, .moved_ns = now_ns};
    watch->silence_ns = (uint64_t)((timeout_s > 0 ? timeout_s : silence_s) * 1e9);
    watch->absence_ns = (uint64_t)((timeout_s > 0 ? timeout_s : absence_s) * 1e9);
    watch->working_ns = (uint64_t)((timeout_s > absence_s ? timeout_s : absence_s) * 1e9);
}

/* ---- What this rank is doing ---- */

static uint64_t mix(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * 0x9e3779b97f4a7c15u;
}

/* Changes with everything that the program does. */
static uint64_t digest_program(sluice_world *world, slc_place place)
{
    slc_comm *comm = &world->comm;
    uint64_t digest = mix(1, (uint64_t)place);
    digest = mix(digest, atomic_load_explicit(&comm->calls, memory_order_relaxed));
    digest = mix(digest, atomic_load_explicit(&comm->submitted, memory_order_relaxed));
    digest = mix(digest, atomic_load_explicit(&comm->wanted, memory_order_relaxed));
    return mix(digest, atomic_load_explicit(&world->collects_asked, memory_order_relaxed));
}

static uint64_t digest_operations(const sluice_world *world)
{
    const slc_comm *comm = &world->comm;
    uint64_t digest = mix(mix(mix(1, comm->taken), comm->first), world->transport_events);
    for (uint32_t i = comm->first; i != comm->taken; i++) {
        const slc_active_op *run = &comm->runs[i % SLC_ACTIVE];
        digest = mix(mix(mix(digest, run->block), run->offset), (uint64_t)run->step);
    }
    return digest;
}

/* A network that is imitated holds back what will come for sure. */
static bool is_held_back(const sluice_world *world, uint64_t now_ns)
{
    const slc_transport *transport = &world->transport;
    uint64_t due = slc_lane_due(&world->comm);
    if (transport->table && transport->table->timer) {
        uint64_t timer = transport->table->timer(transport->self);
        if (timer < due) due = timer;
    }
    return due != UINT64_MAX && due > now_ns;
}

static slc_place find_place(sluice_world *world)
{
    slc_comm *comm = &world->comm;
    uint32_t wanted = atomic_load(&comm->wanted);
    if (world->control.collect) return SLC_IN_COLLECTIVE;
    if (atomic_load(&comm->waiting) && !slc_gate_passed(&comm->completed, wanted)) return SLC_IN_OPERATIONS;
    return atomic_load_explicit(&comm->work, memory_order_acquire) ? SLC_WORKING : SLC_ELSEWHERE;
}

/* Is the thread that waits the one that makes the calls of either kind? Another one might still go on. */
static bool is_one_thread(sluice_world *world, slc_place place)
{
    uint64_t collects = atomic_load(&world->collector), submits = atomic_load(&world->comm.submitter);
    uint64_t waits = place == SLC_IN_COLLECTIVE ? collects : atomic_load(&world->comm.waiter);
    return waits && (!collects || waits == collects) && (!submits || waits == submits);
}

/* "waits in param_read of \"h.0.w\"": what is not of the call itself follows it. */
static void describe(sluice_world *world, slc_place place, char *text, size_t bytes)
{
    slc_comm *comm = &world->comm;
    pthread_mutex_lock(&comm->names); /* while they are read, they are not freed */
    const char *call = atomic_load_explicit(&comm->call, memory_order_acquire);
    const char *object = atomic_load_explicit(&comm->object, memory_order_acquire);
    const char *work = atomic_load_explicit(&comm->work, memory_order_acquire);
    char last[120];
    snprintf(last, sizeof last, "%s%s%s%s", call ? call : "world_create", object ? " of \"" : "", object ? object : "",
             object ? "\"" : "");
    const char *operation = slc_lane_next_name(comm);
    switch (place) {
    case SLC_IN_COLLECTIVE:
        if (world->control.collect->kind == SLC_COLLECT_MEET)
            snprintf(text, bytes, "waits in %s", (const char *)world->control.collect->src);
        else
            snprintf(text, bytes, "waits in %s (last call: %s)", slc_collect_name(world->control.collect->kind), last);
        break;
    case SLC_IN_OPERATIONS:
        snprintf(text, bytes, "waits in %s for %s", last, operation ? operation : "an operation");
        break;
    case SLC_WORKING: snprintf(text, bytes, "is %s in %s", work ? work : "working", last); break;
    case SLC_ELSEWHERE: snprintf(text, bytes, "waits in no call (its last: %s)", last); break;
    }
    pthread_mutex_unlock(&comm->names);
}

void slc_watch_note(sluice_world *world, uint64_t now_ns)
{
    slc_control *control = &world->control;
    slc_watch *watch = &control->watch;
    slc_doing *doing = &control->doing;
    if (control->size == 1 || slc_failed(&world->failure)) return;
    const slc_place place = find_place(world);
    const uint64_t program = digest_program(world, place), operations = digest_operations(world);
    const uint64_t gap = now_ns - watch->looked_ns;
    watch->looked_ns = now_ns;
    if (gap > stopped_ns) {
        watch->still_ns += gap;
        watch->moved_ns += gap;
    }
    if (program != watch->program) watch->still_ns = now_ns;
    if (operations != watch->operations || is_held_back(world, now_ns)) watch->moved_ns = now_ns;
    watch->program = program;
    watch->operations = operations;

    *doing = (slc_doing){.place = place,
                         .collective = control->collects,
                         .begun = control->history.count,
                         .halted = slc_lane_halted(&world->comm),
                         .one_thread = is_one_thread(world, place),
                         .still_ms = (uint32_t)((now_ns - watch->still_ns) / 1000000u),
                         .unmoved_ms = (uint32_t)((now_ns - watch->moved_ns) / 1000000u)};
    if (place == SLC_IN_OPERATIONS) doing->needed = slc_lane_needed(&world->comm, atomic_load(&world->comm.wanted));
    describe(world, place, doing->text, sizeof doing->text);
}

/* ---- Rank 0 judges ---- */

static const slc_doing *doing_of(const slc_control *control, int rank)
{
    return rank == 0 ? &control->doing : &control->links[rank - 1].doing;
}

static unsigned seconds(const slc_doing *doing)
{
    return (doing->still_ms + 500) / 1000;
}

/* Its part of the collective in course is here, and so it waits for the others'. */
static bool has_joined(const slc_control *control, int rank)
{
    const slc_doing *doing = doing_of(control, rank);
    if (doing->place != SLC_IN_COLLECTIVE || doing->collective != control->collects) return false;
    return rank == 0 ? control->collect != NULL : control->links[rank - 1].has_part;
}

/* "rank 0 waits in ... for 3 s; ranks 1, 2 wait ...". Ranks that do the same share a place; what is too long ends. */
static void list_all(const slc_control *control, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int rank = 0; rank < control->size && used + 1 < bytes; rank++) {
        const slc_doing *doing = doing_of(control, rank);
        int same = 0, earlier = 0;
        for (int other = 0; other < control->size; other++) {
            bool equal = !strcmp(doing_of(control, other)->text, doing->text);
            earlier += equal && other < rank;
            same += equal;
        }
        if (earlier || control->departures[rank].left) continue;
        int more = snprintf(text + used, bytes - used, "%srank%s %d", used ? "; " : "", same > 1 ? "s" : "", rank);
        used += more > 0 ? (size_t)more : 0;
        int listed = 1;
        for (int other = rank + 1; other < control->size && used + 1 < bytes && listed < 8; other++) {
            if (strcmp(doing_of(control, other)->text, doing->text)) continue;
            more = snprintf(text + used, bytes - used, ", %d", other);
            used += more > 0 ? (size_t)more : 0;
            listed++;
        }
        if (used + 1 >= bytes) return;
        more = snprintf(text + used, bytes - used, "%s: %s for %u s", listed < same ? ", ..." : "", doing->text,
                        seconds(doing));
        used += more > 0 ? (size_t)more : 0;
    }
}

static void fail_with_list(slc_control *control, const char *what)
{
    char all[880];
    list_all(control, all, sizeof all);
    slc_failure_set(control->failure, SLUICE_ERR_MISMATCH, SLC_TELL_FACT, "%s: %s: all ranks must make the same calls",
                    what, all);
}

static bool waits_for_operations(const slc_doing *doing, const slc_doing *other)
{
    return doing->place == SLC_IN_OPERATIONS && other->halted && (int32_t)(doing->needed - other->begun) > 0;
}

/* One rank in a collective, and one that needs an operation which the first has not begun and will not begin. */
static bool calls_are_crossed(const slc_control *control)
{
    const slc_doing *first = NULL;
    for (int rank = 0; rank < control->size; rank++) {
        const slc_doing *doing = doing_of(control, rank);
        if (!has_joined(control, rank) || !doing->halted || !doing->one_thread) continue;
        if (!first || (int32_t)(doing->begun - first->begun) < 0) first = doing;
    }
    for (int rank = 0; first && rank < control->size; rank++) {
        const slc_doing *doing = doing_of(control, rank);
        if (control->departures[rank].left || !doing->one_thread || !waits_for_operations(doing, first)) continue;
        return true;
    }
    return false;
}

/* The rank that has waited longest for `rank`; -1: none has. */
static int find_waiting(const slc_control *control, int rank)
{
    const slc_doing *doing = doing_of(control, rank);
    int longest = -1;
    for (int other = 0; other < control->size; other++) {
        const slc_doing *waiting = doing_of(control, other);
        if (other == rank || control->departures[other].left) continue;
        bool collects = doing->place != SLC_IN_OPERATIONS && !has_joined(control, rank) && has_joined(control, other);
        if (!collects && !waits_for_operations(waiting, doing)) continue;
        if (longest < 0 || waiting->still_ms > doing_of(control, longest)->still_ms) longest = other;
    }
    return longest;
}

/* Does this rank do nothing of what another one waits for, and for how long? True if that is worth a warning. */
static bool judge_absence(slc_control *control, int rank)
{
    const slc_watch *watch = &control->watch;
    const slc_doing *doing = doing_of(control, rank);
    int other = find_waiting(control, rank);
    if (other < 0) return false;
    const slc_doing *waiting = doing_of(control, other);
    uint64_t limit_ns = doing->place == SLC_WORKING ? watch->working_ns : watch->absence_ns;
    uint64_t both_ms = doing->still_ms < waiting->still_ms ? doing->still_ms : waiting->still_ms;
    bool late = both_ms * 1000000u > limit_ns, loud = both_ms * 1000000u > watch->silence_ns;
    if (!late && (!loud || watch->warned)) return loud;
    char line[900];
    snprintf(line, sizeof line,
             "rank %d is absent: rank %d %s for %u s, which rank %d has not called; rank %d %s for "
             "%u s",
             rank, other, waiting->text, seconds(waiting), rank, rank, doing->text, seconds(doing));
    if (late)
        slc_failure_set(control->failure, SLUICE_ERR_TIMEOUT, SLC_TELL_FACT, "%s (SLUICE_COMM_TIMEOUT)", line);
    else
        slc_log(SLC_LOG_WARN, "%s; that is an error after %.0f s", line, slc_seconds(limit_ns));
    return true;
}

/* Everybody waits and nothing moves: something was lost, or a wait forgotten here. */
static void judge_standstill(slc_control *control)
{
    for (int rank = 0; rank < control->size; rank++) {
        const slc_doing *doing = doing_of(control, rank);
        if (control->departures[rank].left) continue;
        if (doing->place != SLC_IN_COLLECTIVE && doing->place != SLC_IN_OPERATIONS) return;
        uint64_t both_ms = doing->still_ms < doing->unmoved_ms ? doing->still_ms : doing->unmoved_ms;
        if (both_ms * 1000000u <= control->watch.silence_ns) return;
    }
    fail_with_list(control, "every rank waits and nothing moves (SLUICE_COMM_TIMEOUT)");
}

void slc_watch_judge(slc_control *control)
{
    if (control->rank != 0 || control->size == 1 || slc_failed(control->failure)) return;
    /* A heartbeat later all ranks have said where they are, and this has not changed. */
    bool crossed = calls_are_crossed(control), before = control->watch.crossed;
    control->watch.crossed = crossed;
    if (crossed && before) fail_with_list(control, "calls that cannot meet");
    if (crossed) return;
    bool absent = false;
    for (int rank = 0; rank < control->size && !slc_failed(control->failure); rank++)
        if (!control->departures[rank].left) absent |= judge_absence(control, rank);
    control->watch.warned = absent;
    if (!slc_failed(control->failure)) judge_standstill(control);
}
