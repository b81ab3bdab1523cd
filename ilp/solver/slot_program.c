/* From the parts to columns and rows. Columns are made one after another in a dense array of one column, whose non-zero
 * entries go into the program. Gaps need no rows: a gap is as long as the flows in it, so a flow there simply costs its
 * time. ilp/slot_model_test.c covers this file. */
#include "ilp/solver/slot_program.h"

#include "lib/base/array.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct slc_program_maker {
    slc_slot_program *program;
    const slc_slot_model_parts *parts;
    int choice_row, family_row, slot_row, link_row, thread_row, memory_row, reading_row, order_row;
    int evaluated_row, agreement_row, rows;
    int *order_first;         /* [units + 1] where each unit's rows begin in order_position */
    uint32_t *order_position; /* [order rows] 2 * position, plus 1 for dp's rows */
    int order_count;
    double *entry; /* [rows + 1] the column that is being made */
    int *touched, touched_count;
    bool *is_touched;
    int *rows_of, *columns_of; /* all entries, from 1 on */
    double *values;
    int entry_count, entry_capacity;
    uint32_t *positions;
    slc_lifetime *spans;
    double preference; /* seconds for each second moved and position of distance */
    bool failed;
} maker;

static bool make_room(maker *m, int more)
{
    if (m->failed) return false;
    if (m->entry_count + more + 1 < m->entry_capacity) return true;
    int capacity = 2 * (m->entry_capacity + more + 4096);
    int *rows = realloc(m->rows_of, (size_t)capacity * sizeof *rows);
    if (rows) m->rows_of = rows;
    int *columns = realloc(m->columns_of, (size_t)capacity * sizeof *columns);
    if (columns) m->columns_of = columns;
    double *values = realloc(m->values, (size_t)capacity * sizeof *values);
    if (values) m->values = values;
    if (!rows || !columns || !values) {
        m->failed = true;
        return false;
    }
    m->entry_capacity = capacity;
    return true;
}

static void put_entry(maker *m, int row, double value)
{
    if (!m->is_touched[row]) {
        m->is_touched[row] = true;
        m->touched[m->touched_count++] = row;
        m->entry[row] = 0;
    }
    m->entry[row] += value;
}

/* Row h holds the change between half rows h - 1 and h, row 0 the amount in half row 0. So a span has entries only
 * where it begins and where it is over, not in every half row in between. */
static void put_span(maker *m, const slc_lifetime *span, double sign)
{
    int64_t all = m->parts->half_rows, from = span->from % all, over = (span->to + 1) % all;
    double amount = sign * span->bytes / m->program->byte_unit;
    if (span->to < span->from) return;
    bool always = span->to - span->from + 1 >= all;
    if (from > 0 && !always) put_entry(m, m->memory_row + (int)from, amount);
    if (over > 0 && !always) put_entry(m, m->memory_row + (int)over, -amount);
    if (from == 0 || always || (over != 0 && over <= from)) put_entry(m, m->memory_row, amount);
}

static void end_column(maker *m, int column)
{
    if (make_room(m, m->touched_count))
        for (int i = 0; i < m->touched_count; i++) {
            int row = m->touched[i];
            if (fabs(m->entry[row]) < 1e-12) continue;
            m->entry_count++;
            m->rows_of[m->entry_count] = row;
            m->columns_of[m->entry_count] = column;
            m->values[m->entry_count] = m->entry[row];
        }
    for (int i = 0; i < m->touched_count; i++) m->is_touched[m->touched[i]] = false;
    m->touched_count = 0;
}

/* ---- Rows ---- */

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool add_order_row(maker *m, uint32_t position, uint32_t dp)
{
    if (!SLC_ROOM_FOR_ONE(m->order_position, (size_t)m->order_count)) return false;
    m->order_position[m->order_count++] = 2 * position + dp;
    return true;
}

