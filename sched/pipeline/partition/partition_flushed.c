/* The programme over possible maxima: with every t_s at most some cap, the least sum and tail are found stage by stage.
 * partition_test.c covers this file. */
#include "sched/pipeline/partition/partition.h"

#include "lib/base/bisect.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"
#include "sched/pipeline/partition/chain_sums.h"

#include <math.h>
#include <stdlib.h>

enum { NONE = UINT32_MAX };

/* Sums in another order differ by less than this share. */
static const double ROUNDING = 1e-12;

/* One way to cut the layers before some layer into stages: no other has both less sum and less tail. */
typedef struct {
    double sum_s, tail_s, most_s;
    uint32_t first_layer; /* of the last of these stages */
    uint32_t before;      /* the way, of the layers before that, that it goes on from; NONE */
    uint32_t next;        /* of the same stages and layers; NONE */
} way;

typedef struct {
    const slc_flushed_partition *in;
    uint32_t layers, stages;
    slc_chain_sums sums;
    double *tail_s; /* [layers + 1] of the layers before each */
    way *ways;
    uint32_t way_count, way_capacity;
    uint32_t *first_way; /* [(stages + 1) * (layers + 1)] ways to cut the first layers into so many stages; NONE */
    bool failed;
} search;

static double stage_s(const search *s, uint32_t first, uint32_t end)
{
    const double *cut_s = s->in->cut_s;
    double sum_s = slc_chain_s(&s->sums, first, end);
    if (cut_s && first) sum_s += cut_s[first - 1];
    if (cut_s && end < s->layers) sum_s += cut_s[end - 1];
    return sum_s;
}

static double tail_of(const search *s, uint32_t stage, uint32_t first, uint32_t end)
{
    return fmax(0, s->tail_s[end] - s->tail_s[first] - (s->in->hidden_s ? s->in->hidden_s[stage] : 0));
}

static uint64_t bytes_of(const search *s, uint32_t stage, uint32_t first, uint32_t end)
{
    return slc_chain_bytes(&s->sums, first, end, 1, s->in->held ? s->in->held[stage] : 1);
}

static bool may_end(const search *s, uint32_t end)
{
    return end == s->layers || slc_chain_may_cut(&s->in->chain, end);
}

static uint32_t *ways_of(const search *s, uint32_t stages, uint32_t end)
{
    return &s->first_way[(size_t)stages * (s->layers + 1) + end];
}

/* Keeps a way unless another is as good in both; drops those that it is as good as. */
static void keep_way(search *s, uint32_t stages, uint32_t end, way found)
{
    uint32_t *head = ways_of(s, stages, end);
    for (uint32_t *link = head; *link != NONE;) {
        const way *other = &s->ways[*link];
        if (other->sum_s <= found.sum_s && other->tail_s <= found.tail_s) return;
        if (found.sum_s <= other->sum_s && found.tail_s <= other->tail_s)
            *link = other->next;
        else
            link = &s->ways[*link].next;
    }
    if (s->way_count == s->way_capacity) {
        const uint32_t capacity = s->way_capacity ? 2 * s->way_capacity : 256;
        way *grown = realloc(s->ways, capacity * sizeof *grown);
        if (!grown) {
            s->failed = true;
            return;
        }
        s->ways = grown;
        s->way_capacity = capacity;
    }
    found.next = *head;
    s->ways[s->way_count] = found;
    *head = s->way_count++;
}

/* Returns true if a stage of these layers is allowed and takes at most `cap_s`. *longer is false if a stage with more
 * layers after them could not be either. */
static bool may_have(const search *s, uint32_t stage, uint32_t first, uint32_t end, double cap_s, bool *longer)
{
    const uint64_t *limit = s->in->limit_bytes;
    *longer = slc_chain_s(&s->sums, first, end) <= cap_s && !(limit && bytes_of(s, stage, first, end) > limit[stage]);
    return *longer && may_end(s, end) && stage_s(s, first, end) <= cap_s;
}

/* Extends every way to cut the layers before `first` into `stages` stages by one more stage, which ends before `end`.
 * Ways whose sum and tail cannot stay below `below_s` are of no interest. */
