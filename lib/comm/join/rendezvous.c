/* Joining. Rank 0 keeps every newcomer in a small table until its greeting is complete, so that a newcomer which says
 * nothing, or nonsense, holds up nobody. */
#include "lib/comm/join/rendezvous.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/error_line.h"
#include "lib/base/status.h"
#include "lib/comm/sockets/address.h"
#include "lib/comm/sockets/descriptors.h"
#include "lib/comm/sockets/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { STRANGERS = 64, GREETING_NS = 100000000 }; /* newcomers at a time */
enum { REFUSAL_BYTES = 512 };                     /* of a refusal, which tells numbers and no names */
static const uint64_t farewell_ns = 300000000u;
static const char magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'R', '\n'};

typedef struct {
    char magic[8];
    uint32_t version;
    int32_t rank, size;
    char token[SLC_TOKEN_BYTES];
} greeting;

typedef struct {
    char magic[8];
    uint32_t version;
    int32_t status; /* SLUICE_OK: welcome */
    char line[REFUSAL_BYTES];
} answer;

typedef struct {
    int fd; /* -1: free */
    uint64_t since_ns;
    size_t got;
    greeting hello;
} stranger;

typedef struct {
    const sluice_world_config *config;
    slc_rendezvous *rendezvous;
    int listener, joined;
    stranger strangers[STRANGERS];
} reception;

