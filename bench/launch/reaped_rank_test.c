/* A rank that somebody else has reaped has ended, and its code is not known: the launcher waits for it no more. The
 * somebody is this test's waitid, which reaps a rank before the launcher asks. */
#include "bench/launch/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

int __real_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);

static int reaped;

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    if (type == P_PID && waitpid((pid_t)id, NULL, WNOHANG) == (pid_t)id) reaped++;
    return __real_waitid(type, id, info, options);
}

static void test_ranks_that_are_reaped(void **state)
{
    char name[] = "true", *command[] = {name, NULL};
    const slc_launch_options options = {.ranks = 2, .command = command};
    int code = 0;
    (void)state;
    reaped = 0;
    alarm(60); /* against hanging */
    assert_int_equal(slc_launch(&options, &code), SLUICE_OK);
    alarm(0);
    assert_int_equal(reaped, 2);
    assert_int_equal(code, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranks_that_are_reaped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