/* Lists the order rows of a unit: its reductions up to a position are at least as much as is gathered up to there. dp's
 * families with `each` are in rows of their own, those of all other strategies share rows. A row is needed for each
 * position at which something may be gathered before the last reduction; of several between two reductions only the
 * last one is needed. */
static bool list_order_of(maker *m, uint32_t unit, bool dp)
{
    const slc_slot_model_parts *p = m->parts;
    uint32_t room = 2 * p->slots + 4, *moments = calloc(4 * (size_t)room, sizeof *moments), count = 0;
    if (!moments) return false;
    for (uint32_t i = 0; i < p->family_count; i++) {
        const slc_flow_family *s = &p->families[i];
        bool reduction = slc_flow_family_is_ordered_reduction(p, s);
        if (s->unit != unit || slc_flow_family_is_dp(s) != dp ||
            (!reduction && !slc_flow_family_is_ordered_gather(p, s)))
            continue;
        uint32_t positions = slc_flow_family_positions(p, s, m->positions);
        for (uint32_t k = 0; k < positions && count < 4 * room; k++)
            moments[count++] = 2 * m->positions[k] + !reduction;
    }
    if (count) qsort(moments, count, sizeof *moments, ascending);
    bool fine = true;
    for (uint32_t k = 0; fine && k + 1 < count; k++)
        if ((moments[k] & 1) && !(moments[k + 1] & 1)) fine = add_order_row(m, moments[k] / 2, dp);
    free(moments);
    return fine;
}

static bool list_order_rows(maker *m)
{
    for (uint32_t u = 0; u < m->parts->job->unit_count; u++) {
        m->order_first[u] = m->order_count;
        if (!list_order_of(m, u, false) || !list_order_of(m, u, true)) return false;
    }
    m->order_first[m->parts->job->unit_count] = m->order_count;
    return true;
}

static int lane_rows(const slc_slot_model_parts *p)
{
    return p->two_lanes ? (int)(slc_busy_places(p) - p->first_place) : 0;
}

static void number_rows(maker *m)
{
    m->choice_row = 1;
    m->family_row = m->choice_row + (int)m->parts->job->unit_count;
    m->slot_row = m->family_row + (int)m->parts->family_count;
    m->link_row = m->slot_row + (int)m->parts->slots;
    m->thread_row = m->link_row + lane_rows(m->parts);
    m->memory_row = m->thread_row + lane_rows(m->parts);
    m->reading_row = m->memory_row + (int)m->parts->half_rows;
    m->order_row = m->reading_row + 1;
    m->evaluated_row = m->order_row + m->order_count;
    m->agreement_row = m->evaluated_row + (int)m->parts->evaluated_count;
    m->rows = m->agreement_row - (m->parts->agreement_s > 0 ? 0 : 1);
}

static void bound_rows(maker *m)
{
    const slc_slot_model_parts *p = m->parts;
    slc_slot_program *program = m->program;
    glp_add_rows(program->lp, m->rows);
    for (uint32_t u = 0; u < p->job->unit_count; u++) {
        bool leads = program->unit_group[u] == u;
        glp_set_row_bnds(program->lp, m->choice_row + (int)u, leads ? GLP_FX : GLP_FR, 1, 1);
    }
    for (uint32_t i = 0; i < p->family_count; i++) glp_set_row_bnds(program->lp, m->family_row + (int)i, GLP_FX, 0, 0);
    for (uint32_t s = 0; s < p->slots; s++)
        glp_set_row_bnds(program->lp, m->slot_row + (int)s, GLP_UP, 0, slc_slot_seconds(p, s) / program->time_unit);
    for (int i = 0; i < 2 * lane_rows(p); i++) glp_set_row_bnds(program->lp, m->link_row + i, GLP_UP, 0, 0);
    for (uint32_t h = 0; h < p->half_rows; h++) glp_set_row_bnds(program->lp, m->memory_row + (int)h, GLP_FX, 0, 0);
    double reading = (double)p->request->limit - (double)p->reading_bytes;
    glp_set_row_bnds(program->lp, m->reading_row, GLP_UP, 0, reading / program->byte_unit);
    for (int i = 0; i < m->order_count; i++) glp_set_row_bnds(program->lp, m->order_row + i, GLP_LO, 0, 0);
    for (uint32_t i = 0; i < p->evaluated_count; i++)
        glp_set_row_bnds(program->lp, m->evaluated_row + (int)i, GLP_FX, 0, 0);
    if (p->agreement_s > 0) glp_set_row_bnds(program->lp, m->agreement_row, GLP_FX, 1, 1);
}

