/* Collectives on GPUs, by NCCL: one communicator for the world, whose unique id rank 0 puts into its address. The
 * transport carries no messages of the host's memory and calls nothing of CUDA: the GPU is the one that is current
 * where attach is called, and streams are handed through. tests/nccl/transport/nccl_transport_test.c covers this
 * file. */
#include "communicator.h"
#include "groups.h"
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint64_t address_magic = 0x324c43434e434c53;
static const uint64_t ask_again_ns = 50000; /* NCCL's thread needs about as long to launch a group */

/* ---- Opening ---- */

static sluice_status transport_open(const sluice_transport_host_v1 *host, void **out)
{
    char version[NCCL_VERSION_TEXT];
    nccl_transport *self = calloc(1, sizeof *self);
    if (!self) return host->error(host->context, SLUICE_ERR_MEMORY, "nccl: no memory");
    self->host = host;
    sluice_status status = nccl_library_load(host, &self->library);
    if (status) {
        free(self);
        return status;
    }
    nccl_version_text(self->library.version, version);
    snprintf(self->description, sizeof self->description, "nccl %s", version);
    pthread_mutex_init(&self->lock, NULL);
    *out = self;
    return SLUICE_OK;
}

static const char *transport_describe(void *argument)
{
    const nccl_transport *self = argument;
    return self->description;
}

static sluice_status transport_address(void *argument, const void **blob, size_t *bytes)
{
    nccl_transport *self = argument;
    if (!self->address.magic) {
        ncclResult_t result = self->host->rank ? ncclSuccess : self->library.GetUniqueId(&self->address.id);
        if (result) return nccl_failed(self, "ncclGetUniqueId", result);
        self->address.magic = address_magic;
        self->address.version = self->library.version;
        if (!self->host->rank) self->id = self->address.id, self->id_known = true;
    }
    *blob = &self->address;
    *bytes = sizeof self->address;
    return SLUICE_OK;
}

static sluice_status transport_connect(void *argument, int rank, const void *blob, size_t bytes)
{
    nccl_transport *self = argument;
    nccl_address other;
    char theirs[NCCL_VERSION_TEXT], ours[NCCL_VERSION_TEXT];
    if (bytes == sizeof other) memcpy(&other, blob, sizeof other);
    if (bytes != sizeof other || other.magic != address_magic)
        return nccl_refuse(self, SLUICE_ERR_FORMAT, "rank %d sent no address of this transport", rank);
    if (other.version != self->library.version) {
        nccl_version_text(other.version, theirs);
        nccl_version_text(self->library.version, ours);
        return nccl_refuse(
            self, SLUICE_ERR_MISMATCH,
            "rank %d has NCCL %s, this rank %s: give every rank the same one, by SLUICE_COMM_NCCL if need "
            "be",
            rank, theirs, ours);
    }
    if (rank == 0) self->id = other.id, self->id_known = true;
    return SLUICE_OK;
}

/* ---- What messages would need ---- */

static int transport_progress(void *self)
{
    (void)self;
    return 0;
}

static int transport_descriptors(void *self, int *fds, int capacity)
{
    (void)self, (void)fds, (void)capacity;
    return 0;
}

static sluice_status transport_arm(void *self)
{
    (void)self;
    return SLUICE_OK;
}

static uint64_t transport_timer(void *argument)
{
    const nccl_transport *self = argument;
    struct timespec now;
    if (!atomic_load(&self->launching)) return UINT64_MAX;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + ask_again_ns;
}

static void transport_close_peer(void *self, int rank)
{
    (void)self, (void)rank;
}

static void transport_cancel(void *self)
{
    (void)self;
}

static void transport_close(void *argument, uint64_t linger_ns)
{
    nccl_transport *self = argument;
    nccl_communicator_end(self, linger_ns);
    pthread_mutex_destroy(&self->lock);
    free(self->calls);
    free(self);
}

static const sluice_transport_collectives_v2 collectives = {
    .attach = nccl_attach,
    .group_begin = nccl_group_begin,
    .group_end = nccl_group_end,
    .launched = nccl_launched,
    .reduce_scatter = nccl_reduce_scatter,
    .all_gather = nccl_all_gather,
    .all_reduce = nccl_all_reduce,
    .broadcast = nccl_broadcast,
    .send = nccl_send,
    .receive = nccl_receive,
    .health = nccl_health,
    .abort = nccl_abort,
};

extern const sluice_transport_v2 sluice_transport_v2_table;
__attribute__((visibility("default"))) const sluice_transport_v2 sluice_transport_v2_table = {
    .abi = SLUICE_TRANSPORT_ABI_V2,
    .size = sizeof(sluice_transport_v2),
    .base =
        {
            .abi = SLUICE_TRANSPORT_ABI_V1,
            .size = sizeof(sluice_transport_v1),
            .name = "nccl",
            .version = "1",
            .open = transport_open,
            .describe = transport_describe,
            .address = transport_address,
            .connect = transport_connect,
            .progress = transport_progress,
            .descriptors = transport_descriptors,
            .arm = transport_arm,
            .timer = transport_timer,
            .close_peer = transport_close_peer,
            .cancel = transport_cancel,
            .close = transport_close,
        },
    .collectives = &collectives,
};
