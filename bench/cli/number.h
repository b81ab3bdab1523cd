/* Reads the number that an option is given. */
#ifndef SLC_BENCH_NUMBER_H
#define SLC_BENCH_NUMBER_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the number, which is written in digits only and lies in least..most; else argp_error names `option` and does
 * not return. */
uint64_t slc_whole_number(const char *text, uint64_t least, uint64_t most, struct argp_state *state,
                          const char *option);

/* The same for a number as strtod reads it, which may have to be `whole`. */
double slc_number(const char *text, double least, double most, bool whole, struct argp_state *state,
                  const char *option);

#endif
