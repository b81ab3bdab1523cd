/* The communicator: making it, asking after it, ending it. Private to plugins/transport/nccl. */
#pragma once

#include "state.h"

/* Slots of sluice_transport_collectives_v2. */
sluice_status nccl_attach(void *self, void *stream);
sluice_status nccl_launched(void *self);
sluice_status nccl_health(void *self);
void nccl_abort(void *self);

/* Takes the lock; nccl_leave gives it back, and first carries out an abort that came meanwhile. */
void nccl_enter(nccl_transport *self);
void nccl_leave(nccl_transport *self);

/* SLUICE_OK if a stream is attached and nothing was aborted; else the error, told to the host, for `slot`. */
sluice_status nccl_usable(const nccl_transport *self, const char *slot);

/* Ends the communicator in order if that takes at most `linger_ns`, else by an abort; 0: by an abort at once. */
void nccl_communicator_end(nccl_transport *self, uint64_t linger_ns);
