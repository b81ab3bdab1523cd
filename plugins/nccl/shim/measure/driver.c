/* Takes the driver's functions, the newer form of each if there are two.
 * tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/measure/driver.h"

#include "plugins/nccl/shim/library/real_dlsym.h"

#include <dlfcn.h>
#include <string.h>

bool slc_shim_driver_find(slc_shim_driver *out)
{
    void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return false;
    void *symbol;
#define TAKE(name, suffix, parameters)                                                                                 \
    symbol = slc_shim_real_dlsym(handle, "cu" #name suffix);                                                           \
    if (!symbol) symbol = slc_shim_real_dlsym(handle, "cu" #name);                                                     \
    if (!symbol && strcmp(#name, "ThreadExchangeStreamCaptureMode")) return false;                                     \
    *(void **)&out->name = symbol;
    SLC_SHIM_DRIVER_FUNCTIONS(TAKE)
#undef TAKE
    return true;
}
