/* The budget arena: claims are kept in an array sorted by offset, so a claim that overlaps a new one is its
 * neighbour. */
#include "lib/memory/arena.h"

#include "lib/base/bisect.h"
#include "lib/base/status.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

typedef struct {
    uint64_t offset, end;
    const char *what;
    slc_memory_category category;
} claim;

struct slc_arena {
    pthread_mutex_t lock; /* protects all fields below except `segment`, `created` and `reserved`, which change only
                             while nobody uses the arena */
    slc_segment segment;
    uint64_t created, bytes, reserved;
    claim *claims; /* ascending, disjoint */
    size_t count, room;
    uint64_t highest_end;
    uint64_t current[SLC_MEMORY_CATEGORIES], peak[SLC_MEMORY_CATEGORIES];
};

const char *slc_memory_category_name(slc_memory_category category)
{
    switch (category) {
    case SLC_MEMORY_VALUES: return "values";
    case SLC_MEMORY_MASTERS: return "fp32 masters";
    case SLC_MEMORY_GRADIENTS: return "gradients";
    case SLC_MEMORY_OPTIMIZER: return "optimizer state";
    case SLC_MEMORY_GATHERED: return "gathered values";
    case SLC_MEMORY_REDUCED: return "reduced gradients";
    case SLC_MEMORY_COMMUNICATION: return "communication scratch";
    case SLC_MEMORY_ACTIVATIONS: return "activations";
    case SLC_MEMORY_WORKSPACES: return "workspaces";
    case SLC_MEMORY_REPLANNING: return "re-planning";
    case SLC_MEMORY_RESERVED: return "reserved by the program";
    case SLC_MEMORY_CATEGORIES: break;
    }
    return "unknown";
}

static void *address_of(const slc_arena *arena, uint64_t offset)
{
    return (unsigned char *)arena->segment.base + offset;
}

static void poison(slc_arena *arena, uint64_t offset, uint64_t bytes)
{
    if (slc_device_get_kind(arena->segment.device) == SLC_DEVICE_HOST)
        ASAN_POISON_MEMORY_REGION(address_of(arena, offset), bytes);
}

static void unpoison(slc_arena *arena, uint64_t offset, uint64_t bytes)
{
    if (slc_device_get_kind(arena->segment.device) == SLC_DEVICE_HOST)
        ASAN_UNPOISON_MEMORY_REGION(address_of(arena, offset), bytes);
}

sluice_status slc_arena_create(slc_device *device, uint64_t bytes, uint64_t reserved, slc_arena **out)
{
    slc_arena *arena = calloc(1, sizeof *arena);
    if (!arena) return slc_error(SLUICE_ERR_MEMORY, "arena");
    sluice_status status = slc_segment_create(device, bytes, &arena->segment);
    if (status) {
        free(arena);
        return slc_error_context(status, "arena");
    }
    pthread_mutex_init(&arena->lock, NULL);
    arena->created = arena->bytes = bytes;
    arena->reserved = reserved;
    arena->peak[SLC_MEMORY_RESERVED] = reserved;
    poison(arena, 0, arena->segment.bytes);
    *out = arena;
    return SLUICE_OK;
}

void slc_arena_destroy(slc_arena *arena)
{
    if (!arena) return;
    unpoison(arena, 0, arena->segment.bytes);
    slc_segment_destroy(&arena->segment);
    pthread_mutex_destroy(&arena->lock);
    free(arena->claims);
    free(arena);
}

slc_segment *slc_arena_segment(slc_arena *arena)
{
    return &arena->segment;
}

uint64_t slc_arena_most(const slc_arena *arena)
{
    return arena->created;
}

sluice_status slc_arena_replace(slc_arena *arena, slc_segment *larger)
{
    if (arena->count)
        return slc_error(SLUICE_ERR_ORDER, "arena: it is replaced while %s is claimed", arena->claims[0].what);
    unpoison(arena, 0, arena->segment.bytes);
    slc_segment_destroy(&arena->segment);
    arena->segment = *larger;
    arena->created = arena->bytes = larger->bytes;
    *larger = (slc_segment){.fd = -1};
    poison(arena, 0, arena->segment.bytes);
    return SLUICE_OK;
}

/* ---- The sorted claims. The caller holds the lock. ---- */

/* Returns the index of the first claim that ends after `offset`. */
static size_t first_behind(const slc_arena *arena, uint64_t offset)
{
    SLC_BISECT(size_t, low, 0, arena->count, arena->claims[low].end <= offset);
    return low;
}

static sluice_status insert(slc_arena *arena, size_t index, claim added)
{
    if (arena->count == arena->room) {
        size_t room = arena->room ? 2 * arena->room : 256;
        claim *grown = realloc(arena->claims, room * sizeof *grown);
        if (!grown) return slc_error(SLUICE_ERR_MEMORY, "arena: list of claims");
        arena->claims = grown;
        arena->room = room;
    }
    memmove(&arena->claims[index + 1], &arena->claims[index], (arena->count - index) * sizeof *arena->claims);
    arena->claims[index] = added;
    arena->count++;
    return SLUICE_OK;
}

static sluice_status claim_locked(slc_arena *arena, claim added)
{
    size_t index = first_behind(arena, added.offset);
    if (index < arena->count && arena->claims[index].offset < added.end) {
        const claim *other = &arena->claims[index];
        return slc_error(SLUICE_ERR_ORDER,
                         "arena: %s [%" PRIu64 ", %" PRIu64 ") overlaps %s [%" PRIu64 ", %" PRIu64
                         "), which is still claimed",
                         added.what, added.offset, added.end, other->what, other->offset, other->end);
    }
    sluice_status status = insert(arena, index, added);
    if (status) return status;
    uint64_t *current = &arena->current[added.category], *peak = &arena->peak[added.category];
    *current += added.end - added.offset;
    if (*current > *peak) *peak = *current;
    if (added.end > arena->highest_end) arena->highest_end = added.end;
    unpoison(arena, added.offset, added.end - added.offset);
    return SLUICE_OK;
}

