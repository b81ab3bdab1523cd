/* The slot model: from a request to an answer. */
#include "ilp/slot_model.h"

#include "ilp/coarse.h"
#include "ilp/search/slot_search.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>

const char *slc_slot_model_solver(void)
{
    static const char solver[] = "GLPK " SLC_GLPK_VERSION;
    return solver;
}

static void search_fini(slc_slot_search *search)
{
    slc_prices_fini(&search->prices);
    free(search->rows);
    free(search->values);
    free(search->basis);
    slc_slot_choice_fini(&search->least);
    slc_slot_choice_fini(&search->best);
    slc_least_memory_destroy(search->lightest);
    slc_dive_destroy(search->dive);
}

static sluice_status no_room(const slc_slot_search *search, double least)
{
    return slc_error(SLUICE_ERR_BUDGET,
                     "slot model: an arena of %llu bytes is too small; the least that any strategies need is %.0f",
                     (unsigned long long)search->request->limit, ceil(least));
}

static const double LEAST_EFFORT_S = 0.02; /* to find out whether anything fits, however little is left */

/* Finds an answer that fits, or shows that there is none. A guess is tried first; the solver is asked only if it does
 * not fit. */
static sluice_status begin(slc_slot_search *search)
{
    bool proven = false;
    slc_effort effort = search->effort;
    effort.until_s = fmax(effort.until_s, effort.work->spent_s + LEAST_EFFORT_S);
    if (slc_search_serial(search)) return SLUICE_OK;
    sluice_status status = slc_least_memory_choice(search->memory, &effort, &search->least, &proven, &search->lightest);
    if (status || slc_search_serial(search)) return status;
    return proven ? no_room(search, slc_serial_peak(search->memory, &search->least, search->rows)) : SLUICE_OK;
}

/* Keeps the prices of room and memory in the relaxation: the reduced costs of their rows and columns at the upper end.
 * If the effort ends before the tie-breaking term is left out, prices from the program with that term have to do. */
static void keep_prices(slc_slot_search *search)
{
    const slc_slot_program *program = search->program;
    const double byte_s = program->time_unit / program->byte_unit;
    for (uint32_t s = 0; s < search->parts->slots; s++)
        search->prices.room[s] = fmax(-glp_get_row_dual(program->lp, program->first_slot_row + (int)s), 0);
    for (uint32_t h = 0; h < search->parts->half_rows; h++)
        search->prices.memory[h] = fmax(-glp_get_col_dual(program->lp, program->first_level + (int)h) * byte_s, 0);
}

/* Improves the bound by leaving the tie-breaking term out: the same LP from its current basis with the plain costs,
 * which takes a few steps. */
static void tighten(slc_slot_search *search)
{
    slc_slot_program *program = search->program;
    slc_search_restore_basis(search);
    for (int i = 0; i < program->flow_count; i++)
        glp_set_obj_coef(program->lp, program->first_flow + i, program->flows[i].cost);
    if (slc_search_simplex(search, false)) {
        double bound_s = glp_get_obj_val(program->lp) * program->time_unit;
        if (bound_s > search->bound_s) search->bound_s = bound_s;
        keep_prices(search);
    }
}

/* Solves the relaxation, which gives a bound. False: the effort is spent. */
static bool relax(slc_slot_search *search)
{
    glp_prob *lp = search->program->lp;
    glp_scale_prob(lp, GLP_SF_AUTO);
    if (isfinite(search->best_objective))
        slc_search_serial_basis(search);
    else
        glp_adv_basis(lp, 0);
    if (!slc_search_simplex(search, false)) return false;
    search->bound = glp_get_obj_val(lp);
    search->bound_s = search->bound * search->program->time_unit - search->program->preference_s;
    slc_search_save_basis(search);
    keep_prices(search);
    return true;
}

static sluice_status search_all(slc_slot_search *search, bool bounding)
{
    if (!relax(search)) return SLUICE_OK;
    search->relaxed_s = search->bound_s;
    if (search->request->relaxed) return SLUICE_OK;
    if (bounding) return slc_search_branch(search);
    sluice_status status = search->request->whole_blocks ? SLUICE_OK : slc_search_round(search);
    if (!status && !slc_search_is_done(search)) status = slc_search_branch(search);
    if (!status && search->program->preference_s > 0) tighten(search);
    return status;
}

