/* Counts cores and threads host by host. Ranks that are bound to cores have cores of their own; all other ranks share
 * theirs. There are two lower bounds of the threads without a core: the cores that single ranks lack, and the cores
 * that the host lacks. */
#include "bench/train/cores.h"

#include "lib/base/hash/fnv.h"
#include "lib/base/host/boot_id.h"
#include "lib/base/status.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Counting ---- */

static uint64_t count_bits(const uint64_t *words)
{
    uint64_t count = 0;
    for (int w = 0; w < SLC_CORE_WORDS; w++) count += (uint64_t)__builtin_popcountll(words[w]);
    return count;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int by_host(const void *a, const void *b)
{
    const slc_rank_cores *x = a, *y = b;
    return (x->host > y->host) - (x->host < y->host);
}

/* Adds one host, whose ranks are of[0] to of[ranks - 1]. */
static void count_host(const slc_rank_cores *of, uint64_t ranks, slc_cores_use *out)
{
    uint64_t together[SLC_CORE_WORDS] = {0}, of_ranks = 0, even = UINT64_MAX;
    for (uint64_t r = 0; r < ranks; r++) {
        const uint64_t own = count_bits(of[r].allowed);
        for (int w = 0; w < SLC_CORE_WORDS; w++) together[w] |= of[r].allowed[w];
        if (out->threads > own) of_ranks += out->threads - own;
        even = least_of(even, own);
    }
    const uint64_t cores = count_bits(together), threads = ranks * out->threads;
    const uint64_t of_host = threads > cores ? threads - cores : 0, surplus = of_ranks > of_host ? of_ranks : of_host;
    out->cores += cores;
    out->surplus += surplus;
    out->idle += cores - (threads - surplus);
    out->even = least_of(out->even, least_of(even, cores / ranks));
}

void slc_cores_count(slc_rank_cores *of, uint64_t ranks, uint64_t threads, slc_cores_use *out)
{
    *out = (slc_cores_use){.ranks = ranks, .threads = threads, .even = UINT64_MAX};
    qsort(of, ranks, sizeof *of, by_host);
    for (uint64_t first = 0, next; first < ranks; first = next) {
        for (next = first + 1; next < ranks && of[next].host == of[first].host;) next++;
        count_host(of + first, next - first, out);
    }
    if (!out->even) out->even = 1;
}

/* ---- Looking ---- */

/* Returns a number for the host. Containers of one machine share its cores, so only the running kernel counts, and not
 * the name of the host. */
static uint64_t identify_host(void)
{
    char text[256] = "";
    if (!slc_boot_id(text) && gethostname(text, sizeof text - 1)) *text = 0;
    return slc_fnv(SLC_FNV_START, text, strlen(text));
}

static void look_at_this_rank(slc_rank_cores *out)
{
    enum { CORES = SLC_CORE_WORDS * 64 };
    *out = (slc_rank_cores){.host = identify_host()};
    cpu_set_t *set = CPU_ALLOC(CORES);
    const size_t bytes = CPU_ALLOC_SIZE(CORES);
    const bool known = set && !sched_getaffinity(0, bytes, set);
    for (int c = 0; known && c < CORES; c++)
        if (CPU_ISSET_S(c, bytes, set)) out->allowed[c / 64] |= 1ull << c % 64;
    if (set) CPU_FREE(set);
}

sluice_status slc_cores_look(sluice_world *world, uint64_t threads, slc_cores_use *out)
{
    const size_t ranks = (size_t)sluice_world_size(world);
    slc_rank_cores mine, *all = malloc(ranks * sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "the cores of %zu ranks", ranks);
    look_at_this_rank(&mine);
    sluice_status status = sluice_world_all_gather(world, &mine, sizeof mine, all);
    if (!status) slc_cores_count(all, ranks, threads, out);
    free(all);
    return status;
}

void slc_cores_look_alone(uint64_t threads, slc_cores_use *out)
{
    slc_rank_cores mine;
    look_at_this_rank(&mine);
    slc_cores_count(&mine, 1, threads, out);
}

uint64_t slc_cores_idle_each(const slc_cores_use *use)
{
    return (use->idle + use->ranks - 1) / use->ranks;
}

/* ---- Telling ---- */

void slc_cores_words(const slc_cores_use *use, char *out, size_t size)
{
    const char *these = use->ranks == 1 ? "this rank" : "these ranks";
    int used = 0;
    *out = 0;
    if (!use->cores || (!use->surplus && !use->idle)) return;
    if (use->surplus)
        used = snprintf(
            out, size, "%llu thread%s more than there are cores for them, so cores are taken twice (%llu for %s)",
            (unsigned long long)use->surplus, use->surplus == 1 ? "" : "s", (unsigned long long)use->cores, these);
    else
        used = snprintf(out, size, "%llu of the %llu that %s may use stay idle", (unsigned long long)use->idle,
                        (unsigned long long)use->cores, these);
    if (used < 0 || (size_t)used >= size) return;
    if (use->even != use->threads)
        snprintf(out + used, size - (size_t)used, "; --threads %llu %s", (unsigned long long)use->even,
                 use->surplus ? "fits" : "takes them");
    else if (use->surplus)
        snprintf(out + used, size - (size_t)used, "; start fewer ranks on a host");
}
