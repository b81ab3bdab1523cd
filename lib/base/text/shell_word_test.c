/* A text that is printed for a shell must come back from a shell as it was. */
#include "lib/base/text/shell_word.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static void a_shell_gives_the_same(void **state)
{
    (void)state;
    const char *const texts[] = {"run",
                                 "my run",
                                 "it's",
                                 "a'b'",
                                 "$HOME",
                                 "~",
                                 "a;b",
                                 "*",
                                 "back\\slash",
                                 "",
                                 "two\nlines",
                                 "\"x\"",
                                 "(1)",
                                 "gr\xc3\xbc\xc3\x9f"
                                 "e/run-1",
                                 "a&b",
                                 "#1",
                                 "!x"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char command[sizeof(slc_shell_word) + 16], got[200];
        snprintf(command, sizeof command, "printf %%s %s", slc_shell_word_of(texts[i]).text);
        FILE *shell = popen(command, "r");
        assert_non_null(shell);
        got[fread(got, 1, sizeof got - 1, shell)] = '\0';
        assert_int_equal(pclose(shell), 0);
        assert_string_equal(got, texts[i]);
    }
    assert_string_equal(slc_shell_word_of("runs/gpt2-small_1.5").text, "runs/gpt2-small_1.5");
    assert_string_equal(slc_shell_word_of("my run").text, "'my run'");
}

static void longer_than_any_path_is_cut(void **state)
{
    (void)state;
    char long_text[10000];
    memset(long_text, '\'', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    const slc_shell_word word = slc_shell_word_of(long_text);
    assert_true(strlen(word.text) < sizeof word.text && word.text[strlen(word.text) - 1] == '\'');
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_shell_gives_the_same),
                                       cmocka_unit_test(longer_than_any_path_is_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