static sluice_status search_init(slc_slot_search *search)
{
    search->rows = calloc(search->memory->rows, sizeof *search->rows);
    if (!search->rows) return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for %u rows", search->memory->rows);
    search->best_objective = INFINITY;
    sluice_status status = slc_prices_init(&search->prices, search->parts->slots);
    if (!status) status = slc_slot_choice_init(&search->least, search->parts->job);
    return status ? status : slc_slot_choice_init(&search->best, search->parts->job);
}

/* Returns an error if some row shows by itself that no strategies fit; then the program need not be written down. */
static sluice_status check_room(slc_slot_search *search)
{
    const double limit = (double)search->request->limit;
    slc_least_memory_guess(search->memory, &search->least);
    if (slc_serial_peak(search->memory, &search->least, search->rows) <= limit) return SLUICE_OK;
    const double least = slc_serial_least(search->memory, search->rows);
    return least > limit ? no_room(search, least) : SLUICE_OK;
}

static sluice_status make_program(slc_slot_search *search, uint32_t tie, bool preference)
{
    slc_slot_program *program = search->program;
    sluice_status status = slc_slot_program_init(program, search->parts, tie, preference);
    if (status) return status;
    slc_work_add(search->effort.work, SLC_WORK_MODEL_CELL, glp_get_num_nz(program->lp));
    size_t columns = (size_t)glp_get_num_cols(program->lp) + 1;
    search->values = calloc(columns, sizeof *search->values);
    search->basis = calloc(columns + (size_t)glp_get_num_rows(program->lp), sizeof *search->basis);
    search->bound = program->fixed_s / program->time_unit;
    if (search->values && search->basis) return SLUICE_OK;
    return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for %zu columns", columns);
}

typedef struct {
    const slc_slot_request *request;
    const slc_slot_model_parts *parts;
    slc_serial_memory memory;
    slc_slot_program program;
    slc_slot_search search;
    slc_effort effort;
    bool bounding;            /* only bounds are wanted */
    const slc_coarse *coarse; /* whose joined job it is; NULL: the job is a real one */
    slc_slot_solution *out;
} solving;

static sluice_status solve(void *context)
{
    solving *s = context;
    uint32_t tie = s->request->tie ? s->request->tie : slc_tie_by_size(s->parts);
    bool plain = s->request->whole_blocks || s->request->relaxed || s->bounding;
    s->search = (slc_slot_search){
        .request = s->request, .parts = s->parts, .memory = &s->memory, .program = &s->program, .effort = s->effort};
    sluice_status status = search_init(&s->search);
    if (!status) status = check_room(&s->search);
    if (!status) status = make_program(&s->search, tie, !plain);
    if (!status) status = begin(&s->search);
    if (!status) status = search_all(&s->search, s->bounding);
    return status;
}

/* Estimates the non-zeros of a program with all positions: some in each column and, if a unit's reduction and gather
 * may share positions, one in each row of their order from there on. */
static double count_cells(const slc_slot_model_parts *p)
{
    static const double CELLS = 5;
    double cells = 0;
    for (uint32_t i = 0, first = 0; i < p->family_count; i++) {
        const slc_flow_family *family = &p->families[i];
        if (family->unit != p->families[first].unit) first = i;
        cells += CELLS * ((family->last - family->first) / 2 + 1);
        for (uint32_t k = first; slc_flow_family_is_ordered_gather(p, family) && k < i; k++) {
            const slc_flow_family *reduce = &p->families[k];
            const uint32_t from = reduce->first > family->first ? reduce->first : family->first;
            const uint32_t to = reduce->last < family->last ? reduce->last : family->last;
            if (slc_flow_family_is_ordered_reduction(p, reduce) && to > from) cells += pow((to - from) / 2.0, 2);
        }
    }
    return cells;
}

/* Returns true if writing the program down would take more than its share of the effort. Only programs for bounds may,
 * because they have every position; those of real layers also have every micro-batch. */
static bool is_too_large(const solving *s)
{
    static const double SHARE = 0.25;
    if (!s->bounding && !(s->coarse && s->request->relaxed)) return false;
    return count_cells(s->parts) * slc_work_price(SLC_WORK_MODEL_CELL) > SHARE * slc_effort_left_s(&s->effort);
}

