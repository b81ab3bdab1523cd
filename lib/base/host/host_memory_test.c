/* Availability under folders that stand for systems: RAM alone, control groups of both versions, containers. */
#include "lib/base/host/host_memory.h"
#include "tests/support/base/folder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static const uint64_t gib = UINT64_C(1) << 30;
static char root[64];

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/sluice_host_memory_XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    remove_tree(root);
    return 0;
}

/* Writes a file under the root, with the folders above it. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        assert_true(!mkdir(full, 0777) || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static slc_host_memory look(void)
{
    slc_host_memory memory;
    slc_host_memory_read(root, &memory);
    return memory;
}

static void put_ram(void)
{
    put("/proc/meminfo", "MemTotal:       33554432 kB\nMemFree:         1048576 kB\nMemAvailable:   20971520 kB\n");
}

static void test_nothing(void **state)
{
    (void)state;
    char text[200];
    slc_host_memory memory = look();
    assert_true(memory.available_bytes == UINT64_MAX);
    assert_int_equal(memory.cgroup_bytes, 0);
    assert_string_equal(slc_host_memory_describe(&memory, text, sizeof text),
                        "the system does not say what memory is available");
}

static void test_ram(void **state)
{
    (void)state;
    char text[200];
    put_ram();
    slc_host_memory memory = look();
    assert_int_equal(memory.available_bytes, 20 * gib);
    assert_int_equal(memory.ram_bytes, 32 * gib);
    assert_int_equal(memory.cgroup_bytes, 0);
    assert_string_equal(slc_host_memory_describe(&memory, text, sizeof text),
                        "20.0 GiB of the host's 32.0 GiB are available");
}

static void test_version_2(void **state)
{
    (void)state;
    char text[200];
    put_ram();
    put("/proc/self/cgroup", "0::/user.slice/job.scope\n");
    put("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
    put("/sys/fs/cgroup/user.slice/job.scope/memory.max", "max\n");
    put("/sys/fs/cgroup/user.slice/memory.max", "12884901888\n"); /* 12 GiB, of the group above */
    put("/sys/fs/cgroup/user.slice/memory.current", "4294967296\n");
    put("/sys/fs/cgroup/user.slice/memory.stat", "anon 1\nfile 3\ninactive_file 3221225472\n");
    slc_host_memory memory = look();
    assert_int_equal(memory.available_bytes, 11 * gib);
    assert_int_equal(memory.cgroup_bytes, 12 * gib);
    assert_string_equal(slc_host_memory_describe(&memory, text, sizeof text),
                        "11.0 GiB of the host's 32.0 GiB are available (a control group's limit is 12.0 GiB)");
    /* A limit that leaves more than RAM does not bind. */
    put("/sys/fs/cgroup/user.slice/memory.max", "34359738368\n");
    memory = look();
    assert_int_equal(memory.available_bytes, 20 * gib);
    assert_int_equal(memory.cgroup_bytes, 0);
    /* More is used than the limit. */
    put("/sys/fs/cgroup/user.slice/memory.max", "1073741823\n");
    put("/sys/fs/cgroup/user.slice/memory.stat", "anon 1\n");
    assert_int_equal(look().available_bytes, 0);
}

static void test_version_1(void **state)
{
    (void)state;
    put_ram();
    put("/proc/self/cgroup", "9:cpu,cpuacct:/other\n8:memory:/docker/abc\n0::/\n");
    put("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                                "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                                "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                                "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "8589934592\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "3221225472\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.stat", "inactive_file 5\ntotal_inactive_file 1073741824\n");
    slc_host_memory memory = look();
    assert_int_equal(memory.available_bytes, 6 * gib);
    assert_int_equal(memory.cgroup_bytes, 8 * gib);
}

/* In a container the path is the host's, and the container's group lies at the top of the mount. */
static void test_container(void **state)
{
    (void)state;
    put_ram();
    put("/proc/self/cgroup", "8:memory:/docker/abc\n");
    put("/proc/self/mountinfo", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n");
    assert_int_equal(look().available_bytes, 3 * gib);
    put("/proc/self/mountinfo", "35 31 0:32 /elsewhere /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    assert_int_equal(look().available_bytes, 3 * gib);
    put("/proc/self/mountinfo", "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    assert_int_equal(look().available_bytes, 3 * gib);
}

static void test_addresses(void **state)
{
    (void)state;
    const uint64_t large = gib << 20;
    char text[200];
    struct rlimit before, limit;
    put_ram();
    put("/proc/self/status", "Name:\tx\nVmPeak:\t 9 kB\nVmSize:\t 1048576 kB\n");
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limit = before;
    limit.rlim_cur = large; /* sanitizers map terabytes */
    if (before.rlim_max != RLIM_INFINITY && before.rlim_max < limit.rlim_cur) {
        puts("SKIP: memory under a limit of the address space: this process may not set one");
        skip();
    }
    if (setrlimit(RLIMIT_AS, &limit)) {
        puts("SKIP: memory under a limit of the address space: it cannot be set");
        skip();
    }
    slc_host_memory memory = look();
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(memory.address_bytes, large - gib);
    assert_non_null(
        strstr(slc_host_memory_describe(&memory, text, sizeof text), "(ulimit -v) leaves a rank 1024.0 TiB"));
}

/* The system that runs this has memory, and not more than its RAM. */
static void test_this_system(void **state)
{
    (void)state;
    slc_host_memory memory;
    slc_host_memory_read("", &memory);
    assert_true(memory.available_bytes > 0);
    assert_true(!memory.ram_bytes || memory.available_bytes <= memory.ram_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_ram, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_version_2, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_version_1, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_container, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_addresses, make_root, remove_root),
        cmocka_unit_test(test_this_system),
    };
    return cmocka_run_group_tests_name("host_memory", tests, NULL, NULL);
}
