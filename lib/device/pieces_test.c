/* Pieces are counted between events of their own stream and of another one; whatever cuts them, shares add up. */
#include "lib/device/pieces.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

enum { PIECES = 40, BYTES = 1 << 18 };

typedef struct {
    slc_device *device;
    sluice_stream busy, other;
    slc_segment segment;
    slc_event marks[PIECES + 1]; /* in the busy stream, behind so many pieces */
    slc_pieces *pieces;
} bed;

static bool make_bed(bed *b)
{
    *b = (bed){0};
    if (!slc_device_describe("cuda") || slc_device_open("cuda", &b->device)) {
        print_message("SKIP: cuda: not in this build, or not on this machine\n");
        return false;
    }
    print_message("device %s\n", slc_device_describe("cuda"));
    assert_int_equal(slc_stream_create(b->device, 1, &b->busy), SLUICE_OK);
    assert_int_equal(slc_stream_create(b->device, 1, &b->other), SLUICE_OK);
    assert_int_equal(slc_segment_create(b->device, BYTES, &b->segment), SLUICE_OK);
    for (int i = 0; i <= PIECES; i++) assert_int_equal(slc_event_create(b->device, &b->marks[i]), SLUICE_OK);
    return true;
}

static void end_bed(bed *b)
{
    slc_pieces_destroy(b->pieces);
    for (int i = 0; i <= PIECES; i++) slc_event_destroy(&b->marks[i]);
    slc_segment_destroy(&b->segment);
    slc_stream_destroy(&b->busy);
    slc_stream_destroy(&b->other);
    slc_device_close(b->device);
}

/* A mark behind i pieces lies between their last one's end and the next one's. */
static void pieces_are_counted_between_events(void **state)
{
    (void)state;
    bed b;
    double count, rest, all;
    if (!make_bed(&b)) skip();
    assert_int_equal(slc_pieces_create(&b.busy, &b.pieces), SLUICE_OK);
    assert_int_equal(slc_event_record(&b.busy, &b.marks[0]), SLUICE_OK);
    for (int i = 1; i <= PIECES; i++) {
        assert_int_equal(slc_fill_zero(&b.busy, b.segment.base, BYTES), SLUICE_OK);
        assert_int_equal(slc_pieces_note(b.pieces), SLUICE_OK);
        assert_int_equal(slc_event_record(&b.busy, &b.marks[i]), SLUICE_OK);
    }
    assert_int_equal(slc_pieces_wait(b.pieces), SLUICE_OK);
    assert_int_equal(slc_stream_synchronize(&b.busy), SLUICE_OK);
    for (int from = 0; from < PIECES; from += 7)
        for (int to = from; to <= PIECES; to += 3) {
            assert_int_equal(slc_pieces_between(b.pieces, &b.marks[from], &b.marks[to], &count), SLUICE_OK);
            if (fabs(count - (to - from)) > 1 + 1e-6) fail_msg("%g pieces from %d to %d", count, from, to);
            assert_int_equal(slc_pieces_between(b.pieces, &b.marks[to], &b.marks[PIECES], &rest), SLUICE_OK);
            assert_int_equal(slc_pieces_between(b.pieces, &b.marks[from], &b.marks[PIECES], &all), SLUICE_OK);
            if (fabs(count + rest - all) > 1e-6) fail_msg("%g and %g pieces are %g", count, rest, all);
        }
    assert_true(slc_pieces_mean_s(b.pieces) > 0);
    end_bed(&b);
}

/* Before the first piece and after the last one there is nothing to count. */
static void nothing_is_counted_where_nothing_ran(void **state)
{
    (void)state;
    bed b;
    double count = -1;
    if (!make_bed(&b)) skip();
    assert_int_equal(slc_pieces_create(&b.busy, &b.pieces), SLUICE_OK);
    assert_int_equal(slc_pieces_wait(b.pieces), SLUICE_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(slc_event_record(&b.other, &b.marks[i]), SLUICE_OK);
    assert_int_equal(slc_stream_synchronize(&b.other), SLUICE_OK);
    assert_int_equal(slc_pieces_between(b.pieces, &b.marks[0], &b.marks[1], &count), SLUICE_OK);
    assert_true(count == 0 && slc_pieces_mean_s(b.pieces) == 0);
    assert_int_equal(slc_fill_zero(&b.busy, b.segment.base, BYTES), SLUICE_OK);
    assert_int_equal(slc_pieces_note(b.pieces), SLUICE_OK);
    assert_int_equal(slc_pieces_wait(b.pieces), SLUICE_OK);
    for (int i = 2; i < 4; i++) assert_int_equal(slc_event_record(&b.other, &b.marks[i]), SLUICE_OK);
    assert_int_equal(slc_stream_synchronize(&b.other), SLUICE_OK);
    assert_int_equal(slc_pieces_between(b.pieces, &b.marks[2], &b.marks[3], &count), SLUICE_OK);
    assert_true(count == 0);
    end_bed(&b);
}

static void the_host_has_a_clock(void **state)
{
    (void)state;
    slc_device *device;
    sluice_stream stream;
    slc_pieces *pieces;
    assert_int_equal(slc_device_open("cpu", &device), SLUICE_OK);
    assert_int_equal(slc_stream_create(device, 1, &stream), SLUICE_OK);
    assert_int_equal(slc_pieces_create(&stream, &pieces), SLUICE_ERR_UNSUPPORTED);
    assert_null(pieces);
    slc_pieces_destroy(pieces);
    slc_stream_destroy(&stream);
    slc_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_counted_between_events),
        cmocka_unit_test(nothing_is_counted_where_nothing_ran),
        cmocka_unit_test(the_host_has_a_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
