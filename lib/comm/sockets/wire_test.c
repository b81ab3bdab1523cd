/* Bytes between two ends: what is written arrives, and neither writing nor reading waits beyond its deadline or for an
 * end that is closed. */
#include "lib/comm/sockets/wire.h"

#include "lib/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

enum { BYTES = 4 << 20, LIMIT_S = 60 };

static uint64_t soon(void)
{
    return slc_clock_ns() + 20000000;
}

static int open_ends(int ends[2])
{
    alarm(LIMIT_S); /* if a deadline is not kept, nothing else ends the wait */
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
}

static void deadlines_are_kept(void **state)
{
    (void)state;
    int ends[2];
    char *data = calloc(1, BYTES);
    assert_int_equal(open_ends(ends), 0);
    assert_int_equal(slc_wire_write(ends[0], data, BYTES, soon()), SLUICE_ERR_TIMEOUT); /* nobody reads so much */
    assert_int_equal(slc_wire_write(ends[1], "five", 5, soon()), SLUICE_OK);
    assert_int_equal(slc_wire_read(ends[0], data, 5, soon()), SLUICE_OK);
    assert_string_equal(data, "five");
    assert_int_equal(slc_wire_read(ends[0], data, 1, soon()), SLUICE_ERR_TIMEOUT);
    close(ends[0]), close(ends[1]);
    free(data);
}

static void a_closed_end_is_told(void **state)
{
    (void)state;
    int ends[2];
    char data[16];
    assert_int_equal(open_ends(ends), 0);
    assert_int_equal(slc_wire_write(ends[1], "last words", 11, soon()), SLUICE_OK);
    close(ends[1]);
    assert_int_equal(slc_wire_read(ends[0], data, 11, soon()), SLUICE_OK);
    assert_int_equal(slc_wire_read(ends[0], data, 1, soon()), SLUICE_ERR_PEER);
    assert_int_equal(slc_wire_write(ends[0], data, 1, soon()), SLUICE_ERR_PEER);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(deadlines_are_kept), cmocka_unit_test(a_closed_end_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
