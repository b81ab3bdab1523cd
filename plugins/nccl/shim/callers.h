/* Finds the module of the process that a call comes from. Private to plugins/nccl/shim. */
#pragma once

#include "plugins/nccl/shim/state.h"

/* Returns the row of an address's module and the offset of the address in it, as an entry's caller_module_redop holds
 * them. `now_ns` is CLOCK_MONOTONIC's: once a second the function looks whether the loader has moved modules. */
uint64_t slc_shim_module_caller(slc_shim_recorder *recorder, const void *address, int64_t now_ns);
