/* A parser with a child, groups, headings, hidden rows and all kinds of values: each form of its help has what the rows
 * say, in the order of groups, and the text's halves are where they belong. The page of all commands tells an option
 * once. */
#include "bench/cli/help/help.h"
#include "bench/cli/help/told_once.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct argp_option child_rows[] = {
    {.doc = "Of the child:", .group = 3},
    {"child", 1001, "FILE", 0, "A file | of the child", 3},
    {0},
};
static const struct argp child_parser = {.options = child_rows};
static const struct argp_child children[] = {{&child_parser, 0, NULL, 0}, {0}};
static const struct argp_option rows[] = {
    {"last", 'l', "N", 0, "Is in the last group", 5},
    {.doc = "First:", .group = 1},
    {"choice", 'c', "HOW=one,two", SLC_OPTION_SHORT, "Is chosen", 0},
    {"switch", 1000, NULL, 0, "Takes no value", 0},
    {"hidden", 1002, "N", OPTION_HIDDEN, "Is not shown", 0},
    {0},
};
static const struct argp parser = {.options = rows,
                                   .children = children,
                                   .args_doc = "[DIR...]",
                                   .doc = "Does a thing: well.\vA note that is so long that it has to be wrapped on a "
                                          "terminal of eighty columns.\n  kept   as it is\n\nExamples:\n"
                                          "  sluice thing --choice 'one'\n  sluice thing --switch\n"
                                          "Another note.\nMore: docs/thing.md"};

static char *help_in(slc_help_format format)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(slc_help_print(&parser, "sluice thing", format, out), 0);
    fclose(out);
    return text;
}

static void assert_in_order(const char *text, const char *const *parts)
{
    for (; *parts; parts++) {
        const char *found = strstr(text, *parts);
        if (!found) fail_msg("\"%s\" is not in\n%s", *parts, text);
        text = found + strlen(*parts);
    }
}

static void all_of_it_is_shown_in_groups(void **state)
{
    (void)state;
    char *text = help_in(SLC_HELP_ALL);
    assert_in_order(text,
                    (const char *[]){"Does a thing: well.\n\nUsage: sluice thing [OPTION...] [DIR...]\n\nFirst:\n",
                                     "  -c, --choice HOW        Is chosen\n",
                                     "      --switch            Takes no value\n\nOf the child:\n",
                                     "      --child FILE        A file | of the child\n",
                                     "  -l, --last N            Is in the last group\n\nA note",
                                     "has to be wrapped on a terminal of eighty\ncolumns.\n  kept   as it is\n",
                                     "Another note.\n\nExamples:\n  sluice thing --choice 'one'\n",
                                     "  sluice thing --switch\n\nExit codes: ", "More: docs/thing.md\n", NULL});
    assert_null(strstr(text, "hidden"));
    assert_null(strstr(text, "--help-all"));
    free(text);
}

static void the_short_help_has_what_is_marked(void **state)
{
    (void)state;
    char *text = help_in(SLC_HELP_SHORT);
    assert_in_order(text, (const char *[]){"First:\n", "--choice HOW", "Examples:\n",
                                           "`sluice thing --help-all` explains all 4 options.\n", NULL});
    assert_null(strstr(text, "--child"));
    assert_null(strstr(text, "Of the child"));
    assert_null(strstr(text, "note"));
    free(text);
}

static void other_forms_escape_what_they_must(void **state)
{
    (void)state;
    char *text = help_in(SLC_HELP_MAN);
    assert_in_order(text, (const char *[]){".TH \"SLUICE-THING\" 1 ", "sluice\\-thing \\- does a thing\n",
                                           ".SS \"First\"\n.TP\n\\fB\\-c\\fR, \\fB\\-\\-choice\\fR \\fIHOW\\fR\n",
                                           ".SH EXAMPLES\n.RS\n.nf\n", "\\-\\-choice \\(aqone\\(aq\n", NULL});
    free(text);
    text = help_in(SLC_HELP_MARKDOWN);
    assert_in_order(text, (const char *[]){"\n## sluice thing\n", "| First | |\n|---|---|\n| `-c`, `--choice HOW` | Is",
                                           "| `--child FILE` | A file \\| of the child |\n",
                                           "```\nkept   as it is\n```\n", "More: [thing.md](thing.md)\n", NULL});
    free(text);
    text = help_in(SLC_HELP_BASH);
    assert_in_order(text, (const char *[]){"options='--choice --switch --child --last --help --help-all'",
                                           "-c | --choice) words='one two' ;;\n", "--child) kind=files ;;\n",
                                           "-l | --last) kind=unknown ;;\n", NULL});
    assert_null(strstr(text, "--switch)"));
    free(text);
    text = help_in(SLC_HELP_USAGE);
    assert_string_equal(text,
                        "Usage: sluice thing [--choice=HOW] [--switch] [--child=FILE] [--last=N]\n    [DIR...]\n");
    free(text);
}

/* A row that the first command has too is left out; a row whose text or letter differs stays, and so does a table that
 * still has a row. */
static void an_option_of_the_first_command_is_told_once(void **state)
{
    (void)state;
    const char told[] = "\n## sluice first\n\nDoes.\n\n| A | |\n|---|---|\n| `--same N` | The same |\n"
                        "| `-n`, `--ranks N` | Ranks |\n| `--other` | Of the first |\n\n| B | |\n|---|---|\n"
                        "| `--last` | Last |\n";
    const char section[] = "\n## sluice second\n\nDoes too.\n\n```\nsluice second [OPTION...]\n```\n\n"
                           "| A | |\n|---|---|\n| `--same N` | The same |\n\n"
                           "| C | |\n|---|---|\n| `-n`, `--ranks N` | Ranks |\n| `--other` | Of the second |\n\n"
                           "| D | |\n|---|---|\n| `--last` | Last |\n\nA note.\n";
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    slc_help_tell_once(section, told, "sluice first", out);
    fclose(out);
    assert_string_equal(text,
                        "\n## sluice second\n\nDoes too.\n\n```\nsluice second [OPTION...]\n```\n\n"
                        "| C | |\n|---|---|\n| `--other` | Of the second |\n\n"
                        "As under [sluice first](#sluice-first):\n\n```\n--same --ranks --last\n```\n\nA note.\n");
    free(text);
    out = open_memstream(&text, &size);
    slc_help_tell_once(told, section, "sluice second", out);
    fclose(out);
    assert_string_equal(text, "\n## sluice first\n\nDoes.\n\n| A | |\n|---|---|\n| `--other` | Of the first |\n\n"
                              "As under [sluice second](#sluice-second):\n\n```\n--same --ranks --last\n```\n");
    free(text);
}

int main(void)
{
    setenv("COLUMNS", "80", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it_is_shown_in_groups),
        cmocka_unit_test(the_short_help_has_what_is_marked),
        cmocka_unit_test(other_forms_escape_what_they_must),
        cmocka_unit_test(an_option_of_the_first_command_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
