/* The first incumbent: choices that fit when nothing overlaps, improved one by one if they fit and save time.
 * ilp/slot_model_test.c covers this file. */
#include "ilp/search/slot_search.h"

#include <string.h>

static double unit_seconds(const slc_slot_model_parts *p, uint32_t u, slc_strategy strategy)
{
    double seconds = 0;
    for (uint32_t i = 0; i < p->family_count; i++)
        if (p->families[i].unit == u && slc_has(p->families[i].strategies, strategy))
            seconds += slc_flow_family_alone_s(&p->families[i]);
    return seconds;
}

/* The largest row after a unit's rows change from `from` to `to`. */
static double peak_after(const slc_slot_search *search, const double *from, const double *to)
{
    double peak = 0;
    for (uint32_t h = 0; h < search->memory->rows; h++) {
        double row = search->rows[h] - (from ? from[h] : 0) + (to ? to[h] : 0);
        if (row > peak) peak = row;
    }
    return peak;
}

static void change_rows(const slc_slot_search *search, const double *from, const double *to)
{
    for (uint32_t h = 0; h < search->memory->rows; h++) search->rows[h] += (to ? to[h] : 0) - (from ? from[h] : 0);
}

/* Improves a choice within the limit: layers that need not recompute stop doing so, and each unit takes the option that
 * saves time. `search->rows` holds the rows of `choice`. */
static void spend(const slc_slot_search *search, slc_slot_choice *choice)
{
    const slc_slot_model_parts *p = search->parts;
    const slc_serial_memory *memory = search->memory;
    double limit = (double)search->request->limit;
    for (uint32_t l = 0; l < p->job->layer_count; l++)
        if (memory->layer[l] && choice->recompute[l] && peak_after(search, NULL, memory->layer[l]) <= limit) {
            change_rows(search, NULL, memory->layer[l]);
            choice->recompute[l] = false;
        }
    for (uint32_t u = 0; u < p->job->unit_count; u++)
        for (int k = 0; k < SLC_STRATEGIES; k++) {
            const double *to = memory->unit[u * SLC_STRATEGIES + (uint32_t)k];
            const double *from = memory->unit[u * SLC_STRATEGIES + (uint32_t)choice->strategies[u]];
            if (!to || unit_seconds(p, u, (slc_strategy)k) >= unit_seconds(p, u, choice->strategies[u])) continue;
            if (peak_after(search, from, to) > limit) continue;
            change_rows(search, from, to);
            choice->strategies[u] = (slc_strategy)k;
        }
}

bool slc_search_serial(slc_slot_search *search)
{
    slc_slot_choice *choice = &search->best;
    slc_slot_choice_copy(choice, &search->least, search->parts->job);
    if (slc_serial_peak(search->memory, choice, search->rows) > (double)search->request->limit) return false;
    spend(search, choice);
    double seconds = search->program->fixed_s + slc_serial_seconds(search->parts, choice) + search->parts->agreement_s;
    search->best_objective = (seconds + search->program->preference_s) / search->program->time_unit;
    search->has_values = false;
    search->how = "no overlap";
    return true;
}

static void make_basic(glp_prob *lp, int row, int column)
{
    glp_set_row_stat(lp, row, GLP_NS);
    glp_set_col_stat(lp, column, GLP_BS);
}

static int chosen_column(const slc_slot_search *search, uint32_t unit)
{
    return search->program->choice[unit * SLC_STRATEGIES + (uint32_t)search->best.strategies[unit]];
}

/* Makes the busy column of the gaps basic: everything is in gaps, where it is as long as the longer lane. */
static void make_busy_basic(const slc_slot_search *search)
{
    const slc_slot_model_parts *p = search->parts;
    const slc_slot_program *program = search->program;
    int places = (int)(slc_busy_places(p) - p->first_place), gaps = places - 1;
    double more = 0; /* seconds that the link has more than the thread */
    for (uint32_t i = 0; i < p->family_count; i++) {
        const slc_flow_family *s = &p->families[i];
        double count = slc_is_template(p) && s->micro_batch == 1 ? p->middle : 1;
        if (slc_has(s->strategies, search->best.strategies[s->unit]))
            more += count * (s->seconds - slc_flow_family_thread_s(s));
    }
    make_basic(program->lp, program->first_link_row + (more < 0 ? places : 0) + gaps, program->first_busy + gaps);
}

/* In each choice row the chosen strategy is basic, in each family row the flow in its serial gap, in each memory row
 * the level, in every other row the row itself. The matrix is triangular, so this is a basis; the answer fits, so it is
 * feasible. */
void slc_search_serial_basis(slc_slot_search *search)
{
    const slc_slot_model_parts *p = search->parts;
    const slc_slot_program *program = search->program;
    glp_prob *lp = program->lp;
    glp_std_basis(lp);
    for (uint32_t u = 0; u < p->job->unit_count; u++)
        if (program->unit_group[u] == u) make_basic(lp, 1 + (int)u, chosen_column(search, u));
    for (int i = 0; i < program->flow_count; i++) {
        const slc_flow_column *column = &program->flows[i];
        const slc_flow_family *family = &p->families[column->family];
        if (column->position == slc_flow_family_serial_position(p, family))
            make_basic(lp, program->first_family_row + (int)column->family, program->first_flow + i);
    }
    if (p->two_lanes) make_busy_basic(search);
    for (uint32_t h = 0; h < p->half_rows; h++)
        make_basic(lp, program->first_memory_row + (int)h, program->first_level + (int)h);
    if (program->agreement_row) make_basic(lp, program->agreement_row, program->first_agreement + (int)p->slots);
    for (uint32_t i = 0; i < p->evaluated_count; i++)
        make_basic(lp, program->first_evaluated_row + (int)i, program->first_evaluated + (int)i);
    for (uint32_t l = 0; l < p->job->layer_count; l++)
        if (program->recompute_column[l] && program->layer_group[l] == l && search->best.recompute[l] &&
            slc_recompute_of(p, l) == 2)
            glp_set_col_stat(lp, program->recompute_column[l], GLP_NU);
}
