/* Finds the least memory by a small program over strategies and recomputation alone, because flows next to their needs
 * hold least. ilp/slot_model_test.c covers this file. */
#include "ilp/solver/effort.h"
#include "ilp/parts/serial_memory.h"
#include "ilp/solver/slot_program.h"

#include "lib/base/status.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

/* The program is dense, and an iteration of a dense one costs far more than its price, which goes by the rows. */
static const double MOST_CELLS = 400000;

typedef struct slc_least_memory {
    const slc_serial_memory *memory;
    glp_prob *lp;
    int *choice, *recompute_column; /* columns */
    int *rows;
    double *values;
    slc_slot_choice found;
    double unit; /* bytes of one unit in the program */
} least;

/* Adds a column: its memory rows, and for a strategy its choice row. Column 1 is the peak. */
static void add_column(least *l, int column, const double *cells, double sign, int choice_row)
{
    int count = 0;
    for (uint32_t h = 0; h < l->memory->rows; h++) {
        if (cells[h] == 0) continue;
        l->rows[++count] = 1 + (int)h;
        l->values[count] = sign * cells[h] / l->unit;
    }
    if (choice_row) {
        l->rows[++count] = choice_row;
        l->values[count] = 1;
    }
    glp_set_mat_col(l->lp, column, count, l->rows, l->values);
    glp_set_col_kind(l->lp, column, GLP_BV);
}

static void build(least *l)
{
    const slc_serial_memory *memory = l->memory;
    const slc_job *job = memory->parts->job;
    int rows = (int)memory->rows;
    glp_add_rows(l->lp, rows + (int)job->unit_count);
    for (int h = 1; h <= rows; h++) glp_set_row_bnds(l->lp, h, GLP_UP, 0, -memory->fixed[h - 1] / l->unit);
    glp_add_cols(l->lp, 1);
    glp_set_col_bnds(l->lp, 1, GLP_LO, 0, 0);
    glp_set_obj_coef(l->lp, 1, 1);
    for (int h = 1; h <= rows; h++) {
        l->rows[h] = h;
        l->values[h] = -1;
    }
    glp_set_mat_col(l->lp, 1, rows, l->rows, l->values);
    for (uint32_t u = 0; u < job->unit_count; u++) {
        glp_set_row_bnds(l->lp, rows + 1 + (int)u, GLP_FX, 1, 1);
        for (uint32_t i = u * SLC_STRATEGIES; i < (u + 1) * SLC_STRATEGIES; i++)
            if (memory->unit[i]) {
                l->choice[i] = glp_add_cols(l->lp, 1);
                add_column(l, l->choice[i], memory->unit[i], 1, rows + 1 + (int)u);
            }
    }
    for (uint32_t k = 0; k < job->layer_count; k++)
        if (memory->layer[k]) {
            l->recompute_column[k] = glp_add_cols(l->lp, 1);
            add_column(l, l->recompute_column[k], memory->layer[k], -1, 0);
        }
}

static double count_cells(const slc_serial_memory *memory)
{
    const slc_job *job = memory->parts->job;
    double count = memory->rows;
    for (uint32_t i = 0; i < job->unit_count * SLC_STRATEGIES; i++)
        for (uint32_t h = 0; memory->unit[i] && h < memory->rows; h++) count += memory->unit[i][h] != 0;
    for (uint32_t k = 0; k < job->layer_count; k++)
        for (uint32_t h = 0; memory->layer[k] && h < memory->rows; h++) count += memory->layer[k][h] != 0;
    return count;
}

static void read_out(const least *l, slc_slot_choice *choice)
{
    const slc_job *job = l->memory->parts->job;
    for (uint32_t i = 0; i < job->unit_count * SLC_STRATEGIES; i++)
        if (l->choice[i] && glp_mip_col_val(l->lp, l->choice[i]) > 0.5)
            choice->strategies[i / SLC_STRATEGIES] = (slc_strategy)(i % SLC_STRATEGIES);
    for (uint32_t k = 0; k < job->layer_count; k++)
        choice->recompute[k] = l->recompute_column[k] ? glp_mip_col_val(l->lp, l->recompute_column[k]) > 0.5
                                                      : slc_recompute_of(l->memory->parts, k) == 1;
}

