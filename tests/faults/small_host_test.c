/* A plan is held against the memory that its host has: a warning if the ranks together need more than is available,
 * once on a host; and an error of the system names that memory, its limits and the budget. This program's host has what
 * the tests say, and refuses segments where they say so (both functions are wrapped). */
#include "lib/base/host/host_memory.h"
#include "tests/support/ranks.h"

#include <sluice/sluice.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <sys/types.h>
#include <cmocka.h>
#include <sys/mman.h>

enum { ELEMENTS = 1 << 18 }; /* 5 MiB of values, gradients, Adam's states and staging */

static slc_host_memory host;
static bool segments_fail;

void __wrap_slc_host_memory_read(const char *root, slc_host_memory *out);
void __wrap_slc_host_memory_read(const char *root, slc_host_memory *out)
{
    (void)root;
    *out = host;
}

int __real_ftruncate(int fd, off_t bytes);
int __wrap_ftruncate(int fd, off_t bytes);
int __wrap_ftruncate(int fd, off_t bytes)
{
    if (!segments_fail || bytes < ELEMENTS) return __real_ftruncate(fd, bytes);
    errno = ENOMEM;
    return -1;
}

/* One rank alone maps memory of its own first. */
void *__real_mmap(void *base, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *base, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *base, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (!segments_fail || fd >= 0 || bytes < sizeof(float) * ELEMENTS)
        return __real_mmap(base, bytes, protection, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_status committed;
    char said[2048]; /* on standard error during commit */
} attempt;

static int open_capture(int *saved)
{
    FILE *file = tmpfile();
    if (!file) return -1;
    int fd = dup(fileno(file));
    fclose(file);
    *saved = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    return fd;
}

static void close_capture(int fd, int saved, char *text, size_t bytes)
{
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t got = pread(fd, text, bytes - 1, 0);
    text[got > 0 ? got : 0] = 0;
    close(fd);
}

static int try_commit(attempt *a)
{
    sluice_config config;
    sluice_layer *layer;
    sluice_param *param;
    int saved, fd;
    sluice_config_init(&config);
    config.strategy = "dp";
    config.schedule = "serial";
    RANK_CHECK(!sluice_world_create(NULL, &a->world));
    RANK_CHECK(!sluice_runtime_create(a->world, &config, &a->rt));
    RANK_CHECK(!sluice_layer_add(a->rt, "l", &layer));
    RANK_CHECK(!sluice_param_add(layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = ELEMENTS), &param));
    fd = open_capture(&saved);
    RANK_CHECK(fd >= 0);
    a->committed = sluice_runtime_commit(a->rt);
    close_capture(fd, saved, a->said, sizeof a->said);
    return 0;
}

static void end_attempt(attempt *a)
{
    sluice_runtime_destroy(a->rt);
    sluice_world_destroy(a->world);
}

static int warns(int rank, int size, void *context)
{
    const bool expected = *(const bool *)context;
    char both[32];
    attempt a = {0};
    if (try_commit(&a)) return 1;
    RANK_CHECK(!a.committed);
    snprintf(both, sizeof both, "%d rank%s x 5.0 MiB = %d.0 MiB", size, size == 1 ? "" : "s", 5 * size);
    RANK_CHECK((strstr(a.said, both) != NULL) == (expected && rank == 0));
    RANK_CHECK(!a.said[0] || strstr(a.said, "but 7.0 MiB of the host's 1.0 GiB are available (a control group's limit "
                                            "is 9.0 MiB)"));
    end_attempt(&a);
    return 0;
}

static void set_host(uint64_t available)
{
    host = (slc_host_memory){
        .available_bytes = available, .ram_bytes = 1 << 30, .cgroup_bytes = 9 << 20, .address_bytes = UINT64_MAX};
    segments_fail = false;
}

/* 7 MiB are enough for one rank that needs 5, and not for two. */
static void a_host_that_is_too_small_is_warned_of(void **state)
{
    (void)state;
    bool expected = false;
    set_host(7 << 20);
    assert_int_equal(run_ranks(1, warns, &expected, 60), 0);
    expected = true;
    assert_int_equal(run_ranks(2, warns, &expected, 60), 0);
}

static void a_host_that_says_nothing_is_not_warned_of(void **state)
{
    (void)state;
    bool expected = false;
    set_host(UINT64_MAX);
    assert_int_equal(run_ranks(2, warns, &expected, 60), 0);
}

static int is_refused(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    attempt a = {0};
    if (try_commit(&a)) return 1;
    RANK_CHECK(a.committed == SLUICE_ERR_MEMORY);
    static const char *const parts[] = {"segment of ", "Cannot allocate memory",
                                        "the plan needs 5.0 MiB on each of 1 rank",
                                        "7.0 MiB of the host's 1.0 GiB are available", "config.budget_bytes"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(sluice_last_error(), parts[i])) {
            fprintf(stderr, "no \"%s\" in: %s\n", parts[i], sluice_last_error());
            return 1;
        }
    end_attempt(&a);
    return 0;
}

static void an_error_of_the_system_says_what_there_is(void **state)
{
    (void)state;
    set_host(7 << 20);
    segments_fail = true;
    assert_int_equal(run_ranks(1, is_refused, NULL, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_is_too_small_is_warned_of),
        cmocka_unit_test(a_host_that_says_nothing_is_not_warned_of),
        cmocka_unit_test(an_error_of_the_system_says_what_there_is),
    };
    return cmocka_run_group_tests_name("host_memory", tests, NULL, NULL);
}
