/* The floating-point environment of a program that calls the library. Such a program may let exceptions trap
 * (feenableexcept, -ffpe-trap), but our own arithmetic raises some on purpose, by a conversion that is out of range and
 * then corrected, or by the square root of a guess. So each entry that computes for itself, and each thread of ours,
 * holds exceptions back, and restores the program's environment afterwards. */
#pragma once

#include <fenv.h>

static inline fenv_t slc_floats_hold(void)
{
    fenv_t environment;
    feholdexcept(&environment);
    return environment;
}

static inline void slc_floats_restore(const fenv_t *environment)
{
    fesetenv(environment);
}

/* Until the end of the block that it stands in, no floating-point exception traps, and none leaves a flag. */
#define SLC_HOLD_FLOATS const fenv_t floats __attribute__((cleanup(slc_floats_restore), unused)) = slc_floats_hold()