/* ---- Columns ---- */

/* Adds the columns for the bytes that choices hold in each slot of evaluation; its rows hold changes, as those of the
 * step do. */
static void add_evaluated_levels(maker *m)
{
    const slc_slot_model_parts *p = m->parts;
    slc_slot_program *program = m->program;
    if (!p->evaluated_count) return;
    program->first_evaluated = glp_add_cols(program->lp, (int)p->evaluated_count);
    for (uint32_t i = 0; i < p->evaluated_count; i++) {
        double room = (double)p->request->limit - (double)p->evaluated_bytes[i];
        glp_set_col_bnds(program->lp, program->first_evaluated + (int)i, GLP_UP, 0, room / program->byte_unit);
        put_entry(m, m->evaluated_row + (int)i, -1);
        if (i + 1 < p->evaluated_count) put_entry(m, m->evaluated_row + (int)i + 1, 1);
        end_column(m, program->first_evaluated + (int)i);
    }
}

/* Adds the columns for the bytes that choices and flows hold in each half row. */
static void add_levels(maker *m)
{
    const slc_slot_model_parts *p = m->parts;
    slc_slot_program *program = m->program;
    program->first_level = glp_add_cols(program->lp, (int)p->half_rows);
    for (uint32_t h = 0; h < p->half_rows; h++) {
        double room = (double)p->request->limit - (double)p->fixed_bytes[h];
        glp_set_col_bnds(program->lp, program->first_level + (int)h, GLP_UP, 0, room / program->byte_unit);
        put_entry(m, m->memory_row + (int)h, -1);
        if (h + 1 < p->half_rows) put_entry(m, m->memory_row + (int)h + 1, 1);
        end_column(m, program->first_level + (int)h);
    }
}

static void put_choice(maker *m, uint32_t unit, slc_strategy strategy)
{
    const slc_slot_model_parts *p = m->parts;
    uint32_t spans = slc_strategy_spans(p, unit, strategy, m->spans);
    for (uint32_t i = 0; i < spans; i++) put_span(m, &m->spans[i], 1);
    put_entry(m, m->reading_row, m->spans[0].bytes / m->program->byte_unit); /* the resident bytes */
    double before = 0;
    for (uint32_t i = 0; i < p->evaluated_count; i++) {
        double bytes = slc_evaluation_bytes(p, unit, strategy, p->evaluated[i]);
        if (bytes != before) put_entry(m, m->evaluated_row + (int)i, (bytes - before) / m->program->byte_unit);
        before = bytes;
    }
    for (uint32_t i = 0; i < p->family_count; i++)
        if (p->families[i].unit == unit && slc_has(p->families[i].strategies, strategy))
            put_entry(m, m->family_row + (int)i, -1);
}

