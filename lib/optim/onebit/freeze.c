/* Decides when the warm-up ends. onebit_adam_test.c covers this file. */
#include "lib/optim/onebit/freeze.h"

#include "lib/base/numbers/equal_math.h"
#include "lib/base/status.h"
#include "lib/optim/compressed.h"

#include <math.h>
#include <stddef.h>

sluice_status slc_freeze_check(const char *name, const slc_freeze_settings *s)
{
    if (s->step || (s->change > 0 && s->change < 1)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "%s: freezes at a step above 0, or at a change of the variance's norm between 0 and 1, not %g",
                     name, s->change);
}

slc_onebit_phase slc_freeze_phase(const slc_freeze *f, uint64_t step)
{
    if (f->settings.compat && step <= 1) return SLC_ONEBIT_DISCARD;
    uint64_t frozen_at = atomic_load_explicit(&f->frozen_at, memory_order_relaxed);
    return frozen_at && step > frozen_at ? SLC_ONEBIT_FROZEN : SLC_ONEBIT_WARM_UP;
}

bool slc_freeze_looks(const slc_freeze *f, uint64_t step)
{
    if (f->settings.step || slc_freeze_phase(f, step) != SLC_ONEBIT_WARM_UP) return false;
    uint64_t span = (uint64_t)ceil(1 / (1 - f->settings.beta2) - 1e-6);
    return step >= f->norm_step + span;
}

bool slc_freeze_is_possible(const slc_freeze *f, uint64_t step)
{
    if (slc_freeze_phase(f, step) != SLC_ONEBIT_WARM_UP) return false;
    return f->settings.step ? step >= f->settings.step : f->norm_step && slc_freeze_looks(f, step);
}

/* Returns the norm over all parameters. Except in compat it is corrected for bias: at once if all parameters have had
 * the same number of updates, else parameter by parameter. */
static double whole_norm(const slc_freeze *f, uint64_t step, uint32_t count, const uint64_t *updates,
                         const double *norms)
{
    double squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        const bool apart = updates && updates[i] && !f->settings.compat;
        const double norm = apart ? norms[i] / (1 - slc_power(f->settings.beta2, updates[i])) : norms[i];
        squares += norm * norm;
    }
    return f->settings.compat || updates ? sqrt(squares) : sqrt(squares) / (1 - slc_power(f->settings.beta2, step));
}

/* Compares the norm with that of the last look, and remembers this one as the last. */
static bool has_settled(slc_freeze *f, uint64_t step, uint32_t count, const uint64_t *updates, const double *norms)
{
    double norm = whole_norm(f, step, count, updates, norms), before = f->norm;
    bool first = !f->norm_step;
    f->norm_step = step, f->norm = norm;
    return !first && norm > 0 && fabs(norm - before) <= f->settings.change * norm;
}

/* Returns the first parameter whose updates may all have been discarded, as compat discards step 1; UINT32_MAX: none.
 */
static uint32_t first_without_variance(const slc_freeze *f, uint32_t count, const uint64_t *updates)
{
    const uint64_t none = f->settings.compat ? 1 : 0;
    for (uint32_t i = 0; updates && i < count; i++)
        if (updates[i] <= none) return i;
    return UINT32_MAX;
}

bool slc_freeze_end_step(slc_freeze *f, uint64_t step, uint32_t count, const uint64_t *updates, const double *norms)
{
    bool possible = slc_freeze_is_possible(f, step);
    bool settled = slc_freeze_looks(f, step) && has_settled(f, step, count, updates, norms);
    bool freeze = possible && (f->settings.step || settled);
    f->waits_for = freeze ? first_without_variance(f, count, updates) : UINT32_MAX;
    if (f->waits_for != UINT32_MAX) return false;
    if (freeze) atomic_store_explicit(&f->frozen_at, step, memory_order_relaxed);
    return freeze;
}

void slc_freeze_count(const slc_freeze *f, uint32_t count, const uint64_t *updates, uint64_t *frozen_updates)
{
    for (uint32_t i = 0; i < count; i++) frozen_updates[i] = updates ? updates[i] : f->frozen_at;
}

void slc_freeze_save(const slc_freeze *f, double values[SLC_FREEZE_PROGRESS])
{
    values[SLC_FROZEN_AT] = (double)f->frozen_at;
    values[SLC_FREEZE_NORM_STEP] = (double)f->norm_step;
    values[SLC_FREEZE_NORM] = f->norm;
}

sluice_status slc_freeze_check_progress(const char *name, const double values[SLC_FREEZE_PROGRESS])
{
    const double frozen_at = values[SLC_FROZEN_AT], norm_step = values[SLC_FREEZE_NORM_STEP],
                 norm = values[SLC_FREEZE_NORM];
    if (slc_is_counter(frozen_at) && slc_is_counter(norm_step) && norm >= 0 && !isinf(norm)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "%s: frozen_at %g and norm_step %g must be whole numbers of steps, norm %g finite, none below 0",
                     name, frozen_at, norm_step, norm);
}

void slc_freeze_load(slc_freeze *f, const double values[SLC_FREEZE_PROGRESS], uint32_t count, uint64_t *frozen_updates)
{
    const bool another = f->frozen_at != (uint64_t)values[SLC_FROZEN_AT];
    f->frozen_at = (uint64_t)values[SLC_FROZEN_AT];
    if (another) slc_freeze_count(f, count, NULL, frozen_updates);
    f->norm_step = (uint64_t)values[SLC_FREEZE_NORM_STEP];
    f->norm = values[SLC_FREEZE_NORM];
}

sluice_status slc_freeze_read_updates(const char *name, const double job[SLC_FREEZE_PROGRESS], uint32_t parameter,
                                      double value, uint64_t *frozen_updates)
{
    return slc_read_own_count(name, SLC_FREEZE_UPDATES_NAME, parameter, value, (uint64_t)job[SLC_FROZEN_AT],
                              frozen_updates);
}
