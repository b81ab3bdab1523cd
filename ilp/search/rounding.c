/* Rounding by a dive: choices that are nearly whole in the relaxation are kept, the others are settled one at a time so
 * that all settled choices still fit in memory, and the LP is solved again from its current basis.
 * ilp/slot_model_test.c covers this file. */
#include "ilp/search/slot_search.h"

#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>

bool slc_search_is_done(const slc_slot_search *search)
{
    return search->best_objective - search->bound <= search->request->gap * search->best_objective;
}

/* The dual method takes few steps after a change of bounds. If it takes many, it goes in circles among equal layers,
 * and the primal method goes on from there. */
enum { DUAL_STEPS = 300, REPORTED_STEPS = 10 };

bool slc_search_simplex(slc_slot_search *search, bool dual)
{
    if (slc_effort_left_s(&search->effort) <= 0) return false;
    glp_prob *lp = search->program->lp;
    glp_smcp simplex;
    glp_init_smcp(&simplex);
    simplex.msg_lev = search->request->cancel ? GLP_MSG_ON : GLP_MSG_OFF;
    simplex.out_frq = REPORTED_STEPS;
    if (dual) {
        simplex.meth = GLP_DUAL;
        slc_effort_limit(&search->effort, lp, DUAL_STEPS, &simplex);
        int stopped = slc_effort_simplex(&search->effort, lp, &simplex);
        if (!stopped && glp_get_status(lp) != GLP_UNDEF) return glp_get_status(lp) == GLP_OPT;
    }
    slc_effort_limit(&search->effort, lp, 20000 + 20 * glp_get_num_rows(lp), &simplex);
    simplex.meth = GLP_PRIMAL;
    return !slc_effort_simplex(&search->effort, lp, &simplex) && glp_get_status(lp) == GLP_OPT;
}

static void free_choices(const slc_slot_search *search)
{
    const slc_slot_program *program = search->program;
    const slc_job *job = search->parts->job;
    for (uint32_t i = 0; i < job->unit_count * SLC_STRATEGIES; i++) {
        uint8_t options = search->parts->options[i / SLC_STRATEGIES];
        if (program->choice[i] && (options & (options - 1)))
            glp_set_col_bnds(program->lp, program->choice[i], GLP_DB, 0, 1);
    }
    for (uint32_t l = 0; l < job->layer_count; l++)
        if (program->recompute_column[l] && slc_recompute_of(search->parts, l) == 2)
            glp_set_col_bnds(program->lp, program->recompute_column[l], GLP_DB, 0, 1);
}

void slc_search_save_basis(slc_slot_search *search)
{
    glp_prob *lp = search->program->lp;
    int rows = glp_get_num_rows(lp), columns = glp_get_num_cols(lp);
    for (int i = 1; i <= rows; i++) search->basis[i] = glp_get_row_stat(lp, i);
    for (int j = 1; j <= columns; j++) search->basis[rows + j] = glp_get_col_stat(lp, j);
}

void slc_search_restore_basis(slc_slot_search *search)
{
    glp_prob *lp = search->program->lp;
    int rows = glp_get_num_rows(lp), columns = glp_get_num_cols(lp);
    free_choices(search);
    for (int i = 1; i <= rows; i++) glp_set_row_stat(lp, i, search->basis[i]);
    for (int j = 1; j <= columns; j++) glp_set_col_stat(lp, j, search->basis[rows + j]);
}

static bool is_leader(const slc_slot_program *program, uint32_t unit)
{
    return program->unit_group[unit] == unit;
}

static void fix(const slc_slot_search *search, int column, double value)
{
    glp_set_col_bnds(search->program->lp, column, GLP_FX, value, value);
}

static void keep_answer(slc_slot_search *search, const slc_slot_choice *choice, const char *how)
{
    glp_prob *lp = search->program->lp;
    search->best_objective = glp_get_obj_val(lp);
    search->has_values = true;
    search->how = how;
    slc_slot_choice_copy(&search->best, choice, search->parts->job);
    for (int j = 1; j <= glp_get_num_cols(lp); j++) search->values[j] = glp_get_col_prim(lp, j);
}

/* ---- The dive ---- */

/* Settles a choice for all members of its group. */
static void settle_unit(slc_slot_search *search, slc_slot_choice *choice, uint32_t leader, slc_strategy strategy)
{
    const slc_slot_program *program = search->program;
    for (uint32_t u = leader; u < search->parts->job->unit_count; u++)
        if (program->unit_group[u] == leader) choice->strategies[u] = strategy;
    for (int k = 0; k < SLC_STRATEGIES; k++) {
        int column = program->choice[leader * SLC_STRATEGIES + (uint32_t)k];
        if (column) fix(search, column, k == (int)strategy);
    }
}

