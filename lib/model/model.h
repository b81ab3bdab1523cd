/* Errors that the calls of the bundled models share. */
#ifndef SLC_MODEL_MODEL_H
#define SLC_MODEL_MODEL_H

#include <sluice/status.h>

/* ARGUMENT: "CALL: no WHAT given". */
sluice_status slc_model_lacks(const char *call, const char *what);

#endif
