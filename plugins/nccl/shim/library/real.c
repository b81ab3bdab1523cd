/* Finds the NCCL libraries of the process and all of their functions. Nothing of ours is held while the loader is
 * asked: it has locks of its own, and a constructor that it runs under them may call NCCL. A thread that finds
 * something makes it whole and publishes it by one compare and exchange; of two threads that find the same, the later
 * one takes the other's. plugins/nccl/shim/shim_test.c covers this file. */
#include "plugins/nccl/shim/library/real.h"

#include "lib/base/log.h"
#include "plugins/nccl/shim/library/real_dlsym.h"
#include "plugins/nccl/shim/settings.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(const slc_shim_real *) found[SLC_SHIM_MOST_LIBRARIES]; /* NULL after the last one */
static _Atomic(const slc_shim_real *) first;
static _Atomic(const void *) asked;

/* ---- Functions that a library lacks ---- */

static const slc_shim_real none; /* what a process has if no library was found */

static bool none_was_found(void)
{
    return atomic_load_explicit(&first, memory_order_acquire) == &none;
}

static void say_missing(const char *name)
{
    if (!none_was_found())
        slc_log(
            SLC_LOG_ERROR,
            "%s is not in %s, the NCCL library of this process; use a newer NCCL or a program that does not need it",
            name, slc_shim_real_default()->path);
}

#define RETURN_void return
#define RETURN_int return 0
#define RETURN_ncclResult_t return none_was_found() ? ncclSystemError : ncclInternalError
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

#define MISSING_MEMBER(result, name, parameters, arguments) .name = missing_##name,
static const slc_shim_real none = {SLC_NCCL_FUNCTIONS(MISSING_MEMBER, MISSING_MEMBER).path = ""};

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
    slc_shim_real *real = library;
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