static void add_choices(maker *m)
{
    slc_slot_program *program = m->program;
    const slc_job *job = m->parts->job;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        uint8_t options = m->parts->options[u];
        for (int k = 0; k < SLC_STRATEGIES; k++) {
            if (!slc_has(options, (slc_strategy)k)) continue;
            int *mine = &program->choice[u * SLC_STRATEGIES + (uint32_t)k];
            if (program->unit_group[u] != u) {
                *mine = program->choice[program->unit_group[u] * SLC_STRATEGIES + (uint32_t)k];
                continue;
            }
            *mine = glp_add_cols(program->lp, 1);
            bool only = !(options & (options - 1));
            glp_set_col_bnds(program->lp, *mine, only ? GLP_FX : GLP_DB, only ? 1 : 0, 1);
            if (!only) glp_set_col_kind(program->lp, *mine, GLP_BV);
            put_entry(m, m->choice_row + (int)u, 1);
            for (uint32_t v = u; v < job->unit_count; v++)
                if (program->unit_group[v] == u) put_choice(m, v, (slc_strategy)k);
            end_column(m, *mine);
        }
    }
}

static void put_again(maker *m, uint32_t layer)
{
    const slc_slot_model_parts *p = m->parts;
    slc_lifetime span;
    for (uint32_t b = 0; b < p->micro_batches; b++) {
        uint32_t slot = b * slc_job_slots(p->job) + slc_backward_slot(p->job, layer);
        put_entry(m, m->slot_row + (int)slot, -p->times->recompute_s[layer] / m->program->time_unit);
        for (uint32_t a = 0; a < p->job->activation_count; a++)
            if (slc_activation_layer(p->job, a) == layer && slc_recompute_span(p, a, b, &span)) put_span(m, &span, -1);
    }
}

static void add_recomputations(maker *m)
{
    slc_slot_program *program = m->program;
    const slc_job *job = m->parts->job;
    for (uint32_t l = 0; l < job->layer_count; l++) {
        uint8_t of = slc_recompute_of(m->parts, l);
        if (!of) continue;
        if (program->layer_group[l] != l) {
            program->recompute_column[l] = program->recompute_column[program->layer_group[l]];
            continue;
        }
        int column = program->recompute_column[l] = glp_add_cols(program->lp, 1);
        glp_set_col_bnds(program->lp, column, of == 1 ? GLP_FX : GLP_DB, of == 1, 1);
        if (of == 2) glp_set_col_kind(program->lp, column, GLP_BV);
        double seconds = 0;
        for (uint32_t k = l; k < job->layer_count; k++) {
            if (program->layer_group[k] != l) continue;
            seconds += m->parts->times->recompute_s[k] * job->micro_batches;
            if (of == 2) {
                put_again(m, k);
                continue;
            }
            for (uint32_t b = 0; b < m->parts->micro_batches;
                 b++) /* the memory that it frees is in fixed_bytes already */
                put_entry(m, m->slot_row + (int)(b * slc_job_slots(job) + slc_backward_slot(job, k)),
                          -m->parts->times->recompute_s[k] / program->time_unit);
        }
        glp_set_obj_coef(program->lp, column, seconds / program->time_unit);
        end_column(m, column);
    }
}

static void put_order(maker *m, const slc_flow_family *s, uint32_t position)
{
    bool reduction = slc_flow_family_is_ordered_reduction(m->parts, s);
    if (!reduction && !slc_flow_family_is_ordered_gather(m->parts, s)) return;
    for (int i = m->order_first[s->unit]; i < m->order_first[s->unit + 1]; i++)
        if ((m->order_position[i] & 1) == slc_flow_family_is_dp(s) && m->order_position[i] / 2 >= position)
            put_entry(m, m->order_row + i, reduction ? 1 : -1);
}

static double distance(const slc_flow_family *s, uint32_t position)
{
    return s->kind == SLC_FLOW_REDUCE || s->kind == SLC_FLOW_EXCHANGE ? position - s->first : s->last - position;
}

/* Puts `seconds` of communication at a position into the slot's row, if it is a slot, and returns their cost. */
static double put_seconds(maker *m, uint32_t position, double seconds)
{
    const slc_slot_model_parts *p = m->parts;
    const slc_link *link = &p->times->link;
    uint32_t slot = position / 2 % p->slots;
    if (!(position & 1))
        put_entry(m, m->slot_row + (int)slot, (link->sigma - link->kappa) * seconds / m->program->time_unit);
    return slc_slot_weight(p, slot) * seconds * (position & 1 ? 1 : link->kappa);
}