static void settle_layer(slc_slot_search *search, slc_slot_choice *choice, uint32_t leader, bool again)
{
    const slc_slot_program *program = search->program;
    for (uint32_t l = leader; l < search->parts->job->layer_count; l++)
        if (program->layer_group[l] == leader) choice->recompute[l] = again;
    fix(search, program->recompute_column[leader], again);
}

static bool fits(slc_slot_search *search, const slc_slot_choice *choice)
{
    return slc_serial_peak(search->memory, choice, search->rows) <= (double)search->request->limit;
}

typedef struct {
    uint32_t number; /* unit or layer */
    int strategy;    /* of a layer: AGAIN or ONCE */
    int column;
    double value; /* the relaxation's value of this choice */
} open_choice;

enum { ONCE = -2, AGAIN = -1 };

static int surest_first(const void *a, const void *b)
{
    const open_choice *x = a, *y = b;
    if (x->value != y->value) return x->value > y->value ? -1 : 1;
    return x->column - y->column;
}

static bool is_open(glp_prob *lp, int column)
{
    return column && glp_get_col_type(lp, column) != GLP_FX;
}

static uint32_t list_open(const slc_slot_search *search, open_choice *out)
{
    const slc_slot_program *program = search->program;
    const slc_job *job = search->parts->job;
    glp_prob *lp = program->lp;
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->unit_count * SLC_STRATEGIES; i++) {
        uint32_t unit = i / SLC_STRATEGIES;
        int column = program->choice[i];
        if (!is_leader(program, unit) || !is_open(lp, column)) continue;
        out[count++] = (open_choice){unit, (int)(i % SLC_STRATEGIES), column, glp_get_col_prim(lp, column)};
    }
    for (uint32_t l = 0; l < job->layer_count; l++) {
        int column = program->recompute_column[l];
        if (program->layer_group[l] != l || !is_open(lp, column)) continue;
        double value = glp_get_col_prim(lp, column);
        out[count++] = (open_choice){l, value > 0.5 ? AGAIN : ONCE, column, fmax(value, 1 - value)};
    }
    if (count) qsort(out, count, sizeof *out, surest_first);
    return count;
}

/* Settles an open choice as the relaxation has it, if that fits; else the choice stays as it is. */
static void settle_choice(slc_slot_search *search, slc_slot_choice *choice, const open_choice *open)
{
    if (open->strategy < 0) {
        bool before = choice->recompute[open->number];
        settle_layer(search, choice, open->number, open->strategy == AGAIN);
        if (!fits(search, choice)) settle_layer(search, choice, open->number, before);
    } else {
        slc_strategy before = choice->strategies[open->number];
        settle_unit(search, choice, open->number, (slc_strategy)open->strategy);
        if (!fits(search, choice)) settle_unit(search, choice, open->number, before);
    }
}

/* Makes one dive. `choice` begins as one that fits, and at every moment the settled choices fit together with the
 * others as they began. Each round settles all choices that are nearly whole, and at least a sixteenth of the open
 * ones. */
static void dive(slc_slot_search *search, slc_slot_choice *choice, double nearly, open_choice *open)
{
    bool solved = true;
    uint32_t count;
    while (solved && (count = list_open(search, open)) > 0) {
        for (uint32_t i = 0; i < count; i++)
            if ((i <= count / 16 || open[i].value >= nearly) && is_open(search->program->lp, open[i].column))
                settle_choice(search, choice, &open[i]);
        solved = slc_search_simplex(search, true);
    }
    if (solved && glp_get_obj_val(search->program->lp) < search->best_objective)
        keep_answer(search, choice, "rounding");
}

struct slc_dive {
    slc_slot_choice choice;
    open_choice *open;
};

void slc_dive_destroy(struct slc_dive *dive)
{
    if (!dive) return;
    slc_slot_choice_fini(&dive->choice);
    free(dive->open);
    free(dive);
}

sluice_status slc_search_round(slc_slot_search *search)
{
    static const double nearly[] = {0.9, 0.6, 0.99};
    const slc_job *job = search->parts->job;
    size_t most = (size_t)job->unit_count * SLC_STRATEGIES + job->layer_count;
    struct slc_dive *d = search->dive = calloc(1, sizeof *d);
    if (!d || !(d->open = calloc(most + 1, sizeof *d->open)))
        return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for %zu choices", most);
    sluice_status status = slc_slot_choice_init(&d->choice, job);
    for (int i = 0; !status && i < 3 && !slc_search_is_done(search); i++) {
        slc_slot_choice_copy(&d->choice, &search->least, job);
        slc_search_restore_basis(search);
        if (!slc_search_simplex(search, true)) break;
        dive(search, &d->choice, nearly[i], d->open);
    }
    slc_search_restore_basis(search);
    return status;
}
