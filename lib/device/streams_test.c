/* Streams, events and pinned memory must keep their promises on every kind of device that this build and this machine
 * have. */
#include "lib/device/lane_events.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

enum { DEVICES = 2 };
static const char *const names[DEVICES] = {"cpu", "cuda"};
static slc_device *devices[DEVICES];

static int open_devices(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES; i++) {
        if (!slc_device_describe(names[i])) continue;
        if (slc_device_open(names[i], &devices[i]))
            print_message("SKIP: %s: %s\n", names[i], sluice_last_error());
        else
            print_message("device %s\n", slc_device_describe(names[i]));
    }
    return 0;
}

static int close_devices(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES; i++) slc_device_close(devices[i]);
    return 0;
}

#define EACH_DEVICE(device)                                                                                            \
    for (int device##_number = 0; device##_number < DEVICES; device##_number++)                                        \
        for (slc_device *device = devices[device##_number]; device; device = NULL)

static void copies_and_fills_are_in_order(void **state)
{
    (void)state;
    enum { BYTES = 100000 };
    EACH_DEVICE(device)
    {
        sluice_stream stream;
        slc_segment segment;
        slc_pinned a, b;
        assert_int_equal(slc_stream_create(device, 1, &stream), SLUICE_OK);
        assert_int_equal(slc_segment_create(device, BYTES, &segment), SLUICE_OK);
        assert_int_equal(slc_pinned_create(device, BYTES, &a), SLUICE_OK);
        assert_int_equal(slc_pinned_create(device, BYTES, &b), SLUICE_OK);
        assert_int_equal((uintptr_t)a.base % 64, 0);
        memset(a.base, 'x', BYTES);
        assert_int_equal(slc_copy(&stream, segment.base, a.base, BYTES / 2), SLUICE_OK);
        assert_int_equal(slc_fill_zero(&stream, (char *)segment.base + 10, 20), SLUICE_OK);
        assert_int_equal(slc_copy(&stream, b.base, segment.base, BYTES), SLUICE_OK);
        assert_int_equal(slc_stream_synchronize(&stream), SLUICE_OK);
        const char *got = b.base;
        for (int i = 0; i < BYTES; i++)
            if (got[i] != ((i >= 10 && i < 30) || i >= BYTES / 2 ? 0 : 'x')) fail_msg("byte %d is %d", i, got[i]);
        slc_pinned_destroy(&a);
        slc_pinned_destroy(&b);
        slc_pinned_destroy(&b); /* it is zeroed, so there is nothing to do */
        slc_segment_destroy(&segment);
        slc_stream_destroy(&stream);
    }
}

#if !defined(__SANITIZE_THREAD__) /* it would look at every word, and there is one stream */
/* Moves up and down by less and by more than what goes through memory aside. */
static void moves_may_overlap(void **state)
{
    (void)state;
    enum { BYTES = 5 << 20 };
    const size_t steps[] = {1, 4096, (1 << 20) + 64, 3 << 20};
    EACH_DEVICE(device)
    {
        sluice_stream stream;
        slc_segment segment;
        slc_pinned before, after;
        assert_int_equal(slc_stream_create(device, 1, &stream), SLUICE_OK);
        assert_int_equal(slc_segment_create(device, BYTES, &segment), SLUICE_OK);
        assert_int_equal(slc_pinned_create(device, BYTES, &before), SLUICE_OK);
        assert_int_equal(slc_pinned_create(device, BYTES, &after), SLUICE_OK);
        for (uint32_t i = 0; i < BYTES; i++) ((unsigned char *)before.base)[i] = (unsigned char)(i * 2654435761u >> 24);
        for (size_t s = 0; s < 2 * sizeof steps / sizeof *steps; s++) {
            const size_t step = steps[s / 2], from = s % 2 ? step : 0, to = s % 2 ? 0 : step;
            unsigned char *base = segment.base;
            assert_int_equal(slc_copy(&stream, base, before.base, BYTES), SLUICE_OK);
            assert_int_equal(slc_move_bytes(&stream, base + to, base + from, BYTES - step), SLUICE_OK);
            assert_int_equal(slc_copy(&stream, after.base, base, BYTES), SLUICE_OK);
            assert_int_equal(slc_stream_synchronize(&stream), SLUICE_OK);
            assert_memory_equal((char *)after.base + to, (char *)before.base + from, BYTES - step);
        }
        slc_pinned_destroy(&before);
        slc_pinned_destroy(&after);
        slc_segment_destroy(&segment);
        slc_stream_destroy(&stream);
    }
}

#endif

/* One lane copies a block on, the next one waits for it by its number; the ring is so short that its places are used
 * again and again. */
static void a_lanes_events_order_streams(void **state)
{
    (void)state;
    enum { ROUNDS = 40, BYTES = 1 << 14, PLACES = 4 };
    EACH_DEVICE(device)
    {
        sluice_stream streams[2];
        slc_lane_events rings[2], none = {0};
        slc_segment segment;
        slc_pinned host, got;
        assert_int_equal(slc_segment_create(device, ROUNDS * BYTES + BYTES, &segment), SLUICE_OK);
        assert_int_equal(slc_pinned_create(device, BYTES, &host), SLUICE_OK);
        assert_int_equal(slc_pinned_create(device, BYTES, &got), SLUICE_OK);
        memset(host.base, 9, BYTES);
        memset(got.base, 0, BYTES);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(slc_stream_create(device, 1, &streams[i]), SLUICE_OK);
            assert_int_equal(slc_lane_events_create(device, PLACES, &rings[i]), SLUICE_OK);
            assert_int_equal(rings[i].events != NULL, slc_device_runs_ahead(device));
        }
        uint32_t counts[2] = {UINT32_MAX - 3, 5}; /* a count may wrap */
        unsigned char *base = segment.base;
        assert_int_equal(slc_copy(&streams[0], base, host.base, BYTES), SLUICE_OK);
        for (int i = 0; i < ROUNDS; i++) {
            int from = i % 2, to = 1 - from;
            assert_int_equal(slc_lane_events_record(&rings[from], &streams[from], counts[from]++), SLUICE_OK);
            assert_int_equal(slc_lane_events_wait(&rings[from], &streams[to], counts[from]), SLUICE_OK);
            assert_int_equal(slc_copy(&streams[to], base + BYTES, base, BYTES), SLUICE_OK);
            base += BYTES;
        }
        assert_int_equal(slc_copy(&streams[ROUNDS % 2], got.base, base, BYTES), SLUICE_OK);
        assert_int_equal(slc_lane_events_record(&rings[0], &streams[ROUNDS % 2], counts[0]++), SLUICE_OK);
        assert_int_equal(slc_lane_events_synchronize(&rings[0], counts[0]), SLUICE_OK);
        for (int i = 0; i < BYTES; i++) assert_int_equal(((unsigned char *)got.base)[i], 9);
        for (int i = 0; i < 2; i++) {
            slc_lane_events_destroy(&rings[i]);
            slc_lane_events_destroy(&rings[i]); /* it is zeroed, so there is nothing to do */
            slc_stream_destroy(&streams[i]);
        }
        slc_lane_events_destroy(&none);
        slc_pinned_destroy(&host);
        slc_pinned_destroy(&got);
        slc_segment_destroy(&segment);
    }
}

static void events_order_streams(void **state)
{
    (void)state;
    enum { ROUNDS = 20, BYTES = 1 << 16 };
    EACH_DEVICE(device)
    {
        sluice_stream streams[2];
        slc_event events[2] = {{0}};
        slc_segment segment;
        slc_pinned host;
        assert_int_equal(slc_segment_create(device, ROUNDS * BYTES + BYTES, &segment), SLUICE_OK);
        assert_int_equal(slc_pinned_create(device, BYTES, &host), SLUICE_OK);
        memset(host.base, 7, BYTES);
        for (int i = 0; i < 2; i++) {
            assert_true(slc_event_done(&events[i])); /* it was never recorded */
            assert_int_equal(slc_stream_create(device, 1, &streams[i]), SLUICE_OK);
            assert_int_equal(slc_event_create(device, &events[i]), SLUICE_OK);
        }
        unsigned char *base = segment.base;
        assert_int_equal(slc_copy(&streams[0], base, host.base, BYTES), SLUICE_OK);
        for (int i = 0; i < ROUNDS; i++) {
            assert_int_equal(slc_event_record(&streams[i % 2], &events[i % 2]), SLUICE_OK);
            assert_int_equal(slc_stream_wait_event(&streams[(i + 1) % 2], &events[i % 2]), SLUICE_OK);
            assert_int_equal(slc_copy(&streams[(i + 1) % 2], base + BYTES, base, BYTES), SLUICE_OK);
            base += BYTES;
        }
        assert_int_equal(slc_copy(&streams[ROUNDS % 2], host.base, base, BYTES), SLUICE_OK);
        assert_int_equal(slc_event_record(&streams[ROUNDS % 2], &events[0]), SLUICE_OK);
        assert_int_equal(slc_event_synchronize(&events[0]), SLUICE_OK);
        assert_true(slc_event_done(&events[0]));
        for (int i = 0; i < BYTES; i++) assert_int_equal(((unsigned char *)host.base)[i], 7);
        for (int i = 0; i < 2; i++) {
            slc_stream_destroy(&streams[i]);
            slc_event_destroy(&events[i]);
        }
        slc_pinned_destroy(&host);
        slc_segment_destroy(&segment);
    }
}

static void events_of_a_gpu_tell_times(void **state)
{
    (void)state;
    EACH_DEVICE(device)
    {
        sluice_stream stream;
        slc_event begin, end;
        slc_segment segment;
        double seconds = -1;
        assert_int_equal(slc_stream_create(device, 1, &stream), SLUICE_OK);
        assert_int_equal(slc_segment_create(device, 1 << 20, &segment), SLUICE_OK);
        assert_int_equal(slc_event_create(device, &begin), SLUICE_OK);
        assert_int_equal(slc_event_create(device, &end), SLUICE_OK);
        assert_int_equal(slc_event_record(&stream, &begin), SLUICE_OK);
        assert_int_equal(slc_fill_zero(&stream, segment.base, segment.bytes), SLUICE_OK);
        assert_int_equal(slc_event_record(&stream, &end), SLUICE_OK);
        assert_int_equal(slc_event_synchronize(&end), SLUICE_OK);
        const bool gpu = slc_device_get_kind(device) == SLC_DEVICE_CUDA;
        assert_int_equal(slc_event_elapsed(&begin, &end, &seconds), gpu ? SLUICE_OK : SLUICE_ERR_UNSUPPORTED);
        assert_true(seconds == -1 ? !gpu : seconds >= 0);
        slc_event_destroy(&begin);
        slc_event_destroy(&end);
        slc_segment_destroy(&segment);
        slc_stream_destroy(&stream);
    }
}

static void segments_are_zeroed(void **state)
{
    (void)state;
    EACH_DEVICE(device)
    {
        sluice_stream stream;
        slc_segment segment;
        slc_pinned host;
        assert_int_equal(slc_stream_create(device, 1, &stream), SLUICE_OK);
        assert_int_equal(slc_segment_create(device, 5000, &segment), SLUICE_OK);
        assert_int_equal(slc_pinned_create(device, segment.bytes, &host), SLUICE_OK);
        assert_int_equal(slc_segment_populate(&segment), SLUICE_OK);
        slc_segment_discard(&segment, 0, segment.bytes);
        assert_int_equal(slc_copy(&stream, host.base, segment.base, segment.bytes), SLUICE_OK);
        assert_int_equal(slc_stream_synchronize(&stream), SLUICE_OK);
        for (size_t i = 0; i < segment.bytes; i++) assert_int_equal(((unsigned char *)host.base)[i], 0);
        slc_pinned_destroy(&host);
        slc_segment_destroy(&segment);
        slc_stream_destroy(&stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_and_fills_are_in_order),
#if !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(moves_may_overlap),
#endif
        cmocka_unit_test(events_order_streams),
        cmocka_unit_test(events_of_a_gpu_tell_times),
        cmocka_unit_test(segments_are_zeroed),
        cmocka_unit_test(a_lanes_events_order_streams),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
