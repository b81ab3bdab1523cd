/* Makes a job of what was registered. Private to lib/engine/making. */
#pragma once

#include <sluice/runtime.h>

sluice_status slc_engine_make_job(sluice_runtime *rt);
void slc_engine_destroy_job(sluice_runtime *rt);
