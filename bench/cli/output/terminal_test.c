/* A line on terminals of several widths. */
#include "bench/cli/output/terminal.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <cmocka.h>

typedef struct {
    int reader;
    FILE *file;
} terminal;

static terminal open_terminal(unsigned short columns)
{
    const struct winsize size = {.ws_col = columns, .ws_row = 24};
    struct termios raw;
    terminal t = {.reader = posix_openpt(O_RDWR | O_NOCTTY)};
    assert_true(t.reader >= 0 && !grantpt(t.reader) && !unlockpt(t.reader));
    int fd = open(ptsname(t.reader), O_RDWR | O_NOCTTY);
    assert_true(fd >= 0 && !tcgetattr(fd, &raw));
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(fd, TCSANOW, &raw), 0);
    assert_int_equal(ioctl(fd, TIOCSWINSZ, &size), 0);
    t.file = fdopen(fd, "w");
    assert_non_null(t.file);
    return t;
}

static void shows(unsigned short columns, const char *line, const char *expected)
{
    char text[256] = "";
    terminal t = open_terminal(columns);
    slc_terminal_rewrite(t.file, line);
    ssize_t got = read(t.reader, text, sizeof text - 1);
    assert_true(got > 0);
    assert_string_equal(text, expected);
    fclose(t.file);
    close(t.reader);
}

static void test_lines_are_cut_to_the_width(void **state)
{
    (void)state;
    shows(80, "step 1/9", "\rstep 1/9\x1b[K");
    shows(8, "step 1/9", "\rstep 1/9\x1b[K");
    shows(4, "step 1/9", "\rstep\x1b[K");
    shows(0, "step 1/9", "\rstep 1/9\x1b[K"); /* it does not say how wide it is */
}

static void test_characters_are_not_cut_in_two(void **state)
{
    (void)state;
    shows(3, "caf\xc3\xa9s", "\rcaf\x1b[K");
    shows(4, "caf\xc3\xa9s", "\rcaf\xc3\xa9\x1b[K");
}

static void test_a_file_has_no_width(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(slc_terminal_columns(file), 0);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_cut_to_the_width),
        cmocka_unit_test(test_characters_are_not_cut_in_two),
        cmocka_unit_test(test_a_file_has_no_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
