/* From columns to flows: rounding errors of the solver are removed, each family adds up to one, and flows are written
 * for every micro-batch that the middle one represents. ilp/slot_model_test.c covers this file. */
#include "ilp/search/slot_search.h"

#include "lib/base/array.h"
#include "lib/base/status.h"

#include <stdlib.h>

typedef struct {
    const slc_slot_search *search;
    slc_slot_solution *out;
    bool failed;
} writer;

static void write_flow(writer *w, const slc_flow_family *family, uint32_t micro_batch, uint32_t position,
                       double fraction)
{
    slc_slot_solution *out = w->out;
    if (SLC_ROOM_FOR_ONE(out->flows, out->flow_count))
        out->flows[out->flow_count++] =
            (slc_flow){family->kind, family->unit, micro_batch, family->window, position, fraction};
    else
        w->failed = true;
}

/* Writes a flow for the real micro-batches that a modelled one represents, with moved positions. */
static void write_copies(writer *w, const slc_flow_family *family, uint32_t position, double fraction)
{
    const slc_slot_model_parts *p = w->search->parts;
    uint32_t m = family->micro_batch, more = p->job->micro_batches - p->micro_batches;
    uint32_t cycle = 2 * slc_job_slots(p->job), first = m, last = m;
    if (slc_is_template(p) && m == 1) last = m + more;
    if (slc_is_template(p) && m == 2) first = last = m + more;
    bool of_next = m == 0 && family->kind == SLC_FLOW_WINDOW && !family->window; /* counted from the previous step */
    for (uint32_t real = first; real <= last; real++) {
        uint32_t moved = real - m;
        if (of_next && position >= cycle) moved = more; /* the previous step's last micro-batch */
        write_flow(w, family, real, position + moved * cycle, fraction);
    }
}

static bool is_chosen(const slc_slot_search *search, const slc_flow_family *family)
{
    return slc_has(family->strategies, search->best.strategies[family->unit]);
}

static void write_serial(writer *w)
{
    const slc_slot_model_parts *p = w->search->parts;
    for (uint32_t i = 0; i < p->family_count; i++)
        if (is_chosen(w->search, &p->families[i]))
            write_copies(w, &p->families[i], slc_flow_family_serial_position(p, &p->families[i]), 1);
}

/* Returns the value, or 0 if it is so small that it is a rounding error of the solver. */
static double clean(double value)
{
    return value > 1e-7 ? value : 0;
}

static sluice_status write_values(writer *w)
{
    const slc_slot_program *program = w->search->program;
    const slc_slot_model_parts *p = w->search->parts;
    double *sum = calloc((size_t)p->family_count + 1, sizeof *sum);
    if (!sum) return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for flows");
    for (int i = 0; i < program->flow_count; i++) {
        double value = clean(w->search->values[program->first_flow + i]);
        sum[program->flows[i].family] += value;
        if (program->flows[i].twin != SLC_NONE) sum[program->flows[i].twin] += value;
    }
    for (int i = 0; i < program->flow_count; i++) {
        const slc_flow_column *column = &program->flows[i];
        const slc_flow_family *family = &p->families[column->family];
        double value = clean(w->search->values[program->first_flow + i]);
        if (!value || !is_chosen(w->search, family)) continue;
        write_copies(w, family, column->position, value / sum[column->family]);
        if (column->twin != SLC_NONE)
            write_copies(w, &p->families[column->twin], column->twin_position, value / sum[column->twin]);
    }
    free(sum);
    return SLUICE_OK;
}

static int in_order(const void *a, const void *b)
{
    const slc_flow *x = a, *y = b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->unit != y->unit) return x->unit < y->unit ? -1 : 1;
    if (x->micro_batch != y->micro_batch) return x->micro_batch < y->micro_batch ? -1 : 1;
    if (x->window != y->window) return x->window < y->window ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

sluice_status slc_search_answer(const slc_slot_search *search, slc_slot_solution *out)
{
    slc_slot_choice choice;
    sluice_status status = slc_slot_choice_init(&choice, search->parts->job);
    if (status) return status;
    slc_slot_choice_copy(&choice, &search->best, search->parts->job);
    out->strategies = choice.strategies;
    out->recompute = choice.recompute;
    writer w = {.search = search, .out = out};
    if (search->has_values)
        status = write_values(&w);
    else
        write_serial(&w);
    if (!status && w.failed) status = slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for flows");
    if (status) return status;
    if (out->flow_count) qsort(out->flows, out->flow_count, sizeof *out->flows, in_order);
    out->found = true;
    out->how = search->how;
    return SLUICE_OK;
}
