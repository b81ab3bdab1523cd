/* Heartbeats, deaths and leaves over the star of control connections. A rank whose connection ends without a goodbye is
 * dead; rank 0 sees that first and tells the others. */
#include "lib/comm/control/control.h"

#include "lib/base/clock.h"
#include "lib/base/integer.h"
#include "lib/base/log.h"
#include "lib/base/error_line.h"
#include "lib/base/status.h"
#include "lib/comm/control/collect.h"
#include "lib/comm/control/socket.h"
#include "lib/comm/control/stage_words.h"
#include "lib/comm/control/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const uint64_t beat_period_ns = 500000000u, silence_ns = 2000000000u;
enum { READ_BYTES = 65536, NOTE_BYTES = 4096 };
static const size_t largest_frame = SLC_COLLECT_BYTES_MAX + NOTE_BYTES;

sluice_status slc_control_init(slc_control *control, slc_rendezvous *rendezvous, slc_failure *failure, double timeout_s)
{
    *control = (slc_control){.rank = rendezvous->rank, .size = rendezvous->size, .failure = failure, .reporter = -1};
    control->link_count = control->size == 1 ? 0 : control->rank == 0 ? control->size - 1 : 1;
    control->links = calloc((size_t)control->link_count + 1, sizeof *control->links);
    control->departures = calloc((size_t)control->size, sizeof *control->departures);
    if (!control->links || !control->departures) return slc_error(SLUICE_ERR_MEMORY, "%d ranks", control->size);
    control->step_ns = slc_clock_ns();
    slc_watch_init(&control->watch, control->step_ns, timeout_s);
    for (int i = 0; i < control->link_count; i++) {
        int rank = control->rank == 0 ? i + 1 : 0;
        control->links[i] = (slc_socket){.fd = rendezvous->fds[rank], .rank = rank, .heard_ns = control->step_ns};
        rendezvous->fds[rank] = -1;
    }
    return SLUICE_OK;
}

void slc_control_fini(slc_control *control)
{
    for (int i = 0; control->links && i < control->link_count; i++) {
        slc_socket *link = &control->links[i];
        slc_socket_close(link);
        free(link->in.data);
        free(link->out.data);
        free(link->part_data.data);
    }
    for (int rank = 0; control->departures && rank < control->size; rank++) free(control->departures[rank].words);
    free(control->links);
    free(control->departures);
    free(control->scratch.data);
    *control = (slc_control){0};
}

void slc_control_fail_left(slc_control *control, int rank, const char *while_what)
{
    const char *words = control->departures[rank].words;
    if (words && control->departures[rank].code && !slc_failed(control->failure)) control->reporter = rank;
    slc_failure_set(control->failure, SLUICE_ERR_PEER, SLC_TELL_FACT, "rank %d%s left while %s%s%s", rank,
                    slc_stage_of(control, rank).text, while_what, words ? "; its last error: " : "",
                    words ? words : "");
}

/* Fails the world if the collective in course needs a rank that has left. */
static void check_collect(slc_control *control)
{
    if (!control->collect) return;
    for (int rank = 0; rank < control->size; rank++) {
        const slc_departure *gone = &control->departures[rank];
        if (!gone->left || (int32_t)(gone->collectives - control->collects) > 0) continue;
        char what[64];
        snprintf(what, sizeof what, "others were in a %s", slc_collect_name(control->collect->kind));
        slc_control_fail_left(control, rank, what);
        return;
    }
}

void slc_control_collect(slc_control *control, slc_collect *collect)
{
    slc_collect_begin(control, collect);
    check_collect(control);
}

static void on_leave(slc_control *control, slc_socket *link, const slc_frame *frame, const char *data)
{
    int rank = control->rank == 0 ? link->rank : frame->rank;
    if (rank < 0 || rank >= control->size || control->departures[rank].left) return;
    char *words = frame->bytes ? strndup(data, frame->bytes) : NULL; /* if there is no memory, its words are lost */
    control->departures[rank] =
        (slc_departure){true, frame->value[0], frame->value[1], words, frame->root, slc_clock_ns()};
    for (int i = 0; control->rank == 0 && i < control->link_count; i++) {
        slc_frame relay = *frame;
        relay.rank = rank;
        if (&control->links[i] != link) slc_socket_send(control, &control->links[i], relay, data);
    }
    link->left |= rank == link->rank;
    if (link->left && rank == 0) slc_socket_close(link);
    check_collect(control);
}

