/* PipeDream's programme on one level or two, with a limit of memory. partition_test.c covers this file. */
#include "sched/pipeline/partition.h"

#include "lib/base/status.h"
#include "sched/pipeline/chain_sums.h"

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
    best_cut *within;  /* [(layers + 1) * (ranks + 1)] one range on one host's ranks: layers up to, ranks */
    best_cut *across;  /* [(layers + 1) * (hosts + 1)] */
    double **one_host; /* [(hosts + 1)^2] by hosts up to and with a stage, and of it: [layers * (layers + 1)] periods of
                          the layers from .. up to .. on one host. One for all if no limit asks for more */
} search;

static double held_of(uint64_t ranks, uint32_t replicas)
{
    return ceil((double)ranks / replicas);
}

/* Does a stage of so many replicas fit that has `ranks` ranks from itself on? */
static bool fits(const search *s, uint32_t first, uint32_t end, uint64_t ranks, uint32_t replicas)
{
    if (!s->in->limit_bytes) return true;
    const uint64_t held = (uint64_t)held_of(ranks, replicas), versions = s->in->versions ? s->in->versions : held;
    return slc_chain_bytes(&s->sums, first, end, versions, held) <= s->in->limit_bytes;
}

static double replicated_s(const search *s, const slc_partition_level *level, double time_s, uint32_t first,
                           uint32_t end, uint32_t replicas)
{
    const double bytes = (double)slc_chain_values(&s->sums, first, end);
    return (time_s + 4 * (replicas - 1.0) * bytes / (replicas * level->bytes_per_s)) / replicas;
}

/* ---- Within a host ---- */

static double stage_within(const search *s, uint32_t first, uint32_t end, uint32_t replicas, uint32_t up_to,
                           const behind *after)
{
    const uint64_t ranks = (uint64_t)(s->ranks - up_to + replicas) * after->replicas + after->ranks;
    if (!fits(s, first, end, ranks, replicas * after->replicas)) return INFINITY;
    return replicated_s(s, &s->in->levels[0], slc_chain_s(&s->sums, first, end), first, end, replicas);
}

/* Do these layers and any more of them not fit into the last stage of `up_to` ranks, however many of these it has? */
static bool is_too_large(const search *s, uint32_t first, uint32_t end, uint32_t up_to, const behind *after)
{
    const uint64_t ranks = (uint64_t)s->ranks * after->replicas + after->ranks;
    return !fits(s, first, end, ranks, up_to * after->replicas);
}

/* Fills s->within for the layers from `from` on. */
static void fill_within(search *s, uint32_t from, const behind *after)
{
    const uint32_t width = s->ranks + 1;
    for (uint32_t end = from + 1; end <= s->layers; end++)
        for (uint32_t n = 1; n <= s->ranks; n++) {
            best_cut best = {stage_within(s, from, end, n, n, after), from, n};
            for (uint32_t first = end; --first > from;) {
                if (slc_chain_s(&s->sums, first, end) / n >= best.period_s || is_too_large(s, first, end, n, after))
                    break;
                if (!slc_chain_may_cut(&s->in->chain, first)) continue;
                const double message = 2 * (double)s->in->boundary_bytes[first - 1] / s->in->levels[0].bytes_per_s;
                for (uint32_t r = 1; r < n; r++) {
                    double period_s = fmax(s->within[(size_t)first * width + n - r].period_s, message / r);
                    if (period_s >= best.period_s) continue;
                    period_s = fmax(period_s, stage_within(s, first, end, r, n, after));
                    if (period_s < best.period_s) best = (best_cut){period_s, first, r};
                }
            }
            s->within[(size_t)end * width + n] = best;
        }
}

/* ---- Across hosts ---- */

static behind behind_hosts(const search *s, uint32_t up_to, uint32_t hosts)
{
    return (behind){(uint64_t)(s->hosts - up_to) * s->ranks, hosts};
}

/* Periods of each range of layers on one host of a stage of `hosts` hosts, the last of `up_to`. NULL: no memory. */
static const double *periods_on_host(search *s, uint32_t up_to, uint32_t hosts)
{
    const bool limited = s->in->limit_bytes > 0;
    double **place = &s->one_host[limited ? (size_t)up_to * (s->hosts + 1) + hosts : 0];
    const behind after = behind_hosts(s, up_to, hosts);
    if (*place) return *place;
    double *periods = *place = malloc((size_t)s->layers * (s->layers + 1) * sizeof *periods);
    for (uint32_t from = 0; periods && from < s->layers; from++) {
        fill_within(s, from, &after);
        for (uint32_t end = from + 1; end <= s->layers; end++)
            periods[(size_t)from * (s->layers + 1) + end] = s->within[(size_t)end * (s->ranks + 1) + s->ranks].period_s;
    }
    return periods;
}

static double stage_across(const search *s, const double *periods, uint32_t first, uint32_t end, uint32_t hosts)
{
    return replicated_s(s, &s->in->levels[1], periods[(size_t)first * (s->layers + 1) + end], first, end, hosts);
}

static sluice_status fill_across(search *s)
{
    const uint32_t width = s->hosts + 1;
    for (uint32_t n = 1; n <= s->hosts; n++)
        for (uint32_t h = 1; h <= n; h++)
            if (!periods_on_host(s, n, h)) return slc_error(SLUICE_ERR_MEMORY, "cuts of %u layers", s->layers);
    for (uint32_t end = 1; end <= s->layers; end++)
        for (uint32_t n = 1; n <= s->hosts; n++) {
            best_cut best = {stage_across(s, periods_on_host(s, n, n), 0, end, n), 0, n};
            for (uint32_t first = end; --first > 0;) {
                if (slc_chain_s(&s->sums, first, end) / ((double)n * s->ranks) >= best.period_s) break;
                if (!slc_chain_may_cut(&s->in->chain, first)) continue;
                const double message = 2 * (double)s->in->boundary_bytes[first - 1] / s->in->levels[1].bytes_per_s;
                for (uint32_t h = 1; h < n; h++) {
                    double period_s = fmax(s->across[(size_t)first * width + n - h].period_s, message / h);
                    if (period_s >= best.period_s) continue;
                    period_s = fmax(period_s, stage_across(s, periods_on_host(s, n, h), first, end, h));
                    if (period_s < best.period_s) best = (best_cut){period_s, first, h};
                }
            }
            s->across[(size_t)end * width + n] = best;
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
    s->within = calloc(width * ((size_t)s->ranks + 1), sizeof *s->within);
    s->across = calloc(width * ((size_t)s->hosts + 1), sizeof *s->across);
    s->one_host = calloc(((size_t)s->hosts + 1) * (s->hosts + 1), sizeof *s->one_host);
    if (!s->within || !s->across || !s->one_host)
        return slc_error(SLUICE_ERR_MEMORY, "cuts of %u layers", chain->layers);
    return slc_chain_sums_init(&s->sums, chain);
}

static void search_fini(search *s)
{
    for (size_t i = 0; s->one_host && i < ((size_t)s->hosts + 1) * (s->hosts + 1); i++) free(s->one_host[i]);
    free(s->one_host);
    free(s->across);
    free(s->within);
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
