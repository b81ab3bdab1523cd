/* A ring of channels. tests/command/measure/perf_test.sh covers this file. */
#include "bench/perf/ring.h"

#include "lib/base/status.h"

sluice_status slc_perf_ring_open(sluice_world *world, slc_perf_ring *out)
{
    const int rank = sluice_world_rank(world), size = sluice_world_size(world);
    *out = (slc_perf_ring){.comm = slc_world_comm(world), .before = (rank + size - 1) % size};
    if (size < 2)
        return slc_error(SLUICE_ERR_ARGUMENT, "--op send_receive: a rank alone has nobody to send to: give "
                                              "--ranks 2 or more");
    const int next = (rank + 1) % size;
    const slc_channel_desc descs[2] = {{out->before, rank, (uint32_t)rank % 1024, "perf"},
                                       {rank, next, (uint32_t)next % 1024, "perf"}};
    slc_channel *channels[2];
    sluice_status status = slc_channels_open(out->comm, descs, 2, channels);
    if (status) return status;
    out->in = channels[0];
    out->out = channels[1];
    return SLUICE_OK;
}

void slc_perf_ring_close(slc_perf_ring *ring)
{
    slc_channels_close(&ring->in, 1);
    slc_channels_close(&ring->out, 1);
}

sluice_status slc_perf_ring_turn(slc_perf_ring *ring, const void *src, void *dst, uint64_t bytes,
                                 sluice_status (*end)(void *context), void *context)
{
    const slc_channel_transfer receive = {
        .data = dst, .bytes = bytes, .label = ring->submitted, .end = end, .context = context, .what = "perf"};
    /* A sender's bytes are only read. */
    const slc_channel_transfer send = {
        .data = (void *)(uintptr_t)src, .bytes = bytes, .label = ring->submitted, .what = "perf"};
    ring->submitted++;
    sluice_status status = slc_channel_submit(ring->in, &receive, 1, NULL);
    return status ? status : slc_channel_submit(ring->out, &send, 1, NULL);
}

bool slc_perf_ring_is_over(const slc_perf_ring *ring, uint32_t turns)
{
    return slc_gate_passed(slc_channel_completed(ring->in), turns) &&
           slc_gate_passed(slc_channel_completed(ring->out), turns);
}

sluice_status slc_perf_ring_wait(slc_perf_ring *ring, uint32_t turns)
{
    sluice_status status = slc_channel_wait(ring->in, turns);
    return status ? status : slc_channel_wait(ring->out, turns);
}
