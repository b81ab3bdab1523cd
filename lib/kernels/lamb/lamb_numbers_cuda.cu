/* A thread a parameter, and as many in a launch as fit the arguments of a kernel. */
#include "lib/kernels/lamb/lamb_rules.h"

#include "lib/kernels/gpu.cuh"

struct numbers_batch {
    slc_lamb_rules rules;
    uint32_t count;
    slc_lamb_parameter parameters[GPU_LANES];
};

/* Each thread copies what it needs of the arguments: to take an address of them would make the compiler copy all of
 * them. */
static __global__ void __launch_bounds__(GPU_LANES) average(numbers_batch batch)
{
    if (threadIdx.x >= batch.count) return;
    const slc_lamb_rules rules = batch.rules;
    const slc_lamb_parameter parameter = batch.parameters[threadIdx.x];
    lamb_average(&rules, &parameter);
}

static __global__ void __launch_bounds__(GPU_LANES) factor(numbers_batch batch)
{
    if (threadIdx.x >= batch.count) return;
    const slc_lamb_rules rules = batch.rules;
    const slc_lamb_parameter parameter = batch.parameters[threadIdx.x];
    lamb_factor(&rules, &parameter);
}

static sluice_status launch(sluice_stream *stream, const char *name, void (*kernel)(numbers_batch),
                            const slc_lamb_rules *rules, uint32_t count, const slc_lamb_parameter *parameters)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t done = 0; !status && done < count; done += GPU_LANES) {
        numbers_batch batch = {};
        batch.rules = *rules;
        batch.count = count - done < GPU_LANES ? count - done : (uint32_t)GPU_LANES;
        for (uint32_t i = 0; i < batch.count; i++) batch.parameters[i] = parameters[done + i];
        GPU_START(kernel, dim3(1), dim3(GPU_LANES), 0, slc_cuda_stream(stream), batch);
        status = slc_cuda_launched(stream, name);
    }
    return status;
}

sluice_status slc_lamb_average_cuda(sluice_stream *stream, const slc_lamb_rules *rules, uint32_t count,
                                    const slc_lamb_parameter *parameters)
{
    return launch(stream, "lamb_average", average, rules, count, parameters);
}

sluice_status slc_lamb_factor_cuda(sluice_stream *stream, const slc_lamb_rules *rules, uint32_t count,
                                   const slc_lamb_parameter *parameters)
{
    return launch(stream, "lamb_factor", factor, rules, count, parameters);
}