static sluice_status release_locked(slc_arena *arena, uint64_t offset, uint64_t end)
{
    size_t index = first_behind(arena, offset);
    claim *held = index < arena->count ? &arena->claims[index] : NULL;
    if (!held || held->offset > offset || held->end < end)
        return slc_error(SLUICE_ERR_ORDER, "arena: release of [%" PRIu64 ", %" PRIu64 "), which no one claim holds%s%s",
                         offset, end, held && held->offset < end ? "; part of it is claimed by " : "",
                         held && held->offset < end ? held->what : "");
    slc_memory_category category = held->category;
    if (held->offset == offset && held->end == end) {
        memmove(held, held + 1, (arena->count - index - 1) * sizeof *held);
        arena->count--;
    } else if (held->offset == offset) {
        held->offset = end;
    } else if (held->end == end) {
        held->end = offset;
    } else {
        claim upper = *held;
        upper.offset = end;
        sluice_status status = insert(arena, index + 1, upper);
        if (status) return status;
        arena->claims[index].end = offset; /* the array may have moved */
    }
    arena->current[category] -= end - offset;
    poison(arena, offset, end - offset);
    return SLUICE_OK;
}

/* ---- Public ---- */

sluice_status slc_arena_claim(slc_arena *arena, slc_memory_category category, const char *what, uint64_t offset,
                              uint64_t bytes, void **out)
{
    if (!bytes || category >= SLC_MEMORY_RESERVED)
        return slc_error(SLUICE_ERR_ARGUMENT, "arena: %s: claim of %" PRIu64 " bytes as %s", what, bytes,
                         slc_memory_category_name(category));
    pthread_mutex_lock(&arena->lock);
    sluice_status status = SLUICE_OK;
    if (offset > arena->bytes || bytes > arena->bytes - offset)
        status = slc_error(SLUICE_ERR_BUDGET, "arena: %s: %" PRIu64 " bytes at %" PRIu64 " end beyond its %" PRIu64,
                           what, bytes, offset, arena->bytes);
    if (!status) status = claim_locked(arena, (claim){offset, offset + bytes, what, category});
    pthread_mutex_unlock(&arena->lock);
    if (!status) *out = address_of(arena, offset);
    return status;
}

sluice_status slc_arena_release(slc_arena *arena, uint64_t offset, uint64_t bytes)
{
    if (!bytes || bytes > UINT64_MAX - offset)
        return slc_error(SLUICE_ERR_ARGUMENT, "arena: release of %" PRIu64 " bytes at %" PRIu64, bytes, offset);
    pthread_mutex_lock(&arena->lock);
    sluice_status status = release_locked(arena, offset, offset + bytes);
    pthread_mutex_unlock(&arena->lock);
    return status;
}

static sluice_status limit_locked(slc_arena *arena, uint64_t bytes)
{
    if (bytes > arena->created)
        return slc_error(SLUICE_ERR_ARGUMENT, "arena: a limit of %" PRIu64 " bytes, created with %" PRIu64, bytes,
                         arena->created);
    const claim *last = arena->count ? &arena->claims[arena->count - 1] : NULL;
    if (last && last->end > bytes)
        return slc_error(SLUICE_ERR_ORDER, "arena: a limit of %" PRIu64 " bytes below %s, which ends at %" PRIu64,
                         bytes, last->what, last->end);
    arena->bytes = bytes;
    return SLUICE_OK;
}

sluice_status slc_arena_limit(slc_arena *arena, uint64_t bytes)
{
    pthread_mutex_lock(&arena->lock);
    sluice_status status = limit_locked(arena, bytes);
    pthread_mutex_unlock(&arena->lock);
    if (status) return status;
    status = slc_segment_populate_range(&arena->segment, 0, bytes);
    if (status) return slc_error_context(status, "arena");
    slc_segment_discard(&arena->segment, bytes, arena->segment.bytes - bytes);
    return SLUICE_OK;
}

static void fill_free_range(slc_arena *arena, uint64_t offset, uint64_t end, void (*fill)(void *memory, uint64_t bytes))
{
    if (end <= offset) return;
    unpoison(arena, offset, end - offset);
    fill(address_of(arena, offset), end - offset);
    poison(arena, offset, end - offset);
}

void slc_arena_fill_free(slc_arena *arena, void (*fill)(void *memory, uint64_t bytes))
{
    uint64_t at = 0;
    pthread_mutex_lock(&arena->lock);
    for (size_t c = 0; c < arena->count; c++) {
        fill_free_range(arena, at, arena->claims[c].offset, fill);
        at = arena->claims[c].end;
    }
    fill_free_range(arena, at, arena->bytes, fill);
    pthread_mutex_unlock(&arena->lock);
}

static uint64_t read_locked(const slc_arena *arena, const uint64_t *value)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&arena->lock; /* reading does not change the arena */
    pthread_mutex_lock(lock);
    uint64_t result = *value;
    pthread_mutex_unlock(lock);
    return result;
}

uint64_t slc_arena_peak(const slc_arena *arena)
{
    return read_locked(arena, &arena->highest_end) + arena->reserved;
}

uint64_t slc_arena_category_peak(const slc_arena *arena, slc_memory_category category)
{
    return read_locked(arena, &arena->peak[category]);
}
