/* A build without oneDNN refuses the host's products, in words that say what to do. Most builds have oneDNN, so the
 * file is compiled here under other names. */
#define slc_gemm_path without_dnnl_path
#define slc_gemm_route_find without_dnnl_route_find
#define slc_gemm_route_run without_dnnl_route_run
#include "lib/kernels/gemm/gemm_without_dnnl.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void refused(sluice_status status)
{
    assert_int_equal(status, SLUICE_ERR_UNSUPPORTED);
    assert_non_null(strstr(sluice_last_error(), "oneDNN"));
}

static void everything_is_refused(void **state)
{
    (void)state;
    const slc_gemm_shape shape = {0};
    slc_gemm_route route = {0};
    bool widened, allocates;
    const char *name;
    refused(slc_gemm_path(SLUICE_FP32, &widened, &allocates, &name));
    refused(slc_gemm_route_find(NULL, &shape, &route));
    refused(slc_gemm_route_run(&route, &(slc_gemm_operands){0}, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
