/* The lists among the options of a sweep. */
#pragma once

#include "bench/sweep/options/sweep_options.h"

/* Splits the texts of all lists, and reads the recipes that are named. Options whose text the command line has not
 * given have their defaults. slc_bench_options_free frees what it makes, after an error too. Errors: ARGUMENT, MEMORY,
 * those of slc_training_recipe_read. */
sluice_status slc_bench_lists_split(slc_bench_options *options);
/* Sets another list of budgets, written as a user would write it. Errors: ARGUMENT, MEMORY. */
sluice_status slc_bench_options_set_budgets(slc_bench_options *options, const char *list);
/* Frees the lists, and forgets all options. */
void slc_bench_options_free(slc_bench_options *options);
