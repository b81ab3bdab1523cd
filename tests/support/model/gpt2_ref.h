/* GPT-2 in float64, put together from the plain loops of the kernels' references: the oracle of the tests. */
#pragma once

#include <sluice/model.h>

/* token, target: batch x length. params and gradients: all parameters in sequence, in registration order (params.h),
 * unpadded. *loss is the mean over the targets that are not -1. logits (batch x length x vocabulary) and gradients
 * (stored) may be NULL. The caller owns all arrays. Errors: MEMORY. */
sluice_status slc_gpt2_ref(const sluice_model_config *config, uint32_t batch, uint32_t length, const int32_t *token,
                           const int32_t *target, const double *params, double *loss, double *logits,
                           double *gradients);
