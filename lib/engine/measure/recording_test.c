/* A ring keeps the latest records, in order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/engine/measure/recording.h"

#include <stdlib.h>

static void rings_keep_the_latest(void **state)
{
    (void)state;
    slc_recording *recording;
    slc_moment *out = calloc(SLC_RECORDING_MOMENTS, sizeof *out);
    assert_non_null(out);
    slc_recording_put(NULL, SLC_MOMENT_COMPUTE, (slc_moment){0}); /* off */
    assert_int_equal(slc_recording_create(&recording), SLUICE_OK);
    assert_int_equal(slc_recording_read(recording, SLC_MOMENT_COMPUTE, out), 0);
    for (uint32_t i = 0; i < SLC_RECORDING_MOMENTS + 10; i++)
        slc_recording_put(recording, SLC_MOMENT_COMPUTE, (slc_moment){.item = i, .kind = SLC_MOMENT_ENDS});
    slc_recording_put(recording, SLC_MOMENT_COMMUNICATION, (slc_moment){.item = 7, .pass = 3, .plan = 2});
    assert_int_equal(slc_recording_read(recording, SLC_MOMENT_COMPUTE, out), SLC_RECORDING_MOMENTS);
    for (uint32_t i = 0; i < SLC_RECORDING_MOMENTS; i++) {
        assert_int_equal(out[i].item, i + 10);
        assert_int_equal(out[i].kind, SLC_MOMENT_ENDS);
        assert_true(i == 0 || out[i].ns >= out[i - 1].ns);
    }
    assert_int_equal(slc_recording_read(recording, SLC_MOMENT_COMMUNICATION, out), 1);
    assert_int_equal(out[0].item, 7);
    assert_int_equal(out[0].pass, 3);
    assert_int_equal(out[0].plan, 2);
    assert_true(out[0].ns > 0);
    slc_recording_destroy(recording);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rings_keep_the_latest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
