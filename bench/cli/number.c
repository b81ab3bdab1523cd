/* Turns text into a number within bounds. */
#include "bench/cli/number.h"

#include <math.h>
#include <stdlib.h>

uint64_t slc_whole_number(const char *text, uint64_t least, uint64_t most, struct argp_state *state, const char *option)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || value < least || value > most)
        argp_error(state, "%s: \"%s\" is no whole number from %llu to %llu", option, text, (unsigned long long)least,
                   (unsigned long long)most);
    return value;
}

double slc_number(const char *text, double least, double most, bool whole, struct argp_state *state, const char *option)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most) || (whole && value != floor(value)))
        argp_error(state, "%s: \"%s\" is no %snumber from %g to %g", option, text, whole ? "whole " : "", least, most);
    return value;
}