void slc_least_memory_guess(const slc_serial_memory *memory, slc_slot_choice *choice)
{
    const slc_job *job = memory->parts->job;
    const uint32_t reading = memory->parts->half_rows; /* the row that holds resident bytes alone */
    for (uint32_t u = 0; u < job->unit_count; u++) {
        double smallest = INFINITY;
        for (int k = 0; k < SLC_STRATEGIES; k++) {
            const double *rows = memory->unit[u * SLC_STRATEGIES + (uint32_t)k];
            if (!rows || rows[reading] >= smallest) continue;
            smallest = rows[reading];
            choice->strategies[u] = (slc_strategy)k;
        }
    }
    for (uint32_t l = 0; l < job->layer_count; l++) choice->recompute[l] = slc_recompute_of(memory->parts, l) != 0;
}

static void watch_solver(glp_tree *tree, void *context)
{
    slc_branching_look(context, tree);
}

static sluice_status solve(least *l, const slc_effort *effort, slc_slot_choice *choice, bool *proven)
{
    slc_branching branching = {.effort = effort};
    glp_smcp simplex;
    glp_init_smcp(&simplex);
    simplex.msg_lev = GLP_MSG_OFF;
    glp_iocp search;
    glp_init_iocp(&search);
    search.msg_lev = GLP_MSG_OFF;
    search.presolve = GLP_OFF;
    search.pp_tech = GLP_PP_NONE;
    search.br_tech = GLP_BR_MFV;
    search.mip_gap = 1e-7;
    search.cb_func = watch_solver;
    search.cb_info = &branching;
    *proven = false;
    if (slc_effort_left_s(effort) <= 0) return SLUICE_OK;
    slc_effort_limit(effort, l->lp, INT_MAX, &simplex);
    if (slc_effort_simplex(effort, l->lp, &simplex) || glp_get_status(l->lp) != GLP_OPT) return SLUICE_OK;
    slc_branching_limit(&branching, &search);
    int failed = slc_branching_run(&branching, l->lp, &search);
    int found = glp_mip_status(l->lp);
    if (found != GLP_OPT && found != GLP_FEAS) return SLUICE_OK;
    *proven = !failed && found == GLP_OPT;
    read_out(l, choice);
    return SLUICE_OK;
}

static sluice_status least_create(const slc_serial_memory *memory, least **out)
{
    const slc_job *job = memory->parts->job;
    size_t entries = memory->rows + job->unit_count + 2;
    least *l = *out = calloc(1, sizeof *l);
    if (!l) return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for the least memory");
    *l = (least){.memory = memory,
                 .choice = calloc((size_t)job->unit_count * SLC_STRATEGIES + 1, sizeof *l->choice),
                 .recompute_column = calloc((size_t)job->layer_count + 1, sizeof *l->recompute_column),
                 .rows = calloc(entries, sizeof *l->rows),
                 .values = calloc(entries, sizeof *l->values)};
    if (!l->choice || !l->recompute_column || !l->rows || !l->values)
        return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for the least memory");
    return slc_slot_choice_init(&l->found, job);
}

void slc_least_memory_destroy(least *l)
{
    if (!l) return;
    slc_slot_choice_fini(&l->found);
    free(l->values);
    free(l->rows);
    free(l->recompute_column);
    free(l->choice);
    free(l);
}

sluice_status slc_least_memory_choice(const slc_serial_memory *memory, const slc_effort *effort,
                                      slc_slot_choice *choice, bool *proven, least **work)
{
    const slc_job *job = memory->parts->job;
    const double cells = count_cells(memory);
    *proven = false;
    slc_least_memory_guess(memory, choice);
    if (cells > MOST_CELLS || cells * slc_work_price(SLC_WORK_MODEL_CELL) > slc_effort_left_s(effort)) return SLUICE_OK;
    slc_work_add(effort->work, SLC_WORK_MODEL_CELL, cells);
    sluice_status status = least_create(memory, work);
    if (status) return status;
    least *l = *work;
    l->unit = slc_serial_peak(memory, choice, l->values) / 100;
    if (!(l->unit > 0)) l->unit = 1;
    double guessed = 100 * l->unit;
    l->lp = glp_create_prob();
    build(l);
    slc_slot_choice_copy(&l->found, choice, job);
    status = solve(l, effort, &l->found, proven);
    if (!status && slc_serial_peak(memory, &l->found, l->values) < guessed)
        slc_slot_choice_copy(choice, &l->found, job);
    glp_delete_prob(l->lp);
    return status;
}
