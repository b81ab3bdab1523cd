/* An oracle that tells what the drawn model's parameters must hold: gradients are a known function of rank,
 * micro-batch, step and value, so every rank computes what all ranks contribute, adds in rank order and updates plain
 * arrays. */
#pragma once

#include "tests/support/engine_model.h"

/* Rank `rank` adds this to element i of parameter p in one use, in micro-batch m of a step. */
float engine_oracle_contribution(int rank, uint64_t step, uint32_t m, uint32_t p, uint32_t use, uint64_t i,
                                 float value);

/* The look-up numbered `number` adds this to element e of its row. */
float engine_oracle_row_contribution(const known_param *k, int rank, uint64_t step, uint32_t m, uint32_t p,
                                     uint32_t number, int32_t row, uint64_t e);

/* The rows that a rank looks up in a micro-batch, a few of them again and again; returns how many. */
uint32_t engine_oracle_rows(const known_param *k, int rank, uint64_t step, uint32_t m, uint32_t p, int32_t *rows);

/* Returns the micro-batches of a step: all that there are at most, or a number that the step decides. */
uint32_t engine_oracle_micro_batches(const trial *t, uint64_t step);

/* True if a step leaves the layer out: never the first or the last one, nor one that looks rows up. */
bool engine_oracle_leaves_out(const engine_model *w, uint64_t step, uint32_t layer);
/* Returns how many updates a parameter has had after a step. */
uint64_t engine_oracle_updates(const engine_model *w, const known_param *k, uint64_t step);

/* Returns the settings of a step, which differ from step to step. Rates of groups, where it has some, are static. */
sluice_step_options engine_oracle_options(const trial *t, uint64_t step);

/* Fills k->gradient of every parameter with the step's reduced gradient. */
void engine_oracle_reduce(engine_model *w, uint64_t step);

/* The norm of the reduced gradient as a plain double sum. It is to be compared with a tolerance: its bits are the norm
 * kernel's affair. */
double engine_oracle_norm(const engine_model *w);

/* Updates the plain arrays with the reduced gradient times `factor`, at the step's rates, as the trial's optimizer does
 * (LAMB takes no factor). Returns 0, or 1 after a line on standard error. */
int engine_oracle_update(engine_model *w, uint64_t step, double factor);
