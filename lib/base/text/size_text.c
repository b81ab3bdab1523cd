/* lib/base/host/host_memory_test.c covers this file. */
#include "lib/base/text/size_text.h"

#include <stdio.h>

slc_size_text slc_size_of(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    slc_size_text out;
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024; unit++) value /= 1024;
    snprintf(out.text, sizeof out.text, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return out;
}
