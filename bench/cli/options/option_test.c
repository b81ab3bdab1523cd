/* Rows say what is read, what is refused and with which words, and what the help tells of defaults and choices. */
#include "bench/cli/options/command_line.h"
#include "bench/cli/options/option.h"
#include "lib/base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sluice/status.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
    int before;
    const char *text, *word;
    uint64_t large, size;
    uint32_t small;
    double real, seconds;
    bool flag;
    const char *argument;
    char *const *program;
    const char *typed[16];
    struct {
        int before;
        uint32_t shared;
    } inner;
} test_options;

#define FIELD(name) SLC_OPTION_FIELD(test_options, name)

static sluice_status set_twice(void *options, const slc_option *row, char *text)
{
    double value;
    sluice_status status = slc_option_number(row, text, &value);
    if (!status) ((test_options *)options)->real = 2 * value;
    return status;
}

static const slc_option option_rows[] = {
    {"text", "TEXT=a,b", 1, SLC_OPTION_TEXT, FIELD(text), NULL, 0, "Any text"},
    {"word", "WORD", 1, SLC_OPTION_WORD, FIELD(word), "one", 0, "A word", .choices = "one,two,three"},
    {"large", "N", 2, SLC_OPTION_COUNT, FIELD(large), "7", 0, "A number", 1, 4294967295.0, .letter = 'l'},
    {"small", "N", 2, SLC_OPTION_COUNT, FIELD(small), "5", 0, "Numbers", 0, 100, .list = true, .note = ", or more"},
    {"size", "SIZE", 2, SLC_OPTION_SIZE, FIELD(size), "64K", 0, "A size", 64, 0x1p34},
    {"seconds", "S", 2, SLC_OPTION_TIME, FIELD(seconds), NULL, 0, "A time", SLC_OPTION_ABOVE_0},
    {"flag", NULL, 2, SLC_OPTION_FLAG, FIELD(flag), NULL, 0, "A flag"},
    {"real", "X", 2, SLC_OPTION_REAL, FIELD(real), NULL, SLC_OPTION_HIDDEN, "Hidden", 0, 0.99},
    {"twice", "X", 2, SLC_OPTION_SET, FIELD(real), NULL, 0, "Doubled", 0, 10, .set = set_twice},
    {"gone", "X", 2, SLC_OPTION_REAL, FIELD(real), NULL, 0, "Refused", 0, 10, .refused = "it is for others"},
    {0},
};
static const slc_option shared_rows[] = {
    {"shared", "N", 0, SLC_OPTION_COUNT, .field = offsetof(test_options, inner.shared) - offsetof(test_options, inner),
     .bytes = sizeof(uint32_t), .fallback = "3", .doc = "Shared", .most = 9},
    {0},
};
static const slc_command_line shared_line = {.rows = shared_rows, .hint = "give nothing else"};

static sluice_status set(test_options *o, const char *name, const char *text)
{
    return slc_option_set(slc_option_find(option_rows, name), o, (char *)text);
}

static void refused(const char *name, const char *text, const char *words)
{
    test_options o = {0};
    assert_int_equal(set(&o, name, text), SLUICE_ERR_ARGUMENT);
    assert_string_equal(sluice_last_error(), words);
}

static void defaults_are_set(void **state)
{
    test_options o = {.seconds = 4};
    (void)state;
    slc_option_defaults(option_rows, &o);
    assert_string_equal(o.word, "one");
    assert_int_equal(o.large, 7);
    assert_int_equal(o.small, 5);
    assert_int_equal(o.size, 65536);
    assert_null(o.text);
    assert_true(o.seconds == 4); /* no default: as it was */
}

