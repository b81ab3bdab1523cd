/* Groups of collectives and messages. Private to plugins/transport/nccl. */
#pragma once

#include "state.h"

/* Slots of sluice_transport_collectives_v2. */
sluice_status nccl_group_begin(void *self);
sluice_status nccl_group_end(void *self);
sluice_status nccl_reduce_scatter(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype);
sluice_status nccl_all_gather(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype);
sluice_status nccl_all_reduce(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype);
sluice_status nccl_broadcast(void *self, void *buffer, size_t count, sluice_dtype dtype, int root);
sluice_status nccl_send(void *self, int rank, const void *data, size_t count, sluice_dtype dtype);
sluice_status nccl_receive(void *self, int rank, void *data, size_t count, sluice_dtype dtype);
