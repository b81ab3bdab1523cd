/* Fits by least squares in two unknowns, and works out the figures that follow. */
#include "lib/plan/measured/fit_link.h"
#include "lib/base/integer.h"
#include "lib/base/numbers/median.h"

#include <math.h>
#include <stdlib.h>

/* A link that seems to take no time still gets a finite speed. */
static const double fastest_bytes_per_s = 1e15;

/* t = fixed + each * V; neither is below 0. */
typedef struct {
    double fixed, each;
} affine;

double slc_fit_steady(double *at_s, size_t count)
{
    size_t first = (count - 1) / 2, tail = count - 1 - first, stride = tail / 4 < 2 ? slc_least(tail, 2) : tail / 4;
    stride -= stride > 2 ? stride % 2 : 0; /* operations may complete in pairs */
    size_t pairs = tail - stride + 1;
    const double mean_s = (at_s[count - 1] - at_s[0]) / (double)(count - 1);
    for (size_t i = 0; i < pairs; i++) at_s[i] = (at_s[first + i + stride] - at_s[first + i]) / (double)stride;
    return fmax(slc_median(at_s, pairs), mean_s);
}

/* Minimises the sum of w (fixed a + each b - 1)^2 with a = 1/t, b = V/t. */
static affine fit_affine(const slc_link_sample *samples, size_t count)
{
    double a = 0, b = 0, aa = 0, ab = 0, bb = 0, scale = 0;
    for (size_t i = 0; i < count; i++)
        if ((double)samples[i].bytes > scale) scale = (double)samples[i].bytes;
    for (size_t i = 0; i < count; i++) {
        double x = 1 / samples[i].seconds, y = (double)samples[i].bytes / scale / samples[i].seconds;
        double w = samples[i].weight > 0 ? samples[i].weight : 1;
        a += w * x;
        b += w * y;
        aa += w * x * x;
        ab += w * x * y;
        bb += w * y * y;
    }
    double determinant = aa * bb - ab * ab;
    affine fit = {0, b / bb};
    if (determinant > 1e-12 * aa * bb) fit = (affine){(a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant};
    if (fit.fixed < 0) fit = (affine){0, b / bb};
    if (fit.each < 0) fit = (affine){a / aa, 0};
    fit.each /= scale;
    return fit;
}

slc_link_line slc_fit_line(uint32_t world, const slc_link_sample *samples, size_t count)
{
    double n = world, others = n - 1;
    affine fit = fit_affine(samples, count);
    double bytes_per_s = fit.each > 0 ? others / (n * fit.each) : fastest_bytes_per_s;
    return (slc_link_line){.latency_s = fit.fixed / others, .bytes_per_s = fmin(bytes_per_s, fastest_bytes_per_s)};
}

uint64_t slc_fit_run_bytes(uint32_t world, const slc_link_line *line, double operation_s, double share)
{
    double n = world, others = n - 1, fixed = line->latency_s * others + operation_s;
    double bytes = fixed * share / (1 - share) * n / others * line->bytes_per_s;
    return bytes < 0x1p62 ? (uint64_t)ceil(bytes) : UINT64_C(1) << 62;
}

void slc_fit_overlap(const slc_overlap_sample *sample, double *kappa, double *sigma)
{
    *sigma = fmax(sample->link_beside_s / sample->link_alone_s, 1);
    *kappa = (sample->link_beside_s - sample->compute_alone_s) / sample->link_alone_s;
    *kappa = fmin(fmax(*kappa, 0), *sigma);
}

double slc_fit_median(double *values, size_t count)
{
    return count ? slc_median(values, count) : 0;
}
