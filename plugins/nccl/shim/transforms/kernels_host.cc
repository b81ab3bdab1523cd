/* The transforms' kernels on the host, for machines without a GPU: the same source, in a library that the tests' CUDA
 * loads (tests/nccl/bed/hostcuda/hostcuda.h). Kernels whose threads meet run as fibers; the others as plain loops,
 * which takes a tenth of the time. */
#include "plugins/nccl/shim/transforms/kernels_cuda.cu"

#include "tests/cuda_emulated/runtime.h"
#include "tests/nccl/bed/hostcuda/hostcuda.h"

/* ---- What fibers.cc asks of the emulation ---- */

uint64_t emulated_seed()
{
    static const char *text = getenv("SLUICE_EMULATED_SEED");
    return text ? strtoull(text, NULL, 0) : 0;
}

uint64_t emulated_draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* ---- Launches ---- */

namespace {
struct fibers_end { /* with the stream's thread */
    ~fibers_end()
    {
        emulated_end_fibers();
    }
};
} // namespace

static emulated_grid grid_of(const hostcuda_launch *launch, void (*call)(const void *arguments))
{
    return {launch->name,
            NULL,
            {launch->grid[0], launch->grid[1], launch->grid[2]},
            {launch->block[0], launch->block[1], launch->block[2]},
            launch->shared_bytes,
            call};
}

static void run_as_fibers(const hostcuda_launch *launch, void (*call)(const void *arguments))
{
    static thread_local fibers_end ends;
    (void)&ends;
    const emulated_grid grid = grid_of(launch, call);
    emulated_run_grid(&grid, launch->arguments[0]);
}

/* Runs blocks of `threads` threads. */
static void run_as_loops(const hostcuda_launch *launch, unsigned threads, void (*call)(const void *arguments))
{
    emulated_fiber thread = {};
    emulated_fiber *const outer = emulated_thread;
    const unsigned *g = launch->grid;
    emulated_thread = &thread;
    emulated_where.grid = {g[0], g[1], g[2]};
    emulated_where.threads = {threads, 1, 1};
    for (unsigned block = 0; block < g[0] * g[1]; block++) {
        emulated_where.index = {block % g[0], block / g[0], 0};
        for (unsigned t = 0; t < threads; t++) {
            thread.thread = {t, 0, 0};
            call(launch->arguments[0]);
        }
    }
    emulated_thread = outer;
}

/* ---- The kernels ---- */

static void gather(const hostcuda_launch *launch)
{
    run_as_loops(launch, 1, [](const void *pieces) { gather_piece(*(const slc_shim_pieces *)pieces); });
}

static void scatter(const hostcuda_launch *launch)
{
    run_as_loops(launch, 1, [](const void *pieces) { scatter_piece(*(const slc_shim_pieces *)pieces); });
}

static void worker(const hostcuda_launch *launch)
{
    run_as_fibers(launch, [](const void *arguments) {
        SLC_SHARED(gpu_bins, bins);
        compress_worker(&bins, *(const slc_compress_cuda_worker *)arguments);
    });
}

static void server(const hostcuda_launch *launch)
{
    run_as_fibers(launch, [](const void *arguments) {
        SLC_SHARED(gpu_bins, bins);
        compress_server(&bins, *(const slc_compress_cuda_server *)arguments);
    });
}

static void results(const hostcuda_launch *launch)
{
    run_as_loops(launch, launch->block[0],
                 [](const void *arguments) { compress_results(*(const slc_compress_cuda_results *)arguments); });
}

template <class T> static void register_kernel(const char *name, hostcuda_kernel *kernel)
{
    static const size_t bytes[] = {sizeof(T), 0};
    hostcuda_register_kernel(name, kernel, bytes);
}

__attribute__((constructor)) static void register_kernels()
{
    register_kernel<slc_shim_pieces>(SHIM_KERNEL_GATHER, gather);
    register_kernel<slc_shim_pieces>(SHIM_KERNEL_SCATTER, scatter);
    register_kernel<slc_compress_cuda_worker>(SHIM_KERNEL_WORKER, worker);
    register_kernel<slc_compress_cuda_server>(SHIM_KERNEL_SERVER, server);
    register_kernel<slc_compress_cuda_results>(SHIM_KERNEL_RESULTS, results);
}
