/* The watch proves that calls cannot meet; it does not guess. A rank in a small collective goes on only when all ranks
 * have brought their parts, and a rank that waits for an operation only when all ranks have begun it. If the first will
 * begin no further operation before it goes on, and the second needs one, neither ever goes on, whatever the others do.
 * As both stay where they are, it does not matter that heartbeats tell of different moments. Times decide only whether
 * a rank that does nothing of the sort is absent. */
#include "lib/comm/control/watch.h"

#include "lib/base/clock.h"
#include "lib/base/error_line.h"
#include "lib/base/log.h"
#include "lib/comm/control/stage_words.h"

#include <stdio.h>
#include <string.h>

void slc_watch_init(slc_watch *watch, uint64_t now_ns, double timeout_s)
{
    const double silence_s = 60, absence_s = 600;
    *watch = (slc_watch){.looked_ns = now_ns, .still_ns = now_ns, .moved_ns = now_ns};
    watch->silence_ns = (uint64_t)((timeout_s > 0 ? timeout_s : silence_s) * 1e9);
    watch->absence_ns = (uint64_t)((timeout_s > 0 ? timeout_s : absence_s) * 1e9);
    watch->working_ns = (uint64_t)((timeout_s > absence_s ? timeout_s : absence_s) * 1e9);
}

static const slc_doing *doing_of(const slc_control *control, int rank)
{
    return rank == 0 ? &control->doing : &control->links[rank - 1].doing;
}

static unsigned seconds(const slc_doing *doing)
{
    return (doing->still_ms + 500) / 1000;
}

/* True if the rank's part of the collective under way is here, so that the rank waits for the parts of others. */
static bool has_joined(const slc_control *control, int rank)
{
    const slc_doing *doing = doing_of(control, rank);
    if (doing->place != SLC_IN_COLLECTIVE || doing->collective != control->collects) return false;
    return rank == 0 ? control->collect != NULL : control->links[rank - 1].has_part;
}

/* Writes "rank 0: waits in ... for 3 s; ranks 1, 2: ...". Ranks that do the same are named together; a text that is too
 * long is cut. */
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
    char all[SLC_ERROR_BYTES - 128]; /* what stands around it is shorter */
    list_all(control, all, sizeof all);
    slc_failure_set(control->failure, SLUICE_ERR_MISMATCH, SLC_TELL_FACT, "%s: %s: all ranks must make the same calls",
                    what, all);
}

static bool waits_for_operations(const slc_doing *doing, const slc_doing *other)
{
    return doing->place == SLC_IN_OPERATIONS && other->halted && (int32_t)(doing->needed - other->begun) > 0;
}

/* True if one rank waits in a collective, and another one waits for an operation that the first has not begun and,
 * since it waits, never will. */
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

static bool waits_for_others(const slc_doing *doing)
{
    return doing->place != SLC_ELSEWHERE && doing->place != SLC_WORKING;
}

/* True if one rank waits in a group or channel for another one, which waits for nothing itself. Others may bring that
 * one on its way, so nothing is proved, and only time decides. */
static bool waits_for_transfer(const slc_doing *doing, int rank, const slc_doing *other)
{
    return doing->place == SLC_IN_TRANSFER && doing->missing == rank && !waits_for_others(other);
}

/* The rank that has waited longest for `rank`; -1: none waits for it. */
static int find_waiting(const slc_control *control, int rank)
{
    const slc_doing *doing = doing_of(control, rank);
    int longest = -1;
    for (int other = 0; other < control->size; other++) {
        const slc_doing *waiting = doing_of(control, other);
        if (other == rank || control->departures[other].left) continue;
        bool collects = doing->place != SLC_IN_OPERATIONS && !has_joined(control, rank) && has_joined(control, other);
        if (!collects && !waits_for_operations(waiting, doing) && !waits_for_transfer(waiting, rank, doing)) continue;
        if (longest < 0 || waiting->still_ms > doing_of(control, longest)->still_ms) longest = other;
    }
    return longest;
}

/* Judges whether a rank does nothing of what another one waits for, and for how long. True if that is worth a warning.
 */
