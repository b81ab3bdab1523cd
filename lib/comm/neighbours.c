/* Meets the ranks of this host and hands descriptors over. The sockets are SOCK_SEQPACKET, so one call sends or
 * receives a whole message with its descriptors. */
#include "lib/comm/neighbours.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/comm/sockets/descriptors.h"
#include "lib/comm/settings.h"
#include "lib/comm/sockets/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { MOST_DESCRIPTORS = 2 };

typedef struct {
    uint32_t magic;
    int32_t rank;
    uint64_t bytes;  /* of the segment */
    uint64_t key[2]; /* the receiver's */
} handover;
static const uint32_t handover_magic = 0x534c5532;

static socklen_t abstract_address(const char *name, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address->sun_path + 1));
}

static sluice_status open_listener(slc_neighbours *neighbours, const sluice_world_config *config, char *name,
                                   size_t bytes)
{
    uint64_t key[2];
    if (getrandom(key, sizeof key, 0) != sizeof key)
        return slc_error(SLUICE_ERR_SYSTEM, "getrandom: %s", strerror(errno));
    snprintf(name, bytes, "sluice-%d-%d-%016llx%016llx", config->master_port, config->rank, (unsigned long long)key[0],
             (unsigned long long)key[1]);
    struct sockaddr_un address;
    socklen_t length = abstract_address(name, &address);
    neighbours->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (neighbours->listener < 0 || bind(neighbours->listener, (struct sockaddr *)&address, length) ||
        listen(neighbours->listener, SOMAXCONN))
        return slc_descriptors_or_system(errno, "abstract socket", config->size);
    return SLUICE_OK;
}

