/* The solver's work, counted as lib/plan/effort/work.h says: how much of it an effort allows, and what was done.
 * Private to ilp. */
#pragma once

#include "lib/plan/effort/cancel.h"
#include "lib/plan/effort/work.h"

#include <glpk.h>

typedef struct slc_effort {
    slc_work *work;           /* what counts; never NULL */
    double until_s;           /* the work's nominal seconds at which to end; INFINITY: no end */
    const slc_cancel *cancel; /* NULL: none */
} slc_effort;

/* Nominal seconds left; 0 when the work is cancelled or the ceiling is reached; INFINITY without an end. */
double slc_effort_left_s(const slc_effort *effort);

/* Limits the iterations of a simplex method by what is left, at most `most`, and its time by the ceiling. */
void slc_effort_limit(const slc_effort *effort, const glp_prob *lp, int most, glp_smcp *simplex);

/* Runs the simplex method and counts its iterations. Returns what glp_simplex does. */
int slc_effort_simplex(const slc_effort *effort, glp_prob *lp, const glp_smcp *simplex);

/* The state of a running branch and bound, which the solver's callback updates. */
typedef struct {
    const slc_effort *effort;
    int iterations, nodes; /* that are counted already */
} slc_branching;

/* Limits the time of branch and bound by the ceiling. The effort is looked at between nodes, for GLPK has no limit of
 * iterations there; so the time is also limited to several times of what the effort should take, as a guard against a
 * node that goes in circles. Reaching that guard counts as reaching the ceiling. */
void slc_branching_limit(const slc_branching *branching, glp_iocp *options);
/* Runs branch and bound. Returns what glp_intopt does. */
int slc_branching_run(slc_branching *branching, glp_prob *lp, const glp_iocp *options);
/* Called from the solver's callback: counts, and ends the search when nothing is left. */
void slc_branching_look(slc_branching *branching, glp_tree *tree);
