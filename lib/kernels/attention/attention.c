/* Heads are cut between threads, each with its part of the workspace. */
#include "lib/kernels/attention/attention.h"

#include "lib/base/status.h"
#include "lib/kernels/attention/attention_cpu.h"
#include "lib/kernels/host.h"

enum { LANE_COUNT = 16, GROUP_ROWS = 8 };

uint64_t slc_attention_forward_floats(const slc_attention_shape *s)
{
    const uint64_t keys = ATTENTION_FORWARD_KEYS, queries = ATTENTION_FORWARD_QUERIES;
    uint64_t padded = attention_padded(s->head_size, LANE_COUNT);
    uint64_t values = s->head_size % LANE_COUNT ? s->tokens * padded : 0;
    return GROUP_ROWS * keys + queries * (padded + LANE_COUNT) + values +
           attention_padded(s->tokens, keys) * s->head_size;
}

uint64_t slc_attention_backward_floats(const slc_attention_shape *s)
{
    const uint64_t keys = ATTENTION_BACKWARD_KEYS, queries = ATTENTION_BACKWARD_QUERIES;
    uint64_t padded = attention_padded(s->head_size, LANE_COUNT);
    uint64_t whole = s->head_size % LANE_COUNT ? s->tokens * padded : 0;
    return 2 * s->head_size * keys + 2 * queries * keys + 2 * keys * padded + s->tokens * padded +
           attention_padded(s->tokens, LANE_COUNT) + 3 * whole;
}

static uint64_t part_floats(const slc_attention_shape *shape)
{
    uint64_t forward = slc_attention_forward_floats(shape), backward = slc_attention_backward_floats(shape);
    return attention_padded(forward > backward ? forward : backward, LANE_COUNT);
}

uint64_t slc_attention_workspace_bytes(const slc_stream *stream, const slc_attention_shape *shape)
{
    return slc_host_parts(stream, shape->batch * shape->heads, 1) * part_floats(shape) * sizeof(float);
}

static sluice_status check(const slc_stream *stream, const slc_attention_shape *shape, const char *what)
{
    if (!shape->head_size || !shape->heads)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel %s: no heads, or heads of size 0", what);
    return slc_host_check(stream, what);
}

sluice_status slc_attention_forward(slc_stream *stream, const slc_attention_shape *shape, const float *qkv, float *out,
                                    float *logsumexp, void *workspace)
{
    sluice_status status = check(stream, shape, "attention_forward");
    if (status) return status;
    slc_attention_forward_args args = {.shape = *shape,
                                       .qkv = qkv,
                                       .out = out,
                                       .logsumexp = logsumexp,
                                       .workspace = workspace,
                                       .workspace_floats = part_floats(shape)};
    slc_host_run(stream, shape->batch * shape->heads, 1, 1, SLC_ISA_PICK(slc_attention_forward_range), &args);
    return SLUICE_OK;
}

sluice_status slc_attention_backward(slc_stream *stream, const slc_attention_shape *shape, const float *qkv,
                                     const float *out, const float *logsumexp, const float *dout, float *dqkv,
                                     void *workspace)
{
    sluice_status status = check(stream, shape, "attention_backward");
    if (status) return status;
    slc_attention_backward_args args = {.shape = *shape,
                                        .qkv = qkv,
                                        .out = out,
                                        .logsumexp = logsumexp,
                                        .dout = dout,
                                        .dqkv = dqkv,
                                        .workspace = workspace,
                                        .workspace_floats = part_floats(shape)};
    slc_host_run(stream, shape->batch * shape->heads, 1, 1, SLC_ISA_PICK(slc_attention_backward_range), &args);
    return SLUICE_OK;
}
