/* Segments of the host device must be zeroed, shared through their descriptor, and unable to shrink under a peer. Those
 * of a device that is kept alone are as good to their process, in huge pages where the system has them. */
#include "lib/device/alone.h"
#include "tests/support/device/host_device.h"

#include <sluice/dtype.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void unknown_device_is_named(void **state)
{
    (void)state;
    slc_device *none = NULL;
    assert_int_equal(slc_device_open("abacus", &none), SLUICE_ERR_UNSUPPORTED);
    assert_non_null(strstr(sluice_last_error(), "abacus"));
    assert_null(none);
    assert_int_equal(slc_device_get_kind(device), SLC_DEVICE_HOST);
}

static void segment_is_zeroed_and_whole_pages(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 4096, 4097, (5u << 20) + 3};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        slc_segment segment;
        assert_int_equal(slc_segment_create(device, sizes[i], &segment), SLUICE_OK);
        assert_true(segment.bytes >= sizes[i] && segment.bytes > 0 && segment.bytes < sizes[i] + page + 1);
        assert_int_equal(segment.bytes % page, 0);
        assert_int_equal((uintptr_t)segment.base % page, 0);
        slc_segment_populate(&segment);
        const unsigned char *bytes = segment.base;
        for (size_t k = 0; k < segment.bytes; k++) assert_int_equal(bytes[k], 0);
        slc_segment_destroy(&segment);
        assert_null(segment.base);
        assert_int_equal(segment.fd, -1);
        slc_segment_destroy(&segment); /* zeroed, so there is nothing to do */
    }
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    slc_segment segment;
    assert_int_equal(slc_segment_create(device, SIZE_MAX, &segment), SLUICE_ERR_ARGUMENT);
    assert_true(slc_segment_create(device, SIZE_MAX / 4, &segment) < 0);
}

static void a_peer_sees_the_same_bytes(void **state)
{
    (void)state;
    const size_t bytes = 3u << 20;
    slc_segment mine, theirs;
    assert_int_equal(slc_segment_create(device, bytes, &mine), SLUICE_OK);
    ((unsigned char *)mine.base)[bytes - 1] = 17;

    int handed = dup(mine.fd);
    pid_t child = fork();
    if (child == 0) { /* a peer knows only the descriptor and the size */
        int wrong = slc_segment_map(device, handed, bytes, &theirs) != SLUICE_OK;
        wrong |= !wrong && ((unsigned char *)theirs.base)[bytes - 1] != 17;
        if (!wrong) ((unsigned char *)theirs.base)[0] = 99;
        _exit(wrong);
    }
    close(handed);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(((unsigned char *)mine.base)[0], 99);
    slc_segment_populate(&mine); /* must not overwrite anything */
    assert_int_equal(((unsigned char *)mine.base)[0], 99);

    assert_int_equal(slc_segment_map(device, mine.fd, 2 * bytes, &theirs), SLUICE_ERR_ARGUMENT);
    assert_int_not_equal(ftruncate(mine.fd, 4096), 0);
    slc_segment_destroy(&mine);
}

static void a_forked_child_has_no_part_in_it(void **state)
{
    (void)state;
    const size_t bytes = 1u << 20;
    slc_segment mine, theirs;
    assert_int_equal(slc_segment_create(device, bytes, &mine), SLUICE_OK);
    assert_int_equal(slc_segment_map(device, mine.fd, bytes, &theirs), SLUICE_OK);
    memset(mine.base, 1, bytes);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        int wrong = ((unsigned char *)mine.base)[bytes - 1] != 1;
        memset(mine.base, 2, bytes);
        slc_segment_discard(&mine, 0, bytes);
        wrong |= ((unsigned char *)mine.base)[0] != 2;
        wrong |= write(ends[1], theirs.base, 1) >= 0 || errno != EFAULT;
        wrong |= fcntl(mine.fd, F_GETFD) >= 0 || fcntl(theirs.fd, F_GETFD) >= 0;
        slc_segment_destroy(&theirs);
        slc_segment_destroy(&mine);
        _exit(wrong);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (size_t i = 0; i < bytes; i++) assert_int_equal(((unsigned char *)theirs.base)[i], 1);
    close(ends[0]);
    close(ends[1]);
    slc_segment_destroy(&theirs);
    slc_segment_destroy(&mine);
}

static size_t present_pages(const slc_segment *segment)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = segment->bytes / page;
    unsigned char *present = malloc(pages);
    size_t count = 0;
    struct stat file;
    assert_non_null(present);
    assert_int_equal(mincore(segment->base, segment->bytes, present), 0);
    for (size_t i = 0; i < pages; i++) count += present[i] & 1;
    free(present);
    if (segment->fd < 0) return count;
    assert_int_equal(fstat(segment->fd, &file), 0);
    assert_int_equal((size_t)file.st_blocks * 512 / page, count);
    return count;
}

