/* PipeDream's programme on one level or two, with a limit of memory. partition_test.c covers this file. */
#include "sched/pipeline/partition/partition.h"

#include "lib/base/status.h"
#include "sched/pipeline/partition/chain_sums.h"

#include <math.h>
#include <stdlib.h>

/* The best way to cut layers into stages on so many ranks: the last stage's first layer and replicas. */
typedef struct {
    double period_s;
    uint32_t first_layer, replicas; /* first_layer is that of the whole range if it is one stage */
} best_cut;

/* Ranks of the layers behind a range, which itself has so many replicas. They decide how many micro-batches the range's
 * stages hold. */
typedef struct {
    uint64_t ranks;
    uint32_t replicas;
} behind;

typedef struct {
    const slc_steady_partition *in;
    uint32_t layers, hosts, ranks; /* ranks of a host, or of all if there are no hosts */
    slc_chain_sums sums;
    uint32_t *least_first; /* [(ranks of all hosts + 1) * (layers + 1)] by micro-batches held and layers up to: the
                              first layer of the longest stage that fits. NULL: no limit */
    uint32_t *may_begin;   /* [ranks + 1] by the replicas of the stage under trial: from which layer on it fits */
    double *sync_s[2];     /* [replicas of a level + 1] seconds for a byte of values that so many replicas keep equal */
    best_cut *within;      /* [(layers + 1) * (ranks + 1)] one range on one host's ranks: layers up to, ranks */
    best_cut *across;      /* [(layers + 1) * (hosts + 1)] */
    double **one_host; /* [(hosts + 1)^2] by hosts up to and with a stage, and of it: [layers * (layers + 1)] periods of
                          the layers from .. up to .. on one host; 0: not found yet. One for all if no limit asks
                          for more */
} search;

/* Finds the longest stage that fits for each number of micro-batches held and each last layer: one layer more never
 * needs less. */
static bool find_longest(search *s)
{
    const uint64_t most_held = (uint64_t)s->ranks * s->hosts, width = s->layers + 1;
    const uint64_t limit = s->in->limit_bytes;
    if (!limit) return true;
    s->least_first = calloc((most_held + 1) * width, sizeof *s->least_first);
    if (!s->least_first) return false;
    for (uint64_t held = 1; held <= most_held; held++)
        for (uint32_t end = 1, first = 0; end <= s->layers; end++) {
            const uint64_t versions = s->in->versions ? s->in->versions : held;
            while (first < end && slc_chain_bytes(&s->sums, first, end, versions, held) > limit) first++;
            s->least_first[held * width + end] = first;
        }
    return true;
}

static bool find_syncs(search *s)
{
    const double updates = s->in->micro_batches ? s->in->micro_batches : 1;
    for (int k = 0; k < 2; k++) {
        const uint32_t most = k ? s->hosts : s->ranks;
        s->sync_s[k] = calloc((size_t)most + 1, sizeof *s->sync_s[k]);
        if (!s->sync_s[k]) return false;
        for (uint32_t r = 2; r <= most; r++)
            s->sync_s[k][r] = 4 * (r - 1.0) / (r * s->in->levels[k].bytes_per_s) / updates;
    }
    return true;
}

static double replicated_s(const search *s, int level, double time_s, uint32_t first, uint32_t end, uint32_t replicas)
{
    return (time_s + s->sync_s[level][replicas] * (double)slc_chain_values(&s->sums, first, end)) / replicas;
}

/* ---- Within a host ---- */

/* Fills may_begin for a last stage on some of `up_to` ranks: for each number of its replicas, the first layer from
 * which the layers up to `end` fit into it. Returns the least of these layers. */
static uint32_t note_longest(search *s, uint32_t end, uint32_t up_to, const behind *after)
{
    uint32_t least = end;
    for (uint32_t r = 1; r <= up_to; r++) {
        const uint64_t ranks = (uint64_t)(s->ranks - up_to + r) * after->replicas + after->ranks;
        const uint64_t own = (uint64_t)r * after->replicas, held = (ranks + own - 1) / own;
        s->may_begin[r] = s->least_first ? s->least_first[held * (s->layers + 1) + end] : 0;
        if (s->may_begin[r] < least) least = s->may_begin[r];
    }
    return least;
}

static double stage_within(const search *s, uint32_t first, uint32_t end, uint32_t replicas)
{
    if (first < s->may_begin[replicas]) return INFINITY;
    return replicated_s(s, 0, slc_chain_s(&s->sums, first, end), first, end, replicas);
}

