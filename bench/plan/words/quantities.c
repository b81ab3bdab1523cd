/* Writes times in the largest unit that leaves at least 1. */
#include "bench/plan/words/quantities.h"

#include <math.h>
#include <stdio.h>

char *slc_plan_seconds(double s, char *text)
{
    if (fabs(s) >= 1)
        snprintf(text, 24, "%.3f s", s);
    else if (fabs(s) >= 1e-3)
        snprintf(text, 24, "%.1f ms", s * 1e3);
    else
        snprintf(text, 24, "%.0f us", fabs(s) <= 0.5e-6 ? 0 : s * 1e6);
    return text;
}