/* fd -1: a page that is shared with nobody. */
static sluice_status map_page(int fd, slc_control_page **out)
{
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *page = mmap(NULL, SLC_PAGE_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (page == MAP_FAILED) return slc_error(SLUICE_ERR_MEMORY, "control page: %s", strerror(errno));
    *out = page;
    return SLUICE_OK;
}

static sluice_status open_page(slc_neighbours *neighbours, bool shared)
{
    neighbours->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (neighbours->doorbell < 0) return slc_descriptors_or_system(errno, "doorbell", neighbours->size);
    if (!shared) return map_page(-1, &neighbours->page);
    neighbours->page_fd = memfd_create("sluice-control", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (neighbours->page_fd < 0 && !slc_descriptors_lacking(errno))
        return slc_error(SLUICE_ERR_SYSTEM,
                         "memfd_create: %s: the ranks of one host share memory by it; allow it (a container's seccomp "
                         "profile?), or set SLUICE_COMM_DIRECT=off, with which they send messages",
                         strerror(errno));
    if (neighbours->page_fd < 0 || ftruncate(neighbours->page_fd, SLC_PAGE_BYTES) ||
        fcntl(neighbours->page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return slc_descriptors_or_system(errno, "control page", neighbours->size);
    return map_page(neighbours->page_fd, &neighbours->page);
}

sluice_status slc_neighbours_open(slc_neighbours *neighbours, const sluice_world_config *config,
                                  slc_neighbour_card *card)
{
    *neighbours =
        (slc_neighbours){.rank = config->rank, .size = config->size, .page_fd = -1, .doorbell = -1, .listener = -1};
    *card = (slc_neighbour_card){.direct = config->direct != 0};
    snprintf(card->host_id, sizeof card->host_id, "%s", slc_setting_text(&slc_comm_settings, "SLUICE_COMM_HOST_ID"));
    neighbours->peers = calloc((size_t)config->size, sizeof *neighbours->peers);
    neighbours->list = calloc((size_t)config->size, sizeof *neighbours->list);
    if (!neighbours->peers || !neighbours->list) return slc_error(SLUICE_ERR_MEMORY, "%d ranks", config->size);
    for (int rank = 0; rank < config->size; rank++)
        neighbours->peers[rank] = (slc_neighbour){.socket = -1, .doorbell = -1, .segment.fd = -1};
    if (getrandom(neighbours->key, sizeof neighbours->key, 0) != sizeof neighbours->key)
        return slc_error(SLUICE_ERR_SYSTEM, "getrandom: %s", strerror(errno));
    memcpy(card->key, neighbours->key, sizeof card->key);
    const bool shared = config->size > 1 && config->direct;
    sluice_status status = open_page(neighbours, shared);
    if (status || !shared) return status;
    return open_listener(neighbours, config, card->name, sizeof card->name);
}

static sluice_status send_descriptors(int socket, const handover *message, const int *fds, int count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(MOST_DESCRIPTORS * sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = sizeof *message};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (count) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, (size_t)count * sizeof(int));
    }
    if (sendmsg(socket, &header, MSG_NOSIGNAL) == (ssize_t)sizeof *message) return SLUICE_OK;
    return slc_error(SLUICE_ERR_PEER, "handing a descriptor over: %s", strerror(errno));
}

/* Takes the descriptors that came with a message, at most MOST_DESCRIPTORS, and returns how many there are. */
static int take_descriptors(struct msghdr *header, int *fds)
{
    struct cmsghdr *rights = CMSG_FIRSTHDR(header);
    if (!rights || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) return 0;
    int count = (int)((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(fds, CMSG_DATA(rights), (size_t)count * sizeof(int));
    return count;
}

/* Takes a message with exactly `count` descriptors, or none of them. IN_PROGRESS: nothing has come yet. */
static sluice_status receive_descriptors(const slc_neighbours *neighbours, int socket, handover *message, int *fds,
                                         int count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(MOST_DESCRIPTORS * sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return SLUICE_IN_PROGRESS;
    if (got <= 0) return slc_error(SLUICE_ERR_PEER, "its process went away");

    int taken[MOST_DESCRIPTORS], received = take_descriptors(&header, taken);
    bool cut = header.msg_flags & (MSG_CTRUNC | MSG_TRUNC);
    bool whole = got == (ssize_t)sizeof *message && message->magic == handover_magic && received == count && !cut &&
                 slc_wire_equal(message->key, neighbours->key, sizeof message->key);
    for (int i = 0; i < received; i++) {
        if (whole)
            fds[i] = taken[i];
        else
            close(taken[i]);
    }
    if (whole) return SLUICE_OK;
    if ((header.msg_flags & MSG_CTRUNC) && received < count) /* the kernel had no number to give them */
        return slc_descriptors_error("meeting the ranks of this host", neighbours->size);
    return slc_error(SLUICE_ERR_FORMAT, "a message on the local socket is not what it should be");
}

static handover handover_to(const slc_neighbours *neighbours, int rank, uint64_t bytes)
{
    handover message = {.magic = handover_magic, .rank = neighbours->rank, .bytes = bytes};
    memcpy(message.key, neighbours->peers[rank].key, sizeof message.key);
    return message;
}

static sluice_status send_page(const slc_neighbours *neighbours, int rank, int socket)
{
    const handover message = handover_to(neighbours, rank, 0);
    return send_descriptors(socket, &message, (const int[]){neighbours->page_fd, neighbours->doorbell}, 2);
}

/* True if the process at the other end, or the one that listened there, runs as the same user. */
static bool is_own_user(int fd)
{
    struct ucred who;
    socklen_t bytes = sizeof who;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) && who.uid == geteuid();
}

sluice_status slc_neighbours_connect(slc_neighbours *neighbours, const slc_neighbour_card *const *cards,
                                     uint8_t *reached)
{
    memset(reached, 0, (size_t)neighbours->size);
    const slc_neighbour_card *own = cards[neighbours->rank];
    for (int rank = 0; rank < neighbours->size; rank++)
        memcpy(neighbours->peers[rank].key, cards[rank]->key, sizeof cards[rank]->key);
    for (int rank = 0; rank < neighbours->rank; rank++) {
        const slc_neighbour_card *card = cards[rank];
        if (!own->direct || !card->direct || strncmp(own->host_id, card->host_id, sizeof own->host_id)) continue;
        struct sockaddr_un address;
        socklen_t length = abstract_address(card->name, &address);
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd < 0) return slc_descriptors_or_system(errno, "meeting the ranks of this host", neighbours->size);
        /* The lower rank is on another host, or it is another user's and would turn this rank away: the two send
         * messages. */
        if (connect(fd, (struct sockaddr *)&address, length) || !is_own_user(fd)) {
            close(fd);
            continue;
        }
        neighbours->peers[rank].socket = fd;
        sluice_status status = send_page(neighbours, rank, fd);
        if (status) return slc_error_context(status, "rank %d", rank);
        reached[rank] = 1;
    }
    return SLUICE_OK;
}

/* Checks the size of a peer's file, and that it stays as it is: touching a mapping beyond its end would kill this
 * process. */
static sluice_status take_page(slc_neighbour *peer, int page_fd, int doorbell)
{
    struct stat file;
    sluice_status status = SLUICE_OK;
    if (fstat(page_fd, &file) || file.st_size < (off_t)SLC_PAGE_BYTES)
        status = slc_error(SLUICE_ERR_FORMAT, "its control page is too short");
    else if (fcntl(page_fd, F_GET_SEALS) < 0 || !(fcntl(page_fd, F_GET_SEALS) & F_SEAL_SHRINK))
        status = slc_error(SLUICE_ERR_FORMAT, "its control page is not sealed: it could shrink");
    else
        status = map_page(page_fd, &peer->page);
    close(page_fd);
    peer->doorbell = doorbell;
    return status;
}

static sluice_status receive_page(slc_neighbours *neighbours, int socket, uint64_t deadline_ns, int *from)
{
    handover message;
    int fds[2];
    sluice_status status;
    do {
        status = slc_wire_wait(socket, POLLIN, deadline_ns);
        if (!status) status = receive_descriptors(neighbours, socket, &message, fds, 2);
    } while (status == SLUICE_IN_PROGRESS);
    if (status) return status;
    if (message.rank < 0 || message.rank >= neighbours->size || neighbours->peers[message.rank].page ||
        (*from >= 0 && message.rank != *from)) {
        close(fds[0]);
        close(fds[1]);
        return slc_error(SLUICE_ERR_FORMAT, "a neighbour says that it is rank %d", message.rank);
    }
    *from = message.rank;
    return take_page(&neighbours->peers[message.rank], fds[0], fds[1]);
}

/* A newcomer on the local socket must run as the same user and bring the key, for all users that this user namespace
 * does not know look alike. Any other newcomer is no rank, and is turned away without harm to the others. */
static sluice_status accept_neighbour(slc_neighbours *neighbours, uint64_t deadline_ns)
{
    sluice_status status = slc_wire_wait(neighbours->listener, POLLIN, deadline_ns);
    if (status) return status;
    int fd = accept4(neighbours->listener, NULL, NULL, SOCK_CLOEXEC), rank = -1;
    if (fd < 0 && slc_descriptors_lacking(errno)) return slc_descriptors_error("accepting a rank", neighbours->size);
    if (fd < 0) return SLUICE_IN_PROGRESS;
    if (!is_own_user(fd)) {
        close(fd);
        return SLUICE_IN_PROGRESS;
    }
    uint64_t patience_ns = slc_clock_ns() + SLC_STRANGER_PATIENCE_NS;
    status = receive_page(neighbours, fd, patience_ns < deadline_ns ? patience_ns : deadline_ns, &rank);
    if (rank < 0 && (status == SLUICE_ERR_FORMAT || status == SLUICE_ERR_PEER || status == SLUICE_ERR_TIMEOUT)) {
        slc_log(SLC_LOG_WARN, "turned a process away that is no rank of this job: %s", sluice_last_error());
        close(fd);
        return SLUICE_IN_PROGRESS;
    }
    if (!status) status = send_page(neighbours, rank, fd);
    if (status) {
        close(fd);
        return status;
    }
    neighbours->peers[rank].socket = fd;
    return SLUICE_OK;
}

static sluice_status meet_all(slc_neighbours *neighbours, const uint8_t *const *all_reached, uint64_t deadline_ns)
{
    int expected = 0;
    for (int rank = neighbours->rank + 1; rank < neighbours->size; rank++)
        expected += all_reached[rank][neighbours->rank] == 1;
    while (expected) {
        sluice_status status = accept_neighbour(neighbours, deadline_ns);
        if (status < 0) return slc_error_context(status, "meeting the ranks of this host");
        if (status == SLUICE_OK) expected--;
    }
    for (int rank = 0; rank < neighbours->rank; rank++) {
        if (!slc_is_neighbour(neighbours, rank)) continue;
        int from = rank;
        sluice_status status = receive_page(neighbours, neighbours->peers[rank].socket, deadline_ns, &from);
        if (status) return slc_error_context(status, "meeting rank %d of this host", rank);
    }
    for (int rank = 0; rank < neighbours->size; rank++)
        if (slc_is_neighbour(neighbours, rank)) neighbours->list[neighbours->count++] = rank;
    if (neighbours->listener >= 0) close(neighbours->listener);
    neighbours->listener = -1;
    return SLUICE_OK;
}

/* Closes all sockets, so that ranks that wait for this one see at once that it has failed. */
static void hang_up(slc_neighbours *neighbours)
{
    for (int rank = 0; rank < neighbours->size; rank++) {
        slc_neighbour *peer = &neighbours->peers[rank];
        if (peer->socket >= 0) close(peer->socket);
        peer->socket = -1;
    }
    if (neighbours->listener >= 0) close(neighbours->listener);
    neighbours->listener = -1;
}

sluice_status slc_neighbours_meet(slc_neighbours *neighbours, const uint8_t *const *all_reached, uint64_t deadline_ns)
{
    sluice_status status = meet_all(neighbours, all_reached, deadline_ns);
    if (status) hang_up(neighbours);
    return status;
}

void slc_neighbours_close(slc_neighbours *neighbours)
{
    if (neighbours->peers) slc_neighbours_detach(neighbours);
    for (int rank = 0; neighbours->peers && rank < neighbours->size; rank++) {
        slc_neighbour *peer = &neighbours->peers[rank];
        if (peer->page) munmap(peer->page, SLC_PAGE_BYTES);
        if (peer->doorbell >= 0) close(peer->doorbell);
        if (peer->socket >= 0) close(peer->socket);
    }
    if (neighbours->page) munmap(neighbours->page, SLC_PAGE_BYTES);
    if (neighbours->page_fd >= 0) close(neighbours->page_fd);
    if (neighbours->doorbell >= 0) close(neighbours->doorbell);
    if (neighbours->listener >= 0) close(neighbours->listener);
    free(neighbours->peers);
    free(neighbours->list);
    *neighbours = (slc_neighbours){.page_fd = -1, .doorbell = -1, .listener = -1};
}

static sluice_status receive_segment(const slc_neighbours *neighbours, slc_neighbour *peer, const slc_segment *own,
                                     slc_failure *failure, uint64_t deadline_ns)
{
    handover message;
    int fd;
    sluice_status status;
    do {
        uint64_t slice_ns = slc_clock_ns() + 20000000u; /* looks at the world's failure in between */
        status = slc_wire_wait(peer->socket, POLLIN, slice_ns < deadline_ns ? slice_ns : deadline_ns);
        if (slc_failed(failure)) return slc_failure_get(failure);
        if (status == SLUICE_ERR_TIMEOUT && slc_clock_ns() < deadline_ns) status = SLUICE_IN_PROGRESS;
        if (!status) status = receive_descriptors(neighbours, peer->socket, &message, &fd, 1);
    } while (status == SLUICE_IN_PROGRESS);
    if (status) return status;
    status = slc_segment_map(own->device, fd, message.bytes, &peer->segment);
    close(fd);
    return status;
}

/* Waits a second for the reason why a process went away, which the control connection may tell a moment after its
 * sockets close. Returns that failure, or `status`. */
static sluice_status wait_for_reason(slc_failure *failure, sluice_status status)
{
    const uint64_t deadline_ns = slc_clock_ns() + 1000000000u;
    if (status != SLUICE_ERR_PEER) return status;
    while (!slc_failed(failure) && slc_clock_ns() < deadline_ns)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    return slc_failed(failure) ? slc_failure_get(failure) : status;
}

sluice_status slc_neighbours_attach(slc_neighbours *neighbours, const slc_segment *segment, slc_failure *failure,
                                    uint64_t deadline_ns)
{
    slc_neighbours_detach(neighbours);
    if (neighbours->count && segment->fd < 0)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "the ranks of this host cannot map this device's memory: switch "
                                                 "SLUICE_COMM_DIRECT off");
    for (int i = 0; i < neighbours->count; i++) {
        int rank = neighbours->list[i];
        const handover message = handover_to(neighbours, rank, segment->bytes);
        sluice_status status = send_descriptors(neighbours->peers[rank].socket, &message, &segment->fd, 1);
        if (status) return slc_error_context(status, "rank %d", rank);
    }
    for (int i = 0; i < neighbours->count; i++) {
        int rank = neighbours->list[i];
        sluice_status status = receive_segment(neighbours, &neighbours->peers[rank], segment, failure, deadline_ns);
        status = wait_for_reason(failure, status);
        if (status) return slc_failed(failure) ? status : slc_error_context(status, "segment of rank %d", rank);
    }
    return SLUICE_OK;
}

void slc_neighbours_detach(slc_neighbours *neighbours)
{
    for (int rank = 0; rank < neighbours->size; rank++) {
        slc_segment *segment = &neighbours->peers[rank].segment;
        if (segment->base) slc_segment_destroy(segment);
        *segment = (slc_segment){.fd = -1};
    }
}

/* ---- Views ---- */

sluice_status slc_neighbours_view(const slc_neighbours *neighbours, const int *members, int count, int own,
                                  slc_neighbours *out)
{
    *out = (slc_neighbours){.rank = own,
                            .size = count,
                            .page = neighbours->page,
                            .page_fd = -1,
                            .doorbell = neighbours->doorbell,
                            .listener = -1};
    out->peers = calloc((size_t)count, sizeof *out->peers);
    out->list = calloc((size_t)count, sizeof *out->list);
    if (!out->peers || !out->list) return slc_error(SLUICE_ERR_MEMORY, "a group of %d ranks", count);
    for (int i = 0; i < count; i++) {
        out->peers[i] = neighbours->peers[members[i]];
        if (slc_is_neighbour(out, i)) out->list[out->count++] = i;
    }
    return SLUICE_OK;
}

void slc_neighbours_view_attach(slc_neighbours *view, const slc_neighbours *neighbours, const int *members)
{
    for (int i = 0; i < view->size; i++) view->peers[i].segment = neighbours->peers[members[i]].segment;
}

void slc_neighbours_view_close(slc_neighbours *view)
{
    free(view->peers);
    free(view->list);
    *view = (slc_neighbours){.page_fd = -1, .doorbell = -1, .listener = -1};
}

/* ---- Waking ---- */

/* Wakes a process if it sleeps. The exchange writes the flag even if nobody sleeps, and so orders the counters that
 * were raised before it without a fence. */
static void wake(slc_control_page *page, int doorbell)
{
    if (!atomic_exchange(&page->sleeping, 0)) return;
    const uint64_t one = 1;
    ssize_t written = write(doorbell, &one, sizeof one);
    (void)written; /* a full counter has rung already */
}

void slc_neighbours_ring(slc_neighbours *neighbours)
{
    for (int i = 0; i < neighbours->count; i++) slc_neighbours_ring_one(neighbours, neighbours->list[i]);
}

void slc_neighbours_ring_one(slc_neighbours *neighbours, int rank)
{
    slc_neighbour *peer = &neighbours->peers[rank];
    wake(peer->page, peer->doorbell);
}

void slc_neighbours_wake_own(slc_neighbours *neighbours)
{
    wake(neighbours->page, neighbours->doorbell);
}
