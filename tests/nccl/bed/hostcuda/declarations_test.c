/* Compiled where the toolkit is: its headers come first, then ours without their types, so that the compiler itself
 * refuses a function that is declared differently, and each constant of ours must have the toolkit's value. Structs are
 * compared by their layouts, which layouts.c tells of both. */
#include <cuda.h>
#include <cuda_runtime_api.h>

#define HOSTCUDA_TYPES_GIVEN 1
#include "tests/nccl/bed/hostcuda/include/cuda.h"
#include "tests/nccl/bed/hostcuda/include/cuda_runtime_api.h"
#include "tests/nccl/bed/hostcuda/layouts.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#define SAME_VALUE(name, value) _Static_assert((int)(name) == (value), #name);
#define SAME_NUMBER(name, value, text) SAME_VALUE(name, value)
HOSTCUDA_ERRORS(SAME_NUMBER)
HOSTCUDA_RESULTS(SAME_NUMBER)
HOSTCUDA_CONSTANTS(SAME_VALUE)
HOSTCUDA_DRIVER_CONSTANTS(SAME_VALUE)
HOSTCUDA_COPIES(SAME_VALUE)
HOSTCUDA_MEMORY_TYPES(SAME_VALUE)
HOSTCUDA_CAPTURE_STATUSES(SAME_VALUE)
HOSTCUDA_CAPTURE_MODES(SAME_VALUE)
HOSTCUDA_ENTRY_POINTS(SAME_VALUE)
HOSTCUDA_FUNCTION_ATTRIBUTES(SAME_VALUE)
HOSTCUDA_DEVICE_ATTRIBUTES(SAME_VALUE)

static void layouts_are_the_same(void **state)
{
    (void)state;
    for (const layout *ours = layouts_here, *theirs = layouts_toolkit; ours->name || theirs->name; ours++, theirs++) {
        assert_string_equal(ours->name, theirs->name);
        if (ours->offset != theirs->offset || ours->bytes != theirs->bytes)
            fail_msg("%s lies at %zu with %zu bytes, in the toolkit at %zu with %zu bytes", ours->name, ours->offset,
                     ours->bytes, theirs->offset, theirs->bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layouts_are_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
