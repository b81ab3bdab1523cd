/* Attaches the segment on which operations work, and the scratch in it. connect_test.c covers this file. */
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/comm/lane/stream_order.h"
#include "lib/comm/world/lines.h"
#include "lib/comm/world/state.h"
#include "lib/comm/world/world.h"

#include <stdio.h>
#include <string.h>

static void forget_segment(slc_comm *comm)
{
    /* After a failure a message may still be on its way into the memory, so wait until the thread has let go of it. */
    if (slc_failed(comm->failure)) slc_gate_wait(&comm->quiet, 1, UINT64_MAX);
    slc_lines_detach(slc_comm_world(comm));
    if (comm->attached.segment && comm->messages.pending)
        comm->attached.segment->kept = true; /* the transport did not let go of it */
    if (comm->attached.stream.device)
        (void)slc_stream_synchronize(&comm->attached.stream); /* kernels that are issued still use the segment */
    comm->attached.segment = NULL;
    slc_neighbours_detach(comm->neighbours);
    slc_stream_order_detach(comm);
    slc_lane_events_destroy(&comm->attached.events);
    slc_stream_destroy(&comm->attached.stream);
    comm->attached.base = NULL;
    comm->attached.bytes = 0;
    comm->scratch.base = NULL;
    comm->scratch.bytes = 0;
}

/* Checks that every rank brings the same sizes; if segments lie apart, only the scratch's must be the same. All ranks
 * compare theirs with rank 0's and add up what they find, so they agree on the verdict. */
static sluice_status agree_on_size(sluice_world *world, uint64_t bytes, uint64_t scratch_bytes, bool apart)
{
    uint64_t own[2] = {bytes, scratch_bytes}, first[2] = {bytes, scratch_bytes};
    sluice_status status = sluice_world_broadcast(world, first, sizeof first, 0);
    double differing = (own[0] != first[0] && !apart) || own[1] != first[1];
    if (!status) status = sluice_world_all_reduce(world, &differing, 1);
    if (status || differing == 0) return status;
    return slc_error(
        SLUICE_ERR_MISMATCH,
        "attaching memory: %.0f ranks bring another size than rank 0 (%llu bytes, scratch %llu; here %llu, "
        "%llu)",
        differing, (unsigned long long)first[0], (unsigned long long)first[1], (unsigned long long)own[0],
        (unsigned long long)own[1]);
}

sluice_status slc_comm_choose(slc_comm *comm, const slc_device *device)
{
    sluice_world *world = slc_comm_world(comm);
    const bool ahead = slc_device_runs_ahead(device) && comm->size > 1;
    const char *name = sluice_world_transport(world);
    if (ahead && !world->imagined && !slc_transport_has_collectives(comm->transport))
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "%d ranks with memory of GPUs need a transport with collectives there, and this world's is "
                         "\"%s\": set SLUICE_COMM_TRANSPORT=nccl (config.transport) on every rank",
                         comm->size, strcmp(name, "none") ? name : world->config.transport);
    if (!ahead && comm->any_messages && !world->imagined && !slc_transport_has_messages(comm->transport))
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "transport \"%s\" moves memory of GPUs only, and ranks on several hosts need messages: set "
                         "SLUICE_COMM_TRANSPORT=ucx (config.transport) on every rank, or use device cuda",
                         name);
    comm->stream_order.on = ahead;
    world->path = ahead ? "device" : slc_world_path_name(comm->size, comm->any_messages, comm->neighbours->count > 0);
    return SLUICE_OK;
}

/* Makes the ranks' memory reachable: to each other, or to the transport's collectives. */
static sluice_status reach(slc_comm *comm, slc_segment *segment, uint64_t deadline_ns)
{
    sluice_status status = comm->stream_order.on
                               ? SLUICE_OK
                               : slc_neighbours_attach(comm->neighbours, segment, comm->failure, deadline_ns);
    if (!status) status = slc_stream_create_first(segment->device, 1, &comm->attached.stream);
    if (!status) status = slc_lane_events_create(segment->device, SLC_QUEUE, &comm->attached.events);
    return !status && comm->stream_order.on ? slc_stream_order_attach(comm) : status;
}

bool slc_comm_is_attached(const slc_comm *comm)
{
    return comm->attached.segment != NULL;
}

static sluice_status attach(slc_comm *comm, slc_segment *segment, void *scratch, uint64_t scratch_bytes, bool apart)
{
    sluice_world *world = slc_comm_world(comm);
    sluice_status status =
        slc_comm_wait(comm, atomic_load_explicit(&comm->queue.counts.submitted, memory_order_relaxed));
    if (status && segment) return status;
    forget_segment(comm);
    if (!segment) return SLUICE_OK;

    status = agree_on_size(world, segment->bytes, scratch_bytes, apart);
    if (status) return status;
    uint64_t deadline_ns = slc_clock_ns() + world->control.watch.silence_ns;
    slc_kept_error kept; /* waiting in slices sets errors although it ends well */
    slc_error_keep(&kept);
    status = reach(comm, segment, deadline_ns);
    if (!status) slc_error_restore(&kept, SLUICE_OK);
    if (status) {
        slc_comm_fail(comm, status, sluice_last_error()); /* the others wait below */
        return slc_failure_get(comm->failure);
    }
    comm->attached.segment = segment;
    comm->attached.base = segment->base;
    comm->attached.bytes = segment->bytes;
    comm->scratch.base = scratch;
    comm->scratch.bytes = scratch_bytes;
    return sluice_world_barrier(world);
}

sluice_status slc_comm_attach(slc_comm *comm, slc_segment *segment, void *scratch, uint64_t scratch_bytes)
{
    return attach(comm, segment, scratch, scratch_bytes, false);
}

sluice_status slc_comm_attach_apart(slc_comm *comm, slc_segment *segment, void *scratch, uint64_t scratch_bytes)
{
    return attach(comm, segment, scratch, scratch_bytes, true);
}
