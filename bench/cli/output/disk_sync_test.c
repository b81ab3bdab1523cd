/* Bytes that were written to a file are synced in the background, and an error of the disk is reported at the end.
 * This test replaces fdatasync by a function that notes how long the file was at that moment: after a loss of power the
 * machine would still have those bytes. */
#include "bench/cli/output/disk_sync.h"
#include "bench/cli/output/growing_file.h"
#include "tests/support/base/folder.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static _Atomic long long synced_bytes;
static atomic_int calls, failing;

int __wrap_fdatasync(int file);

int __wrap_fdatasync(int file)
{
    struct stat info;
    atomic_fetch_add(&calls, 1);
    if (atomic_load(&failing)) {
        errno = EIO;
        return -1;
    }
    if (fstat(file, &info)) return -1;
    atomic_store(&synced_bytes, (long long)info.st_size);
    return 0;
}

/* The limit is against hanging; a thread that never syncs fails. */
static void comes_to(long long bytes)
{
    for (int i = 0; i < 60000 && atomic_load(&synced_bytes) != bytes; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(atomic_load(&synced_bytes), bytes);
}

static slc_growing_file open_file(const char *name)
{
    slc_growing_file file;
    atomic_store(&synced_bytes, -1);
    atomic_store(&calls, 0);
    works(slc_growing_file_open(path_of(name), 0, &file));
    return file;
}

static void lines_are_synced_by_themselves(void **state)
{
    (void)state;
    slc_growing_file file = open_file("lines");
    slc_disk_sync *sync;
    works(slc_disk_sync_start(0.01, &sync));
    slc_disk_sync_add(sync, file.fd);
    for (int i = 1; i <= 3; i++) {
        assert_true(slc_growing_file_put(&file, "a line\n", 7));
        slc_disk_sync_soon(sync);
        comes_to(7 * i);
    }
    assert_int_equal(slc_disk_sync_end(&sync), 0);
    assert_null(sync);
    works(slc_growing_file_close(&file));
}

/* Lines that come before the time is over wait for it, and one sync is for all of them; the end does not wait. */
static void the_end_syncs_what_waits(void **state)
{
    (void)state;
    slc_growing_file file = open_file("waits");
    slc_disk_sync *sync;
    works(slc_disk_sync_start(3600, &sync));
    slc_disk_sync_add(sync, file.fd);
    for (int i = 0; i < 100; i++) {
        assert_true(slc_growing_file_put(&file, "a line\n", 7));
        slc_disk_sync_soon(sync);
    }
    assert_int_equal(atomic_load(&calls), 0);
    assert_int_equal(slc_disk_sync_end(&sync), 0);
    assert_int_equal(atomic_load(&calls), 1);
    assert_int_equal(atomic_load(&synced_bytes), 700);
    works(slc_growing_file_close(&file));
}

static void a_disk_that_failed_is_told(void **state)
{
    (void)state;
    slc_growing_file file = open_file("fails");
    slc_disk_sync *sync;
    works(slc_disk_sync_start(0.001, &sync));
    slc_disk_sync_add(sync, file.fd);
    atomic_store(&failing, 1);
    slc_disk_sync_soon(sync);
    for (int i = 0; i < 60000 && !atomic_load(&calls); i++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_store(&failing, 0);
    assert_int_equal(slc_disk_sync_end(&sync), EIO);
    assert_int_equal(slc_disk_sync_end(&sync), 0); /* NULL */
    slc_disk_sync_soon(sync);
    works(slc_growing_file_close(&file));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_synced_by_themselves),
        cmocka_unit_test(the_end_syncs_what_waits),
        cmocka_unit_test(a_disk_that_failed_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
