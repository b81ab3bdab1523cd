/* Memory that runs out at each place in turn. The linker puts the functions below in the place of malloc, calloc and
 * realloc (slc_memory_runs_out in cmake/SluiceParts.cmake), in the program and in what of this project it links. Other
 * threads have memory. */
#ifndef SLC_BASE_FAILING_MEMORY_TEST_H
#define SLC_BASE_FAILING_MEMORY_TEST_H

#include "lib/base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

/* So many allocations fail one by one; of later ones only some do. */
#ifndef MEMORY_EXACT
#define MEMORY_EXACT 16
#endif

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

/* Calls `subject` again and again: there is no memory for its first allocation, then for the second only, and so on
 * until it ends without asking for so many. Each time that memory fails it must say
 * so; or it works, if what failed was a part that it can do without, of which the error line says `spared` (NULL:
 * none). It must free what it has, which the address sanitizer sees. Returns how often it said so. */
static uint32_t memory_runs_out(const char *name, sluice_status (*subject)(void *context), void *context,
                                const char *spared)
{
    uint32_t told = 0;
    for (uint64_t at = 0;; at += 1 + (at > MEMORY_EXACT ? at / 16 : 0)) {
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

#endif