static sluice_status write_out(solving *s)
{
    const slc_slot_program *program = &s->program;
    double bound_s = fmax(s->search.bound * program->time_unit - program->preference_s, s->search.bound_s);
    s->out->bound_s = fmax(bound_s - s->parts->forgone_s, program->fixed_s);
    s->out->relaxed_s = fmax(s->search.relaxed_s - s->parts->forgone_s, program->fixed_s);
    if (s->request->relaxed || s->bounding || !isfinite(s->search.best_objective)) return SLUICE_OK;
    sluice_status status = slc_search_answer(&s->search, s->out);
    if (!status) status = slc_slot_model_evaluate(s->request, s->out, &s->out->step_s, NULL);
    if (!status && s->out->bound_s > s->out->step_s) s->out->bound_s = s->out->step_s;
    return status;
}

/* Works out the bound of plans from the prices of the answer's program, with at most as much work as the answer took.
 * It is counted apart, so that the answer's caller has the effort left that it would have without. */
static sluice_status prove(solving *s, double begun_s)
{
    slc_slot_request counted = s->coarse ? *s->coarse->fine : *s->request;
    slc_slot_solution *out = s->out;
    slc_work apart = *s->effort.work;
    slc_prices fine = {0};
    const double before_s = apart.spent_s, step_s = out->found ? out->step_s : INFINITY;
    const uint32_t micro_batches = s->parts->micro_batches;
    sluice_status status = SLUICE_OK;
    counted.work = &apart;
    if (counted.bounded) counted.allowed = counted.bounded;
    if (s->coarse) status = slc_prices_init(&fine, micro_batches * slc_job_slots(counted.job));
    if (!status && s->coarse) slc_coarse_refine_prices(s->coarse, &s->search.prices, micro_batches, &fine);
    if (!status)
        status = slc_priced_bound(&counted, s->coarse ? &fine : &s->search.prices, micro_batches, step_s,
                                  2 * before_s - begun_s, &out->proven_s);
    slc_prices_fini(&fine);
    out->proving_s = apart.spent_s - before_s;
    s->effort.work->cut |= apart.cut;
    return status;
}

/* Returns the effort of a request. The work is counted in `own` if the caller counts none. */
static slc_effort effort_of(const slc_slot_request *request, slc_work *own)
{
    slc_work *work = request->work ? request->work : own;
    double until_s = request->effort_s > 0 ? work->spent_s + request->effort_s : INFINITY;
    return (slc_effort){.work = work, .until_s = until_s, .cancel = request->cancel};
}

static sluice_status solve_in(const slc_slot_request *request, slc_slot_detail detail, const slc_coarse *coarse,
                              slc_slot_solution *out)
{
    *out = (slc_slot_solution){0};
    uint64_t begun_ns = slc_clock_ns();
    slc_work own = {0};
    slc_slot_model_parts parts;
    solving s = {.request = request,
                 .parts = &parts,
                 .effort = effort_of(request, &own),
                 .bounding = detail == SLC_BOUNDING,
                 .coarse = coarse,
                 .out = out};
    sluice_status status = slc_slot_parts_init(&parts, request, detail);
    if (status) return status;
    const double begun_s = s.effort.work->spent_s;
    status = slc_evaluation_init(&parts, request->limit);
    if (!status) status = slc_serial_memory_init(&s.memory, &parts);
    if (!status && is_too_large(&s))
        s.program.fixed_s = slc_fixed_s(&parts);
    else if (!status)
        status = slc_glpk_run(solve, &s, request->cancel);
    if (!status) status = slc_cancel_check(request->cancel);
    if (!status) status = write_out(&s);
    if (!status && request->proves && s.search.prices.room) status = prove(&s, begun_s); /* else it was too large */
    search_fini(&s.search);
    slc_slot_program_fini(&s.program);
    slc_serial_memory_fini(&s.memory);
    slc_slot_parts_fini(&parts);
    out->solve_s = slc_seconds(slc_clock_ns() - begun_ns);
    if (status) slc_slot_solution_fini(out);
    return status;
}

/* Joined layers need a little more memory than the real ones. If they have too little, the real job is asked for with
 * what is left of the effort. */
static sluice_status solve_joined(const slc_slot_request *request, slc_slot_solution *out)
{
    static const double LITTLE_S = 1e-3;
    const double begun_s = request->work ? request->work->spent_s : 0;
    slc_coarse coarse;
    sluice_status status = slc_coarse_init(&coarse, request);
    if (!status) status = solve_in(&coarse.request, SLC_FOLDED, &coarse, out);
    if (!status && out->found) status = slc_coarse_refine(&coarse, out);
    slc_coarse_fini(&coarse);
    if (status) slc_slot_solution_fini(out);
    if (status != SLUICE_ERR_BUDGET) return status;
    slc_slot_request rest = *request;
    if (rest.effort_s > 0 && rest.work) rest.effort_s = fmax(rest.effort_s - (rest.work->spent_s - begun_s), LITTLE_S);
    return solve_in(&rest, SLC_FOLDED, NULL, out);
}

