/* tests/command/train/nan_skip_test.sh and tests/command/train/train_test.sh cover this file. */
#include "bench/train/run/losses.h"

#include "lib/base/log.h"
#include "lib/base/status.h"

#include <math.h>

static const double SMOOTHING = 0.95; /* the mean of some twenty losses */

void slc_run_losses_smooth(slc_run_losses *l, slc_training_step *step)
{
    if (isfinite(step->loss)) {
        l->sum = SMOOTHING * l->sum + step->loss;
        l->weight = SMOOTHING * l->weight + 1;
    }
    step->smoothed_loss = l->sum / l->weight;
}

static void warn_of_jump(const slc_training_step *step)
{
    slc_log(SLC_LOG_WARN,
            "step %llu: the loss jumped to %.4g, and the latest ones were about %.4g; if it does not come back, lower "
            "--lr, give it a --warmup, or --clip 1",
            (unsigned long long)step->step, step->loss, step->smoothed_loss);
}

static void warn_of_skip(const slc_training_step *step, uint64_t limit)
{
    slc_log(SLC_LOG_WARN,
            "step %llu was skipped, because a gradient is not finite (--nan skip); the last line and the JSON count "
            "such steps, and %llu in a row end the run (--nan-limit)",
            (unsigned long long)step->step, (unsigned long long)limit);
}

sluice_status slc_run_losses_note(slc_run_losses *l, const slc_training_options *options, const slc_run_place *place,
                                  const slc_training_step *step, slc_training_result *result)
{
    if (slc_training_loss_jumps(&l->jumps, step) && place->rank == 0) warn_of_jump(step);
    l->skipped_in_a_row = step->skipped ? l->skipped_in_a_row + 1 : 0;
    if (!step->skipped) return SLUICE_OK;
    if (!result->skipped++ && place->rank == 0) warn_of_skip(step, options->nan_limit);
    if (l->skipped_in_a_row < options->nan_limit) return SLUICE_OK;
    return slc_error(SLUICE_ERR_NON_FINITE,
                     "step %llu: %llu steps in a row were skipped, because a gradient is not finite (--nan-limit); the "
                     "weights are those of step %llu; lower --lr, clip, or --nan stop to learn which layer it is",
                     (unsigned long long)step->step, (unsigned long long)l->skipped_in_a_row,
                     (unsigned long long)(step->step - l->skipped_in_a_row));
}
