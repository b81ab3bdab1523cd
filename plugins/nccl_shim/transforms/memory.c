/* A list of ranges under a lock that is held for its search alone. */
#include "plugins/nccl_shim/transforms/memory.h"

#include "lib/base/log.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct {
    const void *handle;
    const char *begin;
    size_t bytes;
} range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static range *ranges;
static size_t range_count, range_capacity;

static bool make_room(void)
{
    if (range_count < range_capacity) return true;
    const size_t capacity = range_capacity ? 2 * range_capacity : 64;
    range *larger = realloc(ranges, capacity * sizeof *larger);
    if (!larger) return false;
    ranges = larger, range_capacity = capacity;
    return true;
}

void slc_memory_add(const void *handle, const void *address, size_t bytes)
{
    pthread_mutex_lock(&lock);
    const bool fits = make_room();
    if (fits) ranges[range_count++] = (range){handle, address, bytes};
    pthread_mutex_unlock(&lock);
    if (!fits) slc_log(SLC_LOG_ERROR, "the NCCL shim has no memory for its list of registered buffers");
}

void slc_memory_drop(const void *handle)
{
    pthread_mutex_lock(&lock);
    for (size_t i = range_count; i-- > 0;)
        if (ranges[i].handle == handle) {
            ranges[i] = ranges[--range_count];
            break;
        }
    pthread_mutex_unlock(&lock);
}

bool slc_memory_is_known(const void *at, size_t bytes)
{
    const char *begin = at;
    bool known = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; !known && i < range_count; i++)
        known = begin < ranges[i].begin + ranges[i].bytes && ranges[i].begin < begin + bytes;
    pthread_mutex_unlock(&lock);
    return known;
}
