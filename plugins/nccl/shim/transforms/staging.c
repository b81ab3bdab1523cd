/* A list of shares for each GPU, in the order of their places, under one lock.
 * tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/transforms/staging.h"

#include <pthread.h>
#include <string.h>

typedef struct {
    slc_shim_cu_address memory; /* 0: none */
    uint64_t limit, used;
    slc_shim_staging_share *first;
} staging;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static staging stagings[SLC_SHIM_GPUS];

/* Finds the largest hole; *link is where a share in it comes in the list. */
static uint64_t largest_hole(staging *s, uint64_t *begin, slc_shim_staging_share ***link)
{
    uint64_t largest = 0, end = 0;
    *begin = 0, *link = &s->first;
    for (slc_shim_staging_share **at = &s->first;; at = &(*at)->next) {
        const uint64_t hole = (*at ? (*at)->begin : s->limit) - end;
        if (hole > largest) largest = hole, *begin = end, *link = at;
        if (!*at) return largest;
        end = (*at)->begin + (*at)->bytes;
    }
}

sluice_status slc_shim_staging_take(const slc_shim_gpu *gpu, uint64_t limit, slc_shim_staging_share *share)
{
    staging *s = &stagings[slc_shim_gpu_number(gpu)];
    sluice_status status = SLUICE_OK;
    slc_shim_staging_share **link;
    uint64_t begin;
    pthread_mutex_lock(&lock);
    if (!s->memory) {
        status = slc_shim_cu_status(slc_shim_cu()->MemAlloc(&s->memory, limit), "cuMemAlloc of SLUICE_SHIM_STAGING");
        s->limit = limit / SLC_SHIM_STAGING_UNIT * SLC_SHIM_STAGING_UNIT;
        if (status) s->memory = 0;
    }
    const uint64_t bytes =
        status ? 0 : largest_hole(s, &begin, &link) / 2 / SLC_SHIM_STAGING_UNIT * SLC_SHIM_STAGING_UNIT;
    if (bytes) {
        *share = (slc_shim_staging_share){
            .gpu = gpu, .memory = s->memory + begin, .begin = begin, .bytes = bytes, .next = *link};
        *link = share;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void slc_shim_staging_shrink(slc_shim_staging_share *share, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    if (bytes < share->bytes) share->bytes = bytes;
    pthread_mutex_unlock(&lock);
}

void slc_shim_staging_give(slc_shim_staging_share *share)
{
    if (!share->gpu) return;
    staging *s = &stagings[slc_shim_gpu_number(share->gpu)];
    pthread_mutex_lock(&lock);
    for (slc_shim_staging_share **at = &s->first; *at; at = &(*at)->next)
        if (*at == share) {
            *at = share->next;
            s->used -= share->peak;
            break;
        }
    pthread_mutex_unlock(&lock);
    *share = (slc_shim_staging_share){0};
}

void slc_shim_staging_free_unused(const slc_shim_gpu *gpu)
{
    staging *s = &stagings[slc_shim_gpu_number(gpu)];
    slc_shim_cu_address unused = 0;
    pthread_mutex_lock(&lock);
    if (!s->first) unused = s->memory, s->memory = 0;
    pthread_mutex_unlock(&lock);
    if (unused) slc_shim_cu()->MemFree(unused);
}

uint64_t slc_shim_staging_note(slc_shim_staging_share *share, uint64_t used)
{
    if (used <= share->peak) return 0;
    staging *s = &stagings[slc_shim_gpu_number(share->gpu)];
    pthread_mutex_lock(&lock);
    s->used += used - share->peak;
    share->peak = used;
    const uint64_t together = s->used;
    pthread_mutex_unlock(&lock);
    return together;
}

void slc_shim_staging_child(void)
{
    pthread_mutex_init(&lock, NULL);
    memset(stagings, 0, sizeof stagings);
}
