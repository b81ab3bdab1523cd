/* The error line: it must be set, be put in context, be cut if it is too long, and belong to its thread. */
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void the_line_is_set_and_put_in_context(void **state)
{
    (void)state;
    assert_int_equal(slc_error(SLUICE_ERR_IO, "%s: %s", "file", "gone"), SLUICE_ERR_IO);
    assert_string_equal(sluice_last_error(), "file: gone");
    assert_int_equal(slc_error_context(SLUICE_ERR_IO, "rank %d", 3), SLUICE_ERR_IO);
    assert_string_equal(sluice_last_error(), "rank 3: file: gone");
    assert_int_equal(slc_error_context(SLUICE_OK, "nothing"), SLUICE_OK);
    assert_string_equal(sluice_last_error(), "rank 3: file: gone");
    slc_error(SLUICE_ERR_IO, "again %s", sluice_last_error());
    assert_string_equal(sluice_last_error(), "again rank 3: file: gone");
}

static void no_memory_is_said(void **state)
{
    (void)state;
    assert_int_equal(slc_error(SLUICE_ERR_MEMORY, "%d steps", 7), SLUICE_ERR_MEMORY);
    assert_string_equal(sluice_last_error(), "no memory: 7 steps");
    slc_error(SLUICE_ERR_MEMORY, "%s", sluice_last_error());
    assert_string_equal(sluice_last_error(), "no memory: 7 steps");
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    slc_error(SLUICE_ERR_MEMORY, "%s", text);
    assert_memory_equal(sluice_last_error(), "no memory: xxx", 14);
    assert_true(strlen(sluice_last_error()) < sizeof text - 1);
}

static void long_lines_lose_their_end(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    slc_error(SLUICE_ERR_IO, "first %s", text);
    size_t length = strlen(sluice_last_error());
    assert_true(length > 1000 && length < sizeof text);
    slc_error_context(SLUICE_ERR_IO, "context");
    assert_memory_equal(sluice_last_error(), "context: first xxx", 18);
    assert_int_equal(strlen(sluice_last_error()), length);
    slc_error_context(SLUICE_ERR_IO, "%s", text);
    assert_int_equal(strlen(sluice_last_error()), length);
}

static void a_bare_status_is_named(void **state)
{
    (void)state;
    slc_error(SLUICE_ERR_IO, "an earlier failure");
    uint64_t before = slc_errors_set();
    assert_int_equal(slc_error_bare(SLUICE_OK, before), SLUICE_OK);
    assert_string_equal(sluice_last_error(), "an earlier failure");
    assert_int_equal(slc_error_bare(SLUICE_ERR_MEMORY, before), SLUICE_ERR_MEMORY);
    assert_string_equal(sluice_last_error(), "returned memory (-2)");
    before = slc_errors_set();
    slc_error(SLUICE_ERR_IO, "its own line");
    assert_int_equal(slc_error_bare(SLUICE_ERR_IO, before), SLUICE_ERR_IO);
    assert_string_equal(sluice_last_error(), "its own line");
}

static void a_number_that_is_no_status_is_told(void **state)
{
    (void)state;
    static const int none[] = {SLUICE_IN_PROGRESS, 7, -15, -99, 1 << 30};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "returned %d, which is no status; return SLUICE_OK", none[i]);
        for (int own_line = 0; own_line < 2; own_line++) {
            uint64_t before = slc_errors_set();
            if (own_line) slc_error(SLUICE_ERR_IO, "a line of a call inside");
            assert_int_equal(slc_error_bare((sluice_status)none[i], before), SLUICE_ERR_ARGUMENT);
            assert_memory_equal(sluice_last_error(), expected, strlen(expected));
        }
    }
}

static void *fail_elsewhere(void *context)
{
    const char **seen = context;
    *seen = *sluice_last_error() ? "not empty" : NULL;
    slc_error(SLUICE_ERR_PEER, "another thread");
    return NULL;
}

static void a_kept_error_is_restored(void **state)
{
    (void)state;
    slc_kept_error kept;
    slc_error(SLUICE_ERR_IO, "the disk is full");
    slc_error_keep(&kept);
    slc_error(SLUICE_ERR_PEER, "cleaning up failed");
    assert_int_equal(slc_error_restore(&kept, SLUICE_OK), SLUICE_OK);
    assert_string_equal(sluice_last_error(), "the disk is full");
    assert_int_equal(slc_last_status(), SLUICE_ERR_IO);
    slc_error(SLUICE_ERR_PEER, "cleaning up failed");
    assert_int_equal(slc_error_restore(&kept, SLUICE_ERR_FORMAT), SLUICE_ERR_FORMAT);
    assert_string_equal(sluice_last_error(), "the disk is full");
    assert_int_equal(slc_last_status(), SLUICE_ERR_FORMAT);
}

static void each_thread_has_its_own(void **state)
{
    (void)state;
    const char *seen = NULL;
    pthread_t thread;
    slc_error(SLUICE_ERR_IO, "mine");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &seen), 0);
    pthread_join(thread, NULL);
    assert_null(seen);
    assert_string_equal(sluice_last_error(), "mine");
}

static void every_status_has_a_name(void **state)
{
    (void)state;
    for (int status = SLUICE_ERR_INTERRUPTED; status <= SLUICE_IN_PROGRESS; status++)
        assert_string_not_equal(sluice_status_name((sluice_status)status), "unknown");
    assert_string_equal(sluice_status_name((sluice_status)-1000), "unknown");
}

static void log_lines_have_level_and_rank(void **state)
{
    (void)state;
    int ends[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    slc_log(SLC_LOG_WARN, "before %d", 1);
    slc_log_rank(3);
    slc_log(SLC_LOG_ERROR, "after");
    slc_log(SLC_LOG_DEBUG, "too much");
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    char text[512];
    ssize_t got = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    assert_true(got > 0);
    text[got] = 0;
    assert_string_equal(text, "sluice warning: before 1\nsluice[3] error: after\n");
}

int main(void)
{
    unsetenv("SLUICE_LOG_LEVEL");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_is_set_and_put_in_context),
        cmocka_unit_test(no_memory_is_said),
        cmocka_unit_test(long_lines_lose_their_end),
        cmocka_unit_test(a_kept_error_is_restored),
        cmocka_unit_test(each_thread_has_its_own),
        cmocka_unit_test(a_bare_status_is_named),
        cmocka_unit_test(a_number_that_is_no_status_is_told),
        cmocka_unit_test(every_status_has_a_name),
        cmocka_unit_test(log_lines_have_level_and_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
