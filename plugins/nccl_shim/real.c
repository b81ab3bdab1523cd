/* Finds the NCCL libraries of the process and all of their functions. */
#include "plugins/nccl_shim/real.h"

#include "lib/base/log.h"
#include "plugins/nccl_shim/settings.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static slc_nccl_real found[SLC_MOST_LIBRARIES];
static _Atomic unsigned found_count; /* those that are whole */
static atomic_flag finding = ATOMIC_FLAG_INIT;
static _Atomic(const slc_nccl_real *) first;
static _Atomic(const void *) asked;

/* ---- Functions that a library lacks ---- */

static bool none_found;

static void say_missing(const char *name)
{
    if (!none_found)
        slc_log(
            SLC_LOG_ERROR,
            "%s is not in %s, the NCCL library of this process; use a newer NCCL or a program that does not need it",
            name, found[0].path);
}

#define RETURN_void return
#define RETURN_int return 0
#define RETURN_ncclResult_t return none_found ? ncclSystemError : ncclInternalError
#define RETURN_ncclTeam_t                                                                                              \
    return (ncclTeam_t)                                                                                                \
    {                                                                                                                  \
        0, 0, 0                                                                                                        \
    }
#define RETURN_slc_nccl_text return "no text: this process has no NCCL library that could give one"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define MISSING(result, name, parameters, arguments)                                                                   \
    static result missing_##name parameters                                                                            \
    {                                                                                                                  \
        say_missing("nccl" #name);                                                                                     \
        RETURN_##result;                                                                                               \
    }
SLC_NCCL_FUNCTIONS(MISSING, MISSING)
#pragma GCC diagnostic pop

/* ---- Libraries ---- */

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int find_loaded(struct dl_phdr_info *info, size_t bytes, void *out)
{
    (void)bytes;
    if (strncmp(file_of(info->dlpi_name), "libnccl.so", strlen("libnccl.so"))) return 0;
    *(const char **)out = info->dlpi_name;
    return 1;
}

static int find_range(struct dl_phdr_info *info, size_t bytes, void *library)
{
    slc_nccl_real *real = library;
    (void)bytes;
    uintptr_t begin = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (at < begin) begin = at;
        if (at + info->dlpi_phdr[i].p_memsz > end) end = at + info->dlpi_phdr[i].p_memsz;
    }
    if (real->begin < begin || real->begin >= end) return 0; /* `begin` is an address in it until it is known */
    real->begin = begin;
    real->end = end;
    return 1;
}

