/* A library that catches dlsym too, as other tools that are preloaded do. */
#include <dlfcn.h>
#include <stddef.h>

typedef void *dlsym_function(void *handle, const char *name);

void *dlsym(void *restrict handle, const char *restrict name)
{
    void *next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!next) next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    dlsym_function *function;
    *(void **)&function = next;
    return function(handle, name);
}
