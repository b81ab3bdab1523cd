/* All ranks of a communicator must transform the same calls in the same way, so they compare their settings when it is
 * made. Each gives h, a hash of its settings, and ~h, and gets the largest of both among the ranks: these are h and ~h
 * again only if all are equal. A third word, ~(bytes of the share), gives the smallest share. A rank that was asked for
 * transforms and cannot have them takes part with 0. tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/transforms/state.h"

#include "lib/base/clock.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <unistd.h>

enum { PATIENCE_S = 10 };

/* Returns a number that only the same settings give. 0 says that this rank cannot. */
static uint64_t settings_word(const slc_shim_transformed *t)
{
    const slc_shim_transforms_settings *s = slc_shim_transforms_asked();
    const uint64_t words[] = {2 /* the protocol */, s->fuse, s->compress, s->staging, s->compress_after};
    if (t->refused >= 0) return 0;
    const uint64_t word = slc_fnv(SLC_FNV_START, words, sizeof words);
    return word ? word : 1;
}

/* Waits by polling, because a rank without these settings never answers, and the user must be told what to look for. No
 * rank may stop waiting: another rank that has the answers by then would go on to transform, and this one's question
 * would meet the program's first operation. Only an error that NCCL reports ends the wait. */
static sluice_status wait_for(const slc_shim_transformed *t)
{
    const uint64_t begin = slc_clock_ns();
    bool told = false;
    int result;
    while ((result = slc_shim_cu()->StreamQuery(t->question.stream)) == SLC_SHIM_CU_NOT_READY) {
        ncclResult_t reported = ncclSuccess;
        usleep(told ? 1000 : 20);
        if (t->comm->real->CommGetAsyncError(t->comm->comm, &reported) == ncclSuccess && slc_shim_has_failed(reported))
            return slc_error(SLUICE_ERR_SYSTEM, "while it waited for the other ranks' settings NCCL reported %s",
                             t->comm->real->GetErrorString(reported));
        if (told || slc_clock_ns() - begin < PATIENCE_S * UINT64_C(1000000000)) continue;
        slc_log(SLC_LOG_WARN,
                "the NCCL shim has waited %d s for the settings of a communicator's other ranks; SLUICE_SHIM_FUSE and "
                "SLUICE_SHIM_COMPRESS must be set on every rank or on none",
                PATIENCE_S);
        told = true;
    }
    return slc_shim_cu_status(result, "the all-reduce of the settings");
}

static slc_shim_cu_address words_at(const slc_shim_transformed *t)
{
    return t->share.bytes ? t->share.memory : t->question.own_memory;
}

/* Queues the all-reduce of the words on a stream of its own. */
static sluice_status ask(slc_shim_transformed *t)
{
    enum { WORDS = sizeof t->question.words / sizeof *t->question.words };
    slc_shim_cu_stream *stream = &t->question.stream;
    uint64_t *words = t->question.words;
    words[0] = settings_word(t), words[1] = ~words[0], words[2] = ~t->share.bytes;
    sluice_status status =
        slc_shim_cu_status(slc_shim_cu()->StreamCreate(stream, SLC_SHIM_CU_NON_BLOCKING), "cuStreamCreate");
    if (!status && !t->share.bytes)
        status = slc_shim_cu_status(slc_shim_cu()->MemAlloc(&t->question.own_memory, sizeof t->question.words),
                                    "cuMemAlloc");
    if (!status)
        status = slc_shim_cu_status(slc_shim_cu()->MemcpyAsync(words_at(t), (slc_shim_cu_address)(uintptr_t)words,
                                                               sizeof t->question.words, *stream),
                                    "copying the settings");
    if (status) return status;
    void *at = (void *)(uintptr_t)words_at(t);
    ncclResult_t result = t->comm->real->AllReduce(at, at, WORDS, ncclUint64, ncclMax, t->comm->comm, *stream);
    if (result == ncclSuccess) return SLUICE_OK;
    return slc_error(SLUICE_ERR_SYSTEM, "NCCL answered the all-reduce of the settings with %d", result);
}