/* Adds the columns of the agreement, one for each place. A fraction in a slot that stands for several slots is spread
 * over all of them. */
static void add_agreement(maker *m)
{
    const slc_slot_model_parts *p = m->parts;
    slc_slot_program *program = m->program;
    if (!(p->agreement_s > 0)) return;
    program->agreement_row = m->agreement_row;
    program->first_agreement = glp_add_cols(program->lp, (int)p->slots + 1);
    for (uint32_t s = 0; s <= p->slots; s++) {
        int column = program->first_agreement + (int)s;
        double cost_s = p->agreement_s;
        if (s < p->slots) cost_s = put_seconds(m, 2 * s, p->agreement_s / slc_slot_weight(p, s));
        glp_set_col_bnds(program->lp, column, GLP_LO, 0, 0);
        glp_set_obj_coef(program->lp, column, cost_s / program->time_unit);
        put_entry(m, m->agreement_row, 1);
        end_column(m, column);
    }
}

/* If there are two lanes, adds a column for each place that is at least as long as each lane: the cost of a place is
 * that of the longer one. */
static void add_busy(maker *m)
{
    slc_slot_program *program = m->program;
    if (!m->parts->two_lanes) return;
    program->first_busy = glp_add_cols(program->lp, lane_rows(m->parts));
    for (uint32_t k = m->parts->first_place; k < slc_busy_places(m->parts); k++) {
        int lane = (int)(k - m->parts->first_place), column = program->first_busy + lane;
        bool slot = k < m->parts->slots;
        double cost = slot ? put_seconds(m, 2 * k, program->time_unit) : program->time_unit;
        glp_set_col_bnds(program->lp, column, GLP_LO, 0, 0);
        glp_set_obj_coef(program->lp, column, cost / program->time_unit);
        put_entry(m, m->link_row + lane, -1);
        put_entry(m, m->thread_row + lane, -1);
        end_column(m, column);
    }
}

/* Puts one family's part of a column; returns its cost, and adds to the tie-breaking term. */
static double put_flow(maker *m, uint32_t family, uint32_t position, double *preferred)
{
    const slc_slot_model_parts *p = m->parts;
    const slc_flow_family *s = &p->families[family];
    slc_lifetime spans[SLC_SPANS_MAX];
    put_entry(m, m->family_row + (int)family, 1);
    uint32_t count = slc_flow_family_spans(p, s, position, spans);
    for (uint32_t i = 0; i < count; i++) put_span(m, &spans[i], 1);
    put_order(m, s, position);
    *preferred += m->preference * slc_flow_family_alone_s(s) * distance(s, position);
    uint32_t busy = slc_busy_place(p, position);
    if (!p->two_lanes || busy < p->first_place) return put_seconds(m, position, s->seconds);
    int place = (int)(busy - p->first_place);
    double weight = position & 1 ? slc_slot_weight(p, position / 2 % p->slots) : 1;
    put_entry(m, m->link_row + place, weight * s->seconds / m->program->time_unit);
    put_entry(m, m->thread_row + place, weight * slc_flow_family_thread_s(s) / m->program->time_unit);
    return 0; /* the busy column has the cost */
}

/* Returns the same family of the next micro-batch if one micro-batch represents several, for a reduction that reaches
 * beyond its own micro-batch and for a window that is gathered before its own; SLC_NONE for any other flow. *is_twin
 * becomes true if the flow is itself the twin of one in the micro-batch before. */
