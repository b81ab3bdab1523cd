/* The first incumbent: choices that fit when nothing overlaps, made better one by one where a byte buys most time. */
#include "ilp/slot_search.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"

#include <math.h>
#include <string.h>

static double unit_seconds(const slc_slot_model_parts *p, uint32_t u, slc_strategy strategy)
{
    double seconds = 0;
    for (uint32_t i = 0; i < p->stream_count; i++)
        if (p->streams[i].unit == u && slc_has(p->streams[i].strategies, strategy)) seconds += p->streams[i].seconds;
    return seconds;
}

/* The largest row after a unit's rows `from` become `to`. */
static double peak_after(const slc_slot_search *search, const double *from, const double *to)
{
    double peak = 0;
    for (uint32_t h = 0; h < search->memory->rows; h++) {
        double row = search->rows[h] - (from ? from[h] : 0) + (to ? to[h] : 0);
        if (row > peak) peak = row;
    }
    return peak;
}

static void change(const slc_slot_search *search, const double *from, const double *to)
{
    for (uint32_t h = 0; h < search->memory->rows; h++) search->rows[h] += (to ? to[h] : 0) - (from ? from[h] : 0);
}

/* Units whose values can stay do so, from the one on where a byte saves most; and a layer that need not recompute does
 * not. `search->rows` holds the rows of `choice`. */
static void spend(const slc_slot_search *search, slc_slot_choice *choice)
{
    const slc_slot_model_parts *p = search->parts;
    const slc_serial_memory *memory = search->memory;
    double limit = (double)search->request->limit;
    for (uint32_t l = 0; l < p->job->layer_count; l++)
        if (memory->layer[l] && choice->recompute[l] && peak_after(search, NULL, memory->layer[l]) <= limit) {
            change(search, NULL, memory->layer[l]);
            choice->recompute[l] = false;
        }
    for (uint32_t u = 0; u < p->job->unit_count; u++)
        for (int k = 0; k < SLC_STRATEGIES; k++) {
            const double *to = memory->unit[u * SLC_STRATEGIES + (uint32_t)k];
            const double *from = memory->unit[u * SLC_STRATEGIES + (uint32_t)choice->strategies[u]];
            if (!to || unit_seconds(p, u, (slc_strategy)k) >= unit_seconds(p, u, choice->strategies[u])) continue;
            if (peak_after(search, from, to) > limit) continue;
            change(search, from, to);
            choice->strategies[u] = (slc_strategy)k;
        }
}

bool slc_search_serial(slc_slot_search *search)
{
    slc_slot_choice *choice = &search->best;
    slc_slot_choice_copy(choice, &search->least, search->parts->job);
    if (slc_serial_peak(search->memory, choice, search->rows) > (double)search->request->limit) return false;
    spend(search, choice);
    double seconds = search->program->fixed_s + slc_serial_seconds(search->parts, choice);
    search->best_objective = (seconds + search->program->preference_s) / search->program->time_unit;
    search->has_values = false;
    search->how = "no overlap";
    return true;
}
