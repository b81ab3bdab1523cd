/* A batch must be what its images read one by one are, whatever number of threads reads it and whatever was asked for
 * before; the next one must be read while nobody waits, and only then; of damaged images the first must be named. */
#include "lib/base/numbers/random.h"
#include "lib/data/images/image_reader.h"
#include "tests/support/base/folder.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <errno.h>

enum { IMAGES = 24, SIDE = 4, PIXELS = SIDE * SIDE, BATCH = 5 };
static const slc_image_shape shape = {.channels = 1, .side = SIDE, .mean = {.5f}, .deviation = {.5f}};

/* ---- What the reader stands on, counted ---- */

static atomic_uint images_read;
static uint32_t threads_left = UINT32_MAX; /* that can be started */

sluice_status __real_slc_images_batch(const slc_images *images, const slc_image_shape *of, slc_image_range range,
                                      uint64_t seed, uint64_t first, uint32_t count, float *pixels, int32_t *labels);
sluice_status __wrap_slc_images_batch(const slc_images *images, const slc_image_shape *of, slc_image_range range,
                                      uint64_t seed, uint64_t first, uint32_t count, float *pixels, int32_t *labels);
sluice_status __wrap_slc_images_batch(const slc_images *images, const slc_image_shape *of, slc_image_range range,
                                      uint64_t seed, uint64_t first, uint32_t count, float *pixels, int32_t *labels)
{
    const sluice_status status = __real_slc_images_batch(images, of, range, seed, first, count, pixels, labels);
    atomic_fetch_add(&images_read, count);
    return status;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument)
{
    return threads_left-- ? __real_pthread_create(thread, how, run, argument) : EAGAIN;
}

/* ---- Images ---- */

static void write_image(const char *folder, int number, bool whole)
{
    char name[64], content[64];
    snprintf(name, sizeof name, "%s/%c/%02d.pgm", folder, 'a' + number % 2, number);
    int used = snprintf(content, sizeof content, "P5 3 3 255\n");
    for (int i = 0; i < 9; i++) content[used++] = (char)(9 * number + i);
    write_file(name, content, (size_t)used);
    if (!whole) write_file(name, content, (size_t)used - 1); /* was whole when it was looked at */
}

static slc_images *open_folder(const char *folder)
{
    char name[64];
    slc_images *images;
    mkdir(path_of(folder), 0700);
    for (int class = 0; class < 2; class ++) {
        snprintf(name, sizeof name, "%s/%c", folder, 'a' + class);
        mkdir(path_of(name), 0700);
    }
    for (int i = 0; i < IMAGES; i++) write_image(folder, i, true);
    works(slc_images_open(path_of(folder), &images));
    return images;
}

static slc_image_reader *open_reader(uint32_t threads, uint32_t ahead)
{
    const slc_image_reader_how how = {.shape = shape, .batch = BATCH, .threads = threads, .ahead = ahead};
    slc_image_reader *reader;
    works(slc_image_reader_open(&how, &reader));
    return reader;
}

static slc_image_request request_of(const slc_images *images, uint64_t first)
{
    return (slc_image_request){images, {2, IMAGES - 2}, 7, first, BATCH};
}

/* ---- What a batch holds ---- */

static void is_what_its_images_are(slc_image_reader *reader, const slc_image_request *of, const slc_image_request *next)
{
    float *pixels, expected[PIXELS];
    int32_t *labels, label;
    works(slc_image_reader_take(reader, of, next, &pixels, &labels));
    for (uint32_t i = 0; i < of->count; i++) {
        if (of->range.count)
            works(slc_images_batch(of->images, &shape, of->range, of->seed, of->first + i, 1, expected, &label));
        else
            works(slc_images_read(of->images, &shape, of->first + i, expected, &label));
        assert_memory_equal(pixels + (size_t)i * PIXELS, expected, sizeof expected);
        assert_int_equal(labels[i], label);
    }
    memset(pixels, 0, BATCH * sizeof expected); /* the caller's until the next call */
    memset(labels, 0, BATCH * sizeof *labels);
}

/* Draws a request: of the samples, of the places, or of none; often what was asked for as next before. */
static slc_image_request draw_request(const slc_images *const sets[2], const slc_image_request *next, uint64_t round)
{
    uint32_t drawn[4];
    slc_random_block(test_seed(11), 0, round, drawn);
    slc_image_request of = request_of(sets[drawn[0] % 2], drawn[1] % (3 * IMAGES));
    if (round && drawn[2] % 3) return *next;
    if (drawn[2] % 4 == 0) of.range.count = 0, of.first = drawn[1] % (IMAGES - BATCH);
    of.count = drawn[3] % (BATCH + 1);
    return of;
}

