/* A machine may have several versions of cublasLt; the newest one that its driver can run must be opened. Here any
 * library stands for them, since it is only opened. */
#include "lib/kernels/gemm/cublaslt_cuda.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TWELVE = 1, THIRTEEN = 2 };

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/sluice-cublaslt-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static void path_of(int version, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/libcublasLt.so.%d", folder, version);
}

static int remove_folder(void **state)
{
    (void)state;
    char path[128];
    for (int version = 12; version <= 13; version++) {
        path_of(version, path, sizeof path);
        unlink(path);
    }
    return rmdir(folder);
}

/* Gives the folder these versions, copies of a library that this program has, and no others. */
static void have(int versions)
{
    char path[128], command[8192];
    Dl_info info;
    assert_true(dladdr(dlsym(RTLD_DEFAULT, "mock_assert"), &info)); /* cmocka's */
    for (int version = 12; version <= 13; version++) {
        path_of(version, path, sizeof path);
        unlink(path);
        if (!(versions & (version == 12 ? TWELVE : THIRTEEN))) continue;
        snprintf(command, sizeof command, "cp '%s' '%s'", info.dli_fname, path);
        assert_int_equal(system(command), 0);
    }
}

/* The version that is opened for a driver; 0: none. */
static int opened_for(int driver)
{
    struct link_map *map;
    void *library = slc_gemm_open_cublaslt(folder, driver);
    if (!library) return 0;
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    const int version = atoi(strrchr(map->l_name, '.') + 1);
    dlclose(library);
    return version;
}

static void a_driver_gets_what_it_can_run(void **state)
{
    (void)state;
    have(TWELVE | THIRTEEN);
    assert_int_equal(opened_for(13000), 13);
    assert_int_equal(opened_for(13020), 13);
    assert_int_equal(opened_for(12080), 12);
    assert_int_equal(opened_for(0), 13);
    have(TWELVE);
    assert_int_equal(opened_for(13000), 12);
    assert_int_equal(opened_for(12020), 12);
    have(THIRTEEN);
    assert_int_equal(opened_for(13000), 13);
    assert_int_equal(opened_for(12080), 0);
    have(0);
    assert_int_equal(opened_for(13000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_driver_gets_what_it_can_run)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
