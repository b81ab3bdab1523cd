#include "lib/plan/measured/rank_times.h"

#include <math.h>
#include <string.h>

double slc_rank_times_take(const double *all, size_t ranks, size_t count, size_t slots, double *out)
{
    double longest_s = -1, later_s = 0;
    for (size_t r = 0; r < ranks; r++) {
        double sum_s = 0;
        for (size_t s = 0; s < slots; s++) sum_s += all[r * count + s];
        if (sum_s > longest_s) memcpy(out, all + r * count, count * sizeof *out);
        longest_s = fmax(longest_s, sum_s);
    }
    for (size_t s = 0; s < slots; s++) {
        double slowest_s = out[s];
        for (size_t r = 0; r < ranks; r++) slowest_s = fmax(slowest_s, all[r * count + s]);
        later_s += slowest_s - out[s];
    }
    return slots ? later_s / (double)slots : 0;
}
