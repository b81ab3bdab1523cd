/* Three digits and a unit. */
#include "bench/plan/quantities.h"

#include <math.h>
#include <stdio.h>

char *slc_plan_bytes(double bytes, char *text)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    while (u < 4 && fabs(bytes) >= 1024) {
        bytes /= 1024;
        u++;
    }
    snprintf(text, 24, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
    return text;
}

char *slc_plan_seconds(double s, char *text)
{
    if (fabs(s) >= 1)
        snprintf(text, 24, "%.3f s", s);
    else if (fabs(s) >= 1e-3)
        snprintf(text, 24, "%.1f ms", s * 1e3);
    else
        snprintf(text, 24, "%.0f us", s * 1e6);
    return text;
}
