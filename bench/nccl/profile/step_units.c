/* Matching is done class by class: reductions and gathers of the same number of elements.
 * nccl_profile_test.c covers this file. */
#include "bench/nccl/profile/step_units.h"

#include "lib/base/status.h"

#include <stdlib.h>

static bool in_class(const slc_step_operation *operation, unsigned kind, uint64_t elements)
{
    return operation->operation == kind && operation->elements == elements;
}

static size_t gathers_in_class(const slc_job_steps *steps, uint64_t elements)
{
    size_t count = 0;
    for (size_t i = 0; i < steps->operation_count; i++)
        count += in_class(&steps->operations[i], SLC_RECORD_ALL_GATHER, elements);
    return count;
}

/* Takes the gather for the unit's backward if it comes before the unit's reduction, as such a gather must. */
static void match_backward(slc_step_unit *unit, size_t gather, size_t *matched)
{
    if (gather > unit->reduction) return;
    unit->backward_gather = gather;
    ++*matched;
}

/* `members` [count] are the class's units. The first `count` gathers are the forward's, and the last ones, at most as
 * many, the backward's; if these are fewer, the layers that are first in the backward still have their values. */
static size_t match_class(const slc_job_steps *steps, slc_step_unit **members, size_t count, uint64_t elements)
{
    size_t gathers = gathers_in_class(steps, elements), forward = gathers < count ? gathers : count, matched = 0;
    size_t backward = gathers - forward < count ? gathers - forward : count;
    for (size_t i = 0, k = 0; i < steps->operation_count; i++) {
        if (!in_class(&steps->operations[i], SLC_RECORD_ALL_GATHER, elements)) continue;
        if (k < forward) {
            members[count - 1 - k]->forward_gather = i;
            matched++;
        } else if (k >= gathers - backward)
            match_backward(members[count - gathers + k], i, &matched);
        k++;
    }
    return matched;
}

sluice_status slc_step_units_find(const slc_job_steps *steps, slc_step_units *out)
{
    size_t operations = steps->operation_count, gathers = 0, matched = 0;
    *out = (slc_step_units){.units = calloc(operations + 1, sizeof *out->units)};
    slc_step_unit **members = calloc(operations + 1, sizeof *members);
    bool *done = calloc(operations + 1, sizeof *done);
    sluice_status status = SLUICE_OK;
    if (!out->units || !members || !done) {
        status = slc_error(SLUICE_ERR_MEMORY, "%zu operations", operations);
        goto out;
    }
    for (size_t i = 0; i < operations; i++)
        if (slc_step_reduces(&steps->operations[i]))
            out->units[out->count++] = (slc_step_unit){i, SLC_NO_GATHER, SLC_NO_GATHER};
        else
            gathers++;
    for (size_t u = 0; u < out->count; u++) {
        uint64_t elements = steps->operations[out->units[u].reduction].elements;
        size_t count = 0;
        if (done[u]) continue;
        for (size_t v = u; v < out->count; v++)
            if (in_class(&steps->operations[out->units[v].reduction], SLC_RECORD_REDUCE_SCATTER, elements)) {
                done[v] = true;
                members[count++] = &out->units[v];
            }
        if (count) matched += match_class(steps, members, count, elements);
    }
    out->unmatched = gathers - matched;
out:
    if (status) slc_step_units_free(out);
    free(members);
    free(done);
    return status;
}

void slc_step_units_free(slc_step_units *units)
{
    free(units->units);
    *units = (slc_step_units){0};
}
