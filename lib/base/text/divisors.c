/* slc_divisors_text tries each number: ranks are few. */
#include "lib/base/text/divisors.h"

#include <stdio.h>

void slc_divisors_text(uint32_t number, char *out, size_t bytes)
{
    size_t used = 0;
    *out = 0;
    for (uint32_t p = 2; p <= number && used + 16 < bytes; p++)
        if (number % p == 0) used += (size_t)snprintf(out + used, bytes - used, "%s%u", used ? ", " : "", p);
}
