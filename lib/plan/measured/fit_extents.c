/* Fits by least squares of relative errors, with coefficients that are not negative. Each of the seven choices of terms
 * is solved that has no more terms than there are different extents; of the solutions without a negative coefficient
 * the one with the least error is taken. */
#include "lib/plan/measured/fit_extents.h"

#include <math.h>
#include <stdbool.h>

enum { TERMS = 3 };

/* Terms that may be there, as bits of powers of s; among equally good ones the first is taken. */
static const unsigned choices[] = {1 | 2 | 4, 1 | 2, 2 | 4, 1 | 4, 2, 4, 1};
enum { CHOICES = sizeof choices / sizeof *choices };

typedef struct {
    double x[SLC_EXTENTS_MOST], y[SLC_EXTENTS_MOST];
    size_t count, different; /* samples; extents among them */
} points;

static points points_of(const double *extents, const double *seconds, size_t count)
{
    points p = {.count = 0};
    for (size_t i = 0; i < count && i < SLC_EXTENTS_MOST; i++) {
        if (!(seconds[i] > 0)) continue;
        bool known = false;
        for (size_t j = 0; j < p.count; j++) known |= fabs(p.x[j] - extents[i]) < 1e-9;
        p.different += !known;
        p.x[p.count] = extents[i];
        p.y[p.count++] = seconds[i];
    }
    return p;
}

static double value_at(const double of[TERMS], double s)
{
    return of[0] + s * (of[1] + s * of[2]);
}

/* Solves the normal equations of the terms for relative errors. False: they have no single solution, or a coefficient
 * is below 0. */
static bool solve(const points *p, unsigned terms, double of[TERMS])
{
    double m[TERMS][TERMS + 1] = {{0}};
    for (size_t i = 0; i < p->count; i++) {
        const double row[TERMS] = {1 / p->y[i], p->x[i] / p->y[i], p->x[i] * p->x[i] / p->y[i]};
        for (int r = 0; r < TERMS; r++) {
            for (int c = 0; c < TERMS; c++) m[r][c] += row[r] * row[c];
            m[r][TERMS] += row[r];
        }
    }
    for (int r = 0; r < TERMS; r++) /* a term that is not there is 0 */
        for (int c = 0; c <= TERMS && !(terms >> r & 1); c++) m[r][c] = c == r;
    for (int k = 0; k < TERMS; k++) {
        int best = k;
        for (int r = k + 1; r < TERMS; r++)
            if (fabs(m[r][k]) > fabs(m[best][k])) best = r;
        if (!(fabs(m[best][k]) > 0)) return false;
        for (int c = 0; c <= TERMS; c++) {
            const double other = m[k][c];
            m[k][c] = m[best][c];
            m[best][c] = other;
        }
        for (int r = 0; r < TERMS; r++) {
            const double share = r == k ? 0 : m[r][k] / m[k][k];
            for (int c = k; share != 0 && c <= TERMS; c++) m[r][c] -= share * m[k][c];
        }
    }
    bool whole = true;
    for (int k = 0; k < TERMS; k++) {
        of[k] = terms >> k & 1 ? m[k][TERMS] / m[k][k] : 0;
        whole &= of[k] >= 0 && isfinite(of[k]);
    }
    return whole;
}

static double error_of(const points *p, const double of[TERMS])
{
    double sum = 0;
    for (size_t i = 0; i < p->count; i++) {
        const double miss = value_at(of, p->x[i]) / p->y[i] - 1;
        sum += miss * miss;
    }
    return sum;
}

double slc_fit_extent(const double *extents, const double *seconds, size_t count, double wanted)
{
    static const double ALIKE = 1e-18; /* errors that differ by less are roundings */
    const points p = points_of(extents, seconds, count);
    double least = INFINITY, found[TERMS] = {0};
    for (int i = 0; i < CHOICES && p.count; i++) {
        double of[TERMS];
        if ((size_t)__builtin_popcount(choices[i]) > p.different || !solve(&p, choices[i], of)) continue;
        const double error = error_of(&p, of);
        if (!(error < least - ALIKE)) continue;
        least = error;
        for (int k = 0; k < TERMS; k++) found[k] = of[k];
    }
    return value_at(found, wanted);
}

void slc_fit_extents(const slc_job *job, const slc_extent_sample *samples, size_t count, double extent, uint32_t pieces,
                     slc_times *out)
{
    double extents[SLC_EXTENTS_MOST], seconds[SLC_EXTENTS_MOST];
    const uint32_t slots = slc_job_slots(job);
    for (size_t i = 0; i < count; i++) extents[i] = samples[i].extent;
    for (uint32_t k = 0; k < slots + job->layer_count; k++) {
        double *time = k < slots ? &out->slot_s[k] : &out->recompute_s[k - slots];
        for (size_t i = 0; i < count; i++)
            seconds[i] = k < slots ? samples[i].times->slot_s[k] : samples[i].times->recompute_s[k - slots];
        const double fitted = slc_fit_extent(extents, seconds, count, extent);
        if (fitted > 0) *time = pieces * fitted - (pieces - 1) * slc_fit_extent(extents, seconds, count, 0);
    }
}
