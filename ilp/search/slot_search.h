/* The search for an answer: the state and the functions that its steps share. Private to ilp. */
#pragma once

#include "ilp/solver/effort.h"
#include "ilp/solver/priced_bound.h"
#include "ilp/parts/serial_memory.h"
#include "ilp/solver/slot_program.h"

typedef struct {
    const slc_slot_request *request;
    const slc_slot_model_parts *parts;
    const slc_serial_memory *memory;
    slc_slot_program *program;
    slc_effort effort;
    double bound;      /* in the program's units: lower bound of every answer's objective, tie-breaking term included */
    double bound_s;    /* lower bound of the step's time in seconds */
    double relaxed_s;  /* lower bound by the relaxation, before any branching */
    slc_prices prices; /* of the relaxation, once it has been solved; else 0 */
    int *basis;        /* [rows + columns + 1] of the relaxation: states of rows, then of columns */
    slc_slot_choice least; /* the choice of least memory */
    /* The best answer so far. `values` are [columns + 1] of the program; without has_values every flow is in its serial
     * gap. */
    slc_slot_choice best;
    double best_objective; /* with the tie-breaking term; INFINITY: none yet */
    bool has_values;
    double *values;
    const char *how;
    double *rows; /* [memory->rows] scratch */
    /* Parts of the search work with these. They are freed with the search, because the solver may give up while such a
     * part is running. */
    struct slc_least_memory *lightest;
    struct slc_dive *dive;
} slc_slot_search;

/* Returns true if the best answer is within the wanted gap of the bound. */
bool slc_search_is_done(const slc_slot_search *search);

/* Solves the LP from its current basis; `dual`: by the dual method. True: optimal. */
bool slc_search_simplex(slc_slot_search *search, bool dual);
/* Saves the basis of the relaxation, and takes it up again (with all choices free). */
void slc_search_save_basis(slc_slot_search *search);
void slc_search_restore_basis(slc_slot_search *search);
/* Makes an answer without overlap and without the solver: the first incumbent. False: no choice fits in memory. */
bool slc_search_serial(slc_slot_search *search);
/* Sets the basis of that answer, from which the simplex method may begin without a first phase. */
void slc_search_serial_basis(slc_slot_search *search);
/* Rounds the relaxation's choices and solves for the flows, several ways. */
sluice_status slc_search_round(slc_slot_search *search);
void slc_dive_destroy(struct slc_dive *dive); /* NULL is allowed */
/* Runs branch and bound from the best answer so far and improves `bound`. */
sluice_status slc_search_branch(slc_slot_search *search);

/* Writes the best answer out for every micro-batch. */
sluice_status slc_search_answer(const slc_slot_search *search, slc_slot_solution *out);
