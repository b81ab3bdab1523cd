/* Devices, and memory of the device and pinned memory of the host: NaN when it is fresh, between two pages that no one
 * may touch, and exact to the byte for the address sanitizer. Memory of the device begins at a multiple of 256, which
 * cudaMalloc promises, and at none of 512. */
#include "tests/cuda_emulated/runtime.h"

#include <iterator>
#include <map>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

enum { PAGE = 4096, ALIGNMENT = 256 };

typedef std::map<const char *, emulated_allocation> allocations;

static emulated_lock lock;
static size_t used[EMULATED_DEVICES_MOST]; /* bytes of each device */
static int running;                        /* operations that may touch device memory */
static allocations &all()
{
    static allocations *list = new allocations;
    return *list;
}

static bool guarded()
{
    static const bool guard = emulated_rules.guard && emulated_option(emulated_rules.guard, 0) != 0;
    return guard;
}

static bool on_device(emulated_kind kind)
{
    return kind == EMULATED_DEVICE || kind == EMULATED_MANAGED;
}

/* The bytes between the first page of an allocation and its first byte. */
static size_t lead_of(emulated_kind kind)
{
    return on_device(kind) ? ALIGNMENT : 0;
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void protect(const char *at, const emulated_allocation &a, bool open)
{
    if (a.kind != EMULATED_DEVICE) return;
    const size_t lead = lead_of(a.kind);
    mprotect((void *)(at - lead), whole_pages(lead + a.bytes), open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void emulated_reach(bool open)
{
    if (!guarded()) return;
    lock.lock();
    const int before = open ? running++ : running--;
    if (before == (open ? 0 : 1))
        for (auto &a : all()) protect(a.first, a.second, open);
    lock.unlock();
}

emulated_kind emulated_find(const void *at, size_t bytes, const char **begin, emulated_allocation *found)
{
    emulated_kind kind = EMULATED_UNKNOWN;
    lock.lock();
    auto a = all().upper_bound((const char *)at);
    if (a != all().begin()) {
        a--;
        if ((const char *)at + bytes <= a->first + a->second.bytes && (const char *)at < a->first + a->second.pages) {
            kind = a->second.kind;
            if (begin) *begin = a->first;
            if (found) *found = a->second;
        }
    }
    lock.unlock();
    return kind;
}

uint64_t emulated_memory()
{
    return emulated_option(emulated_rules.memory, emulated_rules.memory_bytes);
}

/* A test may take memory away from a GPU of which more is in use. */
static size_t bytes_left(int device)
{
    const size_t all = emulated_memory();
    return used[device] < all ? all - used[device] : 0;
}

static cudaError_t allocate(void **out, size_t bytes, emulated_kind kind, int device)
{
    const size_t pages = whole_pages(bytes), lead = lead_of(kind), mapped = whole_pages(lead + bytes);
    lock.lock();
    const bool fits = pages >= bytes && mapped >= bytes && (!on_device(kind) || pages <= bytes_left(device));
    if (fits && on_device(kind)) used[device] += pages;
    lock.unlock();
    if (!fits) return cudaErrorMemoryAllocation;
    char *base = (char *)mmap(NULL, mapped + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        lock.lock();
        if (on_device(kind)) used[device] -= pages;
        lock.unlock();
        return cudaErrorMemoryAllocation;
    }
    char *at = base + PAGE + lead;
    mprotect(base + PAGE, mapped, PROT_READ | PROT_WRITE);
    memset(base + PAGE, 0xff, mapped);
    ASAN_POISON_MEMORY_REGION(base + PAGE, lead);
    ASAN_POISON_MEMORY_REGION(at + bytes, mapped - lead - bytes);
    const emulated_allocation a = {bytes, pages, kind, device};
    lock.lock();
    all()[at] = a;
    if (guarded() && !running) protect(at, a, false);
    lock.unlock();
    *out = at;
    return cudaSuccess;
}

cudaError_t emulated_allocate(void **out, size_t bytes, emulated_kind kind)
{
    if (emulated_sticky()) return emulated_sticky();
    *out = NULL;
    if (cudaError_t error = emulated_unsafe_call()) return emulated_error(error);
    emulated_allocations++;
    return bytes ? emulated_error(allocate(out, bytes, kind, emulated_device())) : cudaSuccess;
}

bool emulated_register(void *at, size_t bytes)
{
    lock.lock();
    auto next = all().upper_bound((const char *)at);
    bool taken = next != all().end() && next->first < (const char *)at + bytes;
    if (!taken && next != all().begin()) {
        auto before = std::prev(next);
        taken = before->first + before->second.pages > (const char *)at;
    }
    if (!taken) all()[(const char *)at] = {bytes, bytes, EMULATED_REGISTERED, emulated_device()};
    lock.unlock();
    return !taken;
}

cudaError_t emulated_release(void *at, emulated_kind kind)
{
    lock.lock();
    auto a = all().find((const char *)at);
    const bool is_it = a != all().end() && a->second.kind == kind;
    const size_t bytes = is_it ? a->second.bytes : 0;
    if (is_it && on_device(kind)) used[a->second.device] -= a->second.pages;
    if (is_it) all().erase(a);
    lock.unlock();
    if (!is_it) {
        emulated_forbidden("memory is freed that was not allocated so");
        return cudaErrorInvalidValue;
    }
    if (kind == EMULATED_REGISTERED) return cudaSuccess;
    const size_t lead = lead_of(kind), mapped = whole_pages(lead + bytes);
    ASAN_UNPOISON_MEMORY_REGION((char *)at - lead, mapped);
    munmap((char *)at - lead - PAGE, mapped + 2 * PAGE);
    return cudaSuccess;
}

/* Waits for the streams of the memory's device, and frees it. */
static cudaError_t release(void *at, emulated_kind kind)
{
    if (!at) return emulated_sticky();
    if (cudaError_t error = emulated_unsafe_call()) return emulated_error(error);
    emulated_allocation a = {};
    emulated_find(at, 0, NULL, &a);
    emulated_allocations++;
    emulated_waits++;
    emulated_wait_for_device(a.kind == EMULATED_DEVICE ? a.device : emulated_device());
    if (kind == EMULATED_DEVICE && a.kind == EMULATED_MANAGED) kind = a.kind;
    cudaError_t error = emulated_release(at, kind);
    return error ? emulated_error(error) : emulated_sticky();
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    return emulated_allocate(out, bytes, EMULATED_DEVICE);
}

cudaError_t cudaFree(void *at)
{
    return release(at, EMULATED_DEVICE);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned)
{
    return emulated_allocate(out, bytes, EMULATED_PINNED);
}

cudaError_t cudaFreeHost(void *at)
{
    return release(at, EMULATED_PINNED);
}

/* ---- Devices ---- */

enum { NONE = -1 };
static __thread int current_device = NONE; /* of a thread that has asked nothing of a device yet */

int emulated_device()
{
    if (current_device == NONE) current_device = 0;
    return current_device;
}

int emulated_chosen_device()
{
    return current_device;
}

void emulated_choose_device(int device)
{
    current_device = device;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = (int)emulated_option(emulated_rules.devices, emulated_rules.device_count);
    if (*count > EMULATED_DEVICES_MOST) *count = EMULATED_DEVICES_MOST;
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int device)
{
    int count;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error) return emulated_error(error);
    if (device < 0 || device >= count) return emulated_error(cudaErrorInvalidDevice);
    current_device = device;
    return emulated_sticky();
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    lock.lock();
    *total = emulated_memory(), *free_bytes = bytes_left(emulated_device());
    lock.unlock();
    return emulated_sticky();
}
