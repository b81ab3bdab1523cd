/* A folder has one holder at a time: this process for one owner, or another process, but never a dead one. File systems
 * without locks are covered too. */
#include "tests/support/base/folder.h"
#include "lib/engine/checkpoint/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static bool no_locks; /* fcntl refuses them as some file systems do */

int fcntl(int file, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    if (no_locks && command == F_SETLK) {
        errno = ENOLCK;
        return -1;
    }
    return (int)syscall(SYS_fcntl, file, command, argument);
}

static bool is_there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

/* In another process: 0 taken, 1 refused in the right words, 2 otherwise. */
static int take_in_child(const char *words)
{
    int code;
    pid_t child = fork();
    if (child == 0) {
        int other = 0;
        sluice_status status = slc_checkpoint_lock_take(&other, test_folder());
        if (!status) slc_checkpoint_lock_release(&other);
        _exit(!status ? 0 : status == SLUICE_ERR_IO && strstr(sluice_last_error(), words) ? 1 : 2);
    }
    assert_true(child > 0);
    waitpid(child, &code, 0);
    return WIFEXITED(code) ? WEXITSTATUS(code) : 3;
}

static void one_owner_holds_it(void **state)
{
    (void)state;
    int a = 0, b = 0;
    char words[64];
    snprintf(words, sizeof words, "process %d, since 20", (int)getpid());
    works(slc_checkpoint_lock_take(&a, test_folder()));
    works(slc_checkpoint_lock_take(&a, test_folder()));
    fails(slc_checkpoint_lock_take(&b, test_folder()), SLUICE_ERR_IO, "another runtime of this process");
    assert_int_equal(take_in_child(words), 1);
    assert_int_equal(take_in_child(words), 1); /* that looking has given nothing up */
    slc_checkpoint_lock_release(&b);
    assert_true(is_there(".lock"));
    slc_checkpoint_lock_release(&a);
    assert_false(is_there(".lock"));
    assert_int_equal(take_in_child(""), 0);
    works(slc_checkpoint_lock_take(&b, test_folder()));
    slc_checkpoint_lock_release(&b);
}

/* A child that was forked neither holds nor releases what its parent does. */
static void children_leave_it_alone(void **state)
{
    (void)state;
    int a = 0;
    works(slc_checkpoint_lock_take(&a, test_folder()));
    pid_t child = fork();
    if (child == 0) {
        slc_checkpoint_lock_release(&a);
        _exit(is_there(".lock") ? 0 : 1);
    }
    int code;
    waitpid(child, &code, 0);
    assert_int_equal(code, 0);
    assert_int_equal(take_in_child("another job saves to"), 1);
    slc_checkpoint_lock_release(&a);
}

static void the_dead_hold_nothing(void **state)
{
    (void)state;
    int a = 0;
    pid_t child = fork();
    if (child == 0) _exit(slc_checkpoint_lock_take(&a, test_folder()) ? 1 : 0); /* without releasing */
    int code;
    waitpid(child, &code, 0);
    assert_int_equal(code, 0);
    assert_true(is_there(".lock"));
    works(slc_checkpoint_lock_take(&a, test_folder()));
    slc_checkpoint_lock_release(&a);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    int a = 0;
    assert_int_equal(symlink("/etc/passwd", path_of(".lock")), 0);
    fails(slc_checkpoint_lock_take(&a, test_folder()), SLUICE_ERR_PATH, ".lock");
    assert_int_equal(unlink(path_of(".lock")), 0);
    assert_int_equal(mkfifo(path_of(".lock"), 0666), 0);
    fails(slc_checkpoint_lock_take(&a, test_folder()), SLUICE_ERR_PATH, "is not a regular file");
    assert_int_equal(unlink(path_of(".lock")), 0);
}

static void put_note(const char *host, int process)
{
    char note[256];
    snprintf(note, sizeof note, "host %s, process %d, since 2026-01-01 00:00:00 UTC\n", host, process);
    write_file(".lock", note, strlen(note));
}

static void without_locks_the_living_of_this_host_are_noticed(void **state)
{
    (void)state;
    int a = 0;
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    no_locks = true;
    put_note(host, (int)getppid());
    fails(slc_checkpoint_lock_take(&a, test_folder()), SLUICE_ERR_IO, "to be removed if that is no such job");
    pid_t dead = fork();
    if (dead == 0) _exit(0);
    waitpid(dead, NULL, 0);
    put_note(host, (int)dead);
    works(slc_checkpoint_lock_take(&a, test_folder()));
    slc_checkpoint_lock_release(&a);
    put_note("another.host", 1);
    works(slc_checkpoint_lock_take(&a, test_folder())); /* with a warning */
    slc_checkpoint_lock_release(&a);
    write_file(".lock", "", 0);
    works(slc_checkpoint_lock_take(&a, test_folder()));
    slc_checkpoint_lock_release(&a);
    no_locks = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_owner_holds_it),
        cmocka_unit_test(children_leave_it_alone),
        cmocka_unit_test(the_dead_hold_nothing),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(without_locks_the_living_of_this_host_are_noticed),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
