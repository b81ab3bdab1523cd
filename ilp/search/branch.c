/* Branch and bound by GLPK, from the best answer so far. GLPK's feasibility pump is not used: it has been seen to go in
 * circles without end. ilp/slot_model_test.c covers this file. */
#include "ilp/search/slot_search.h"

#include "lib/base/status.h"

static void suggest(glp_tree *tree, void *context)
{
    slc_slot_search *search = context;
    if (glp_ios_reason(tree) == GLP_IHEUR && search->has_values && glp_ios_curr_node(tree) == 1)
        glp_ios_heur_sol(tree, search->values);
}

static void keep_better(slc_slot_search *search)
{
    const slc_slot_program *program = search->program;
    const slc_job *job = search->parts->job;
    glp_prob *lp = program->lp;
    int status = glp_mip_status(lp);
    if (status != GLP_OPT && status != GLP_FEAS) return;
    if (glp_mip_obj_val(lp) >= search->best_objective) return;
    uint32_t whole = search->request->whole_blocks;
    for (uint32_t i = 0; i < job->unit_count * SLC_STRATEGIES; i++)
        if (program->choice[i] && glp_mip_col_val(lp, program->choice[i]) > 0.5)
            search->best.strategies[i / SLC_STRATEGIES] = (slc_strategy)(i % SLC_STRATEGIES);
    for (uint32_t l = 0; l < job->layer_count; l++)
        search->best.recompute[l] =
            program->recompute_column[l] && glp_mip_col_val(lp, program->recompute_column[l]) > 0.5;
    for (int j = 1; j <= glp_get_num_cols(lp); j++) {
        search->values[j] = glp_mip_col_val(lp, j);
        if (whole && j >= program->first_flow) search->values[j] /= whole;
    }
    search->best_objective = glp_mip_obj_val(lp);
    search->has_values = true;
    search->how = "branch and bound";
}

typedef struct {
    slc_slot_search *search;
    slc_branching branching;
    double bound;
} hearing;

static void hear(glp_tree *tree, void *context)
{
    hearing *h = context;
    slc_branching_look(&h->branching, tree);
    suggest(tree, h->search);
    int best = glp_ios_best_node(tree);
    if (best) h->bound = glp_ios_node_bound(tree, best);
}

sluice_status slc_search_branch(slc_slot_search *search)
{
    if (slc_effort_left_s(&search->effort) <= 0 || !slc_search_simplex(search, true)) return SLUICE_OK;
    hearing h = {.search = search, .branching = {.effort = &search->effort}, .bound = search->bound};
    glp_iocp options;
    glp_init_iocp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.presolve = GLP_OFF;
    options.pp_tech = GLP_PP_NONE; /* it walks all rows in every node, for next to nothing here */
    options.br_tech = GLP_BR_MFV;
    options.mip_gap = search->request->gap;
    options.cb_func = hear;
    options.cb_info = &h;
    slc_branching_limit(&h.branching, &options);
    int failed = slc_branching_run(&h.branching, search->program->lp, &options);
    keep_better(search);
    int status = glp_mip_status(search->program->lp);
    double bound = h.bound;
    if (!failed && (status == GLP_OPT || status == GLP_NOFEAS)) {
        double proven = search->best_objective * (1 - search->request->gap);
        if (proven > bound) bound = proven;
    }
    if (bound > search->best_objective) bound = search->best_objective;
    if (bound > search->bound) search->bound = bound;
    return SLUICE_OK;
}
