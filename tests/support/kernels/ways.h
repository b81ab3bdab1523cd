/* Every way in which kernels run, for their tests: each instruction set of the host, and a GPU or an emulated one. */
#pragma once

#include "lib/device/device.h"
#include "lib/kernels/isa.h"
#include "tests/support/scale.h"

/* Runs the statement that follows once for each instruction set that this processor has, or under a sanitizer for the
 * baseline and the widest, which share all code but the width of a register; a program prints once which those are. */
#define TEST_EACH_ISA(isa)                                                                                             \
    for (slc_isa isa = test_first_isa(); isa < SLC_ISA_COUNT; isa++)                                                   \
        if (test_use_isa(isa))

/* Runs the statement for those instruction sets, and on the GPU if there is one: test_stream then gives a stream of the
 * GPU. Arrays that kernels read and write must come from test_floats and its like, which a GPU reads in place. Each
 * kernel has ended when its call returns. The statement sees the same `way` once for each. */
#define TEST_EACH_WAY(way) TEST_EACH_WAY_OF(way, 0)
/* Leaves the GPU out if it is emulated and cannot afford so many elements. */
#define TEST_EACH_WAY_OF(way, elements)                                                                                \
    for (int way = (int)test_first_isa(); way <= SLC_ISA_COUNT || test_back_to_host(); way++)                          \
        if (test_use_way(way, elements))

#define TEST_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The number of entries of an array to go through: all, or under a sanitizer the first `few`, which reach each branch.
 */
#define TEST_SHAPES(array, few) (test_brief() ? (size_t)(few) : TEST_COUNT_OF(array))

/* The macros call these. The first call prints which instruction sets run, in a line that tests/run/tally.py reads. */
slc_isa test_first_isa(void);
bool test_use_isa(slc_isa isa);

/* Returns the GPU, opened by the first call so that each kernel is waited for; NULL if this build or machine has none.
 */
slc_device *test_gpu(void);

bool test_use_way(int way, uint64_t elements);
bool test_back_to_host(void);

sluice_stream test_stream(uint32_t threads);

/* The way in use. */
const char *test_way_name(void);
bool test_on_gpu(void);