static uint32_t twin_of(const slc_slot_model_parts *p, uint32_t family, uint32_t position, bool *is_twin)
{
    const slc_flow_family *s = &p->families[family];
    uint32_t cycle = 2 * slc_job_slots(p->job);
    *is_twin = false;
    if (!slc_is_template(p)) return SLC_NONE;
    bool leads = false;
    if (s->kind == SLC_FLOW_REDUCE && p->job->each) {
        leads = s->micro_batch == 0 && position >= cycle;
        *is_twin = s->micro_batch == 1 && position >= 2 * cycle;
    } else if (s->kind == SLC_FLOW_WINDOW) {
        leads = s->micro_batch == 1 && position < cycle;
        *is_twin = s->micro_batch == 2 && position < 2 * cycle;
    }
    if (!leads) return SLC_NONE;
    for (uint32_t t = family + 1; t < p->family_count; t++) {
        const slc_flow_family *o = &p->families[t];
        if (o->kind == s->kind && o->unit == s->unit && o->window == s->window && o->strategies == s->strategies &&
            o->micro_batch == s->micro_batch + 1)
            return t;
    }
    return SLC_NONE;
}

static void add_flows(maker *m)
{
    slc_slot_program *program = m->program;
    uint32_t whole = m->parts->request->whole_blocks, cycle = 2 * slc_job_slots(m->parts->job);
    bool is_twin;
    for (uint32_t i = 0; i < m->parts->family_count; i++) {
        uint32_t count = slc_flow_family_positions(m->parts, &m->parts->families[i], m->positions);
        for (uint32_t k = 0; k < count; k++) {
            uint32_t position = m->positions[k], twin = twin_of(m->parts, i, position, &is_twin);
            if (is_twin) continue;
            double preferred = 0, cost = put_flow(m, i, position, &preferred);
            if (twin != SLC_NONE) cost += put_flow(m, twin, position + cycle, &preferred);
            double one = m->program->time_unit * (whole ? whole : 1);
            int column = glp_add_cols(program->lp, 1);
            program->flows[program->flow_count++] = (slc_flow_column){i, position, twin, position + cycle, cost / one};
            glp_set_col_bnds(program->lp, column, GLP_LO, 0, 0);
            for (int t = 0; whole && t < m->touched_count; t++) m->entry[m->touched[t]] /= whole;
            if (whole) glp_set_col_kind(program->lp, column, GLP_IV);
            glp_set_obj_coef(program->lp, column, (cost + preferred) / one);
            end_column(m, column);
        }
    }
}

/* ---- All together ---- */

static void choose_units(slc_slot_program *program)
{
    const slc_slot_model_parts *p = program->parts;
    double seconds = 0, bytes = 0;
    for (uint32_t s = 0; s < p->slots; s++) seconds += slc_slot_seconds(p, s);
    for (uint32_t i = 0; i < p->family_count; i++) seconds += slc_flow_family_alone_s(&p->families[i]);
    for (uint32_t u = 0; u < p->job->unit_count; u++)
        bytes += (double)slc_operation_bytes(p->job, &p->job->units[u], SLC_ITEM_UPDATE, p->job->units[u].elements);
    program->time_unit = seconds > 0 ? seconds / p->slots : 1;
    program->byte_unit = bytes > 0 ? bytes / p->job->unit_count : 1;
}

/* The preference in seconds for each second moved and position of distance: all of it together is below 1e-3 of the
 * step, in practice far less. (Costs as small as the solver's tolerance would make it cycle.) */
static double preference_rate(slc_slot_program *program)
{
    const slc_slot_model_parts *p = program->parts;
    double most = 0;
    for (uint32_t i = 0; i < p->family_count; i++)
        most += slc_flow_family_alone_s(&p->families[i]) * (p->families[i].last - p->families[i].first);
    program->preference_s = 1e-3 * program->fixed_s;
    return most > 0 ? program->preference_s / most : 0;
}

