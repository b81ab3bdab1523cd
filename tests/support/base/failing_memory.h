/* Memory that runs out at each place in turn. The linker puts the functions of failing_memory.c in the place of malloc,
 * calloc and realloc, in the program and in what of this project it links. Other threads have memory. */
#pragma once

#include <setjmp.h>
#include <sluice/status.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

/* Calls `subject` again and again: there is no memory for its first allocation, then for the second only, and so on
 * until it ends without asking for so many. The first `exact` allocations fail one by one; of later ones only some do.
 * Each time that memory fails it must say so; or it works, if what failed was a part that it can do without, of which
 * the error line says `spared` (NULL: none). It must free what it has, which the address sanitizer sees. Returns how
 * often it said so. */
uint32_t memory_runs_out(const char *name, uint64_t exact, sluice_status (*subject)(void *context), void *context,
                         const char *spared);
