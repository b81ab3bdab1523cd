/* The shortest repeating period of a sequence of numbers: the steps in what a program calls. Pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t first, end;  /* the longest run of repetitions, end exclusive */
    size_t length;      /* numbers in one of them */
    size_t repetitions; /* whole ones in that run */
    size_t covered;     /* numbers in all runs of at least three repetitions */
} slc_period;

enum { SLC_PERIOD_REPETITIONS = 3 }; /* fewer of them in a row are no period */

/* Finds the shortest period whose repetitions cover nearly as much of the sequence as those of any other. Anything may
 * come before, between and after runs of repetitions; with `unbroken` only the longest run counts. Only the last 32768
 * numbers are looked at. Returns false if nothing repeats three times in a row. */
bool slc_period_find(const uint64_t *numbers, size_t count, bool unbroken, slc_period *out);