static void on_fail(slc_control *control, const slc_frame *frame, const char *data)
{
    char line[SLC_ERROR_BYTES];
    snprintf(line, sizeof line, "%.*s", (int)slc_least(frame->bytes, sizeof line - 1), data);
    slc_tell tell = control->rank == 0 ? SLC_TELL_FACT : SLC_TELL_NOBODY; /* rank 0 passes it on */
    if (!slc_failed(control->failure)) control->reporter = frame->rank < 0 ? frame->root : frame->rank;
    if (frame->rank < 0)
        slc_failure_set(control->failure, (sluice_status)frame->status, tell, "%s", line);
    else
        slc_failure_set(control->failure, SLUICE_ERR_PEER, tell, "rank %d%s failed: %s", frame->rank,
                        slc_stage_of(control, frame->rank).text, line);
}

static void take_doing(slc_socket *link, const slc_frame *frame, const char *data)
{
    if (frame->bytes < SLC_DOING_NUMBERS || frame->bytes >= sizeof link->doing) return;
    memcpy(&link->doing, data, frame->bytes);
    ((char *)&link->doing)[frame->bytes] = '\0'; /* ends its text */
}

static void dispatch(slc_control *control, slc_socket *link, const slc_frame *frame, const char *data)
{
    if (control->leaving && frame->kind != SLC_FRAME_LEAVE) return;
    switch (frame->kind) {
    case SLC_FRAME_BEAT:
        link->said_count = frame->value[0];
        link->said_digest = frame->value[1];
        take_doing(link, frame, data);
        break;
    case SLC_FRAME_COLLECT: slc_collect_part(control, link, frame, data); break;
    case SLC_FRAME_RESULT: slc_collect_result(control, frame, data); break;
    case SLC_FRAME_LEAVE: on_leave(control, link, frame, data); break;
    case SLC_FRAME_FAIL: on_fail(control, frame, data); break;
    default:
        slc_failure_set(control->failure, SLUICE_ERR_FORMAT, SLC_TELL_FACT,
                        "rank %d sent a control message of unknown kind %u", link->rank, frame->kind);
    }
}

/* Acts on the whole frames among the bytes that were read. */
static void parse_frames(slc_control *control, slc_socket *link)
{
    size_t at = 0;
    while (link->in.used - at >= sizeof(slc_frame)) {
        slc_frame frame;
        memcpy(&frame, link->in.data + at, sizeof frame);
        if (frame.bytes > largest_frame) {
            slc_failure_set(control->failure, SLUICE_ERR_FORMAT, SLC_TELL_FACT,
                            "rank %d sent a control message of %llu bytes", link->rank,
                            (unsigned long long)frame.bytes);
            slc_socket_close(link);
            break;
        }
        if (link->in.used - at < sizeof frame + frame.bytes) break;
        dispatch(control, link, &frame, link->in.data + at + sizeof frame);
        at += sizeof frame + frame.bytes;
    }
    if (!at) return;
    link->in.used -= at;
    memmove(link->in.data, link->in.data + at, link->in.used);
}

static bool read_link(slc_control *control, slc_socket *link, uint64_t now_ns)
{
    bool received = false;
    while (link->fd >= 0 && !link->deaf) {
        if (!slc_bytes_reserve(&link->in, link->in.used + READ_BYTES)) {
            link->deaf = true; /* polled further, the unread bytes would end every sleep at once */
            slc_failure_set(control->failure, SLUICE_ERR_MEMORY, SLC_TELL_OWN,
                            "no memory for what rank %d sends (%zu bytes so far)", link->rank, link->in.used);
            return received;
        }
        ssize_t got = recv(link->fd, link->in.data + link->in.used, READ_BYTES, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) {
            slc_socket_lose(control, link, got < 0 ? errno : 0);
            return true;
        }
        link->in.used += (size_t)got;
        link->heard_ns = now_ns;
        received = true;
        parse_frames(control, link);
        if (got < READ_BYTES) break;
    }
    return received;
}