static void values_are_read(void **state)
{
    test_options o = {0};
    (void)state;
    assert_int_equal(set(&o, "text", "anything"), SLUICE_OK);
    assert_int_equal(set(&o, "word", "two"), SLUICE_OK);
    assert_int_equal(set(&o, "large", "4294967295"), SLUICE_OK);
    assert_int_equal(set(&o, "small", "9,100,1"), SLUICE_OK);
    assert_int_equal(set(&o, "size", "1.5GiB"), SLUICE_OK);
    assert_int_equal(set(&o, "seconds", "50ms"), SLUICE_OK);
    assert_int_equal(set(&o, "flag", NULL), SLUICE_OK);
    assert_int_equal(set(&o, "twice", "0.25"), SLUICE_OK);
    assert_string_equal(o.text, "anything");
    assert_string_equal(o.word, "two");
    assert_true(o.large == 4294967295);
    assert_int_equal(o.small, 9);
    assert_true(o.size == UINT64_C(3) << 29);
    assert_true(o.seconds == 0.05);
    assert_true(o.flag);
    assert_true(o.real == 0.5);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    refused("word", "four", "--word four: use one, two or three");
    refused("word", "tw", "--word tw: use one, two or three");
    refused("large", "0", "--large 0: give a whole number from 1 to 4294967295");
    refused("large", "1.5", "--large 1.5: give a whole number from 1 to 4294967295");
    refused("large", "", "--large : give a whole number from 1 to 4294967295");
    refused("large", "3x", "--large 3x: give a whole number from 1 to 4294967295");
    refused("small", "9,101", "--small 101: give a whole number from 0 to 100");
    refused("small", "9,", "--small : give a whole number from 0 to 100");
    refused("real", "nan", "--real nan: give a number from 0 to 0.99");
    refused("twice", "11", "--twice 11: give a number from 0 to 10");
    refused("size", "63", "--size: \"63\" is no size from 64 bytes to 16 GiB");
    refused("size", "17GiB", "--size: \"17GiB\" is no size from 64 bytes to 16 GiB");
    refused("size", "big", "--size: \"big\" is no size from 64 bytes to 16 GiB");
    refused("seconds", "0", "--seconds: \"0\" is no time above 0");
    refused("seconds", "soon", "--seconds: \"soon\" is no time above 0");
}

/* ---- Whole command lines ---- */

static sluice_status take(void *options, char *argument)
{
    if (!strcmp(argument, "bad")) return slc_error(SLUICE_ERR_ARGUMENT, "no %s argument", argument);
    ((test_options *)options)->argument = argument;
    return SLUICE_OK;
}

static sluice_status check(void *options)
{
    const test_options *o = options;
    return o->large == 13 ? slc_error(SLUICE_ERR_ARGUMENT, "13 is unlucky") : SLUICE_OK;
}

static const char *const headings[] = {NULL, "Words:", "Numbers:"};
static const slc_command_line whole_line = {.rows = option_rows,
                                            .headings = headings,
                                            .doc = "Tests.",
                                            .typed = offsetof(test_options, typed),
                                            .take = take,
                                            .check = check,
                                            .shared = &shared_line,
                                            .shared_field = offsetof(test_options, inner)};

static int parse(const slc_command_line *line, test_options *o, const char *words)
{
    static char room[256], name[] = "sluice test";
    static char *argv[32];
    int argc = 0;
    char *rest = strcpy(room, words), *word;
    argv[argc++] = name;
    while ((word = strsep(&rest, " ")) != NULL)
        if (*word) argv[argc++] = word;
    argv[argc] = NULL;
    slc_command_line_parse(line, argc, argv, o);
    return argc;
}

static void a_line_is_parsed(void **state)
{
    test_options o = {.inner.before = 8};
    (void)state;
    parse(&whole_line, &o, "-l 9 argument --flag --shared=4 --small 2,3");
    assert_int_equal(o.large, 9);
    assert_int_equal(o.small, 2);
    assert_true(o.flag);
    assert_string_equal(o.word, "one");
    assert_string_equal(o.argument, "argument");
    assert_int_equal(o.inner.shared, 4);
    assert_int_equal(o.inner.before, 8);
    assert_string_equal(slc_option_typed(option_rows, o.typed, "large"), "9");
    assert_string_equal(slc_option_typed(option_rows, o.typed, "small"), "2,3");
    assert_string_equal(slc_option_typed(option_rows, o.typed, "flag"), "");
    assert_null(slc_option_typed(option_rows, o.typed, "word"));
    test_options without = {0};
    parse(&whole_line, &without, "");
    assert_int_equal(without.large, 7);
    assert_int_equal(without.inner.shared, 3);
}

