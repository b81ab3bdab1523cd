/* The optimizers of the library, by name: adamw, lamb, and the compressed onebit_adam, onebit_lamb, zero_one_adam. */
#ifndef SLC_OPTIM_CREATE_H
#define SLC_OPTIM_CREATE_H

#include "lib/optim/compressed.h"

bool slc_optimizer_is_compressed(const char *name);

/* Fills `out`, and for a compressed optimizer its functions into `compressed`, which others leave alone. Everything
 * runs on `stream`, which must outlive it. The caller ends it with slc_optimizer_destroy. Errors: ARGUMENT (the name,
 * or a setting out of its range), MEMORY. */
sluice_status slc_optimizer_create(const char *name, const slc_optimizer_settings *settings, sluice_stream *stream,
                                   sluice_optimizer *out, slc_compressed *compressed);
void slc_optimizer_destroy(sluice_optimizer *optimizer, slc_compressed *compressed); /* both zero: does nothing */

#endif