static void watch_silence(slc_control *control, slc_socket *link, uint64_t now_ns)
{
    if (link->fd < 0 || link->deaf || link->left) return;
    uint64_t silent = now_ns - link->heard_ns;
    if (silent <= silence_ns) {
        if (link->stalled)
            slc_log(SLC_LOG_WARN, "rank %d%s is back", link->rank, slc_stage_of(control, link->rank).text);
        link->stalled = false;
        return;
    }
    if (!link->stalled)
        slc_log(SLC_LOG_WARN, "rank %d%s stalled: no sign of life for %.0f s", link->rank,
                slc_stage_of(control, link->rank).text, slc_seconds(silent));
    link->stalled = true;
    if (silent > control->watch.silence_ns)
        slc_failure_set(control->failure, SLUICE_ERR_TIMEOUT, SLC_TELL_FACT,
                        "rank %d%s stalled: no sign of life for %.0f s (SLUICE_COMM_TIMEOUT)", link->rank,
                        slc_stage_of(control, link->rank).text, slc_seconds(silent));
}

static slc_frame make_beat(const slc_control *control)
{
    const slc_history *history = &control->history;
    uint32_t digest = history->count ? history->digests[(history->count - 1) % SLC_HISTORY] : 0;
    size_t doing = control->rank == 0 ? 0 : SLC_DOING_NUMBERS + strlen(control->doing.text);
    return (slc_frame){.kind = SLC_FRAME_BEAT, .value = {history->count, digest}, .bytes = doing};
}

/* Compares, once a beat, the operations that the other rank began with this rank's. The rank that is ahead sees a
 * difference. */
static void compare_history(slc_control *control, const slc_socket *link)
{
    const slc_history *history = &control->history;
    uint32_t behind = history->count - link->said_count;
    if (!link->said_count || behind >= SLC_HISTORY) return;
    if (history->digests[(link->said_count - 1) % SLC_HISTORY] == link->said_digest) return;
    slc_failure_set(
        control->failure, SLUICE_ERR_MISMATCH, SLC_TELL_FACT,
        "rank %d and rank %d submitted different operations, number %u or one shortly before it: submit the "
        "same ones in the same order on every rank",
        link->rank, control->rank, link->said_count - 1);
}

bool slc_control_beats(const slc_control *control, uint64_t now_ns)
{
    return now_ns - control->beat_ns >= beat_period_ns;
}

bool slc_control_step(slc_control *control, uint64_t now_ns)
{
    bool received = false;
    /* If this process was stopped itself, the time that it did not see does not count against the others. */
    uint64_t gap = now_ns - control->step_ns;
    if (gap > silence_ns)
        for (int i = 0; i < control->link_count; i++) control->links[i].heard_ns += gap;
    control->step_ns = now_ns;

    bool beat = slc_control_beats(control, now_ns);
    if (beat) control->beat_ns = now_ns;
    for (int i = 0; i < control->link_count; i++) {
        slc_socket *link = &control->links[i];
        if (link->fd < 0) continue;
        received |= read_link(control, link, now_ns);
        if (beat) slc_socket_send(control, link, make_beat(control), &control->doing);
        if (beat) compare_history(control, link);
        slc_socket_flush(control, link);
        watch_silence(control, link, now_ns);
    }
    return received;
}

int slc_control_polls(const slc_control *control, struct pollfd *polls)
{
    int count = 0;
    for (int i = 0; i < control->link_count; i++) {
        const slc_socket *link = &control->links[i];
        if (link->fd < 0 || link->deaf) continue;
        short events = POLLIN | (link->out_at < link->out.used ? POLLOUT : 0);
        polls[count++] = (struct pollfd){.fd = link->fd, .events = events};
    }
    return count;
}