static bool judge_absence(slc_control *control, int rank)
{
    const slc_watch *watch = &control->watch;
    const slc_doing *doing = doing_of(control, rank);
    int other = find_waiting(control, rank);
    const bool waits = (doing->place == SLC_IN_OPERATIONS && doing->lacks) || doing->place == SLC_IN_TRANSFER;
    if (other < 0 || waits) return false;
    const slc_doing *waiting = doing_of(control, other);
    uint64_t limit_ns = doing->place == SLC_WORKING ? watch->working_ns : watch->absence_ns;
    uint64_t both_ms = doing->still_ms < waiting->still_ms ? doing->still_ms : waiting->still_ms;
    const bool transfers = waiting->place == SLC_IN_TRANSFER;
    if (transfers && waiting->unmoved_ms < both_ms) both_ms = waiting->unmoved_ms;
    bool late = both_ms * 1000000u > limit_ns, loud = both_ms * 1000000u > watch->silence_ns;
    if (!late && (!loud || watch->warned)) return loud;
    char line[900];
    snprintf(line, sizeof line,
             transfers ? "rank %d%s is absent: rank %d %s for %u s, to which rank %d has not come; rank %d %s for %u s"
                       : "rank %d%s is absent: rank %d %s for %u s, which rank %d has not called; rank %d %s for %u s",
             rank, slc_stage_of(control, rank).text, other, waiting->text, seconds(waiting), rank, rank, doing->text,
             seconds(doing));
    if (late)
        slc_failure_set(control->failure, SLUICE_ERR_TIMEOUT, SLC_TELL_FACT, "%s (SLUICE_COMM_TIMEOUT)", line);
    else
        slc_log(SLC_LOG_WARN, "%s; that is an error after %.0f s", line, slc_seconds(limit_ns));
    return true;
}

static bool has_begun(const slc_control *control, int rank, uint32_t operation)
{
    return (int32_t)(doing_of(control, rank)->begun - operation) > 0;
}

static bool comes_before(const slc_doing *one, const slc_doing *other)
{
    const int32_t later = (int32_t)(one->operation - other->operation);
    return later < 0 || (!later && one->stage < other->stage);
}

/* While nothing moves, returns a rank that lacks a message which only the network between it and doing->peer can
 * withhold; -1: there is none. No rank lacks an earlier message, and all of them have begun its operation: if one
 * has not, the program's calls differ. */
static int find_cut(const slc_control *control)
{
    int first = -1;
    for (int rank = 0; rank < control->size; rank++) {
        const slc_doing *doing = doing_of(control, rank);
        if (control->departures[rank].left || !doing->lacks) continue;
        if (first < 0 || comes_before(doing, doing_of(control, first))) first = rank;
    }
    for (int rank = 0; first >= 0 && rank < control->size; rank++)
        if (!control->departures[rank].left && !has_begun(control, rank, doing_of(control, first)->operation))
            return -1;
    return first;
}

/* The line is short, since a network that loses large packets would lose a long one too. */
static void fail_with_cut(slc_control *control, int rank)
{
    const slc_doing *doing = doing_of(control, rank);
    slc_failure_set(control->failure, SLUICE_ERR_TIMEOUT, SLC_TELL_FACT,
                    "the network between rank %d and rank %d carries heartbeats, but no data for %u s "
                    "(SLUICE_COMM_TIMEOUT): does it lose large packets (MTU), or does a firewall cut connections? Rank "
                    "%d %.100s",
                    doing->peer, rank, (doing->unmoved_ms + 500) / 1000, rank, doing->text);
}

/* Fails the world if every rank waits and nothing moves: something was lost, or these checks forget a kind of wait. */
static void judge_standstill(slc_control *control)
{
    for (int rank = 0; rank < control->size; rank++) {
        const slc_doing *doing = doing_of(control, rank);
        if (control->departures[rank].left) continue;
        if (!waits_for_others(doing)) return;
        uint64_t both_ms = doing->still_ms < doing->unmoved_ms ? doing->still_ms : doing->unmoved_ms;
        if (both_ms * 1000000u <= control->watch.silence_ns) return;
    }
    const int cut = find_cut(control);
    if (cut >= 0)
        fail_with_cut(control, cut);
    else
        fail_with_list(control, "every rank waits and nothing moves (SLUICE_COMM_TIMEOUT)");
}

void slc_watch_judge(slc_control *control)
{
    if (control->rank != 0 || control->size == 1 || slc_failed(control->failure)) return;
    /* Crossed calls count when they are still crossed a heartbeat later, after all ranks have said where they are. */
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