static void batches_do_not_depend_on_threads(void **state)
{
    (void)state;
    slc_images *images = open_folder("one"), *others = open_folder("two");
    const slc_images *const sets[2] = {images, others};
    for (uint32_t form = 0; form < 9; form++) {
        slc_image_reader *reader = open_reader(1 + form % 3, form / 3);
        slc_image_request next = request_of(images, 0);
        for (uint64_t round = 0; round < test_rounds(60); round++) {
            const slc_image_request wanted = draw_request(sets, &next, form * 1000 + round);
            const bool goes_on = round % 4 != 1; /* an evaluation asks for nothing next, and what was asked for stays */
            if (goes_on) next = draw_request(sets, &wanted, form * 1000 + 500 + round);
            is_what_its_images_are(reader, &wanted, goes_on ? &next : NULL);
        }
        slc_image_reader_close(reader); /* in the middle of reading ahead */
    }
    slc_images_close(images);
    slc_images_close(others);
}

static void threads_that_do_not_start_are_not_needed(void **state)
{
    (void)state;
    slc_images *images = open_folder("few");
    for (uint32_t can_start = 0; can_start < 3; can_start++) {
        slc_image_reader *reader = open_reader(3, 3);
        threads_left = can_start;
        for (uint64_t i = 0; i < 6; i++) {
            const slc_image_request wanted = request_of(images, i * BATCH), next = request_of(images, (i + 1) * BATCH);
            is_what_its_images_are(reader, &wanted, &next);
        }
        threads_left = UINT32_MAX;
        slc_image_reader_close(reader);
    }
    slc_images_close(images);
}

/* ---- When it is read ---- */

static void wait_until_read(uint32_t count)
{
    const struct timespec pause = {0, 1000000};
    for (int i = 0; i < 60000 && atomic_load(&images_read) < count; i++) nanosleep(&pause, NULL);
    assert_int_equal(atomic_load(&images_read), count);
}

static void the_next_batch_is_read_ahead(void **state)
{
    (void)state;
    float *pixels;
    int32_t *labels;
    slc_images *images = open_folder("ahead");
    for (uint32_t ahead = 0; ahead < 3; ahead++) {
        slc_image_reader *reader = open_reader(2, ahead);
        atomic_store(&images_read, 0);
        for (uint32_t i = 0; i < 4; i++) {
            const slc_image_request wanted = request_of(images, i * BATCH), next = request_of(images, (i + 1) * BATCH);
            works(slc_image_reader_take(reader, &wanted, &next, &pixels, &labels));
            wait_until_read((i + 1 + (ahead > 0)) * BATCH);
        }
        slc_image_reader_close(reader);
        assert_int_equal(atomic_load(&images_read), (4 + (ahead > 0)) * BATCH);
    }
    slc_images_close(images);
}

/* ---- Damage ---- */

static void the_first_damaged_image_is_named(void **state)
{
    (void)state;
    float *pixels;
    int32_t *labels;
    char expected[2048];
    slc_images *images = open_folder("damaged");
    for (int i = 0; i < IMAGES; i += 2) write_image("damaged", i, false);
    for (uint32_t form = 0; form < 6; form++) {
        slc_image_reader *reader = open_reader(1 + form % 3, form / 3);
        for (uint64_t first = 0; first < 2 * IMAGES; first += BATCH) {
            const slc_image_request wanted = request_of(images, first), next = request_of(images, first + BATCH);
            float room[BATCH * PIXELS];
            int32_t numbers[BATCH];
            const sluice_status status =
                slc_images_batch(images, &shape, wanted.range, wanted.seed, first, BATCH, room, numbers);
            snprintf(expected, sizeof expected, "%s", status ? sluice_last_error() : "");
            const sluice_status own = slc_image_reader_take(reader, &wanted, &next, &pixels, &labels);
            assert_int_equal(own, status);
            if (status) assert_string_equal(sluice_last_error(), expected);
        }
        slc_image_reader_close(reader);
    }
    slc_images_close(images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_do_not_depend_on_threads),
        cmocka_unit_test(threads_that_do_not_start_are_not_needed),
        cmocka_unit_test(the_next_batch_is_read_ahead),
        cmocka_unit_test(the_first_damaged_image_is_named),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