static slc_device *open_alone(void)
{
    slc_device *alone = NULL;
    assert_int_equal(slc_device_open("cpu", &alone), SLUICE_OK);
    slc_device_keep_alone(alone);
    return alone;
}

static void check_touched_pages(slc_device *of)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    slc_segment segment;
    assert_int_equal(slc_segment_create(of, 64 * page, &segment), SLUICE_OK);
    unsigned char *bytes = segment.base;
    for (size_t i = 0; i < 64; i += 9) assert_int_equal(bytes[i * page], 0); /* reading may make pages present */
    slc_segment_discard(&segment, 0, 64 * page);
    assert_int_equal(present_pages(&segment), 0);
    slc_segment_populate_range(&segment, page + 7, 2 * page); /* touches pages 1, 2 and 3 */
    assert_int_equal(present_pages(&segment), 3);
    memset(bytes, 1, 8 * page);
    assert_int_equal(present_pages(&segment), 8);
    slc_segment_discard(&segment, 2 * page - 1, 4 * page); /* pages 2, 3 and 4 are wholly inside */
    assert_int_equal(present_pages(&segment), 5);
    for (size_t i = 0; i < 8 * page; i++) assert_int_equal(bytes[i], i / page >= 2 && i / page <= 4 ? 0 : 1);
    slc_segment_discard(&segment, 0, 1000 * page);
    assert_int_equal(present_pages(&segment), 0);
    slc_segment_destroy(&segment);
}

static void only_touched_pages_take_memory(void **state)
{
    (void)state;
    slc_device *alone = open_alone();
    check_touched_pages(device);
    check_touched_pages(alone);
    slc_device_close(alone);
}

/* ---- Memory for one process alone ---- */

static int mmap_error; /* of the next mapping of no file; 0: as the kernel answers */
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (!mmap_error || fd >= 0) return __real_mmap(at, bytes, protection, flags, fd, offset);
    errno = mmap_error;
    return MAP_FAILED;
}

/* A system that keeps memory for all addresses may have none for a mapping of no file. */
static void alone_it_is_no_file_if_that_can_be(void **state)
{
    (void)state;
    slc_device *alone = open_alone();
    slc_segment segment;
    assert_int_equal(slc_segment_create(alone, 3 << 20, &segment), SLUICE_OK);
    assert_int_equal(segment.fd, -1);
    slc_segment_destroy(&segment);
    mmap_error = ENOMEM;
    assert_int_equal(slc_segment_create(alone, 3 << 20, &segment), SLUICE_OK);
    mmap_error = 0;
    assert_true(segment.fd >= 0);
    slc_segment_destroy(&segment);
    slc_device_close(alone);
}

/* Finds the bytes of huge pages in the mapping that holds `base`. */
static size_t huge_bytes(const void *base)
{
    char line[512];
    bool here = false;
    size_t kilobytes = 0;
    FILE *maps = fopen("/proc/self/smaps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        uintptr_t from, to;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
            here = from <= (uintptr_t)base && (uintptr_t)base < to;
        else if (here && sscanf(line, "AnonHugePages: %zu kB", &kilobytes) == 1)
            break;
    }
    fclose(maps);
    return kilobytes << 10;
}

static void alone_it_has_huge_pages(void **state)
{
    (void)state;
    enum { BYTES = 16 << 20 };
    char allowed[64] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    const bool has = file && fgets(allowed, sizeof allowed, file) && !strstr(allowed, "[never]");
    if (file) fclose(file);
    if (!has) {
        printf("SKIP: this system has no huge pages for memory of no file\n");
        skip();
    }
    slc_device *alone = open_alone();
    slc_segment segment;
    assert_int_equal(slc_segment_create(alone, BYTES, &segment), SLUICE_OK);
    assert_int_equal(slc_segment_populate(&segment), SLUICE_OK);
    assert_int_equal(present_pages(&segment) * (size_t)sysconf(_SC_PAGESIZE), BYTES);
    if (!huge_bytes(segment.base)) printf("no huge page was free\n");
    memset(segment.base, 1, BYTES);
    pid_t child = fork();
    if (child == 0) { /* reads what is there, and what it writes is its own */
        unsigned char *bytes = segment.base;
        int wrong = bytes[BYTES - 1] != 1;
        memset(bytes, 2, BYTES);
        slc_segment_destroy(&segment);
        _exit(wrong);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (size_t i = 0; i < BYTES; i++) assert_int_equal(((unsigned char *)segment.base)[i], 1);
    slc_segment_destroy(&segment);
    slc_device_close(alone);
}

static int madvise_error; /* of the next populating; 0: as the kernel answers */
int __real_madvise(void *base, size_t bytes, int advice);
int __wrap_madvise(void *base, size_t bytes, int advice);

int __wrap_madvise(void *base, size_t bytes, int advice)
{
    if (!madvise_error || advice != 23) return __real_madvise(base, bytes, advice);
    errno = madvise_error;
    return -1;
}

/* To populate more than there is memory for must return an error; touching such pages would end the process. */
static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    slc_segment segment;
    assert_int_equal(slc_segment_create(device, 64 * page, &segment), SLUICE_OK);
    madvise_error = ENOMEM;
    assert_int_equal(slc_segment_populate(&segment), SLUICE_ERR_MEMORY);
    assert_int_equal(present_pages(&segment), 0);
    madvise_error = EINVAL; /* an older kernel */
    assert_int_equal(slc_segment_populate(&segment), SLUICE_OK);
    assert_int_equal(present_pages(&segment), 64);
    madvise_error = 0;
    slc_segment_destroy(&segment);
}