sluice_status slc_slot_model_solve(const slc_slot_request *request, slc_slot_solution *out)
{
    return slc_coarse_is_wanted(request) ? solve_joined(request, out) : solve_in(request, SLC_FOLDED, NULL, out);
}

/* ---- Bounds ---- */

/* Rows of orders grow with the square of the layers. So deep jobs are bounded by prices of their joined layers, whose
 * program is small enough to have every position: prices of one that lacks some may be far from the best. */
static sluice_status bound_joined(const slc_slot_request *request, double *bound_s)
{
    slc_coarse coarse;
    slc_slot_solution solution = {0};
    *bound_s = 0;
    sluice_status status = slc_coarse_init(&coarse, request);
    if (status) return status;
    coarse.request.every_position = coarse.request.relaxed = coarse.request.proves = true;
    status = solve_in(&coarse.request, SLC_FOLDED, &coarse, &solution);
    *bound_s = solution.proven_s;
    slc_slot_solution_fini(&solution);
    slc_coarse_fini(&coarse);
    return status == SLUICE_ERR_BUDGET ? SLUICE_OK : status; /* joined layers may need more than the real ones */
}

sluice_status slc_slot_model_bound(const slc_slot_request *request, double *relaxed_s, double *bound_s)
{
    slc_slot_request all = *request;
    slc_slot_solution solution;
    if (slc_coarse_is_wanted(request)) {
        sluice_status status = bound_joined(request, bound_s);
        *relaxed_s = *bound_s;
        return status;
    }
    all.every_position = true;
    all.tie = 1;
    all.whole_blocks = 0;
    sluice_status status = solve_in(&all, SLC_BOUNDING, NULL, &solution);
    *relaxed_s = solution.relaxed_s;
    *bound_s = solution.bound_s;
    slc_slot_solution_fini(&solution);
    return status;
}

/* ---- Memory ---- */

typedef struct {
    const slc_slot_request *request;
    slc_serial_memory memory;
    slc_slot_program none; /* empty: writing an answer without values asks for no column */
    slc_slot_search search;
    slc_effort effort;
    bool proven;
} lightening;

static sluice_status lighten(void *context)
{
    lightening *l = context;
    return slc_least_memory_choice(&l->memory, &l->effort, &l->search.best, &l->proven, &l->search.lightest);
}

sluice_status slc_slot_model_least_memory(const slc_slot_request *request, uint64_t *limit, slc_slot_solution *out)
{
    *out = (slc_slot_solution){0};
    uint64_t begun_ns = slc_clock_ns();
    slc_slot_model_parts parts;
    slc_work own = {0};
    lightening l = {.request = request, .effort = effort_of(request, &own)};
    sluice_status status = slc_slot_parts_init(&parts, request, SLC_FOLDED);
    if (status) return status;
    l.search = (slc_slot_search){.request = request, .parts = &parts, .memory = &l.memory, .how = "no overlap"};
    status = slc_evaluation_init(&parts, 0);
    if (!status) status = slc_slot_choice_init(&l.search.best, parts.job);
    if (!status) status = slc_serial_memory_init(&l.memory, &parts);
    double *rows = calloc(l.memory.rows + (size_t)1, sizeof *rows);
    if (!status && !rows) status = slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for rows");
    if (!status) status = slc_glpk_run(lighten, &l, request->cancel);
    if (!status) status = slc_cancel_check(request->cancel);
    if (!status) status = slc_search_answer(&l.search, out);
    if (!status) status = slc_slot_model_evaluate(request, out, &out->step_s, NULL);
    if (!status) *limit = (uint64_t)llround(slc_serial_peak(&l.memory, &l.search.best, rows));
    free(rows);
    search_fini(&l.search);
    slc_serial_memory_fini(&l.memory);
    slc_slot_parts_fini(&parts);
    out->solve_s = slc_seconds(slc_clock_ns() - begun_ns);
    if (status) slc_slot_solution_fini(out);
    return status;
}