static void tune(int fd)
{
    int on = 1, timeout_ms = 2000;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

static void reply(int fd, sluice_status status, const char *line)
{
    answer text = {.version = SLC_WIRE_VERSION, .status = status};
    memcpy(text.magic, magic, sizeof magic);
    snprintf(text.line, sizeof text.line, "%s", line);
    /* The answer fits any socket buffer, and a newcomer that has gone already does not matter. */
    if (slc_wire_write(fd, &text, sizeof text, slc_clock_ns() + GREETING_NS)) return;
}

static void forget(stranger *who)
{
    if (who->fd >= 0) close(who->fd);
    *who = (stranger){.fd = -1};
}

static void list_missing(const slc_rendezvous *rendezvous, char *text, size_t bytes)
{
    size_t used = 0;
    int missing = 0;
    text[0] = '\0';
    for (int rank = 1; rank < rendezvous->size; rank++) {
        if (rendezvous->fds[rank] >= 0) continue;
        if (++missing > 16) {
            snprintf(text + used, bytes - used, ", ...");
            return;
        }
        int more = snprintf(text + used, bytes - used, "%s%d", missing > 1 ? ", " : "", rank);
        used += more > 0 ? (size_t)more : 0;
    }
}

/* Says in `line` why a complete greeting is refused; NULL: it is not. *fatal: no later newcomer can make it right. */
static const char *judge(const reception *room, const greeting *hello, char *line, size_t bytes, bool *fatal)
{
    const sluice_world_config *config = room->config;
    *fatal = false;
    char token[SLC_TOKEN_BYTES] = "";
    snprintf(token, sizeof token, "%s", config->job_token);
    if (!slc_wire_equal(hello->token, token, sizeof token)) {
        snprintf(line, bytes, "the job token differs from rank 0's: another job uses this address; set MASTER_PORT");
        return line;
    }
    *fatal = true;
    if (hello->version != SLC_WIRE_VERSION)
        snprintf(line, bytes, "rank %d speaks version %u, rank 0 version %d: install one version of sluice everywhere",
                 hello->rank, hello->version, SLC_WIRE_VERSION);
    else if (hello->size != config->size)
        snprintf(line, bytes, "rank %d was launched as one of %d ranks, rank 0 as one of %d: launch all alike",
                 hello->rank, hello->size, config->size);
    else if (hello->rank <= 0 || hello->rank >= config->size)
        snprintf(line, bytes, "a second process says that it is rank %d of %d: give each its own rank", hello->rank,
                 hello->size);
    else if (room->rendezvous->fds[hello->rank] >= 0)
        snprintf(line, bytes, "two processes say that they are rank %d: give each its own rank", hello->rank);
    else
        return NULL;
    return line;
}

/* Takes a newcomer in, or turns it away, when its whole greeting is here. */
static sluice_status admit(reception *room, stranger *who)
{
    char line[REFUSAL_BYTES];
    bool fatal;
    if (memcmp(who->hello.magic, magic, sizeof magic)) {
        forget(who); /* some other program; it would not understand an answer */
        return SLUICE_OK;
    }
    who->hello.token[SLC_TOKEN_BYTES - 1] = '\0';
    const char *wrong = judge(room, &who->hello, line, sizeof line, &fatal);
    if (!wrong) {
        reply(who->fd, SLUICE_OK, "");
        room->rendezvous->fds[who->hello.rank] = who->fd;
        room->joined++;
        who->fd = -1;
        return SLUICE_OK;
    }
    reply(who->fd, SLUICE_ERR_MISMATCH, wrong);
    forget(who);
    if (fatal) return slc_error(SLUICE_ERR_MISMATCH, "%s", wrong);
    slc_log(SLC_LOG_WARN, "rendezvous: turned a process away: %s", wrong);
    return SLUICE_OK;
}

static sluice_status listen_to(reception *room, stranger *who)
{
    ssize_t got = recv(who->fd, (char *)&who->hello + who->got, sizeof who->hello - who->got, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return SLUICE_OK;
    if (got <= 0) {
        forget(who);
        return SLUICE_OK;
    }
    who->got += (size_t)got;
    if (who->got >= sizeof magic && memcmp(who->hello.magic, magic, sizeof magic)) {
        forget(who);
        return SLUICE_OK;
    }
    return who->got == sizeof who->hello ? admit(room, who) : SLUICE_OK;
}

static sluice_status accept_one(reception *room)
{
    int fd = accept4(room->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && slc_descriptors_lacking(errno))
        return slc_descriptors_error("taking ranks in", room->rendezvous->size);
    if (fd < 0) return SLUICE_OK; /* it went away again */
    tune(fd);
    stranger *oldest = &room->strangers[0];
    for (int i = 0; i < STRANGERS; i++) {
        stranger *who = &room->strangers[i];
        if (who->fd < 0) {
            oldest = who;
            break;
        }
        if (who->since_ns < oldest->since_ns) oldest = who;
    }
    forget(oldest); /* when the table is full, the one that has been silent longest has to go */
    *oldest = (stranger){.fd = fd, .since_ns = slc_clock_ns()};
    return SLUICE_OK;
}

/* Makes the error of a rank that had joined and has hung up while others were still to come. Its part of the first
 * exchange may say what went wrong before it could meet anybody. */
static sluice_status hung_up(int fd, int rank)
{
    const uint64_t deadline_ns = slc_clock_ns() + farewell_ns;
    char line[SLC_ERROR_BYTES];
    slc_frame frame;
    bool says_why = !slc_wire_read(fd, &frame, sizeof frame, deadline_ns) && frame.kind == SLC_FRAME_BLOB &&
                    frame.status < 0 && frame.bytes && frame.bytes <= sizeof line &&
                    !slc_wire_read(fd, line, frame.bytes, deadline_ns);
    if (!says_why) return slc_error(SLUICE_ERR_PEER, "rank %d went away while ranks were joining", rank);
    return slc_error((sluice_status)frame.status, "rank %d: %.*s", rank, (int)frame.bytes, line);
}

static sluice_status one_round(reception *room, struct pollfd *polls)
{
    slc_rendezvous *rendezvous = room->rendezvous;
    int count = 0, who_at[STRANGERS];
    polls[count++] = (struct pollfd){.fd = room->listener, .events = POLLIN};
    for (int i = 0; i < STRANGERS; i++) {
        stranger *who = &room->strangers[i];
        if (who->fd >= 0 && slc_clock_ns() - who->since_ns > SLC_STRANGER_PATIENCE_NS) forget(who);
        who_at[i] = who->fd >= 0 ? count : 0;
        if (who->fd >= 0) polls[count++] = (struct pollfd){.fd = who->fd, .events = POLLIN};
    }
    int first_rank = count;
    for (int rank = 1; rank < rendezvous->size; rank++)
        polls[count++] = (struct pollfd){.fd = rendezvous->fds[rank], .events = POLLRDHUP};
    if (poll(polls, (nfds_t)count, 100) < 0 && errno != EINTR)
        return slc_error(SLUICE_ERR_SYSTEM, "poll: %s", strerror(errno));

    for (int rank = 1; rank < rendezvous->size; rank++)
        if (polls[first_rank + rank - 1].revents) return hung_up(rendezvous->fds[rank], rank);
    for (int i = 0; i < STRANGERS; i++) {
        if (!who_at[i] || !polls[who_at[i]].revents) continue;
        sluice_status status = listen_to(room, &room->strangers[i]);
        if (status) return status;
    }
    return polls[0].revents ? accept_one(room) : SLUICE_OK;
}

/* Tells the ranks that have joined why no world is made. */
static void dismiss(slc_rendezvous *rendezvous, sluice_status status)
{
    slc_frame frame = {.kind = SLC_FRAME_BLOB, .status = status};
    slc_kept_error kept;
    slc_error_keep(&kept);
    frame.bytes = strlen(kept.line) + 1;
    for (int rank = 1; rank < rendezvous->size; rank++) {
        if (rendezvous->fds[rank] < 0) continue;
        uint64_t deadline = slc_clock_ns() + 100000000u;
        if (!slc_wire_write(rendezvous->fds[rank], &frame, sizeof frame, deadline))
            (void)slc_wire_write(rendezvous->fds[rank], kept.line, frame.bytes, deadline);
    }
    slc_error_restore(&kept, status);
}

static sluice_status receive_ranks(reception *room)
{
    slc_rendezvous *rendezvous = room->rendezvous;
    struct pollfd *polls = calloc((size_t)rendezvous->size + STRANGERS + 1, sizeof *polls);
    if (!polls) return slc_error(SLUICE_ERR_MEMORY, "rendezvous of %d ranks", rendezvous->size);
    sluice_status status = SLUICE_OK;
    while (!status && room->joined < rendezvous->size - 1) {
        if (slc_clock_ns() >= rendezvous->deadline_ns) {
            char missing[160], addresses[200];
            list_missing(rendezvous, missing, sizeof missing);
            slc_address_describe_listener(room->listener, addresses, sizeof addresses);
            status =
                slc_error(SLUICE_ERR_TIMEOUT,
                          "%d of %d ranks did not join within %.0f s; missing: %s; rank 0 listens on port %d of %s",
                          rendezvous->size - 1 - room->joined, rendezvous->size, room->config->join_timeout_s, missing,
                          room->config->master_port, addresses);
        } else
            status = one_round(room, polls);
    }
    free(polls);
    return status;
}

static sluice_status join_as_first(const sluice_world_config *config, slc_rendezvous *rendezvous)
{
    reception *room = calloc(1, sizeof *room);
    if (!room) return slc_error(SLUICE_ERR_MEMORY, "rendezvous");
    room->config = config;
    room->rendezvous = rendezvous;
    for (int i = 0; i < STRANGERS; i++) room->strangers[i].fd = -1;

    sluice_status status = slc_address_listen(config->master_addr, config->master_port, &room->listener);
    if (status) goto free_room;
    status = receive_ranks(room);
    if (status) dismiss(rendezvous, status);
    for (int i = 0; i < STRANGERS; i++) forget(&room->strangers[i]);
    close(room->listener);

free_room:
    free(room);
    return status;
}

/* Makes one attempt to reach rank 0. IN_PROGRESS: it is not there yet, try again. */
static sluice_status greet(const sluice_world_config *config, slc_rendezvous *rendezvous, slc_attempt *attempt)
{
    int fd;
    sluice_status status =
        slc_address_connect(config->master_addr, config->master_port, rendezvous->deadline_ns, attempt, &fd);
    if (status) return status;
    tune(fd);
    greeting hello = {.version = SLC_WIRE_VERSION, .rank = config->rank, .size = config->size};
    memcpy(hello.magic, magic, sizeof magic);
    snprintf(hello.token, sizeof hello.token, "%s", config->job_token);
    answer text;
    status = slc_wire_write(fd, &hello, sizeof hello, rendezvous->deadline_ns);
    if (!status) status = slc_wire_read(fd, &text, sizeof text, rendezvous->deadline_ns);
    if (status == SLUICE_ERR_PEER) status = SLUICE_IN_PROGRESS; /* an earlier job's rank 0 that was just closing */
    if (status) goto close_fd;
    text.line[sizeof text.line - 1] = '\0';
    if (memcmp(text.magic, magic, sizeof magic))
        status = slc_error(SLUICE_ERR_MISMATCH, "%s:%d is not rank 0 of a sluice job: set MASTER_ADDR and MASTER_PORT",
                           config->master_addr, config->master_port);
    else if (text.status)
        status = slc_error((sluice_status)text.status, "rank 0 refused: %s", text.line);
    if (status) goto close_fd;
    rendezvous->fds[0] = fd;
    return SLUICE_OK;

close_fd:
    close(fd);
    return status;
}

static sluice_status join_as_other(const sluice_world_config *config, slc_rendezvous *rendezvous)
{
    long pause_ns = 5000000;
    slc_attempt attempt = {""};
    for (;;) {
        sluice_status status = greet(config, rendezvous, &attempt);
        if (status != SLUICE_IN_PROGRESS && status != SLUICE_ERR_TIMEOUT) return status;
        if (slc_clock_ns() >= rendezvous->deadline_ns)
            return slc_error(SLUICE_ERR_TIMEOUT, "rank 0 did not answer at %s:%d within %.0f s; missing: 0%s%s",
                             config->master_addr, config->master_port, config->join_timeout_s,
                             *attempt.why ? "; the last attempt: " : "", attempt.why);
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        if (pause_ns < 100000000) pause_ns *= 2;
    }
}

sluice_status slc_rendezvous_join(const sluice_world_config *config, slc_rendezvous *out)
{
    if (strlen(config->job_token) >= SLC_TOKEN_BYTES)
        return slc_error(SLUICE_ERR_ARGUMENT, "job token: at most %d bytes", SLC_TOKEN_BYTES - 1);
    *out = (slc_rendezvous){.rank = config->rank, .size = config->size};
    sluice_status status = config->size == 1 ? SLUICE_OK : slc_address_check(config->master_addr);
    if (status) return status;
    out->deadline_ns = slc_clock_ns() + (uint64_t)(config->join_timeout_s * 1e9);
    out->fds = malloc((size_t)config->size * sizeof *out->fds);
    if (!out->fds) return slc_error(SLUICE_ERR_MEMORY, "rendezvous of %d ranks", config->size);
    for (int rank = 0; rank < config->size; rank++) out->fds[rank] = -1;
    if (config->size == 1) return SLUICE_OK;
    status = config->rank == 0 ? join_as_first(config, out) : join_as_other(config, out);
    if (status) slc_rendezvous_leave(out);
    return status;
}

/* Reads until the other end closes too, because closing with unread bytes would lose this rank's last words. */
static void drain(int fd, uint64_t deadline_ns)
{
    char discard[4096];
    sluice_status status = SLUICE_OK;
    while (!status) {
        ssize_t got = recv(fd, discard, sizeof discard, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
        if (got < 0) status = slc_wire_wait(fd, POLLIN, deadline_ns);
    }
}

void slc_rendezvous_leave(slc_rendezvous *rendezvous)
{
    slc_kept_error kept; /* the reason for leaving stays this thread's error */
    slc_error_keep(&kept);
    uint64_t deadline_ns = slc_clock_ns() + farewell_ns;
    for (int rank = 0; rendezvous->fds && rank < rendezvous->size; rank++)
        if (rendezvous->fds[rank] >= 0) shutdown(rendezvous->fds[rank], SHUT_WR);
    for (int rank = 0; rendezvous->fds && rank < rendezvous->size; rank++) {
        if (rendezvous->fds[rank] < 0) continue;
        drain(rendezvous->fds[rank], deadline_ns);
        close(rendezvous->fds[rank]);
    }
    free(rendezvous->fds);
    rendezvous->fds = NULL;
    slc_error_restore(&kept, SLUICE_OK);
}
