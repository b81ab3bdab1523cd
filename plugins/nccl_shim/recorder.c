/* Starts recording at a process's first call, and again at the first call of a process that was forked from it. */
#include "plugins/nccl_shim/recorder.h"

#include "lib/base/log.h"
#include "plugins/nccl_shim/measure/measure.h"
#include "plugins/nccl_shim/settings.h"
#include "plugins/nccl_shim/transforms.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Atomic(slc_recorder *) slc_recorder_current;
_Thread_local slc_shim_thread slc_this_thread;
static atomic_flag starting = ATOMIC_FLAG_INIT;
static slc_recorder *inherited; /* the parent's, which this process does not touch */
static bool watches_end;        /* inherited by a process that is forked */

/* The forked process has one thread, and what its parent recorded is not its own. */
static void begin_child(void)
{
    slc_recorder *parent = atomic_exchange(&slc_recorder_current, NULL);
    if (parent) inherited = parent;
    atomic_flag_clear(&starting);
    slc_measure_group_simulated(&slc_this_thread); /* a group that it was forked in is its parent's */
    slc_this_thread.transforms = NULL;
    slc_this_thread.recorder = NULL;
    if (slc_transforms_child) slc_transforms_child();
}

/* The recorder that this process made: a child that was made without handlers of fork (_Fork, clone) has its parent's.
 */
static slc_recorder *own_recorder(void)
{
    slc_recorder *recorder = atomic_load(&slc_recorder_current);
    return recorder && recorder->header->pid == getpid() ? recorder : NULL;
}

static void note_status(int status, void *unused)
{
    slc_recorder *recorder = own_recorder();
    (void)unused;
    if (status && recorder) atomic_store(&recorder->fault, true);
}

/* Another thread may fork at any time, during the first call too, so this comes before it. */
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, begin_child);
}

__attribute__((destructor)) static void end_recording(void)
{
    slc_recorder *recorder = own_recorder();
    if (recorder) slc_record_file_end(recorder);
}

static size_t entry_count(void)
{
    unsigned wanted;
    if (slc_setting_count(&slc_nccl_shim_settings, "SLUICE_SHIM_ENTRIES", &wanted)) {
        slc_log(SLC_LOG_WARN, "%s; the record has 65536", sluice_last_error());
        wanted = 65536;
    }
    size_t count = 16;
    while (count < wanted) count *= 2;
    return count;
}

static bool is_on(const char *name)
{
    bool on = false;
    if (slc_setting_switch(&slc_nccl_shim_settings, name, &on))
        slc_log(SLC_LOG_WARN, "%s; it counts as off", sluice_last_error());
    return on;
}

static void open_transforms(slc_recorder *recorder)
{
    static const char *const names[] = {"SLUICE_SHIM_FUSE", "SLUICE_SHIM_COMPRESS"};
    if (slc_transforms_open) {
        recorder->transforms = slc_transforms_open(recorder);
        return;
    }
    for (size_t i = 0; i < 2; i++)
        if (strcmp(slc_setting_text(&slc_nccl_shim_settings, names[i]), "0"))
            slc_log(SLC_LOG_WARN, "%s has no effect: this shim was built without transforms", names[i]);
}

static slc_recorder *make_recorder(void)
{
    static slc_recorder last_resort;
    slc_recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder) {
        recorder = &last_resort;
        memset(recorder, 0, sizeof *recorder); /* the parent had it, perhaps */
    }
    slc_record_layout layout = {.entry_count = entry_count(), .times = is_on("SLUICE_SHIM_TIME")};
    recorder->parent = inherited;
    recorder->wants_done = is_on("SLUICE_SHIM_DONE");
    recorder->kept = is_on("SLUICE_SHIM_KEEP");
    slc_record_file_open(recorder, &layout);
    open_transforms(recorder);
    return recorder;
}

void slc_recorder_note_library(slc_recorder *recorder, const slc_nccl_real *real)
{
    int version = 0;
    if (atomic_exchange(&recorder->library_is_noted, true)) return;
    strncpy(recorder->header->nccl_path, real->path, sizeof recorder->header->nccl_path - 1);
    if (real->path[0] && real->GetVersion(&version) == ncclSuccess)
        __atomic_store_n(&recorder->header->nccl_version, (uint32_t)version, __ATOMIC_RELEASE);
}