static void extend(search *s, uint32_t stages, uint32_t first, uint32_t end, double below_s)
{
    const double takes_s = stage_s(s, first, end), tail_s = tail_of(s, stages, first, end);
    const double left_s = slc_chain_s(&s->sums, end, s->layers);
    for (uint32_t w = *ways_of(s, stages, first); w != NONE; w = s->ways[w].next) {
        const way before = s->ways[w];
        const way found = {
            before.sum_s + takes_s, fmax(before.tail_s, tail_s), fmax(before.most_s, takes_s), first, w, NONE};
        if ((found.sum_s + left_s + found.tail_s) * (1 - ROUNDING) < below_s) keep_way(s, stages + 1, end, found);
    }
}

/* Finds the best way in which no stage takes longer than `cap_s`, among those below `below_s`; NONE: there is none. */
static uint32_t best_within(search *s, double cap_s, double below_s)
{
    s->way_count = 0;
    for (size_t i = 0; i < (size_t)(s->stages + 1) * (s->layers + 1); i++) s->first_way[i] = NONE;
    keep_way(s, 0, 0, (way){.first_layer = 0, .before = NONE});
    for (uint32_t stages = 0; stages < s->stages; stages++)
        for (uint32_t first = stages; first < s->layers; first++) {
            if (*ways_of(s, stages, first) == NONE) continue;
            const uint32_t last_end = s->layers - (s->stages - stages - 1);
            bool longer = true;
            for (uint32_t end = stages + 1 == s->stages ? s->layers : first + 1; end <= last_end && longer; end++)
                if (may_have(s, stages, first, end, cap_s, &longer)) extend(s, stages, first, end, below_s);
        }
    uint32_t best = NONE;
    for (uint32_t w = *ways_of(s, s->stages, s->layers); w != NONE; w = s->ways[w].next)
        if (best == NONE || s->ways[w].sum_s + s->ways[w].tail_s < s->ways[best].sum_s + s->ways[best].tail_s) best = w;
    return best;
}

/* Returns true if there is a way at all in which no stage takes longer than `cap_s`. */
static bool exists_within(search *s, double cap_s)
{
    uint32_t *reached = s->first_way; /* by so many stages, up to this layer */
    const uint32_t width = s->layers + 1;
    for (size_t i = 0; i < (size_t)(s->stages + 1) * width; i++) reached[i] = 0;
    reached[0] = 1;
    for (uint32_t stage = 0; stage < s->stages; stage++)
        for (uint32_t first = stage; first < s->layers; first++) {
            bool longer = reached[(size_t)stage * width + first];
            for (uint32_t end = first + 1; end <= s->layers && longer; end++)
                if (may_have(s, stage, first, end, cap_s, &longer)) reached[(size_t)(stage + 1) * width + end] = 1;
        }
    return reached[(size_t)s->stages * width + s->layers];
}

static void take_cuts(const search *s, uint32_t best, uint32_t *first_layer)
{
    uint32_t stage = s->stages;
    for (uint32_t w = best; stage-- > 0; w = s->ways[w].before) first_layer[stage] = s->ways[w].first_layer;
}

/* Lists all times that a stage can take, ascending and once each. */
static double *possible_maxima(const search *s, size_t *count)
{
    double *maxima = malloc(((size_t)s->layers * (s->layers + 1) / 2 + 1) * sizeof *maxima);
    size_t found = 0, kept = 0;
    if (!maxima) return NULL;
    for (uint32_t first = 0; first < s->layers; first++)
        for (uint32_t end = first + 1; end <= s->layers; end++) maxima[found++] = stage_s(s, first, end);
    slc_sort(maxima, found);
    for (size_t i = 0; i < found; i++)
        if (!i || maxima[i] > maxima[kept - 1]) maxima[kept++] = maxima[i];
    *count = kept;
    return maxima;
}

/* The number of the least cap within which there is a way; `count`: there is none. */
static size_t least_cap(search *s, const double *maxima, size_t count)
{
    SLC_BISECT(size_t, least, 0, count, !exists_within(s, maxima[least]));
    return least;
}

/* Tries the caps from the least one on. A higher cap makes the maximum longer, so it pays only if sum and tail become
 * shorter by more than that. The search ends where even the least sum and tail under any cap would not make up for
 * it. */
