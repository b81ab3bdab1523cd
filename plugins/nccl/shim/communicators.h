/* The process's communicators: which library each came from, and its row in the record. Private to plugins/nccl/shim.
 * The table never frees and has no lock, so that a watchdog's abort finds a communicator while another thread is
 * blocked in a call on it. Only children that have no handle yet are kept in a list under a lock. */
#pragma once

#include "plugins/nccl/shim/state.h"

/* Makes a communicator, with a row that says that it is being made. NULL without memory. */
slc_shim_comm *slc_shim_comm_create(slc_shim_recorder *recorder, const slc_shim_real *real, uint64_t key, int rank,
                                    int size);

/* Gives back a communicator that never got a handle; its row stays. */
void slc_shim_comm_drop(slc_shim_comm *made);

/* Lets slc_shim_comm_find(comm) give this communicator, even if the address named another one before. */
void slc_shim_comm_bind(slc_shim_recorder *recorder, slc_shim_comm *made, ncclComm_t comm);

/* Finds the communicator of a handle. NULL: the handle was not made through the shim, or before a fork, or what it
 * named is gone. */
slc_shim_comm *slc_shim_comm_find(const slc_shim_recorder *recorder, ncclComm_t comm);

/* On a parent that does not block, NCCL stores a child's handle some time after the call that makes it.
 * slc_shim_comm_await keeps a child until then. slc_shim_comm_arrived binds one of the parent's children whose handle
 * has come; NULL: there is none. slc_shim_comm_forget gives up the children without a handle. slc_shim_comm_find also
 * finds a handle that the program uses before it is bound. */
void slc_shim_comm_await(const slc_shim_recorder *recorder, slc_shim_comm *made);
slc_shim_comm *slc_shim_comm_arrived(const slc_shim_recorder *recorder, const slc_shim_comm *parent);
void slc_shim_comm_forget(const slc_shim_recorder *recorder, const slc_shim_comm *parent);

static inline void slc_shim_comm_state(slc_shim_comm *comm, slc_record_row_state state)
{
    __atomic_store_n(&comm->row->state, (uint32_t)state, __ATOMIC_RELEASE);
}

/* The key of a communicator that is made of another one, or of an id. */
uint64_t slc_shim_comm_key(uint64_t start, const void *data, size_t bytes);
