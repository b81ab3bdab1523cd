/* Takes the driver's functions, the newer form of each where there are two. */
#include "plugins/nccl_shim/driver.h"

#include "plugins/nccl_shim/real.h"

#include <dlfcn.h>
#include <string.h>

const slc_driver *slc_driver_find(void)
{
    static slc_driver driver;
    void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return NULL;
    void *symbol;
#define TAKE(name, suffix, parameters)                                                                                 \
    symbol = slc_real_dlsym(handle, "cu" #name suffix);                                                                \
    if (!symbol) symbol = slc_real_dlsym(handle, "cu" #name);                                                          \
    if (!symbol && strcmp(#name, "ThreadExchangeStreamCaptureMode")) return NULL;                                      \
    __atomic_store_n((void **)&driver.name, symbol, __ATOMIC_RELEASE);
    SLC_DRIVER_FUNCTIONS(TAKE)
#undef TAKE
    return &driver;
}
