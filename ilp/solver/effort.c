/* Iterations and nodes, and what they cost. ilp/slot_model_test.c covers this file. */
#include "ilp/solver/effort.h"

#include <limits.h>
#include <math.h>

static const double GUARD_FACTOR = 20, GUARD_S = 10, MOST_GUARD_S = 600; /* before a node counts as going in circles */

double slc_effort_left_s(const slc_effort *effort)
{
    if (slc_cancelled(effort->cancel) || slc_work_is_over(effort->work, effort->until_s)) return 0;
    return effort->until_s - effort->work->spent_s;
}

static double iteration_s(const glp_prob *lp)
{
    return slc_work_price(SLC_WORK_PIVOT) + slc_work_price(SLC_WORK_PIVOT_ROW) * glp_get_num_rows((glp_prob *)lp);
}

static void count_iterations(slc_work *work, glp_prob *lp, int count)
{
    slc_work_add(work, SLC_WORK_PIVOT, count);
    slc_work_add(work, SLC_WORK_PIVOT_ROW, (double)count * glp_get_num_rows(lp));
}

static int milliseconds(double seconds)
{
    return seconds < 2e6 ? 1 + (int)(1e3 * seconds) : INT_MAX;
}

void slc_effort_limit(const slc_effort *effort, const glp_prob *lp, int most, glp_smcp *simplex)
{
    double allowed = slc_effort_left_s(effort) / iteration_s(lp);
    simplex->it_lim = allowed < most ? (int)allowed : most;
    simplex->tm_lim = milliseconds(slc_work_ceiling_left_s(effort->work));
}

int slc_effort_simplex(const slc_effort *effort, glp_prob *lp, const glp_smcp *simplex)
{
    int before = glp_get_it_cnt(lp), failed = glp_simplex(lp, simplex);
    count_iterations(effort->work, lp, glp_get_it_cnt(lp) - before);
    effort->work->cut |= failed == GLP_ETMLIM;
    return failed;
}

void slc_branching_limit(const slc_branching *branching, glp_iocp *options)
{
    const slc_effort *effort = branching->effort;
    double guard_s = fmin(GUARD_S + GUARD_FACTOR * slc_effort_left_s(effort), MOST_GUARD_S);
    options->tm_lim = milliseconds(fmin(guard_s, slc_work_ceiling_left_s(effort->work)));
}

static void count_more(slc_branching *branching, glp_prob *lp, int iterations, int nodes)
{
    slc_work *work = branching->effort->work;
    count_iterations(work, lp, iterations - branching->iterations);
    slc_work_add(work, SLC_WORK_NODE_ROW, (double)(nodes - branching->nodes) * glp_get_num_rows(lp));
    branching->iterations = iterations;
    branching->nodes = nodes;
}

void slc_branching_look(slc_branching *branching, glp_tree *tree)
{
    int nodes;
    glp_prob *lp = glp_ios_get_prob(tree);
    glp_ios_tree_size(tree, NULL, NULL, &nodes);
    count_more(branching, lp, glp_get_it_cnt(lp), nodes);
    if (slc_effort_left_s(branching->effort) <= 0) glp_ios_terminate(tree);
}

int slc_branching_run(slc_branching *branching, glp_prob *lp, const glp_iocp *options)
{
    branching->iterations = glp_get_it_cnt(lp);
    int failed = glp_intopt(lp, options);
    count_more(branching, lp, glp_get_it_cnt(lp), branching->nodes);
    branching->effort->work->cut |= failed == GLP_ETMLIM;
    return failed;
}
