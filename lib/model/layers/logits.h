/* Logits: how far apart their rows lie on the device, and their way to the caller of sluice_model_evaluate. */
#pragma once

#include "lib/model/state.h"

/* Elements from a row of logits to the next. */
uint64_t slc_logits_stride(const sluice_model *m, uint64_t classes);

/* Copies rows of logits, [rows][slc_logits_stride] on the device, to the host's to[rows][classes]. From a GPU they come
 * through pinned memory, piece by piece, each of which the host waits for. Errors: MEMORY, those of the device. */
sluice_status slc_logits_give(sluice_model *m, const float *logits, uint64_t rows, uint64_t classes, float *to);