slc_recorder *slc_recorder_start(void)
{
    while (atomic_flag_test_and_set_explicit(&starting, memory_order_acquire)) sched_yield();
    slc_recorder *recorder = atomic_load(&slc_recorder_current);
    if (!recorder) {
        if (!watches_end) on_exit(note_status, NULL); /* not earlier: it is to come before the destructor */
        watches_end = true;
        recorder = make_recorder();
        atomic_store_explicit(&slc_recorder_current, recorder, memory_order_release);
    }
    atomic_flag_clear_explicit(&starting, memory_order_release);
    return recorder;
}

slc_shim_thread *slc_thread_enter(slc_recorder *recorder)
{
    slc_shim_thread *thread = &slc_this_thread;
    uint32_t number = atomic_fetch_add(&recorder->threads, 1) + 1;
    thread->recorder = recorder;
    thread->number = number < 65536 ? number : 0;
    thread->pending = NULL;
    return thread;
}

/* ---- Callers ---- */

/* Finds the row of the module that was loaded at this address, or makes it: after one was unloaded, another one may be
 * there. Two threads may make two rows of one module; readers go by the path. */
static unsigned module_row(slc_recorder *recorder, const Dl_info *info)
{
    uint64_t base = (uint64_t)(uintptr_t)info->dli_fbase;
    const char *path = info->dli_fname ? info->dli_fname : "";
    size_t length = strlen(path), room = sizeof recorder->modules->path;
    if (length >= room) path += length - (room - 1); /* its end says more */
    unsigned count = __atomic_load_n(&recorder->header->modules, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count && i < SLC_RECORD_MODULES; i++)
        if (__atomic_load_n(&recorder->modules[i].base, __ATOMIC_ACQUIRE) == base &&
            !strcmp(recorder->modules[i].path, path))
            return i;
    do {
        if (count >= SLC_RECORD_MODULES) return SLC_RECORD_NO_MODULE;
    } while (!__atomic_compare_exchange_n(&recorder->header->modules, &count, count + 1, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    slc_record_module *row = &recorder->modules[count];
    memcpy(row->path, path, strlen(path) + 1);
    __atomic_store_n(&row->base, base, __ATOMIC_RELEASE);
    return count;
}

static int count_loads(struct dl_phdr_info *info, size_t bytes, void *out)
{
    (void)bytes;
    *(unsigned long long *)out = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

/* Forgets which addresses lie in which module if the loader has loaded or unloaded something. */
static void check_callers(slc_recorder *recorder, int64_t now_ns)
{
    unsigned long long loads = 0;
    atomic_store_explicit(&recorder->callers_checked_ns, now_ns, memory_order_relaxed);
    dl_iterate_phdr(count_loads, &loads);
    if (atomic_exchange(&recorder->loads, loads) == loads) return;
    for (size_t i = 0; i < SLC_CALLER_CACHE; i++) atomic_store_explicit(&recorder->callers[i], 0, memory_order_relaxed);
}

uint64_t slc_module_caller(slc_recorder *recorder, const void *address, int64_t now_ns)
{
    enum { CHECKS_NS = 1000000000 };
    uint64_t low = (uint64_t)(uintptr_t)address & SLC_RECORD_LOW48;
    if (!low) return (uint64_t)SLC_RECORD_NO_MODULE << 48;
    if (now_ns - atomic_load_explicit(&recorder->callers_checked_ns, memory_order_relaxed) > CHECKS_NS)
        check_callers(recorder, now_ns);
    _Atomic uint64_t *place = &recorder->callers[(low ^ low >> 10) % SLC_CALLER_CACHE];
    uint64_t cached = atomic_load_explicit(place, memory_order_acquire); /* the address, above it the row */
    if ((cached & SLC_RECORD_LOW48) != low) {
        Dl_info info;
        unsigned row = dladdr(address, &info) ? module_row(recorder, &info) : SLC_RECORD_NO_MODULE;
        cached = low | (uint64_t)row << 48;
        atomic_store_explicit(place, cached, memory_order_release);
    }
    unsigned row = (unsigned)(cached >> 48);
    uint64_t offset = row == SLC_RECORD_NO_MODULE ? low : low - recorder->modules[row].base;
    return (offset & SLC_RECORD_LOW48) | (uint64_t)row << 48;
}
