/* The parts that AdamW and LAMB share: checked settings, the constants of a step, an update as a kernel's range. */
#pragma once

#include "lib/kernels/adamw/adamw.h"

#include <sluice/optimizer.h>

/* ARGUMENT: outside of its range */
sluice_status slc_adam_check(const char *name, const sluice_adamw *settings);
sluice_status slc_lamb_check(const char *name, const sluice_lamb *settings);
slc_adamw_settings slc_adam_settings_at(const sluice_adamw *settings, const sluice_update *update);
slc_adamw_range slc_adam_range_of(const sluice_update *update);
/* Returns the update's stream, or `own` if it brings none. */
sluice_stream *slc_adam_stream_of(const sluice_update *update, sluice_stream *own);
/* Ends an optimizer that slc_adamw_create or slc_lamb_create has filled. Does nothing with one that is zero. */
void slc_adam_destroy(sluice_optimizer *optimizer);
