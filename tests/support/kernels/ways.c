#include "tests/support/kernels/ways.h"

#include "lib/base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static bool on_gpu; /* whether the way in use is the GPU */

static bool test_takes_isa(slc_isa isa)
{
    bool wider = false;
    for (int other = (int)isa + 1; other < SLC_ISA_COUNT; other++) wider |= slc_isa_available((slc_isa)other);
    return slc_isa_available(isa) && (!test_brief() || isa == SLC_ISA_BASELINE || !wider);
}

slc_isa test_first_isa(void)
{
    static bool said;
    char ran[64] = "", lacking[64] = "";
    for (slc_isa isa = SLC_ISA_BASELINE; isa < SLC_ISA_COUNT; isa++) {
        char *list = test_takes_isa(isa) ? ran : lacking;
        if (test_takes_isa(isa) || !slc_isa_available(isa))
            snprintf(list + strlen(list), sizeof ran - strlen(list), " %s", slc_isa_name(isa));
    }
    if (!said) print_message("instruction sets: ran%s; lacking%s\n", ran, lacking);
    said = true;
    return SLC_ISA_BASELINE;
}

bool test_use_isa(slc_isa isa)
{
    on_gpu = false;
    if (!test_takes_isa(isa)) return false;
    assert_int_equal(slc_isa_force(isa), SLUICE_OK);
    return true;
}

slc_device *test_gpu(void)
{
    static slc_device *device;
    static bool tried;
    if (tried || !slc_device_describe("cuda")) return device;
    tried = true;
    setenv("SLUICE_CUDA_CHECK", "on", 1);
    if (slc_device_open("cuda", &device))
        print_message("kernels on %s: not run: %s\n", slc_device_describe("cuda"), sluice_last_error());
    return device;
}

bool test_use_way(int way, uint64_t elements)
{
#if defined(__SANITIZE_ADDRESS__)
    const uint64_t affordable = 8000;
#else
    const uint64_t affordable = 40000;
#endif
    on_gpu = way == SLC_ISA_COUNT && test_gpu() &&
             (elements <= affordable || !strstr(slc_device_describe("cuda"), "emulated"));
    static bool said; /* bench/gpu_check.sh reads the line, and that of test_gpu */
    if (test_on_gpu() && !said) print_message("kernels on %s: run\n", slc_device_describe("cuda"));
    said |= test_on_gpu();
    return way == SLC_ISA_COUNT ? test_on_gpu() : test_use_isa((slc_isa)way);
}

bool test_back_to_host(void)
{
    on_gpu = false;
    return false;
}

static slc_device *test_device(void)
{
    static slc_device *device;
    if (test_on_gpu()) return test_gpu();
    if (!device) assert_int_equal(slc_device_open("cpu", &device), SLUICE_OK);
    return device;
}

sluice_stream test_stream(uint32_t threads)
{
    sluice_stream stream;
    assert_int_equal(slc_stream_create(test_device(), threads, &stream), SLUICE_OK);
    return stream;
}

const char *test_way_name(void)
{
    return test_on_gpu() ? slc_device_describe("cuda") : slc_isa_name(slc_isa_level());
}

bool test_on_gpu(void)
{
    return on_gpu;
}
