/* All ranks of a communicator must transform the same calls in the same way, so they compare their settings when it is
 * made: h and ~h, and of both the largest among the ranks, which are h and ~h again only where all are equal. */
#include "plugins/nccl_shim/transforms/state.h"

#include "lib/base/clock.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <string.h>
#include <unistd.h>

enum { PATIENCE_S = 10 };

/* Returns a number that only the same settings give. 0 says that this rank cannot. */
static uint64_t settings_word(const slc_transformed *t)
{
    const slc_transforms_settings *s = &slc_transforms_asked;
    const uint64_t words[] = {1 /* the protocol */, s->fuse, s->compress, s->staging, s->compress_after};
    if (t->refused >= 0) return 0;
    const uint64_t word = slc_fnv(SLC_FNV_START, words, sizeof words);
    return word ? word : 1;
}

/* Polls, because a rank without these settings never answers, and the user must be told what to look for. */
static sluice_status wait_for(slc_cu_stream stream)
{
    const uint64_t begin = slc_clock_ns();
    bool told = false;
    int result;
    while ((result = slc_cu.StreamQuery(stream)) == SLC_CU_NOT_READY) {
        usleep(told ? 1000 : 20);
        if (told || slc_clock_ns() - begin < PATIENCE_S * UINT64_C(1000000000)) continue;
        slc_log(SLC_LOG_WARN,
                "the NCCL shim has waited %d s for the settings of a communicator's other ranks; SLUICE_SHIM_FUSE and "
                "SLUICE_SHIM_COMPRESS must be set on every rank or on none",
                PATIENCE_S);
        told = true;
    }
    return slc_cu_status(result, "the all-reduce of the settings");
}

/* Queues the all-reduce of two words on a stream of its own. */
static sluice_status ask(slc_transformed *t, slc_cu_stream stream)
{
    t->words[0] = settings_word(t), t->words[1] = ~t->words[0];
    void *words = (void *)(uintptr_t)t->memory;
    sluice_status status =
        slc_cu_status(slc_cu.MemcpyAsync(t->memory, (slc_cu_address)(uintptr_t)t->words, sizeof t->words, stream),
                      "copying the settings");
    if (status) return status;
    ncclResult_t result = t->comm->real->AllReduce(words, words, 2, ncclUint64, ncclMax, t->comm->comm, stream);
    if (result == ncclSuccess) return SLUICE_OK;
    return slc_error(SLUICE_ERR_SYSTEM, "NCCL answered the all-reduce of the settings with %d", result);
}

static sluice_status hear(slc_transformed *t, slc_cu_stream stream)
{
    const uint64_t mine = settings_word(t), *all = t->words;
    sluice_status status = wait_for(stream);
    if (status) return status;
    status = slc_cu_status(slc_cu.MemcpyAsync((slc_cu_address)(uintptr_t)t->words, t->memory, sizeof t->words, stream),
                           "copying the settings");
    if (status) return status;
    status = wait_for(stream);
    if (status) return status;
    if (mine && all[0] == mine && all[1] == ~mine) return SLUICE_OK;
    t->refused = SLC_RECORD_PASS_SETTINGS;
    if (t->rank == 0 || !mine)
        slc_log(SLC_LOG_WARN,
                "fusing and compressing are off for a communicator of %u ranks: %s; SLUICE_SHIM_FUSE, _COMPRESS, "
                "_COMPRESS_AFTER and _STAGING must be equal on all",
                t->ranks,
                mine ? "its ranks' settings differ, or one has no memory for them" : "this rank has no memory");
    return SLUICE_OK;
}

void slc_transforms_agree(slc_transformed *list)
{
    const slc_nccl_real *real = list->comm->real;
    enum { MOST = 64 }; /* of one group; a process has as many GPUs at most */
    slc_cu_stream streams[MOST] = {0};
    sluice_status asked[MOST] = {0};
    unsigned i = 0;
    real->GroupStart();
    for (slc_transformed *t = list; t && i < MOST; t = t->next, i++) {
        asked[i] = slc_shim_gpu_enter(t->gpu);
        if (!asked[i])
            asked[i] = slc_cu_status(slc_cu.StreamCreate(&streams[i], SLC_CU_NON_BLOCKING), "cuStreamCreate");
        if (!asked[i]) asked[i] = ask(t, streams[i]);
        slc_shim_gpu_leave();
        if (asked[i]) slc_transforms_answer(t, "comparing settings", asked[i]);
    }
    ncclResult_t ended = real->GroupEnd();
    i = 0;
    for (slc_transformed *t = list; t && i < MOST; t = t->next, i++) {
        slc_shim_gpu_enter(t->gpu);
        if (slc_has_failed(ended))
            slc_transforms_nccl_answer(t, "comparing settings", ended);
        else if (!asked[i])
            slc_transforms_answer(t, "comparing settings", hear(t, streams[i]));
        if (streams[i]) slc_cu.StreamDestroy(streams[i]);
        slc_shim_gpu_leave();
    }
}
