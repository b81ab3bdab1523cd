/* A row of the table on terminals of several widths: no line is wider, and the step stays. */
#include "bench/sweep/figures/table.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cmocka.h>

/* Prints a row into a terminal of so many columns, 0: into a file, and reads it back. */
static void print_row(unsigned short columns, char text[1024])
{
    const struct winsize size = {.ws_col = columns, .ws_row = 24};
    json_t *runs =
        json_pack("[{s:s, s:s, s:s, s:s, s:f, s:i, s:i, s:s, s:f}]", "optimizer", "zero_one_adam", "strategy",
                  "random:123", "schedule", "one_ahead", "budget", "1234.56MiB", "step_s", 0.0125, "planned_bytes",
                  1 << 20, "peak_bytes", 1 << 20, "weights_sha256", "0123456789abcdef", "tokens_per_s", 1e6);
    int reader = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(reader >= 0 && !grantpt(reader) && !unlockpt(reader));
    int fd = open(ptsname(reader), O_RDWR | O_NOCTTY);
    assert_true(fd >= 0 && !ioctl(fd, TIOCSWINSZ, &size));
    FILE *out = columns ? fdopen(fd, "w") : tmpfile();
    assert_non_null(out);
    slc_bench_table_case(out, runs, 0);
    if (!columns) rewind(out);
    ssize_t got = columns ? read(reader, text, 1023) : (ssize_t)fread(text, 1, 1023, out);
    assert_true(got > 0);
    text[got] = 0;
    text[strcspn(text, "\r\n")] = 0;
    fclose(out);
    if (!columns) close(fd);
    close(reader);
    json_decref(runs);
}

static void test_no_row_is_wider_than_its_terminal(void **state)
{
    (void)state;
    static const unsigned short widths[] = {80, 100, 149, 150, 200};
    char text[1024];
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        print_row(widths[i], text);
        if (strlen(text) > widths[i]) fail_msg("%u columns: %s", widths[i], text);
        assert_non_null(strstr(text, " 12.5 "));
        assert_non_null(strstr(text, "random:123"));
    }
}

static void test_a_file_has_the_whole_row(void **state)
{
    (void)state;
    char wide[1024], file[1024];
    print_row(200, wide);
    print_row(0, file);
    assert_string_equal(wide, file);
    assert_non_null(strstr(file, "01234567"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_row_is_wider_than_its_terminal),
        cmocka_unit_test(test_a_file_has_the_whole_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
