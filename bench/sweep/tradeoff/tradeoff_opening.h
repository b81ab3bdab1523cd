/* Begins a trade-off: opens its folder, which may hold the same trade-off already. */
#pragma once

#include "bench/sweep/options/options.h"

#include <jansson.h>

/* Makes and locks the folder, which is chosen as for a sweep if none was given. *settings: what trade-offs of one
 * folder agree on, for the document. *finished: the document of the same trade-off, if the folder has all of it;
 * else NULL. The caller frees both, also after an error. Errors: ARGUMENT (the folder has another trade-off, another
 * one is at work), PATH, IO, FORMAT, MEMORY. */
sluice_status slc_tradeoff_open(slc_bench_options *options, int ranks, json_t **settings, json_t **finished);