/* Tries a last stage of the layers from `first` to `end` on some of `n` ranks, those before it on the others. */
static void try_last_stage(const search *s, uint32_t first, uint32_t end, uint32_t n, best_cut *best)
{
    const double message_s = 2 * (double)s->in->boundary_bytes[first - 1] / s->in->levels[0].bytes_per_s;
    const best_cut *before = &s->within[(size_t)first * (s->ranks + 1)];
    const double takes_s = slc_chain_s(&s->sums, first, end);
    for (uint32_t r = 1; r < n; r++) {
        if (takes_s >= best->period_s * r || before[n - r].period_s >= best->period_s) continue;
        const double period_s = fmax(fmax(before[n - r].period_s, message_s / r), stage_within(s, first, end, r));
        if (period_s < best->period_s) *best = (best_cut){period_s, first, r};
    }
}

/* Fills s->within for the layers from `from` on. */
static void fill_within(search *s, uint32_t from, const behind *after)
{
    const uint32_t width = s->ranks + 1;
    for (uint32_t end = from + 1; end <= s->layers; end++)
        for (uint32_t n = 1; n <= s->ranks; n++) {
            const uint32_t least = note_longest(s, end, n, after);
            best_cut best = {stage_within(s, from, end, n), from, n};
            for (uint32_t first = end; --first > from && first >= least;) {
                if (slc_chain_s(&s->sums, first, end) / n >= best.period_s) break;
                if (slc_chain_may_cut(&s->in->chain, first)) try_last_stage(s, first, end, n, &best);
            }
            s->within[(size_t)end * width + n] = best;
        }
}

/* ---- Across hosts ---- */

static behind behind_hosts(const search *s, uint32_t up_to, uint32_t hosts)
{
    return (behind){(uint64_t)(s->hosts - up_to) * s->ranks, hosts};
}

/* Returns the periods of the layers from `from` up to each layer on one host of a stage that has the last `hosts` of
 * the first `up_to` hosts. They are worked out when they are first asked for. NULL: no memory. */
static const double *periods_on_host(search *s, uint32_t from, uint32_t up_to, uint32_t hosts)
{
    const size_t width = (size_t)s->layers + 1;
    const bool limited = s->in->limit_bytes > 0;
    double **place = &s->one_host[limited ? (size_t)up_to * (s->hosts + 1) + hosts : 0];
    const behind after = behind_hosts(s, up_to, hosts);
    if (!*place) *place = calloc(s->layers * width, sizeof **place);
    if (!*place) return NULL;
    double *periods = *place + from * width;
    if (periods[s->layers] > 0) return periods;
    fill_within(s, from, &after);
    for (uint32_t end = from + 1; end <= s->layers; end++)
        periods[end] = s->within[end * (s->ranks + 1) + s->ranks].period_s;
    return periods;
}

/* Tries a last stage of the layers from `first` to `end` on some of `n` hosts, those before it on the others. */
static bool try_last_hosts(search *s, uint32_t first, uint32_t end, uint32_t n, best_cut *best)
{
    const double message_s = 2 * (double)s->in->boundary_bytes[first - 1] / s->in->levels[1].bytes_per_s;
    const best_cut *before = &s->across[(size_t)first * (s->hosts + 1)];
    const double alone_s = slc_chain_s(&s->sums, first, end) / s->ranks;
    for (uint32_t h = 1; h < n; h++) {
        double period_s = fmax(before[n - h].period_s, message_s / h);
        if (period_s >= best->period_s || alone_s >= best->period_s * h) continue;
        const double *periods = periods_on_host(s, first, n, h);
        if (!periods) return false;
        period_s = fmax(period_s, replicated_s(s, 1, periods[end], first, end, h));
        if (period_s < best->period_s) *best = (best_cut){period_s, first, h};
    }
    return true;
}

/* Fills the table of hosts. All hosts together are only asked for with all layers. */
static sluice_status fill_across(search *s)
{
    for (uint32_t n = 1; n <= s->hosts; n++)
        for (uint32_t end = n < s->hosts ? 1 : s->layers; end <= s->layers; end++) {
            const double *whole = periods_on_host(s, 0, n, n);
            if (!whole) return slc_error(SLUICE_ERR_MEMORY, "cuts of %u layers", s->layers);
            best_cut best = {replicated_s(s, 1, whole[end], 0, end, n), 0, n};
            for (uint32_t first = end; --first > 0;) {
                if (slc_chain_s(&s->sums, first, end) / ((double)n * s->ranks) >= best.period_s) break;
                if (slc_chain_may_cut(&s->in->chain, first) && !try_last_hosts(s, first, end, n, &best))
                    return slc_error(SLUICE_ERR_MEMORY, "cuts of %u layers", s->layers);
            }
            s->across[(size_t)end * (s->hosts + 1) + n] = best;
        }
    return SLUICE_OK;
}

