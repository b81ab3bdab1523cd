/* libc's dlsym, which dlsym.c covers. Private to plugins/nccl/shim. */
#pragma once

typedef void *(*slc_shim_dlsym)(void *handle, const char *name);

/* Asks libc's dlsym, as if it were called from here: for RTLD_NEXT and RTLD_DEFAULT go to the function itself. Any
 * thread, also before constructors have run. */
void *slc_shim_real_dlsym(void *handle, const char *name);

/* The function itself. */
slc_shim_dlsym slc_shim_libc_dlsym(void);