static void another_program_keeps_its_words(void **state)
{
    const slc_command_line line = {.rows = option_rows, .program = offsetof(test_options, program)};
    test_options o = {0};
    (void)state;
    parse(&line, &o, "--large 3 echo --large 4");
    assert_int_equal(o.large, 3);
    assert_string_equal(o.program[0], "echo");
    assert_string_equal(o.program[1], "--large");
    assert_string_equal(o.program[2], "4");
    assert_null(o.program[3]);
}

/* Parses in a process of its own, which ends; its output, without the line that names --help. */
static const char *said(const slc_command_line *line, const char *words, int code)
{
    static char text[8192];
    size_t used = 0;
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        test_options o = {0};
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        parse(line, &o, words);
        _exit(99);
    }
    close(ends[1]);
    for (ssize_t got; used < sizeof text - 1 && (got = read(ends[0], text + used, sizeof text - 1 - used)) > 0;)
        used += (size_t)got;
    close(ends[0]);
    text[used] = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), code);
    char *hint = strstr(text, "\nTry `");
    if (hint) *hint = 0;
    return text;
}

static void a_wrong_line_ends_the_process(void **state)
{
    (void)state;
    assert_string_equal(said(&whole_line, "--large 0", 2), "sluice test: --large 0: give a whole number from 1 to "
                                                           "4294967295");
    assert_string_equal(said(&whole_line, "--large 13", 2), "sluice test: 13 is unlucky");
    assert_string_equal(said(&whole_line, "--gone 1", 2), "sluice test: --gone: it is for others");
    assert_string_equal(said(&whole_line, "bad", 2), "sluice test: no bad argument");
    assert_string_equal(said(&whole_line, "--shared 10", 2),
                        "sluice test: --shared 10: give a whole number from 0 to 9");
    assert_string_equal(said(&shared_line, "word", 2), "sluice test: \"word\" follows no option; give nothing else");
    const slc_command_line without = {.rows = option_rows};
    assert_string_equal(said(&without, "word", 2), "sluice test: \"word\" follows no option");
    const slc_command_line sharing = {.shared = &shared_line, .shared_field = offsetof(test_options, inner)};
    assert_string_equal(said(&sharing, "word", 2), "sluice test: \"word\" follows no option; give nothing else");
}

static void the_help_is_made_of_the_rows(void **state)
{
    (void)state;
    const char *help = said(&whole_line, "--help", 0);
    static const char *const lines[] = {"\nWords:\n",
                                        "      --text TEXT         Any text\n",
                                        "      --word WORD         A word (default one)\n",
                                        "\nNumbers:\n",
                                        "  -l, --large N           A number (default 7)\n",
                                        "      --small N           Numbers (default 5, or more)\n",
                                        "      --size SIZE         A size (default 64K)\n",
                                        "      --flag              A flag\n",
                                        "      --shared N          Shared (default 3)\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(help, lines[i])) fail_msg("the help lacks \"%s\":\n%s", lines[i], help);
    assert_null(strstr(help, "--gone"));
    assert_null(strstr(help, "--real"));
    const char *completion = said(&whole_line, "--help=bash", 0);
    assert_non_null(strstr(completion, "--text) words='a b' ;;"));
    assert_non_null(strstr(completion, "--word) words='one two three' ;;"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_set),
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_line_is_parsed),
        cmocka_unit_test(another_program_keeps_its_words),
        cmocka_unit_test(a_wrong_line_ends_the_process),
        cmocka_unit_test(the_help_is_made_of_the_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