static void take_functions(void *handle, slc_nccl_real *real)
{
    void *symbol;
#define TAKE(result, name, parameters, arguments)                                                                      \
    symbol = handle ? slc_real_dlsym(handle, "nccl" #name) : NULL;                                                     \
    if (symbol)                                                                                                        \
        *(void **)&real->name = symbol;                                                                                \
    else                                                                                                               \
        real->name = missing_##name;
    SLC_NCCL_FUNCTIONS(TAKE, TAKE)
#undef TAKE
}

bool slc_nccl_is_ours(const void *function)
{
    Dl_info info, own;
    return dladdr(function, &info) && dladdr((const void *)slc_nccl_is_ours, &own) && info.dli_fbase == own.dli_fbase;
}

/* Adds the library to those that are known; called while `finding` is held. */
static const slc_nccl_real *take_library(void *handle)
{
    unsigned count = atomic_load_explicit(&found_count, memory_order_relaxed);
    const void *function = slc_real_dlsym(handle, "ncclGetVersion");
    Dl_info info;
    if (!function || slc_nccl_is_ours(function) || !dladdr(function, &info)) return NULL;
    for (unsigned i = 0; i < count; i++)
        if (found[i].begin <= (uintptr_t)function && (uintptr_t)function < found[i].end) return &found[i];
    if (count == SLC_MOST_LIBRARIES) return NULL;
    slc_nccl_real *real = &found[count];
    take_functions(handle, real);
    real->path = strdup(info.dli_fname);
    if (!real->path) real->path = "libnccl.so";
    real->number = count;
    real->begin = (uintptr_t)function;
    dl_iterate_phdr(find_range, real);
    atomic_store_explicit(&found_count, count + 1, memory_order_release);
    return real;
}

static const slc_nccl_real *take_none(const char *why)
{
    slc_nccl_real *real = &found[0];
    none_found = true;
    slc_log(SLC_LOG_ERROR, "no NCCL library for this process: %s; set SLUICE_SHIM_NCCL to the path of a libnccl.so.2",
            why);
    take_functions(NULL, real);
    real->path = "";
    return real;
}

static const slc_nccl_real *find_default(void)
{
    const char *path = slc_setting_text(&slc_nccl_shim_settings, "SLUICE_SHIM_NCCL");
    void *handle = NULL;
    if (*path) {
        handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    } else {
        Dl_info info;
        const char *loaded = NULL;
        const void *function = atomic_load_explicit(&asked, memory_order_acquire);
        dl_iterate_phdr(find_loaded, &loaded);
        if (!loaded && function && dladdr(function, &info)) loaded = info.dli_fname;
        if (loaded) handle = dlopen(loaded, RTLD_LAZY | RTLD_NOLOAD);
        if (!handle) handle = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
    }
    if (!handle) return take_none(dlerror());
    const slc_nccl_real *real = take_library(handle);
    return real ? real : take_none("what was opened has no ncclGetVersion of its own");
}

const slc_nccl_real *slc_nccl_real_default(void)
{
    const slc_nccl_real *real = atomic_load_explicit(&first, memory_order_acquire);
    if (real) return real;
    while (atomic_flag_test_and_set_explicit(&finding, memory_order_acquire)) sched_yield();
    real = atomic_load_explicit(&first, memory_order_relaxed);
    if (!real) {
        real = find_default();
        atomic_store_explicit(&first, real, memory_order_release);
    }
    atomic_flag_clear_explicit(&finding, memory_order_release);
    return real;
}

/* ---- Several libraries ---- */

typedef struct {
    unsigned long long adds; /* how often the loader has loaded something: the count below is of that moment */
    unsigned libraries;
} loaded_count;

static int count_loaded(struct dl_phdr_info *info, size_t bytes, void *out)
{
    static _Atomic unsigned long long adds_then;
    static _Atomic unsigned libraries_then;
    loaded_count *count = out;
    (void)bytes;
    if (!count->adds) {
        count->adds = info->dlpi_adds;
        count->libraries = atomic_load(&libraries_then);
        if (atomic_load(&adds_then) == info->dlpi_adds) return 1;
        count->libraries = 0;
    }
    count->libraries += !strncmp(file_of(info->dlpi_name), "libnccl.so", strlen("libnccl.so"));
    atomic_store(&libraries_then, count->libraries); /* right once the last one was counted; the lock is the loader's */
    atomic_store(&adds_then, info->dlpi_adds);
    return 0;
}

/* Is the program itself linked to NCCL? Its handle finds everything, so its list of needed libraries has to say. */
static bool program_needs_nccl(void *program)
{
    struct link_map *map;
    const char *names = NULL;
    if (dlinfo(program, RTLD_DI_LINKMAP, &map)) return false;
    for (const ElfW(Dyn) *item = map->l_ld; item->d_tag != DT_NULL; item++)
        if (item->d_tag == DT_STRTAB) names = (const char *)item->d_un.d_ptr;
    for (const ElfW(Dyn) *item = map->l_ld; names && item->d_tag != DT_NULL; item++)
        if (item->d_tag == DT_NEEDED && !strncmp(names + item->d_un.d_val, "libnccl.so", strlen("libnccl.so")))
            return true;
    return false;
}

/* A function of the library that the module at this address is linked to; NULL: it is linked to none. */
static const void *linked_function(const void *caller, bool *is_default)
{
    Dl_info info;
    struct link_map *map = NULL;
    *is_default = false;
    if (!dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) return NULL;
    void *module = dlopen(map->l_name[0] ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (!module) return NULL;
    const void *function = NULL;
    if (map->l_name[0])
        function = slc_real_dlsym(module, "ncclGetVersion");
    else
        *is_default = program_needs_nccl(module);
    dlclose(module);
    return function && slc_nccl_is_ours(function) ? NULL : function;
}

/* The library that has this function, which is loaded. */
static const slc_nccl_real *library_with(const void *function)
{
    Dl_info info;
    const slc_nccl_real *real = slc_nccl_real_at(function);
    if (real || !dladdr(function, &info)) return real;
    while (atomic_flag_test_and_set_explicit(&finding, memory_order_acquire)) sched_yield();
    void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle) real = take_library(handle);
    atomic_flag_clear_explicit(&finding, memory_order_release);
    return real;
}

const slc_nccl_real *slc_nccl_real_for(const void *caller)
{
    const slc_nccl_real *real = slc_nccl_real_default();
    loaded_count count = {0};
    if (*slc_setting_text(&slc_nccl_shim_settings, "SLUICE_SHIM_NCCL") || !real->path[0]) return real;
    dl_iterate_phdr(count_loaded, &count);
    if (count.libraries < 2) return real;
    bool is_default;
    const void *function = linked_function(caller, &is_default);
    if (!function && !is_default) function = atomic_load_explicit(&asked, memory_order_acquire);
    const slc_nccl_real *other = function ? library_with(function) : NULL;
    return other ? other : real;
}

const slc_nccl_real *slc_nccl_real_at(const void *address)
{
    unsigned count = atomic_load_explicit(&found_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if ((uintptr_t)address - found[i].begin < found[i].end - found[i].begin) return &found[i];
    return NULL;
}

const slc_nccl_real *slc_nccl_real_numbered(unsigned number)
{
    return &found[number];
}

void slc_nccl_real_after_fork(void)
{
    atomic_flag_clear(&finding);
}

void slc_nccl_real_asked(const void *function)
{
    atomic_store_explicit(&asked, function, memory_order_release);
}
