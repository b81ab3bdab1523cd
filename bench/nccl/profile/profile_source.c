/* The profile's `source`: a text of sentences, as a reader of the profile needs to know what to trust.
 * nccl_profile_test.c covers this file. */
#include "bench/nccl/profile/profile_maker.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <stdlib.h>

/* Writes the names of the layers for which `marked` is set, runs of them as "unit.3 to unit.7". */
static void name_layers(FILE *text, const slc_profile_maker *m, const bool *marked)
{
    uint32_t count = m->draft.job.layer_count;
    const char *comma = "";
    for (uint32_t l = 0; l < count; l++) {
        uint32_t last = l;
        if (!marked[l]) continue;
        while (last + 1 < count && marked[last + 1]) last++;
        fprintf(text, "%s%s", comma, m->draft.names[l]);
        if (last > l) fprintf(text, " to %s", m->draft.names[last]);
        comma = ", ";
        l = last;
    }
}

static void say_measured(FILE *text, const slc_profile_maker *m)
{
    size_t reductions[SLC_RECORD_OPERATION_COUNT] = {0};
    for (size_t i = 0; i < m->steps.operation_count; i++) reductions[m->steps.operations[i].operation]++;
    fprintf(text, "NCCL shim, %zu of %u ranks, communicator %016llx. A step takes %.6g s and has", m->steps.rank_count,
            m->steps.world, (unsigned long long)m->steps.key, m->step_s);
    const char *comma = "";
    for (unsigned kind = 1; kind < SLC_RECORD_OPERATION_COUNT; kind++) {
        if (!reductions[kind]) continue;
        fprintf(text, "%s %zu %s", comma, reductions[kind], slc_nccl_operation_name(kind));
        comma = ",";
    }
    fprintf(text, ". Measured in %zu steps%s: backward times, from the starts of reductions; link, from %zu size%s%s.",
            m->times.steps, m->computed_apart ? " of a run on one rank" : "", m->link.sizes,
            m->link.sizes == 1 ? "" : "s",
            m->link.latency_seen ? ""
            : m->link.sizes == 1 ? ", which shows no latency: it counts as 0"
                                 : ", which are too alike to show a latency: it counts as 0");
}

static void say_bounds(FILE *text, const slc_profile_maker *m, bool *marked)
{
    bool any = false;
    uint32_t last = m->draft.job.layer_count - 1;
    for (uint32_t l = 0; l < last; l++) any |= marked[l] = slc_is_loose(m->times.backward[last - l]);
    marked[last] = false;
    bool forward = slc_is_loose(m->times.forward);
    if (any) {
        fprintf(text, " Upper bounds: the backward of ");
        name_layers(text, m, marked);
        fprintf(text,
                ", whose reductions found their stream busy, so that their data may have been ready before; all "
                "backwards but that of %s together take at most %.6g s.",
                m->draft.names[last], m->times.together.high_s);
    }
    if (forward)
        fprintf(text, " Upper bounds%s: all forwards, which hold waits for gathers or for a busy stream.",
                any ? " too" : "");
    if ((any || forward) && !m->computed_apart)
        fprintf(text, " With --compute, sluice nccl takes these times from a run on one rank.");
}

static void say_estimated(FILE *text, const slc_profile_maker *m)
{
    uint32_t last = m->draft.job.layer_count - 1;
    fprintf(text,
            " Estimated: the backward of %s by bytes, for it begins where the forward ends, which cannot be seen; the "
            "forwards by bytes, from the rest of the step, which holds the optimizer's time too.",
            m->draft.names[last]);
    fprintf(text, " Assumed: Adam's two states, one micro-batch, no slowdown of compute and communication under each "
                  "other.");
}

static void say_left_out(FILE *text, const slc_profile_maker *m)
{
    fprintf(text, " Left out: activations%s", m->reserved_bytes ? " but for the bytes reserved" : " (--reserved)");
    if (m->units.unmatched) fprintf(text, ", %zu all-gathers a step of no unit", m->units.unmatched);
    if (m->steps.elsewhere)
        fprintf(text, ", %llu calls of other communicators", (unsigned long long)m->steps.elsewhere);
    if (m->steps.other) fprintf(text, ", %llu calls of other kinds or a few bytes", (unsigned long long)m->steps.other);
    if (m->steps.captured) fprintf(text, ", %llu calls captured into graphs", (unsigned long long)m->steps.captured);
    fprintf(text, ".");
}

static void say_half(FILE *text, const slc_profile_maker *m)
{
    bool any = false;
    for (uint32_t l = 0; l < m->draft.job.layer_count; l++) any |= m->half[l];
    if (!any) return;
    fprintf(text, " fp16 is written as bf16: ");
    name_layers(text, m, m->half);
    fprintf(text, ".");
}

sluice_status slc_profile_source(const slc_profile_maker *m, char **out)
{
    size_t length;
    bool *marked = calloc((size_t)m->draft.job.layer_count + 1, sizeof *marked);
    FILE *text = open_memstream(out, &length);
    bool fine = text && marked;
    if (fine) {
        say_measured(text, m);
        say_bounds(text, m, marked);
        say_estimated(text, m);
        say_left_out(text, m);
        say_half(text, m);
    }
    if (text && fclose(text)) fine = false;
    free(marked);
    return fine ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "the profile's source");
}