uint64_t slc_control_due(const slc_control *control)
{
    return control->link_count ? control->beat_ns + beat_period_ns : UINT64_MAX;
}

void slc_control_tell(slc_control *control)
{
    slc_tell tell = control->failure->tell;
    if (control->told) return;
    control->told = true;
    if (tell == SLC_TELL_NOBODY) return;
    slc_frame frame = {.kind = SLC_FRAME_FAIL,
                       .status = atomic_load(&control->failure->status),
                       .rank = tell == SLC_TELL_OWN ? control->rank : -1,
                       .root = control->reporter,
                       .bytes = strlen(control->failure->line)};
    for (int i = 0; i < control->link_count; i++)
        slc_socket_send(control, &control->links[i], frame, control->failure->line);
}

static int open_links(const slc_control *control)
{
    int open = 0;
    for (int i = 0; i < control->link_count; i++) open += control->links[i].fd >= 0;
    return open;
}

/* True while the rank that reported the failure may still say something that arrives here. */
static bool reporter_is_heard(const slc_control *control)
{
    if (control->departures[control->reporter].left) return false;
    return control->links[control->rank == 0 ? control->reporter - 1 : 0].fd >= 0;
}

void slc_control_hear_reporter(slc_control *control, uint64_t patience_ns)
{
    const uint64_t deadline_ns = slc_clock_ns() + patience_ns;
    for (uint64_t now; reporter_is_heard(control) && (now = slc_clock_ns()) < deadline_ns;) {
        slc_socket *link = &control->links[control->rank == 0 ? control->reporter - 1 : 0];
        slc_control_step(control, now);
        struct pollfd entry = {.fd = link->fd, .events = POLLIN};
        if (reporter_is_heard(control)) poll(&entry, 1, 20);
    }
}

/* Reads what still comes, so that closing does not reset a connection while this rank's last words are on their way. */
static void drain(slc_control *control, uint64_t deadline_ns)
{
    control->leaving = true;
    for (uint64_t now; open_links(control) && (now = slc_clock_ns()) < deadline_ns;) {
        struct pollfd polls[64];
        int count = 0;
        for (int i = 0; i < control->link_count; i++) {
            slc_socket *link = &control->links[i];
            read_link(control, link, now);
            if (link->deaf) slc_socket_close(link);
            if (link->fd >= 0 && count < 64) polls[count++] = (struct pollfd){.fd = link->fd, .events = POLLIN};
        }
        if (count) poll(polls, (nfds_t)count, 20);
    }
}

/* Writes until everything is written, or the other end has taken nothing for `patience_ns`. */
static void flush_patiently(slc_control *control, slc_socket *link, uint64_t patience_ns)
{
    uint64_t moved_ns = slc_clock_ns();
    while (link->fd >= 0 && link->out_at < link->out.used && slc_clock_ns() - moved_ns < patience_ns) {
        size_t before = link->out_at;
        struct pollfd entry = {.fd = link->fd, .events = POLLOUT};
        if (poll(&entry, 1, 10) > 0 && (entry.revents & (POLLERR | POLLHUP))) return;
        slc_socket_flush(control, link);
        if (link->out_at != before) moved_ns = slc_clock_ns();
    }
}

void slc_control_goodbye(slc_control *control, uint32_t operations, const char *last_words, int code)
{
    bool failed = slc_failed(control->failure);
    slc_frame goodbye = {.kind = SLC_FRAME_LEAVE,
                         .rank = control->rank,
                         .root = code,
                         .value = {operations, control->collects},
                         .bytes = strlen(last_words)};
    for (int i = 0; i < control->link_count; i++) {
        if (!failed || code) slc_socket_send(control, &control->links[i], goodbye, last_words);
        flush_patiently(control, &control->links[i], failed ? silence_ns / 20 : silence_ns);
    }
}

void slc_control_leave(slc_control *control, uint64_t patience_ns)
{
    for (int i = 0; i < control->link_count; i++)
        if (control->links[i].fd >= 0 && (control->rank == 0 || !control->listens))
            shutdown(control->links[i].fd, SHUT_WR);
    drain(control, slc_clock_ns() + patience_ns);
}
