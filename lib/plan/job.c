/* Facts that follow from a job alone: windows, gradient slots, names. */
#include "lib/plan/job.h"

#include "lib/base/integer.h"
#include "lib/base/row_list.h"
#include "lib/plan/strategy_names.h"

#include <stdio.h>
#include <string.h>

static const char *const strategy_names[SLC_STRATEGIES] = {SLC_STRATEGY_NAMES(, )};

const char *slc_strategy_name(slc_strategy strategy)
{
    return (unsigned)strategy < SLC_STRATEGIES ? strategy_names[strategy] : "unknown";
}

bool slc_strategy_parse(const char *name, slc_strategy *out)
{
    for (int i = 0; i < SLC_STRATEGIES; i++)
        if (!strcmp(name, strategy_names[i])) {
            *out = (slc_strategy)i;
            return true;
        }
    return false;
}

/* The slot in which the unit's values are read for the i-th time, in order; NO_SLOT after the last. */
enum { NO_SLOT = UINT32_MAX };

static uint32_t value_slot(const slc_job *job, const slc_unit *unit, bool with_backward, uint32_t i)
{
    const uint32_t first = unit->adds_first, reads = unit->use_count - first;
    if (i < reads) return slc_forward_slot(unit->uses[first + i].layer);
    uint32_t skip = i - reads;
    for (uint32_t use = unit->use_count; with_backward && use-- > 0;)
        if (unit->uses[use].backward_value && skip-- == 0) return slc_backward_slot(job, unit->uses[use].layer);
    return NO_SLOT;
}

bool slc_unit_window(const slc_job *job, const slc_unit *unit, bool with_backward, uint32_t index, slc_window *out)
{
    uint32_t window = 0, slot = value_slot(job, unit, with_backward, 0);
    *out = (slc_window){slot, slot};
    for (uint32_t i = 1; (slot = value_slot(job, unit, with_backward, i)) != NO_SLOT; i++) {
        const bool turns = slot >= job->layer_count && out->last_slot < job->layer_count;
        if (unit->held || (slot == out->last_slot + 1 && !(turns && job->turns_back_later))) {
            out->last_slot = slot;
            continue;
        }
        if (window == index) return true;
        window++;
        *out = (slc_window){slot, slot};
    }
    return window == index;
}

uint32_t slc_unit_window_count(const slc_job *job, const slc_unit *unit, bool with_backward)
{
    uint32_t count = 0;
    slc_window window;
    while (slc_unit_window(job, unit, with_backward, count, &window)) count++;
    return count;
}

uint32_t slc_gathered_number(const slc_job *job, const slc_unit *unit, uint32_t micro_batch, uint32_t window)
{
    if (unit->held) return window;
    uint32_t last = job->micro_batches - 1, place = micro_batch && micro_batch == last ? 2 : micro_batch > 0;
    if (place == 2 && last == 1) place = 1; /* none are between */
    return place * slc_unit_window_count(job, unit, true) + window;
}

uint32_t slc_gathered_buffers(const slc_job *job, const slc_unit *unit)
{
    if (unit->held) return 1;
    return (job->micro_batches < 3 ? job->micro_batches : 3) * slc_unit_window_count(job, unit, true);
}

void slc_unit_gradient_slots(const slc_job *job, const slc_unit *unit, uint32_t *first, uint32_t *last)
{
    *first = slc_backward_slot(job, unit->uses[unit->use_count - 1].layer);
    *last = slc_backward_slot(job, unit->uses[0].layer);
}

uint64_t slc_reduced_rows(const slc_job *job, const slc_unit *unit)
{
    if (!slc_adds_locally(job)) return unit->most_rows;
    return unit->most_rows > unit->row_count / job->micro_batches ? unit->row_count
                                                                  : unit->most_rows * job->micro_batches;
}

uint64_t slc_gradient_rows(const slc_job *job, const slc_unit *unit)
{
    return slc_reduced_rows(job, unit) + (slc_adds_locally(job) ? unit->most_rows : 0);
}

uint64_t slc_row_lists_bytes(const slc_job *job, const slc_unit *unit)
{
    uint64_t lists = slc_row_list_bytes(unit->most_rows) + slc_row_list_bytes(slc_reduced_rows(job, unit));
    return job->world * lists + slc_row_marks_bytes(unit->row_count);
}

slc_table_places slc_table_places_of(const slc_job *job, const slc_unit *unit)
{
    const uint64_t row_bytes = unit->row_elements * sluice_dtype_bytes(SLUICE_FP32), sums = slc_reduced_rows(job, unit);
    const uint64_t each = slc_round_up(unit->most_rows * row_bytes, 64);
    slc_table_places places = {.gradients = each, .sums = 2 * each};
    places.lists = places.sums + slc_round_up(sums * row_bytes, 64);
    places.bytes = places.lists + job->world * slc_row_list_bytes(sums);
    return places;
}

void slc_unit_names(const slc_job *job, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const char *name = job->units[u].name;
        if (used + strlen(name) + sizeof ", , ..." > size) {
            snprintf(out + used, size - used, ", ...");
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s", u ? ", " : "", name);
    }
}