static sluice_status go(search *s, uint32_t *first_layer, double *cost_s)
{
    size_t count;
    double *maxima = possible_maxima(s, &count), least_s = slc_chain_s(&s->sums, 0, s->layers);
    *cost_s = INFINITY;
    if (!maxima) return slc_error(SLUICE_ERR_MEMORY, "times of %u layers", s->layers);
    const double more = s->in->micro_batches - 1.0;
    const size_t least = least_cap(s, maxima, count);
    for (size_t c = least; c < count && !s->failed; c++) {
        if (least_s + more * maxima[c] >= *cost_s) break;
        const uint32_t best = best_within(s, maxima[c], *cost_s - more * maxima[c]);
        if (best != NONE) {
            const double found_s = s->ways[best].sum_s + s->ways[best].tail_s + more * s->ways[best].most_s;
            if (found_s < *cost_s) take_cuts(s, best, first_layer);
            *cost_s = fmin(*cost_s, found_s);
        }
        if (c > least) continue;
        const uint32_t any = best_within(s, maxima[count - 1], *cost_s - more * maxima[c]);
        if (any == NONE) break;
        least_s = s->ways[any].sum_s + s->ways[any].tail_s;
    }
    free(maxima);
    return s->failed ? slc_error(SLUICE_ERR_MEMORY, "cuts of %u layers", s->layers) : SLUICE_OK;
}

static sluice_status search_init(search *s, const slc_flushed_partition *in)
{
    const slc_chain *chain = &in->chain;
    const size_t width = (size_t)chain->layers + 1;
    *s = (search){.in = in, .layers = chain->layers, .stages = in->stages};
    if (!in->stages || in->stages > chain->layers)
        return slc_error(SLUICE_ERR_ARGUMENT, "%u stages of %u layers: each stage needs a layer of its own", in->stages,
                         chain->layers);
    s->tail_s = calloc(width, sizeof *s->tail_s);
    s->first_way = calloc(((size_t)in->stages + 1) * width, sizeof *s->first_way);
    if (!s->tail_s || !s->first_way) return slc_error(SLUICE_ERR_MEMORY, "cuts of %u layers", chain->layers);
    for (uint32_t l = 0; l < chain->layers; l++) s->tail_s[l + 1] = s->tail_s[l] + (in->tail_s ? in->tail_s[l] : 0);
    return slc_chain_sums_init(&s->sums, chain);
}

static void search_fini(search *s)
{
    free(s->first_way);
    free(s->ways);
    free(s->tail_s);
    slc_chain_sums_fini(&s->sums);
}

sluice_status slc_partition_flushed(const slc_flushed_partition *in, uint32_t *first_layer, double *cost_s)
{
    search s;
    sluice_status status = search_init(&s, in);
    if (!status) status = go(&s, first_layer, cost_s);
    search_fini(&s);
    return status;
}

/* ---- The least memory ---- */

static sluice_status find_least(search *s, uint32_t *first_layer, uint64_t *bytes)
{
    const size_t cells = ((size_t)s->stages + 1) * (s->layers + 1);
    uint64_t *least = malloc(cells * sizeof *least);
    if (!least) return slc_error(SLUICE_ERR_MEMORY, "cuts of %u layers", s->layers);
    for (size_t i = 0; i < cells; i++) least[i] = UINT64_MAX;
    least[0] = 0;
    for (uint32_t stage = 0; stage < s->stages; stage++)
        for (uint32_t first = stage; first < s->layers; first++) {
            const uint64_t before = least[(size_t)stage * (s->layers + 1) + first];
            if (before == UINT64_MAX) continue;
            for (uint32_t end = first + 1; end <= s->layers; end++) {
                const uint64_t own = bytes_of(s, stage, first, end), most = own > before ? own : before;
                const size_t cell = (size_t)(stage + 1) * (s->layers + 1) + end;
                if (!may_end(s, end) || most >= least[cell]) continue;
                least[cell] = most;
                s->first_way[cell] = first;
            }
        }
    *bytes = least[cells - 1];
    uint32_t end = s->layers;
    for (uint32_t stage = s->stages; *bytes != UINT64_MAX && stage-- > 0; end = first_layer[stage])
        first_layer[stage] = s->first_way[(size_t)(stage + 1) * (s->layers + 1) + end];
    free(least);
    return SLUICE_OK;
}

sluice_status slc_partition_least_bytes(const slc_flushed_partition *in, uint32_t *first_layer, uint64_t *bytes)
{
    search s;
    sluice_status status = search_init(&s, in);
    if (!status) status = find_least(&s, first_layer, bytes);
    search_fini(&s);
    return status;
}
