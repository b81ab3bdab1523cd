/* When the launcher of `sluice run` dies, its guard ends the groups of the ranks that still run, and leaves alone those
 * that have ended, whose numbers may be other processes' by then. */
#include "bench/launch/guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_S = 60 };

static pid_t start_group(void)
{
    pid_t parent = getpid(), pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        for (;;) pause();
    }
    setpgid(pid, pid);
    return pid;
}

static bool lives(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static void end_group(pid_t pid)
{
    kill(-pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Plays a launcher that says that rank `ended` has ended, then dies, or says goodbye. */
static void play_launcher(const pid_t *groups, int count, int ended, bool goodbye)
{
    slc_launch_guard guard;
    pid_t launcher = fork();
    assert_true(launcher >= 0);
    if (launcher == 0) {
        if (slc_launch_guard_start(groups, count, &guard)) _exit(1);
        slc_launch_guard_forget(&guard, ended);
        if (goodbye) slc_launch_guard_end(&guard);
        _exit(0);
    }
    int how;
    assert_int_equal(waitpid(launcher, &how, 0), launcher);
    assert_int_equal(how, 0);
}

static void test_a_dead_launcher(void **state)
{
    (void)state;
    int how;
    pid_t groups[3];
    for (int i = 0; i < 3; i++) groups[i] = start_group();
    alarm(PATIENCE_S);
    play_launcher(groups, 3, 1, false);
    for (int i = 0; i < 3; i += 2) {
        assert_int_equal(waitpid(groups[i], &how, 0), groups[i]);
        assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    }
    assert_true(lives(groups[1])); /* the guard signals in order of rank, so it has passed this one by now */
    end_group(groups[1]);
    alarm(0);
}

static void test_a_launcher_that_ends(void **state)
{
    (void)state;
    pid_t groups[2];
    for (int i = 0; i < 2; i++) groups[i] = start_group();
    play_launcher(groups, 2, 0, true);
    for (int i = 0; i < 2; i++) {
        assert_true(lives(groups[i]));
        end_group(groups[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_dead_launcher),
        cmocka_unit_test(test_a_launcher_that_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
