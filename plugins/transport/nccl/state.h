/* One rank's end of the transport, which its files share. Private to plugins/transport/nccl. */
#pragma once

#include "library.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef enum { REDUCE_SCATTER, ALL_GATHER, ALL_REDUCE, BROADCAST, SEND, RECEIVE } nccl_call_kind;

/* A call of a group, as it will be made. */
typedef struct {
    nccl_call_kind kind;
    const void *send;
    void *receive;
    size_t count;
    ncclDataType_t type;
    int rank; /* root, or the other end of a message */
} nccl_call;

/* The address that peers get for connect. */
typedef struct {
    uint64_t magic;
    int version;
    ncclUniqueId id; /* rank 0's is the communicator's */
} nccl_address;

typedef struct {
    const sluice_transport_host_v1 *host;
    nccl_library library;
    nccl_address address;
    ncclUniqueId id;
    bool id_known;
    char description[NCCL_VERSION_TEXT + 8];

    _Atomic(void *) stream; /* NULL: none is attached */
    bool in_group;          /* between group_begin and group_end */
    nccl_call *calls;
    size_t call_count, call_room;
    sluice_status refused; /* by a call of the group that is open */
    char refusal[200];

    /* A thread holds the lock while it calls NCCL, which takes no time, as the communicator does not block. An abort
     * does not wait for the lock: it raises `aborted`, and the thread that holds the lock carries it out. */
    pthread_mutex_t lock;
    _Atomic(ncclComm_t) comm; /* NULL: none was made, or it is over */
    _Atomic bool aborted;
    _Atomic bool launching; /* the last group may not be in the stream yet */
} nccl_transport;

/* Tells the host a line, made like printf's, after "nccl: ". */
__attribute__((format(printf, 3, 4))) sluice_status nccl_refuse(const nccl_transport *self, sluice_status status,
                                                                const char *format, ...);

/* Tells the host what NCCL said in `call`. PEER: a rank or the way to it is gone; SYSTEM: all else. */
sluice_status nccl_failed(const nccl_transport *self, const char *call, ncclResult_t result);
