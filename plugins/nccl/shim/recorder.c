/* Starts recording at a process's first call, and again at the first call of a process that was forked from it.
 * shim_test.c covers this file. */
#include "plugins/nccl/shim/recorder.h"

#include "lib/base/log.h"
#include "plugins/nccl/shim/measure/measure.h"
#include "plugins/nccl/shim/settings.h"
#include "plugins/nccl/shim/transforms.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic(slc_shim_recorder *) current;
static atomic_flag starting = ATOMIC_FLAG_INIT;
static slc_shim_recorder *inherited; /* the parent's, which this process does not touch */
static bool watches_end;             /* inherited by a process that is forked */

/* Begins anew in a forked process, which has one thread, and to which its parent's record does not belong. */
static void begin_child(void)
{
    slc_shim_recorder *parent = atomic_exchange(&current, NULL);
    if (parent) inherited = parent;
    atomic_flag_clear(&starting);
    slc_shim_thread *thread = slc_shim_this_thread();
    slc_shim_measure_group_simulated(thread); /* a group that it was forked in is its parent's */
    thread->transforms = NULL;
    thread->recorder = NULL;
    if (slc_shim_transforms_child) slc_shim_transforms_child();
}

/* Returns the recorder that this process made, else NULL: a child that was made without fork's handlers (_Fork, clone)
 * has its parent's. */
static slc_shim_recorder *own_recorder(void)
{
    slc_shim_recorder *recorder = atomic_load(&current);
    return recorder && recorder->header->pid == getpid() ? recorder : NULL;
}

static void note_status(int status, void *unused)
{
    slc_shim_recorder *recorder = own_recorder();
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
    slc_shim_recorder *recorder = own_recorder();
    if (recorder) slc_shim_record_file_end(recorder);
}

static size_t entry_count(void)
{
    unsigned wanted;
    if (slc_setting_count(&slc_shim_settings, "SLUICE_SHIM_ENTRIES", &wanted)) {
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
    if (slc_setting_switch(&slc_shim_settings, name, &on))
        slc_log(SLC_LOG_WARN, "%s; it counts as off", sluice_last_error());
    return on;
}

static void open_transforms(slc_shim_recorder *recorder)
{
    static const char *const names[] = {"SLUICE_SHIM_FUSE", "SLUICE_SHIM_COMPRESS"};
    if (slc_shim_transforms_open) {
        recorder->transforms = slc_shim_transforms_open(recorder);
        return;
    }
    for (size_t i = 0; i < 2; i++)
        if (strcmp(slc_setting_text(&slc_shim_settings, names[i]), "0"))
            slc_log(SLC_LOG_WARN, "%s has no effect: this shim was built without transforms", names[i]);
}

static slc_shim_recorder *make_recorder(void)
{
    static slc_shim_recorder last_resort;
    slc_shim_recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder) {
        recorder = &last_resort;
        memset(recorder, 0, sizeof *recorder); /* the parent had it, perhaps */
    }
    slc_shim_record_layout layout = {.entry_count = entry_count(), .times = is_on("SLUICE_SHIM_TIME")};
    recorder->parent = inherited;
    recorder->wants_done = is_on("SLUICE_SHIM_DONE");
    recorder->kept = is_on("SLUICE_SHIM_KEEP");
    slc_shim_record_file_open(recorder, &layout);
    open_transforms(recorder);
    return recorder;
}

void slc_shim_recorder_note_library(slc_shim_recorder *recorder, const slc_shim_real *real)
{
    int version = 0;
    if (atomic_exchange(&recorder->library_is_noted, true)) return;
    strncpy(recorder->header->nccl_path, real->path, sizeof recorder->header->nccl_path - 1);
    if (real->path[0] && real->GetVersion(&version) == ncclSuccess)
        __atomic_store_n(&recorder->header->nccl_version, (uint32_t)version, __ATOMIC_RELEASE);
}

static slc_shim_recorder *start(void)
{
    while (atomic_flag_test_and_set_explicit(&starting, memory_order_acquire)) sched_yield();
    slc_shim_recorder *recorder = atomic_load(&current);
    if (!recorder) {
        if (!watches_end) on_exit(note_status, NULL); /* not earlier: it is to come before the destructor */
        watches_end = true;
        recorder = make_recorder();
        atomic_store_explicit(&current, recorder, memory_order_release);
    }
    atomic_flag_clear_explicit(&starting, memory_order_release);
    return recorder;
}

slc_shim_recorder *slc_shim_recorder_made(void)
{
    return atomic_load_explicit(&current, memory_order_acquire);
}

slc_shim_recorder *slc_shim_recorder_get(void)
{
    slc_shim_recorder *recorder = slc_shim_recorder_made();
    return __builtin_expect(recorder != NULL, 1) ? recorder : start();
}

slc_shim_thread *slc_shim_thread_get(slc_shim_recorder *recorder)
{
    slc_shim_thread *thread = slc_shim_this_thread();
    if (__builtin_expect(thread->recorder == recorder, 1)) return thread;
    uint32_t number = atomic_fetch_add(&recorder->threads, 1) + 1;
    thread->recorder = recorder;
    thread->number = number < 65536 ? number : 0;
    thread->pending = NULL;
    return thread;
}
