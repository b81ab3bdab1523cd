#include "tests/support/base/failing_memory.h"

#include "lib/base/status.h"

#include <stdbool.h>
#include <string.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);

static _Thread_local uint64_t memory_asked, memory_fails_at = UINT64_MAX;

static bool memory_fails(void)
{
    return memory_asked++ == memory_fails_at;
}

void *__wrap_malloc(size_t bytes)
{
    return memory_fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return memory_fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return memory_fails() ? NULL : __real_realloc(memory, bytes);
}

uint32_t memory_runs_out(const char *name, uint64_t exact, sluice_status (*subject)(void *context), void *context,
                         const char *spared)
{
    uint32_t told = 0;
    for (uint64_t at = 0;; at += 1 + (at > exact ? at / 16 : 0)) {
        memory_asked = 0, memory_fails_at = at;
        sluice_status status = subject(context);
        memory_fails_at = UINT64_MAX;
        if (memory_asked <= at) {
            if (status) fail_msg("%s: %s", name, sluice_last_error());
            return told;
        }
        told += status == SLUICE_ERR_MEMORY;
        const bool does_without = !status && spared && strstr(sluice_last_error(), spared);
        if (status != SLUICE_ERR_MEMORY && !does_without)
            fail_msg("%s: no memory for allocation %llu: status %d (%s)", name, (unsigned long long)at, (int)status,
                     sluice_last_error());
    }
}