/* Makes the share as large as the smallest of the ranks'. */
static void share_alike(slc_shim_transformed *t, uint64_t least)
{
    static _Atomic bool told;
    slc_shim_staging_shrink(&t->share, least);
    if (least) return;
    t->refused = SLC_RECORD_PASS_STAGING;
    if (t->rank == 0 && !atomic_exchange(&told, true))
        slc_log(SLC_LOG_WARN,
                "fusing and compressing are off for a communicator of %u ranks: on a rank others have all of "
                "SLUICE_SHIM_STAGING=%llu; give more (this is said once)",
                t->ranks, (unsigned long long)slc_shim_transforms_asked()->staging);
}

static sluice_status hear(slc_shim_transformed *t)
{
    const uint64_t mine = settings_word(t), *all = t->question.words;
    sluice_status status = wait_for(t);
    if (status) return status;
    status = slc_shim_cu_status(slc_shim_cu()->MemcpyAsync((slc_shim_cu_address)(uintptr_t)all, words_at(t),
                                                           sizeof t->question.words, t->question.stream),
                                "copying the settings");
    if (!status) status = wait_for(t);
    if (status) return status;
    if (mine && all[0] == mine && all[1] == ~mine) {
        share_alike(t, ~all[2]);
        return SLUICE_OK;
    }
    t->refused = SLC_RECORD_PASS_SETTINGS;
    if (t->rank == 0 || !mine)
        slc_log(SLC_LOG_WARN,
                "fusing and compressing are off for a communicator of %u ranks: %s; SLUICE_SHIM_FUSE, _COMPRESS, "
                "_COMPRESS_AFTER and _STAGING must be equal on all",
                t->ranks, mine ? "its ranks' settings differ, or one cannot have them" : "this rank cannot have them");
    return SLUICE_OK;
}

/* Begins or ends the group of each library that the communicators are of. */
static void group_all(slc_shim_transformed *list, bool begin)
{
    for (slc_shim_transformed *first = list; first; first = first->next) {
        const slc_shim_real *real = first->comm->real;
        const slc_shim_transformed *before = list;
        while (before->comm->real != real) before = before->next;
        if (before != first) continue;
        const ncclResult_t result = begin ? real->GroupStart() : real->GroupEnd();
        for (slc_shim_transformed *t = first; slc_shim_has_failed(result) && t; t = t->next)
            if (t->comm->real == real) {
                slc_shim_transforms_nccl_answer(t, "comparing settings", result);
                t->question.status = SLUICE_ERR_SYSTEM;
            }
    }
}

static void ask_in_context(slc_shim_transformed *t)
{
    if (t->question.status) return;
    t->question.status = slc_shim_gpu_enter(t->gpu);
    if (!t->question.status) {
        t->question.status = ask(t);
        slc_shim_gpu_leave();
    }
    slc_shim_transforms_answer(t, "comparing settings", t->question.status);
}

static void hear_in_context(slc_shim_transformed *t)
{
    if (slc_shim_transforms_answer(t, "comparing settings", slc_shim_gpu_enter(t->gpu))) return;
    if (!t->question.status) slc_shim_transforms_answer(t, "comparing settings", hear(t));
    if (t->question.stream) slc_shim_cu()->StreamDestroy(t->question.stream);
    const int refused = t->refused; /* broken: the question may still be on its way, from the share */
    if (refused >= 0 && refused != SLC_RECORD_PASS_BROKEN) slc_shim_staging_give(&t->share);
    slc_shim_gpu_leave();
}

void slc_shim_transforms_agree(slc_shim_transformed *list)
{
    group_all(list, true);
    for (slc_shim_transformed *t = list; t; t = t->next) ask_in_context(t);
    group_all(list, false);
    for (slc_shim_transformed *t = list; t; t = t->next) hear_in_context(t);
}