/* ---- The stages ---- */

/* Puts the stages of the layers from `from` up to `end` before those that there are. */
static void prepend_within(search *s, uint32_t from, uint32_t end, uint32_t hosts, const behind *after,
                           slc_steady_stage *stages, uint32_t *count)
{
    fill_within(s, from, after);
    for (uint32_t n = s->ranks; end > from;) {
        const best_cut *cut = &s->within[(size_t)end * (s->ranks + 1) + n];
        stages[(*count)++] = (slc_steady_stage){cut->first_layer, end, cut->replicas, hosts};
        end = cut->first_layer;
        n -= cut->replicas;
    }
}

static void turn_round(slc_steady_stage *stages, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        const slc_steady_stage kept = stages[i];
        stages[i] = stages[count - 1 - i];
        stages[count - 1 - i] = kept;
    }
}

static sluice_status go(search *s, slc_steady_stage *stages, uint32_t *count, double *period_s)
{
    const behind nothing = {0, 1};
    *count = 0;
    if (s->hosts == 1) {
        fill_within(s, 0, &nothing);
        *period_s = s->within[(size_t)s->layers * (s->ranks + 1) + s->ranks].period_s;
        if (isfinite(*period_s)) prepend_within(s, 0, s->layers, 1, &nothing, stages, count);
    } else {
        sluice_status status = fill_across(s);
        if (status) return status;
        *period_s = s->across[(size_t)s->layers * (s->hosts + 1) + s->hosts].period_s;
        for (uint32_t end = s->layers, n = s->hosts; isfinite(*period_s) && end;) {
            const best_cut cut = s->across[(size_t)end * (s->hosts + 1) + n];
            const behind after = behind_hosts(s, n, cut.replicas);
            prepend_within(s, cut.first_layer, end, cut.replicas, &after, stages, count);
            end = cut.first_layer;
            n -= cut.replicas;
        }
    }
    turn_round(stages, *count);
    return SLUICE_OK;
}

static sluice_status search_init(search *s, const slc_steady_partition *in)
{
    const slc_chain *chain = &in->chain;
    const size_t width = (size_t)chain->layers + 1;
    *s = (search){.in = in,
                  .layers = chain->layers,
                  .ranks = in->levels[0].ranks,
                  .hosts = in->levels[1].ranks > 1 ? in->levels[1].ranks : 1};
    s->may_begin = calloc((size_t)s->ranks + 1, sizeof *s->may_begin);
    s->within = calloc(width * ((size_t)s->ranks + 1), sizeof *s->within);
    s->across = calloc(width * ((size_t)s->hosts + 1), sizeof *s->across);
    s->one_host = calloc(((size_t)s->hosts + 1) * (s->hosts + 1), sizeof *s->one_host);
    if (!s->may_begin || !s->within || !s->across || !s->one_host)
        return slc_error(SLUICE_ERR_MEMORY, "cuts of %u layers", chain->layers);
    sluice_status status = slc_chain_sums_init(&s->sums, chain);
    if (!status && !(find_longest(s) && find_syncs(s)))
        status = slc_error(SLUICE_ERR_MEMORY, "cuts of %u layers", chain->layers);
    return status;
}

static void search_fini(search *s)
{
    for (size_t i = 0; s->one_host && i < ((size_t)s->hosts + 1) * (s->hosts + 1); i++) free(s->one_host[i]);
    free(s->one_host);
    free(s->across);
    free(s->within);
    for (int k = 0; k < 2; k++) free(s->sync_s[k]);
    free(s->may_begin);
    free(s->least_first);
    slc_chain_sums_fini(&s->sums);
}

sluice_status slc_partition_steady(const slc_steady_partition *in, slc_steady_stage *stages, uint32_t *count,
                                   double *period_s)
{
    search s;
    sluice_status status = search_init(&s, in);
    if (!status) status = go(&s, stages, count, period_s);
    search_fini(&s);
    return status;
}
