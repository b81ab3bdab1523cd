/* The part of NCCL's profiler plugin interface, version 5, that the shim uses: NCCL 2.28 and later look for the symbol
 * ncclProfiler_v5 in the library that NCCL_PROFILER_PLUGIN names. Declared by ourselves, as nccl_abi.h is. */
#pragma once

#include "plugins/nccl/nccl_abi.h"

/* Bits of an activation mask; an event's type is one of them. */
enum {
    SLC_SHIM_PROFILE_P2P = 1 << 2, /* a send or a receive, when its kernel is launched; its parent is a P2P_API event */
    SLC_SHIM_PROFILE_COLL_API = 1 << 9, /* from the call of a collective to its return */
    SLC_SHIM_PROFILE_P2P_API = 1 << 10  /* from the call of a send or a receive to its return; without the other rank */
};

/* An event that begins. The members of the union that are not used here are as large as the largest of these. */
typedef struct {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *function;
            size_t count;
            const char *type;
            int root;
            void *stream;
            bool captured;
        } collective;
        struct {
            const char *function;
            void *buffer;
            const char *type;
            size_t count;
            int peer;
            uint8_t channels;
            void *group;
        } p2p;
        struct {
            uint64_t sequence;
            const char *function;
            const void *send;
            void *receive;
            size_t count;
            int root;
            const char *type;
            uint8_t channels, warps;
            const char *algorithm, *protocol;
            void *group;
        } enqueued;
    };
} slc_shim_profiler_event;

typedef struct {
    const char *name;
    ncclResult_t (*init)(void **context, uint64_t comm_id, int *activation_mask, const char *comm_name, int nodes,
                         int ranks, int rank, void *log);
    ncclResult_t (*start_event)(void *context, void **handle, slc_shim_profiler_event *event);
    ncclResult_t (*stop_event)(void *handle);
    ncclResult_t (*record_event_state)(void *handle, int state, void *arguments);
    ncclResult_t (*finalize)(void *context);
} slc_shim_profiler_v5;
