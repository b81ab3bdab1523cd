/* Rounding: a dive. The relaxation's choices that are nearly whole are kept, of the others one is settled at a time,
 * always so that what is settled still fits in memory, and the LP is solved again from where it stands. */
#include "ilp/slot_search.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>

double slc_search_left_s(const slc_slot_search *search)
{
    if (!(search->request->time_limit_s > 0)) return INFINITY;
    return search->request->time_limit_s - slc_seconds(slc_clock_ns() - search->begun_ns);
}

bool slc_search_is_done(const slc_slot_search *search)
{
    double slack = search->program->preference_s / search->program->time_unit;
    return search->best_objective - search->bound <= search->request->gap * search->best_objective + slack;
}

bool slc_search_simplex(slc_slot_search *search, bool dual)
{
    double left = slc_search_left_s(search);
    if (left <= 0) return false;
    glp_prob *lp = search->program->lp;
    glp_smcp simplex;
    glp_init_smcp(&simplex);
    simplex.msg_lev = GLP_MSG_OFF;
    simplex.meth = dual ? GLP_DUALP : GLP_PRIMAL;
    if (isfinite(left)) simplex.tm_lim = 1 + (int)(1e3 * fmin(left, 1e6));
    return !glp_simplex(lp, &simplex) && glp_get_status(lp) == GLP_OPT;
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
        if (program->again[l] && slc_recompute_of(search->parts, l) == 2)
            glp_set_col_bnds(program->lp, program->again[l], GLP_DB, 0, 1);
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

static void keep(slc_slot_search *search, const slc_slot_choice *choice, const char *how)
{
    glp_prob *lp = search->program->lp;
    search->best_objective = glp_get_obj_val(lp);
    search->has_values = true;
    search->how = how;
    slc_slot_choice_copy(&search->best, choice, search->parts->job);
    for (int j = 1; j <= glp_get_num_cols(lp); j++) search->values[j] = glp_get_col_prim(lp, j);
}

static void fix_choice(const slc_slot_search *search, const slc_slot_choice *choice)
{
    const slc_slot_program *program = search->program;
    const slc_job *job = search->parts->job;
    for (uint32_t i = 0; i < job->unit_count * SLC_STRATEGIES; i++)
        if (program->choice[i])
            fix(search, program->choice[i], choice->strategies[i / SLC_STRATEGIES] == i % SLC_STRATEGIES);
    for (uint32_t l = 0; l < job->layer_count; l++)
        if (program->again[l]) fix(search, program->again[l], choice->recompute[l]);
}

bool slc_search_try(slc_slot_search *search, const slc_slot_choice *choice, const char *how)
{
    if (slc_serial_peak(search->memory, choice, search->rows) > (double)search->request->limit) return false;
    fix_choice(search, choice);
    bool solved = slc_search_simplex(search, true);
    if (solved && glp_get_obj_val(search->program->lp) < search->best_objective) keep(search, choice, how);
    free_choices(search);
    return solved;
}

/* ---- The dive ---- */

/* Settles a choice; what others of its group take is settled with it. */
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
    fix(search, program->again[leader], again);
}

static bool fits(slc_slot_search *search, const slc_slot_choice *choice)
{
    return slc_serial_peak(search->memory, choice, search->rows) <= (double)search->request->limit;
}

static bool try_unit(slc_slot_search *search, slc_slot_choice *choice, uint32_t leader, slc_strategy strategy)
{
    slc_strategy before = choice->strategies[leader];
    settle_unit(search, choice, leader, strategy);
    if (fits(search, choice)) return true;
    settle_unit(search, choice, leader, before);
    return false;
}

static bool try_layer(slc_slot_search *search, slc_slot_choice *choice, uint32_t leader, bool again)
{
    bool before = choice->recompute[leader];
    settle_layer(search, choice, leader, again);
    if (fits(search, choice)) return true;
    settle_layer(search, choice, leader, before);
    return false;
}

typedef struct {
    int column; /* 0: no choice is open */
    uint32_t unit, layer;
    slc_strategy strategy;
    bool is_layer;
    double value;
} open_choice;

static bool is_open(const glp_prob *lp, int column)
{
    return column && glp_get_col_type((glp_prob *)lp, column) != GLP_FX;
}

/* Settles what is nearly whole; returns the open choice nearest to one. */
static open_choice settle_whole(slc_slot_search *search, slc_slot_choice *choice, double nearly)
{
    const slc_slot_program *program = search->program;
    glp_prob *lp = program->lp;
    open_choice best = {.value = -1};
    for (uint32_t u = 0; u < search->parts->job->unit_count; u++) {
        if (!is_leader(program, u)) continue;
        for (int k = 0; k < SLC_STRATEGIES; k++) {
            int column = program->choice[u * SLC_STRATEGIES + (uint32_t)k];
            if (!is_open(lp, column)) continue;
            double value = glp_get_col_prim(lp, column);
            if (value >= nearly && try_unit(search, choice, u, (slc_strategy)k)) break;
            if (value > best.value) best = (open_choice){column, u, 0, (slc_strategy)k, false, value};
        }
    }
    for (uint32_t l = 0; l < search->parts->job->layer_count; l++) {
        int column = program->again[l];
        if (program->layer_group[l] != l || !is_open(lp, column)) continue;
        double value = glp_get_col_prim(lp, column);
        if ((value >= nearly || value <= 1 - nearly) && try_layer(search, choice, l, value > 0.5)) continue;
        double sure = fmax(value, 1 - value);
        if (sure > best.value) best = (open_choice){column, 0, l, SLC_DP, true, sure};
    }
    return best;
}

/* One dive: `choice` begins as something that fits, and at every moment what is settled does, with the rest as it
 * began.
 */
static bool dive(slc_slot_search *search, slc_slot_choice *choice, double nearly, const char *how)
{
    bool solved = true;
    for (;;) {
        open_choice open = settle_whole(search, choice, nearly);
        if (!open.column) break;
        bool taken = open.is_layer ? try_layer(search, choice, open.layer,
                                               glp_get_col_prim(search->program->lp, open.column) > 0.5)
                                   : try_unit(search, choice, open.unit, open.strategy);
        if (!taken && open.is_layer) settle_layer(search, choice, open.layer, choice->recompute[open.layer]);
        if (!taken && !open.is_layer) settle_unit(search, choice, open.unit, choice->strategies[open.unit]);
        solved = slc_search_simplex(search, true);
        if (!solved) break;
    }
    if (solved) solved = slc_search_simplex(search, true);
    if (solved && glp_get_obj_val(search->program->lp) < search->best_objective) keep(search, choice, how);
    return solved;
}

sluice_status slc_search_round(slc_slot_search *search)
{
    static const double nearly[] = {0.9, 0.6, 0.99};
    slc_slot_choice choice;
    sluice_status status = slc_slot_choice_init(&choice, search->parts->job);
    for (int i = 0; !status && i < 3 && !slc_search_is_done(search); i++) {
        slc_slot_choice_copy(&choice, &search->least, search->parts->job);
        slc_search_restore_basis(search);
        if (!slc_search_simplex(search, true)) break;
        dive(search, &choice, nearly[i], "rounding");
    }
    slc_search_restore_basis(search);
    slc_slot_choice_fini(&choice);
    return status;
}
