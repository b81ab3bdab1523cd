/* The rule for a thread that spins before it sleeps: after SLC_VAIN_MOST times in a row at which spinning was in vain,
 * it sleeps at once, but for one time in eight, which finds out whether spinning pays again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SLC_VAIN_MOST = 4 };

/* Returns true if a thread had better spin before it sleeps. `vain` is how many times in a row spinning has not ended
 * the wait; those at which the thread slept at once count too. */
static inline bool slc_spinning_pays(uint32_t vain)
{
    return vain < SLC_VAIN_MOST || vain % 8 == 0;
}
