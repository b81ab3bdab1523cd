/* Heartbeats, deaths and leaves over the star of control connections. A rank whose connection ends without a goodbye is
 * dead; rank 0 sees it first and tells the others. */
#include "lib/comm/world/control.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint64_t beat_period_ns = 500000000u, silence_ns = 2000000000u, linger_ns = 1000000000u;
enum { READ_BYTES = 65536, NOTE_BYTES = 4096 };
static const size_t largest_frame = SLC_COLLECT_BYTES_MAX + NOTE_BYTES;

static bool reserve(slc_bytes *bytes, size_t capacity)
{
    if (capacity <= bytes->capacity) return true;
    size_t grown = bytes->capacity ? bytes->capacity : READ_BYTES;
    while (grown < capacity) grown *= 2;
    char *data = realloc(bytes->data, grown);
    if (!data) return false;
    bytes->data = data;
    bytes->capacity = grown;
    return true;
}

bool slc_bytes_add(slc_bytes *bytes, const void *data, size_t count)
{
    if (!reserve(bytes, bytes->used + count)) return false;
    if (data && count) memcpy(bytes->data + bytes->used, data, count);
    bytes->used += count;
    return true;
}

sluice_status slc_control_init(slc_control *control, slc_rendezvous *rendezvous, slc_failure *failure, double timeout_s)
{
    *control = (slc_control){.rank = rendezvous->rank, .size = rendezvous->size, .failure = failure};
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

static void close_link(slc_socket *link)
{
    int fd = link->fd;
    link->fd = -1; /* before the number can mean something else to a process that is forked now */
    if (fd >= 0) close(fd);
}

void slc_control_fini(slc_control *control)
{
    for (int i = 0; control->links && i < control->link_count; i++) {
        slc_socket *link = &control->links[i];
        close_link(link);
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

/* The connection ended without a goodbye. */
static void lose(slc_control *control, slc_socket *link, int error)
{
    close_link(link);
    if (error == ETIMEDOUT)
        slc_failure_set(control->failure, SLUICE_ERR_PEER, SLC_TELL_FACT, "rank %d is gone: its host does not answer",
                        link->rank);
    else
        slc_failure_set(control->failure, SLUICE_ERR_PEER, SLC_TELL_FACT, "rank %d died: its connection was closed",
                        link->rank);
}

static void flush_link(slc_control *control, slc_socket *link)
{
    while (link->fd >= 0 && link->out_at < link->out.used) {
        ssize_t sent =
            send(link->fd, link->out.data + link->out_at, link->out.used - link->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            link->out_at += (size_t)sent;
        else if (errno == EAGAIN)
            return;
        else if (errno == EPIPE || errno == ECONNRESET)
            return; /* what it said last may still be unread: reading finds out */
        else if (errno != EINTR)
            lose(control, link, errno);
    }
    link->out.used = link->out_at = 0;
}

void slc_socket_send(slc_control *control, slc_socket *link, slc_frame frame, const void *data)
{
    if (link->fd < 0) return;
    if (!slc_bytes_add(&link->out, &frame, sizeof frame) || !slc_bytes_add(&link->out, data, frame.bytes)) {
        slc_failure_set(control->failure, SLUICE_ERR_MEMORY, SLC_TELL_NOBODY, "no memory for a control message");
        close_link(link);
        return;
    }
    flush_link(control, link);
}

static void on_leave(slc_control *control, slc_socket *link, const slc_frame *frame, const char *data)
{
    int rank = control->rank == 0 ? link->rank : frame->rank;
    if (rank < 0 || rank >= control->size || control->departures[rank].left) return;
    char *words = frame->bytes ? strndup(data, frame->bytes) : NULL; /* without memory it leaves without a word */
    control->departures[rank] = (slc_departure){true, frame->value[0], frame->value[1], words};
    for (int i = 0; control->rank == 0 && i < control->link_count; i++) {
        slc_frame relay = *frame;
        relay.rank = rank;
        if (&control->links[i] != link) slc_socket_send(control, &control->links[i], relay, data);
    }
    if (rank == link->rank) close_link(link);
    slc_collect_check(control);
}

void slc_control_fail_left(slc_control *control, int rank, const char *while_what)
{
    const char *words = control->departures[rank].words;
    slc_failure_set(control->failure, SLUICE_ERR_PEER, SLC_TELL_FACT, "rank %d left while %s%s%s", rank, while_what,
                    words ? "; its last error: " : "", words ? words : "");
}

static void on_fail(slc_control *control, const slc_frame *frame, const char *data)
{
    char line[1024];
    snprintf(line, sizeof line, "%.*s", (int)(frame->bytes < 900 ? frame->bytes : 900), data);
    slc_tell tell = control->rank == 0 ? SLC_TELL_FACT : SLC_TELL_NOBODY; /* rank 0 passes it on */
    if (frame->rank < 0)
        slc_failure_set(control->failure, (sluice_status)frame->status, tell, "%s", line);
    else
        slc_failure_set(control->failure, SLUICE_ERR_PEER, tell, "rank %d failed: %s", frame->rank, line);
}

static void take_doing(slc_socket *link, const slc_frame *frame, const char *data)
{
    if (frame->bytes < SLC_DOING_NUMBERS || frame->bytes >= sizeof link->doing) return;
    memcpy(&link->doing, data, frame->bytes);
    ((char *)&link->doing)[frame->bytes] = '\0'; /* behind its text */
}

static void dispatch(slc_control *control, slc_socket *link, const slc_frame *frame, const char *data)
{
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

/* Hands out the whole frames of what was read. */
static void parse(slc_control *control, slc_socket *link)
{
    size_t at = 0;
    while (link->in.used - at >= sizeof(slc_frame)) {
        slc_frame frame;
        memcpy(&frame, link->in.data + at, sizeof frame);
        if (frame.bytes > largest_frame) {
            slc_failure_set(control->failure, SLUICE_ERR_FORMAT, SLC_TELL_FACT,
                            "rank %d sent a control message of %llu bytes", link->rank,
                            (unsigned long long)frame.bytes);
            close_link(link);
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
        if (!reserve(&link->in, link->in.used + READ_BYTES)) {
            link->deaf = true; /* what lies there unread would end every sleep at once */
            slc_failure_set(control->failure, SLUICE_ERR_MEMORY, SLC_TELL_OWN,
                            "no memory for what rank %d sends (%zu bytes so far)", link->rank, link->in.used);
            return received;
        }
        ssize_t got = recv(link->fd, link->in.data + link->in.used, READ_BYTES, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) {
            lose(control, link, got < 0 ? errno : 0);
            return true;
        }
        link->in.used += (size_t)got;
        link->heard_ns = now_ns;
        received = true;
        parse(control, link);
        if (got < READ_BYTES) break;
    }
    return received;
}

static void watch_silence(slc_control *control, slc_socket *link, uint64_t now_ns)
{
    if (link->fd < 0 || link->deaf) return;
    uint64_t silent = now_ns - link->heard_ns;
    if (silent <= silence_ns) {
        if (link->stalled) slc_log(SLC_LOG_WARN, "rank %d is back", link->rank);
        link->stalled = false;
        return;
    }
    if (!link->stalled)
        slc_log(SLC_LOG_WARN, "rank %d stalled: no sign of life for %.0f s", link->rank, slc_seconds(silent));
    link->stalled = true;
    if (silent > control->watch.silence_ns)
        slc_failure_set(control->failure, SLUICE_ERR_TIMEOUT, SLC_TELL_FACT,
                        "rank %d stalled: no sign of life for %.0f s (SLUICE_COMM_TIMEOUT)", link->rank,
                        slc_seconds(silent));
}

static slc_frame make_beat(const slc_control *control)
{
    const slc_history *history = &control->history;
    uint32_t digest = history->count ? history->digests[(history->count - 1) % SLC_HISTORY] : 0;
    size_t doing = control->rank == 0 ? 0 : SLC_DOING_NUMBERS + strlen(control->doing.text);
    return (slc_frame){.kind = SLC_FRAME_BEAT, .value = {history->count, digest}, .bytes = doing};
}

/* Once a beat: did the other one begin the same operations as I did? The one that is ahead sees it. */
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
    /* This process was stopped itself: the time it did not see does not count against the others. */
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
        flush_link(control, link);
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

/* Reads what still comes, so that closing does not reset a connection whose last words are on their way. */
static void drain(slc_control *control, uint64_t deadline_ns)
{
    char discard[4096];
    while (open_links(control) && slc_clock_ns() < deadline_ns) {
        struct pollfd polls[64];
        int count = 0;
        for (int i = 0; i < control->link_count; i++) {
            slc_socket *link = &control->links[i];
            if (link->fd < 0) continue;
            ssize_t got;
            while ((got = recv(link->fd, discard, sizeof discard, MSG_DONTWAIT)) > 0) {
            }
            if (got == 0 || (errno != EAGAIN && errno != EINTR))
                close_link(link);
            else if (count < 64)
                polls[count++] = (struct pollfd){.fd = link->fd, .events = POLLIN};
        }
        if (count) poll(polls, (nfds_t)count, 20);
    }
}

/* Until everything is written, or the other end takes nothing for `patience_ns`. */
static void flush_patiently(slc_control *control, slc_socket *link, uint64_t patience_ns)
{
    uint64_t moved_ns = slc_clock_ns();
    while (link->fd >= 0 && link->out_at < link->out.used && slc_clock_ns() - moved_ns < patience_ns) {
        size_t before = link->out_at;
        struct pollfd entry = {.fd = link->fd, .events = POLLOUT};
        if (poll(&entry, 1, 10) > 0 && (entry.revents & (POLLERR | POLLHUP))) return;
        flush_link(control, link);
        if (link->out_at != before) moved_ns = slc_clock_ns();
    }
}

void slc_control_goodbye(slc_control *control, uint32_t operations, const char *last_words)
{
    bool failed = slc_failed(control->failure);
    slc_frame goodbye = {.kind = SLC_FRAME_LEAVE,
                         .rank = control->rank,
                         .value = {operations, control->collects},
                         .bytes = strlen(last_words)};
    for (int i = 0; i < control->link_count; i++) {
        if (!failed) slc_socket_send(control, &control->links[i], goodbye, last_words);
        flush_patiently(control, &control->links[i], failed ? linger_ns / 10 : silence_ns);
    }
}

void slc_control_leave(slc_control *control)
{
    for (int i = 0; i < control->link_count; i++)
        if (control->links[i].fd >= 0) shutdown(control->links[i].fd, SHUT_WR);
    drain(control, slc_clock_ns() + (slc_failed(control->failure) ? linger_ns / 10 : linger_ns));
}
