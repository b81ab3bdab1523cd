/* The matrices, 1 MiB each, stay in a core's second-level cache, or in the part of it that others leave free.
 * tests/command/perf_test.sh covers this file. */
#include "bench/perf/compute_loop.h"

#include "lib/base/status.h"
#include "lib/kernels/gemm/gemm.h"

#include <stdlib.h>

enum { SIDE = 512 };

double slc_compute_loop_step_flop(void)
{
    return 2.0 * SIDE * SIDE * SIDE;
}

enum { LINE = 64 };
static const slc_gemm_shape shape = {.transpose_b = true, .m = SIDE, .n = SIDE, .k = SIDE};

struct slc_compute_loop {
    sluice_stream stream;
    float *a, *b, *c;
    void *workspace;
    uint64_t workspace_bytes;
};

static void *lines(uint64_t bytes)
{
    return aligned_alloc(LINE, bytes / LINE * LINE + LINE);
}

static sluice_status prepare(slc_compute_loop *loop, slc_device *device)
{
    sluice_status status = slc_stream_create(device, 1, &loop->stream);
    if (!status) status = slc_gemm_workspace_bytes(&loop->stream, &shape, &loop->workspace_bytes);
    if (status) return status;
    loop->a = lines(SIDE * SIDE * sizeof(float));
    loop->b = lines(SIDE * SIDE * sizeof(float));
    loop->c = lines(SIDE * SIDE * sizeof(float));
    loop->workspace = lines(loop->workspace_bytes);
    if (!loop->a || !loop->b || !loop->c || !loop->workspace) return slc_error(SLUICE_ERR_MEMORY, "matrices");
    for (int i = 0; i < SIDE * SIDE; i++) loop->a[i] = loop->b[i] = (float)(i % 7) - 3;
    return slc_compute_loop_step(loop);
}

sluice_status slc_compute_loop_open(slc_device *device, slc_compute_loop **out)
{
    slc_compute_loop *loop = calloc(1, sizeof *loop);
    if (!loop) return slc_error(SLUICE_ERR_MEMORY, "matrices");
    sluice_status status = prepare(loop, device);
    if (status) {
        slc_compute_loop_close(loop);
        return status;
    }
    *out = loop;
    return SLUICE_OK;
}

sluice_status slc_compute_loop_step(slc_compute_loop *loop)
{
    const slc_gemm_operands operands = {.a = loop->a, .b = loop->b, .c = loop->c};
    return slc_gemm(&loop->stream, &shape, &operands, loop->workspace, loop->workspace_bytes);
}

void slc_compute_loop_close(slc_compute_loop *loop)
{
    if (!loop) return;
    slc_stream_destroy(&loop->stream);
    free(loop->a);
    free(loop->b);
    free(loop->c);
    free(loop->workspace);
    free(loop);
}
