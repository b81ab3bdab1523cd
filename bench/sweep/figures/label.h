/* The settings in which rows of results differ beside strategy, schedule, budget, throttle, optimizer and tied, which
 * tables and pictures show anyway: a row's "label", as "batch 8, bf16". */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* Finds the settings in which any two rows of the `count` lists differ, and gives each row its label; rows that differ
 * in none have none. Numbers that follow from the optimizer count between rows of one optimizer only, and where a row
 * is from ("source") only if nothing else tells it from a row of another source. */
void slc_bench_label_rows(json_t *const *lists, size_t count);