static void take_functions(void *handle, slc_shim_real *real)
{
    void *symbol;
#define TAKE(result, name, parameters, arguments)                                                                      \
    symbol = slc_shim_real_dlsym(handle, "nccl" #name);                                                                \
    if (symbol)                                                                                                        \
        *(void **)&real->name = symbol;                                                                                \
    else                                                                                                               \
        real->name = missing_##name;
    SLC_NCCL_FUNCTIONS(TAKE, TAKE)
#undef TAKE
}

bool slc_shim_is_ours(const void *function)
{
    Dl_info info, own;
    return dladdr(function, &info) && dladdr((const void *)slc_shim_is_ours, &own) && info.dli_fbase == own.dli_fbase;
}

/* Puts the library among those that are known, or gives the one that is there for the same code; NULL if there is
 * no room. */
static const slc_shim_real *publish(slc_shim_real *fresh)
{
    for (unsigned i = 0; i < SLC_SHIM_MOST_LIBRARIES; i++) {
        const slc_shim_real *there = NULL;
        fresh->number = i;
        if (atomic_compare_exchange_strong(&found[i], &there, fresh)) return fresh;
        if (there->begin == fresh->begin) return there;
    }
    return NULL;
}

/* Adds the library to those that are known, which keep its handle. If it is not added, the handle is closed. */
static const slc_shim_real *take_library(void *handle)
{
    const slc_shim_real *known = NULL;
    slc_shim_real *fresh = NULL;
    const void *function = slc_shim_real_dlsym(handle, "ncclGetVersion");
    Dl_info info;
    if (!function || slc_shim_is_ours(function) || !dladdr(function, &info)) goto close_handle;
    known = slc_shim_real_at(function);
    if (known) goto close_handle;
    fresh = calloc(1, sizeof *fresh);
    if (!fresh) goto close_handle;
    take_functions(handle, fresh);
    char *path = strdup(info.dli_fname);
    fresh->path = path ? path : "libnccl.so";
    fresh->begin = (uintptr_t)function;
    dl_iterate_phdr(find_range, fresh);
    known = publish(fresh);
    if (known == fresh) return known;
    free(path);

close_handle:
    free(fresh);
    dlclose(handle);
    return known;
}

/* Finds the default library. If there is none, it returns `none`, and `why` gets the reason. */
static const slc_shim_real *find_default(char *why, size_t bytes)
{
    const char *path = slc_setting_text(&slc_shim_settings, "SLUICE_SHIM_NCCL");
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
    const char *error = handle ? "what was opened has no ncclGetVersion of its own" : dlerror();
    snprintf(why, bytes, "%s", error ? error : "it could not be opened");
    const slc_shim_real *real = handle ? take_library(handle) : NULL;
    return real ? real : &none;
}

const slc_shim_real *slc_shim_real_default(void)
{
    char why[1024];
    const slc_shim_real *real = atomic_load_explicit(&first, memory_order_acquire);
    if (__builtin_expect(real != NULL, 1)) return real;
    const slc_shim_real *mine = find_default(why, sizeof why);
    if (!atomic_compare_exchange_strong(&first, &real, mine)) return real; /* another thread was quicker */
    if (mine == &none)
        slc_log(SLC_LOG_ERROR,
                "no NCCL library for this process: %s; set SLUICE_SHIM_NCCL to the path of a libnccl.so.2", why);
    return mine;
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

/* Returns true if the program itself is linked to NCCL. Its handle finds everything, so its list of needed libraries
 * has to say. */
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
        function = slc_shim_real_dlsym(module, "ncclGetVersion");
    else
        *is_default = program_needs_nccl(module);
    dlclose(module);
    return function && slc_shim_is_ours(function) ? NULL : function;
}

/* The library that has this function, which is loaded. */
static const slc_shim_real *library_with(const void *function)
{
    Dl_info info;
    const slc_shim_real *real = slc_shim_real_at(function);
    if (real || !dladdr(function, &info)) return real;
    void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? take_library(handle) : NULL;
}

const slc_shim_real *slc_shim_real_for(const void *caller)
{
    const slc_shim_real *real = slc_shim_real_default();
    loaded_count count = {0};
    if (*slc_setting_text(&slc_shim_settings, "SLUICE_SHIM_NCCL") || !real->path[0]) return real;
    dl_iterate_phdr(count_loaded, &count);
    if (count.libraries < 2) return real;
    bool is_default;
    const void *function = linked_function(caller, &is_default);
    if (!function && !is_default) function = atomic_load_explicit(&asked, memory_order_acquire);
    const slc_shim_real *other = function ? library_with(function) : NULL;
    return other ? other : real;
}

bool slc_shim_real_has(const void *caller, const char *name)
{
    const char *loaded = NULL;
    dl_iterate_phdr(find_loaded, &loaded);
    if (!loaded && !atomic_load_explicit(&asked, memory_order_acquire)) return true;
    const slc_shim_real *real = slc_shim_real_for(caller);
    if (!real->path[0]) return true;
    name += *name == 'p';
#define LACKS(result, function, parameters, arguments)                                                                 \
    if (real->function == missing_##function && !strcmp(name, "nccl" #function)) return false;
    SLC_NCCL_FUNCTIONS(LACKS, LACKS)
#undef LACKS
    return true;
}

const slc_shim_real *slc_shim_real_at(const void *address)
{
    for (unsigned i = 0; i < SLC_SHIM_MOST_LIBRARIES; i++) {
        const slc_shim_real *there = atomic_load_explicit(&found[i], memory_order_acquire);
        if (!there) return NULL;
        if ((uintptr_t)address - there->begin < there->end - there->begin) return there;
    }
    return NULL;
}

const slc_shim_real *slc_shim_real_numbered(unsigned number)
{
    return atomic_load_explicit(&found[number], memory_order_acquire);
}

void slc_shim_real_asked(const void *function)
{
    atomic_store_explicit(&asked, function, memory_order_release);
}

/* ---- Another dlsym ---- */

/* The loader gives every program the dlsym that comes first. A plugin, which NCCL opens by itself, is not among what
 * the program sees, and catches none. */
__attribute__((constructor)) static void tell_of_another_dlsym(void)
{
    Dl_info info;
    void *program = dlopen(NULL, RTLD_LAZY);
    if (!program) return;
    const void *plugin = slc_shim_real_dlsym(program, "ncclProfiler_v5"),
               *taken = slc_shim_real_dlsym(program, "dlsym");
    dlclose(program);
    if (!plugin || !slc_shim_is_ours(plugin) || !taken || slc_shim_is_ours(taken) || !dladdr(taken, &info)) return;
    slc_log(SLC_LOG_WARN,
            "%s has a dlsym of its own and comes before libsluice_nccl.so, so what a program asks NCCL for by dlsym is "
            "not recorded; name libsluice_nccl.so before it in LD_PRELOAD",
            info.dli_fname);
}
