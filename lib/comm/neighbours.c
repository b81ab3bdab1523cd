/* Meeting the ranks of this host and handing descriptors over. Messages are SOCK_SEQPACKET, so one call sends or
 * receives a whole one with its descriptors. */
#include "lib/comm/neighbours.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/comm/settings.h"
#include "lib/comm/wire.h"

#include <errno.h>
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
#include <unistd.h>

enum { MOST_DESCRIPTORS = 2 };
_Static_assert(sizeof(slc_control_page) <= SLC_PAGE_BYTES, "the control page is one page");

typedef struct {
    uint32_t magic;
    int32_t rank;
    uint64_t bytes; /* of the segment */
} handover;
static const uint32_t handover_magic = 0x534c5531;

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
        return slc_error(SLUICE_ERR_SYSTEM, "abstract socket: %s", strerror(errno));
    return SLUICE_OK;
}

static sluice_status map_page(int fd, slc_control_page **out)
{
    void *page = mmap(NULL, SLC_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) return slc_error(SLUICE_ERR_MEMORY, "control page: %s", strerror(errno));
    *out = page;
    return SLUICE_OK;
}

static sluice_status open_page(slc_neighbours *neighbours)
{
    neighbours->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (neighbours->doorbell < 0) return slc_error(SLUICE_ERR_SYSTEM, "eventfd: %s", strerror(errno));
    neighbours->page_fd = memfd_create("sluice-control", MFD_CLOEXEC);
    if (neighbours->page_fd < 0 || ftruncate(neighbours->page_fd, SLC_PAGE_BYTES))
        return slc_error(SLUICE_ERR_SYSTEM, "control page: %s", strerror(errno));
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
    sluice_status status = open_page(neighbours);
    if (status || config->size == 1 || !config->direct) return status;
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

/* IN_PROGRESS: nothing there yet. Takes exactly `count` descriptors or none. */
static sluice_status receive_descriptors(int socket, handover *message, int *fds, int count)
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

    int received = 0;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
        received = (int)((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        int taken[MOST_DESCRIPTORS];
        memcpy(taken, CMSG_DATA(rights), (size_t)received * sizeof(int));
        for (int i = 0; i < received; i++) {
            if (received == count)
                fds[i] = taken[i];
            else
                close(taken[i]);
        }
    }
    if (got != (ssize_t)sizeof *message || message->magic != handover_magic || received != count)
        return slc_error(SLUICE_ERR_FORMAT, "a message on the local socket is not what it should be");
    return SLUICE_OK;
}

static sluice_status send_page(const slc_neighbours *neighbours, int socket)
{
    const handover message = {.magic = handover_magic, .rank = neighbours->rank};
    return send_descriptors(socket, &message, (const int[]){neighbours->page_fd, neighbours->doorbell}, 2);
}

sluice_status slc_neighbours_connect(slc_neighbours *neighbours, const slc_neighbour_card *const *cards,
                                     uint8_t *reached)
{
    memset(reached, 0, (size_t)neighbours->size);
    const slc_neighbour_card *own = cards[neighbours->rank];
    for (int rank = 0; rank < neighbours->rank; rank++) {
        const slc_neighbour_card *card = cards[rank];
        if (!own->direct || !card->direct || strncmp(own->host_id, card->host_id, sizeof own->host_id)) continue;
        struct sockaddr_un address;
        socklen_t length = abstract_address(card->name, &address);
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd < 0) return slc_error(SLUICE_ERR_SYSTEM, "socket: %s", strerror(errno));
        if (connect(fd, (struct sockaddr *)&address, length)) {
            close(fd); /* on another host */
            continue;
        }
        neighbours->peers[rank].socket = fd;
        sluice_status status = send_page(neighbours, fd);
        if (status) return slc_error_context(status, "rank %d", rank);
        reached[rank] = 1;
    }
    return SLUICE_OK;
}

