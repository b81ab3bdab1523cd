/* Which module of the process a call comes from. Private to plugins/nccl/shim. */
#pragma once

#include "plugins/nccl/shim/state.h"

/* The module's row and the offset of an address, as an entry's caller_module_redop holds them. `now_ns` is
 * CLOCK_MONOTONIC's: once a second it is looked whether the loader has changed what lies where. */
uint64_t slc_shim_module_caller(slc_shim_recorder *recorder, const void *address, int64_t now_ns);
