/* On the host the matrices, 1 MiB each, stay in a core's second-level cache, or in the part of it that others leave
 * free. On a GPU they grow until a product lasts long enough to be queued without a pause.
 * tests/command/measure/perf_test.sh covers this file. The GPU's part is in
 * tests/command/gpu/several_gpus_link_test.sh. */
#include "bench/perf/compute_loop.h"

#include "bench/perf/mirror.h"
#include "lib/base/status.h"
#include "lib/device/pieces.h"
#include "lib/kernels/gemm/gemm.h"

#include <stdlib.h>

enum { HOST_SIDE = 512, LEAST_SIDE = 128, MOST_SIDE = 4096, PAGE = 4096, TRIES = 4 };
static const double long_enough_s = 100e-6;

struct slc_compute_loop {
    slc_device *device;
    sluice_stream stream;
    slc_gemm_shape shape;
    slc_segment segment; /* has the matrices and the workspace */
    slc_gemm_operands operands;
    void *workspace;
    uint64_t workspace_bytes;
    slc_pieces *pieces; /* NULL on the host, and before begin */
};

double slc_compute_loop_step_flop(const slc_compute_loop *loop)
{
    return 2.0 * (double)loop->shape.m * (double)loop->shape.n * (double)loop->shape.k;
}

/* ---- The matrices ---- */

static uint64_t pages(uint64_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Writes small whole numbers of either type. */
static sluice_status write_matrix(slc_compute_loop *loop, char *matrix)
{
    const uint64_t count = loop->shape.m * loop->shape.k, each = sluice_dtype_bytes(loop->shape.dtype);
    slc_mirror mirror;
    sluice_status status = slc_mirror_init(&loop->stream, matrix, count * each, &mirror);
    for (uint64_t i = 0; !status && i < count; i++) {
        const float value = (float)(i % 7) - 3;
        if (loop->shape.dtype == SLUICE_BF16)
            ((uint16_t *)(void *)mirror.seen)[i] = sluice_bf16_from_float(value);
        else
            ((float *)(void *)mirror.seen)[i] = value;
    }
    if (!status) status = slc_mirror_give(&mirror, count * each);
    slc_mirror_fini(&mirror);
    return status;
}

/* Replaces the matrices by others. */
static sluice_status make_matrices(slc_compute_loop *loop, uint64_t side)
{
    const sluice_dtype dtype = slc_device_runs_ahead(loop->device) ? SLUICE_BF16 : SLUICE_FP32;
    const uint64_t bytes = pages(side * side * sluice_dtype_bytes(dtype));
    slc_segment_destroy(&loop->segment);
    loop->shape = (slc_gemm_shape){.dtype = dtype, .out = dtype, .transpose_b = true, .m = side, .n = side, .k = side};
    sluice_status status = slc_gemm_workspace_bytes(&loop->stream, &loop->shape, &loop->workspace_bytes);
    if (!status) status = slc_segment_create(loop->device, 3 * bytes + loop->workspace_bytes, &loop->segment);
    if (status) return status;
    char *base = loop->segment.base;
    loop->operands = (slc_gemm_operands){.a = base, .b = base + bytes, .c = base + 2 * bytes};
    loop->workspace = base + 3 * bytes;
    status = write_matrix(loop, base);
    if (!status) status = write_matrix(loop, base + bytes);
    if (!status) status = slc_compute_loop_step(loop); /* the first one takes longer */
    return status ? status : slc_stream_synchronize(&loop->stream);
}

static sluice_status time_step(slc_compute_loop *loop, double *seconds)
{
    sluice_status status = slc_compute_loop_begin(loop);
    for (int i = 0; !status && i < TRIES; i++) status = slc_compute_loop_step(loop);
    if (!status) status = slc_compute_loop_end(loop);
    if (!status) *seconds = slc_compute_loop_step_s(loop);
    return status;
}

static sluice_status prepare(slc_compute_loop *loop)
{
    sluice_status status = slc_stream_create(loop->device, 1, &loop->stream);
    if (status || !slc_device_runs_ahead(loop->device)) return status ? status : make_matrices(loop, HOST_SIDE);
    double seconds = 0;
    for (uint64_t side = LEAST_SIDE; !status && side <= MOST_SIDE && seconds < long_enough_s; side *= 2) {
        status = make_matrices(loop, side);
        if (!status) status = time_step(loop, &seconds);
    }
    return status;
}

sluice_status slc_compute_loop_open(slc_device *device, slc_compute_loop **out)
{
    slc_compute_loop *loop = calloc(1, sizeof *loop);
    if (!loop) return slc_error(SLUICE_ERR_MEMORY, "matrices");
    loop->device = device;
    sluice_status status = prepare(loop);
    if (status) {
        slc_compute_loop_close(loop);
        return status;
    }
    *out = loop;
    return SLUICE_OK;
}

void slc_compute_loop_close(slc_compute_loop *loop)
{
    if (!loop) return;
    slc_pieces_destroy(loop->pieces);
    slc_segment_destroy(&loop->segment);
    slc_stream_destroy(&loop->stream);
    free(loop);
}

/* ---- Steps ---- */

sluice_status slc_compute_loop_step(slc_compute_loop *loop)
{
    sluice_status status =
        slc_gemm(&loop->stream, &loop->shape, &loop->operands, loop->workspace, loop->workspace_bytes);
    return status || !loop->pieces ? status : slc_pieces_note(loop->pieces);
}

sluice_status slc_compute_loop_begin(slc_compute_loop *loop)
{
    slc_pieces_destroy(loop->pieces);
    loop->pieces = NULL;
    return slc_device_runs_ahead(loop->device) ? slc_pieces_create(&loop->stream, &loop->pieces) : SLUICE_OK;
}

sluice_status slc_compute_loop_end(slc_compute_loop *loop)
{
    return loop->pieces ? slc_pieces_wait(loop->pieces) : SLUICE_OK;
}

sluice_status slc_compute_loop_between(const slc_compute_loop *loop, const slc_event *from, const slc_event *to,
                                       double *steps)
{
    return slc_pieces_between(loop->pieces, from, to, steps);
}

double slc_compute_loop_step_s(const slc_compute_loop *loop)
{
    return slc_pieces_mean_s(loop->pieces);
}