static sluice_status maker_init(maker *m)
{
    const slc_slot_model_parts *p = m->parts;
    m->positions = calloc(2 * (size_t)p->slots + 8, sizeof *m->positions);
    m->spans = calloc(slc_strategy_spans_max(p) + 1, sizeof *m->spans);
    m->order_first = calloc((size_t)p->job->unit_count + 1, sizeof *m->order_first);
    if (!m->positions || !m->spans || !m->order_first || !list_order_rows(m))
        return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for its rows");
    number_rows(m);
    m->entry = calloc((size_t)m->rows + 1, sizeof *m->entry);
    m->touched = calloc((size_t)m->rows + 1, sizeof *m->touched);
    m->is_touched = calloc((size_t)m->rows + 1, sizeof *m->is_touched);
    uint32_t columns = 0;
    for (uint32_t i = 0; i < p->family_count; i++)
        columns += slc_flow_family_positions(p, &p->families[i], m->positions);
    m->program->flows = calloc((size_t)columns + 1, sizeof *m->program->flows);
    if (!m->entry || !m->touched || !m->is_touched || !m->program->flows)
        return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for %d rows and %u columns", m->rows, columns);
    return SLUICE_OK;
}

static void maker_destroy(maker *m)
{
    if (!m) return;
    free(m->values);
    free(m->columns_of);
    free(m->rows_of);
    free(m->is_touched);
    free(m->touched);
    free(m->entry);
    free(m->order_position);
    free(m->order_first);
    free(m->spans);
    free(m->positions);
    free(m);
}

static sluice_status fill_program(maker *m, bool preference)
{
    slc_slot_program *program = m->program;
    sluice_status status = maker_init(m);
    if (status) return status;
    bound_rows(m);
    program->first_slot_row = m->slot_row;
    program->first_family_row = m->family_row;
    program->first_memory_row = m->memory_row;
    program->first_link_row = m->link_row;
    program->first_evaluated_row = m->evaluated_row;
    add_levels(m);
    add_evaluated_levels(m);
    add_choices(m);
    add_recomputations(m);
    add_busy(m);
    add_agreement(m);
    program->first_flow = glp_get_num_cols(program->lp) + 1;
    m->preference = preference ? preference_rate(program) : 0;
    add_flows(m);
    glp_set_obj_coef(program->lp, 0, program->fixed_s / program->time_unit);
    if (m->failed) return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for %d entries", m->entry_count);
    glp_load_matrix(program->lp, m->entry_count, m->rows_of, m->columns_of, m->values);
    return SLUICE_OK;
}

sluice_status slc_slot_program_init(slc_slot_program *program, const slc_slot_model_parts *parts, uint32_t tie,
                                    bool preference)
{
    size_t units = parts->job->unit_count, layers = parts->job->layer_count;
    *program = (slc_slot_program){.parts = parts,
                                  .unit_group = calloc(units + 1, sizeof *program->unit_group),
                                  .layer_group = calloc(layers + 1, sizeof *program->layer_group),
                                  .choice = calloc(units * SLC_STRATEGIES + 1, sizeof *program->choice),
                                  .recompute_column = calloc(layers + 1, sizeof *program->recompute_column)};
    maker *m = program->maker = calloc(1, sizeof *m); /* found there if the solver gives up */
    if (!m || !program->unit_group || !program->layer_group || !program->choice || !program->recompute_column)
        return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for %zu units", units);
    slc_tie_units(parts, tie, program->unit_group);
    slc_tie_layers(parts, tie, program->layer_group);
    choose_units(program);
    program->fixed_s = slc_fixed_s(parts);
    program->lp = glp_create_prob();
    glp_set_obj_dir(program->lp, GLP_MIN);
    *m = (maker){.program = program, .parts = parts};
    sluice_status status = fill_program(m, preference);
    maker_destroy(m);
    program->maker = NULL;
    return status;
}

void slc_slot_program_fini(slc_slot_program *program)
{
    maker_destroy(program->maker);
    free(program->flows);
    free(program->recompute_column);
    free(program->choice);
    free(program->layer_group);
    free(program->unit_group);
    *program = (slc_slot_program){0};
}