/* Enough for a thread of its own for each part, and not a multiple of it. */
static void many_pages_become_present_together(void **state)
{
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (68u << 20) + 3 * page;
    slc_segment segment;
    assert_int_equal(slc_segment_create(device, bytes, &segment), SLUICE_OK);
    ((unsigned char *)segment.base)[bytes / 2] = 7;
    assert_int_equal(slc_segment_populate_range(&segment, 5, bytes - 5 - page), SLUICE_OK);
    assert_int_equal(present_pages(&segment), bytes / page - 1);
    assert_int_equal(((unsigned char *)segment.base)[bytes / 2], 7);
    madvise_error = ENOMEM;
    assert_int_equal(slc_segment_populate(&segment), SLUICE_ERR_MEMORY);
    madvise_error = 0;
    slc_segment_destroy(&segment);
}

static void a_kept_segment_stays_mapped(void **state)
{
    (void)state;
    slc_segment segment;
    assert_int_equal(slc_segment_create(device, 4096, &segment), SLUICE_OK);
    char *base = segment.base;
    segment.kept = true;
    slc_segment_destroy(&segment);
    base[17] = 1; /* as a message that comes late */
    munmap(base, 4096);
}

static void streams_copy_in_order(void **state)
{
    (void)state;
    sluice_stream stream;
    assert_int_equal(slc_stream_create(device, 0, &stream), SLUICE_OK);
    assert_int_equal(stream.threads, 1);
    char a[100], b[100];
    memset(a, 'x', sizeof a);
    assert_int_equal(slc_fill_zero(&stream, a + 10, 20), SLUICE_OK);
    assert_int_equal(slc_copy(&stream, b, a, sizeof a), SLUICE_OK);
    assert_int_equal(slc_copy(&stream, b, NULL, 0), SLUICE_OK);
    slc_event event = {0};
    assert_int_equal(slc_event_record(&stream, &event), SLUICE_OK);
    assert_int_equal(slc_stream_wait_event(&stream, &event), SLUICE_OK);
    assert_int_equal(slc_event_synchronize(&event), SLUICE_OK);
    assert_true(slc_event_done(&event));
    assert_int_equal(slc_stream_synchronize(&stream), SLUICE_OK);
    for (int i = 0; i < 100; i++) assert_int_equal(b[i], i >= 10 && i < 30 ? 0 : 'x');
    slc_stream_destroy(&stream);
}

static void dtypes_have_sizes_and_names(void **state)
{
    (void)state;
    assert_int_equal(sluice_dtype_bytes(SLUICE_FP32), 4);
    assert_int_equal(sluice_dtype_bytes(SLUICE_FP64), 8);
    assert_int_equal(sluice_dtype_bytes(SLUICE_BF16), 2);
    assert_int_equal(sluice_dtype_bytes(SLUICE_INT64), 8);
    assert_int_equal(sluice_dtype_bytes(SLUICE_UINT8), 1);
    assert_string_equal(sluice_dtype_name(SLUICE_BF16), "bf16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_device_is_named),
        cmocka_unit_test(segment_is_zeroed_and_whole_pages),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(a_peer_sees_the_same_bytes),
        cmocka_unit_test(a_forked_child_has_no_part_in_it),
        cmocka_unit_test(only_touched_pages_take_memory),
        cmocka_unit_test(alone_it_is_no_file_if_that_can_be),
        cmocka_unit_test(alone_it_has_huge_pages),
        cmocka_unit_test(streams_copy_in_order),
        cmocka_unit_test(dtypes_have_sizes_and_names),
        cmocka_unit_test(lack_of_memory_is_an_error),
        cmocka_unit_test(many_pages_become_present_together),
        cmocka_unit_test(a_kept_segment_stays_mapped),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
