/* The limits of launches, as a GPU has them: threads of a block, blocks of a grid, and the shared memory that a kernel
 * may have, more than 48 KiB of it only if it was asked for. */
#include "tests/cuda_emulated/limits.h"

#include <unordered_map>

enum { THREADS_MOST = 1024, BLOCK_Z_MOST = 64, GRID_X_MOST = 0x7fffffff, GRID_MOST = 65535 };
constexpr size_t SHARED_WITHOUT_ASKING = 48 << 10;

static emulated_lock lock;
static std::unordered_map<uint64_t, size_t> &asked_shared()
{
    static std::unordered_map<uint64_t, size_t> *asked = new std::unordered_map<uint64_t, size_t>;
    return *asked;
}

cudaError_t emulated_ask_shared(uint64_t kernel, int bytes)
{
    if (emulated_sticky()) return emulated_sticky();
    if (bytes < 0 || (size_t)bytes > emulated_rules.shared_bytes) return emulated_error(cudaErrorInvalidValue);
    lock.lock();
    asked_shared()[kernel] = (size_t)bytes;
    lock.unlock();
    return cudaSuccess;
}

static size_t shared_limit(uint64_t kernel)
{
    lock.lock();
    auto found = asked_shared().find(kernel);
    const size_t limit = found == asked_shared().end() ? 0 : found->second;
    lock.unlock();
    return limit > SHARED_WITHOUT_ASKING ? limit : SHARED_WITHOUT_ASKING;
}

cudaError_t emulated_check_launch(uint64_t kernel, const emulated_shape &grid, const emulated_shape &block,
                                  size_t shared)
{
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (emulated_sticky()) return emulated_sticky();
    if (shared > shared_limit(kernel)) return emulated_error(cudaErrorInvalidValue);
    const bool block_fits = threads && threads <= THREADS_MOST && block.z <= BLOCK_Z_MOST;
    const uint64_t most = grid.y > 1 || grid.z > 1 ? emulated_option("SLUICE_EMULATED_GRID", GRID_MOST) : 1;
    const bool grid_fits = grid.x && grid.y && grid.z && grid.x <= GRID_X_MOST && grid.y <= most && grid.z <= most;
    return block_fits && grid_fits ? cudaSuccess : emulated_error(cudaErrorInvalidConfiguration);
}