/* The size of a peer's file is checked: touching a mapping beyond it would kill this process. */
static sluice_status take_page(slc_neighbour *peer, int page_fd, int doorbell)
{
    struct stat file;
    sluice_status status = SLUICE_OK;
    if (fstat(page_fd, &file) || file.st_size < SLC_PAGE_BYTES)
        status = slc_error(SLUICE_ERR_FORMAT, "its control page is too short");
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
        if (!status) status = receive_descriptors(socket, &message, fds, 2);
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

/* A newcomer on the local socket must be of the same user. */
static sluice_status accept_neighbour(slc_neighbours *neighbours, uint64_t deadline_ns)
{
    sluice_status status = slc_wire_wait(neighbours->listener, POLLIN, deadline_ns);
    if (status) return status;
    int fd = accept4(neighbours->listener, NULL, NULL, SOCK_CLOEXEC), rank = -1;
    if (fd < 0) return SLUICE_IN_PROGRESS;
    struct ucred who;
    socklen_t bytes = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) || who.uid != geteuid()) {
        close(fd);
        return SLUICE_IN_PROGRESS;
    }
    status = receive_page(neighbours, fd, deadline_ns, &rank);
    if (!status) status = send_page(neighbours, fd);
    if (status) {
        close(fd);
        return status;
    }
    neighbours->peers[rank].socket = fd;
    return SLUICE_OK;
}

sluice_status slc_neighbours_meet(slc_neighbours *neighbours, const uint8_t *const *all_reached, uint64_t deadline_ns)
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

static sluice_status receive_segment(slc_neighbour *peer, const slc_segment *own, slc_failure *failure,
                                     uint64_t deadline_ns)
{
    handover message;
    int fd;
    sluice_status status;
    do {
        uint64_t slice_ns = slc_clock_ns() + 20000000u; /* looks at the world's failure in between */
        status = slc_wire_wait(peer->socket, POLLIN, slice_ns < deadline_ns ? slice_ns : deadline_ns);
        if (slc_failed(failure)) return slc_failure_get(failure);
        if (status == SLUICE_ERR_TIMEOUT && slc_clock_ns() < deadline_ns) status = SLUICE_IN_PROGRESS;
        if (!status) status = receive_descriptors(peer->socket, &message, &fd, 1);
    } while (status == SLUICE_IN_PROGRESS);
    if (status) return status;
    if (message.bytes != own->bytes)
        status = slc_error(SLUICE_ERR_MISMATCH, "its segment has %llu bytes, this rank's %zu",
                           (unsigned long long)message.bytes, own->bytes);
    else
        status = slc_segment_map(own->device, fd, own->bytes, &peer->segment);
    close(fd);
    return status;
}

sluice_status slc_neighbours_attach(slc_neighbours *neighbours, const slc_segment *segment, slc_failure *failure,
                                    uint64_t deadline_ns)
{
    const handover message = {.magic = handover_magic, .rank = neighbours->rank, .bytes = segment->bytes};
    slc_neighbours_detach(neighbours);
    for (int i = 0; i < neighbours->count; i++) {
        int rank = neighbours->list[i];
        sluice_status status = send_descriptors(neighbours->peers[rank].socket, &message, &segment->fd, 1);
        if (status) return slc_error_context(status, "rank %d", rank);
    }
    for (int i = 0; i < neighbours->count; i++) {
        int rank = neighbours->list[i];
        sluice_status status = receive_segment(&neighbours->peers[rank], segment, failure, deadline_ns);
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

void slc_neighbours_ring(slc_neighbours *neighbours)
{
    for (int i = 0; i < neighbours->count; i++) {
        slc_neighbour *peer = &neighbours->peers[neighbours->list[i]];
        /* A read-modify-write even when nobody sleeps: it orders the counter before the flag without a fence. */
        if (!atomic_exchange(&peer->page->sleeping, 0)) continue;
        const uint64_t one = 1;
        ssize_t written = write(peer->doorbell, &one, sizeof one);
        (void)written; /* a full counter has rung already */
    }
}
