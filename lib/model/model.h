/* Errors that the calls of the bundled models share. */
#pragma once

#include <sluice/status.h>

/* ARGUMENT: "CALL: no WHAT given". */
sluice_status slc_model_lacks(const char *call, const char *what);
