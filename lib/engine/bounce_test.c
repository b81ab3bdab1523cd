/* Copies between the host and a device come back to the bit, whatever part of its block the last piece fills, and many
 * pieces long: each waits until the device has done with the one before the last. */
#include "lib/engine/bounce.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { PIECE = SLC_BOUNCE_HALF_BYTES / sizeof(float), MOST = 3 * PIECE + 5 };

typedef struct {
    slc_device *device;
    sluice_stream stream;
    slc_segment segment;
    slc_bounce bounce;
    float *host, *again;
} rig;

static void there_and_back(rig *r, uint64_t count, float seed)
{
    for (uint64_t i = 0; i < count; i++) r->host[i] = seed + (float)(i % 65536);
    r->host[count] = r->again[count] = -1;
    assert_int_equal(slc_bounce_write(&r->bounce, r->host, SLUICE_FP32, r->segment.base, count), SLUICE_OK);
    memset(r->again, 0, count * sizeof *r->again);
    assert_int_equal(slc_bounce_read(&r->bounce, SLUICE_FP32, r->segment.base, r->again, count), SLUICE_OK);
    assert_memory_equal(r->again, r->host, (count + 1) * sizeof *r->host);
}

static void arrays_come_back(const char *name)
{
    rig r = {.host = malloc((MOST + 1) * sizeof(float)), .again = malloc((MOST + 1) * sizeof(float))};
    const uint64_t counts[] = {1, PIECE - 1, PIECE, PIECE + 1, MOST};
    assert_non_null(r.host);
    assert_non_null(r.again);
    if (slc_device_open(name, &r.device)) {
        print_message("SKIP: %s: %s\n", name, sluice_last_error());
        goto free_arrays;
    }
    assert_int_equal(slc_stream_create(r.device, 1, &r.stream), SLUICE_OK);
    assert_int_equal(slc_segment_create(r.device, MOST * sizeof(float), &r.segment), SLUICE_OK);
    assert_int_equal(slc_bounce_create(&r.stream, &r.bounce), SLUICE_OK);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) there_and_back(&r, counts[i], (float)i);
    slc_bounce_destroy(&r.bounce);
    slc_segment_destroy(&r.segment);
    slc_stream_destroy(&r.stream);
    slc_device_close(r.device);

free_arrays:
    free(r.host);
    free(r.again);
}

static void arrays_come_back_from_the_host(void **state)
{
    (void)state;
    arrays_come_back("cpu");
}

static void arrays_come_back_from_a_gpu(void **state)
{
    (void)state;
    if (slc_device_describe("cuda")) arrays_come_back("cuda");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(arrays_come_back_from_the_host),
                                       cmocka_unit_test(arrays_come_back_from_a_gpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
