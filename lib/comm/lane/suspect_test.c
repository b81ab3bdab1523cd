/* The first peer that cannot be reached is the one to be named: what others say afterwards follows from it. */
#include "lib/comm/lane/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void the_first_suspicion_stays(void **state)
{
    (void)state;
    static slc_comm comm = {.size = 4};
    comm.whole = &comm;
    slc_messages_suspect(&comm, 2, "it reset the connection");
    const uint64_t since_ns = atomic_load(&comm.suspicion.since_ns);
    assert_true(since_ns > 0);
    slc_messages_suspect(&comm, 3, "it does not answer");
    assert_int_equal(comm.suspicion.rank, 2);
    assert_string_equal(comm.suspicion.why, "it reset the connection");
    assert_true(atomic_load(&comm.suspicion.since_ns) == since_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_suspicion_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
