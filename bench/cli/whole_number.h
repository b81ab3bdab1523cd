/* A whole number as an option of a command has it. */
#ifndef SLC_BENCH_WHOLE_NUMBER_H
#define SLC_BENCH_WHOLE_NUMBER_H

#include <argp.h>
#include <stdint.h>

/* From `least` to `most`, in digits alone; else argp_error names `option` and does not come back. */
uint64_t slc_whole_number(const char *text, uint64_t least, uint64_t most, struct argp_state *state,
                          const char *option);

#endif
