/* Pairs of events and the times they say. Private to plugins/nccl/shim. Any thread. */
#pragma once

#include "plugins/nccl/shim/state.h"

/* A pair around one call, or around a group's calls on one stream and communicator. */
typedef struct slc_shim_time_pair {
    struct slc_shim_time_pair *next;
    struct slc_shim_time_pool *pool;
    slc_shim_driver_event begin, end;
    uint64_t first, last; /* indices of the entries; those between that are of others are left out */
    cudaStream_t stream;
    unsigned row;
    uint32_t group; /* 0: the one entry `first` */
} slc_shim_time_pair;

/* Returns a pair of the current context, whose first event is recorded on the stream. NULL: there is no pair left,
 * which is counted, or the driver refused, and times are off. */
slc_shim_time_pair *slc_shim_times_begin(slc_shim_recorder *recorder, cudaStream_t stream);

/* Records the second event. The pair is read later, or dropped if the call failed. */
void slc_shim_times_end(slc_shim_recorder *recorder, slc_shim_time_pair *pair, bool failed);

/* Drops the pair, and counts its operations as ones whose times are lost; slc_shim_times_lost counts one that has no
 * pair.
 */
void slc_shim_times_lose(slc_shim_recorder *recorder, slc_shim_time_pair *pair);
void slc_shim_times_lost(slc_shim_recorder *recorder);

/* Reads all pairs that are finished. If another thread reads some just now, it waits for that one. */
void slc_shim_times_harvest(slc_shim_recorder *recorder);

/* Called in a process that was forked: its parent's contexts are not its own, nor are the locks that other threads
 * held. */
void slc_shim_times_begin_child(void);
