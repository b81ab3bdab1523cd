/* LAMB (You et al., arXiv 1904.00962, algorithm 2) on ranges of elements, in two phases, because an element's step
 * depends on norms over its whole parameter:
 *   m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2
 *   u = m/(1-b1^t) / (sqrt(v)/sqrt(1-b2^t) + eps) + wd w
 *   w -= lr trust u, trust = phi(||w||) / ||u||
 * The first phase only reads (16 bytes for each fp32 element): it computes u and adds up the norms. The second
 * computes u again, to the same bits, and updates in one pass as AdamW does (28 bytes). So a step can still be
 * dropped between the two, and for a parameter that every rank updates, each rank need only measure its part. */
#pragma once

#include "lib/kernels/adamw/adamw.h"
#include "lib/kernels/norm/norm.h"

/* Bins (norm.h) for one parameter, in memory of the stream's device: of its values, and of its update u. */
typedef struct {
    int64_t *value, *update;
} slc_lamb_bins;

/* Adds ||w||^2 and ||u||^2 of range i to bins[i]; ranges of one parameter share theirs. A range begins at a multiple of
 * 16 elements of its parameter and ends at one, or where the parameter ends; then neither the split nor the order of
 * ranges changes a bit of the sums. `rounded` and learning_rate are ignored. */
sluice_status slc_lamb_measure(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                               const slc_adamw_range *ranges, const slc_lamb_bins *bins);

/* Bounds of ||w|| (phi in the paper) and of the trust ratio; 0 and INFINITY leave each as it is. */
typedef struct {
    double lowest, highest, least, most;
} slc_lamb_bounds;

/* Returns ||w|| / ||u||, with both clamped as the bounds say, or 1 if a norm is 0. Norms: slc_norm_result of the bins
 * of the whole parameter. */
double slc_lamb_trust(double value_norm, double update_norm, const slc_lamb_bounds *bounds);

/* Updates moments, values and `rounded` of range i with trust[i], which the call reads. */
sluice_status slc_lamb_apply(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                             const slc_adamw_range *ranges, const double *trust);

/* Does what slc_lamb_apply does, with the ratio that slc_lamb_trust gives for ||w|| and ||u|| in norms[i], or with 1 if
 * norms[i] is NULL. Norms lie in memory of the stream's device and are read when the kernel runs. */
sluice_status slc_lamb_apply_measured(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                                      const slc_adamw_range *ranges, const double *const *norms,
                                      const slc_lamb_bounds *bounds);

/* ---- Forms ---- */

/* Updates one whole parameter in float64. norms: of the values before the update, and of the update u. */
void slc_lamb_ref(const slc_adamw_settings *settings, bool no_decay, uint64_t count, const double *gradient,
                  double *value, double *exp_avg, double *exp_avg_sq, double norms[2]);
