/* Special tokens are those that the files next to tokenizer.json name, else those with the usual names. */
#include "tests/support/base/folder.h"

#include "lib/data/tokenizer_files/special_tokens.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static slc_tokenizer *tokenizer;
static slc_special_tokens found;

static const char *make_tokenizer(const char *name)
{
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "rm -rf %s/tok && mkdir %s/tok && cp %s/%s/tokenizer.json %s/tok/", test_folder(),
             test_folder(), SLUICE_GOLDEN_DIR, name, test_folder());
    assert_int_equal(system(command), 0);
    slc_tokenizer_close(tokenizer);
    works(slc_tokenizer_open(path_of("tok"), &tokenizer));
    return path_of("tok");
}

static void find_in(const char *name)
{
    const char *folder = make_tokenizer(name);
    works(slc_special_tokens_find(tokenizer, folder, &found));
}

static void put(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

static void usual_names_are_known(void **state)
{
    (void)state;
    find_in("tokenizer_bpe");
    assert_int_equal(found.end, slc_tokenizer_find(tokenizer, "<|endoftext|>"));
    assert_int_equal(found.begin, found.end);
    assert_true(found.end >= 0);
    assert_true(found.first == -1 && found.last == -1 && found.mask == -1 && found.padding == -1);
    find_in("tokenizer_wordpiece");
    assert_int_equal(found.first, slc_tokenizer_find(tokenizer, "[CLS]"));
    assert_int_equal(found.last, slc_tokenizer_find(tokenizer, "[SEP]"));
    assert_int_equal(found.mask, slc_tokenizer_find(tokenizer, "[MASK]"));
    assert_true(found.first >= 0 && found.last >= 0 && found.mask >= 0 && found.padding >= 0);
    assert_true(found.begin == -1 && found.end == -1);
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/tokenizer.json", path_of("tok"));
    works(slc_special_tokens_find(tokenizer, file, &found));
    assert_true(found.mask >= 0);
}

static void files_name_others(void **state)
{
    (void)state;
    const char *folder = make_tokenizer("tokenizer_bpe");
    put("tok/special_tokens_map.json", "{\"eos_token\": \"<left>\", \"mask_token\": {\"content\": \"<right>\"}}");
    works(slc_special_tokens_find(tokenizer, folder, &found));
    assert_int_equal(found.end, slc_tokenizer_find(tokenizer, "<left>"));
    assert_int_equal(found.mask, slc_tokenizer_find(tokenizer, "<right>"));
    put("tok/tokenizer_config.json", "{\"eos_token\": \"<right>\", \"model_max_length\": "
                                     "1000000000000000019884624838656, \"pad_token\": null}");
    works(slc_special_tokens_find(tokenizer, folder, &found));
    assert_int_equal(found.end, slc_tokenizer_find(tokenizer, "<right>"));
    put("tok/tokenizer_config.json", "{\"eos_token\": \"no such\"}");
    fails(slc_special_tokens_find(tokenizer, folder, &found), SLUICE_ERR_FORMAT, "calls \"no such\" the eos_token");
    put("tok/tokenizer_config.json", "{\"eos_token\": ");
    fails(slc_special_tokens_find(tokenizer, folder, &found), SLUICE_ERR_FORMAT, "tokenizer_config.json:1:");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_names_are_known),
        cmocka_unit_test(files_name_others),
    };
    int failed = cmocka_run_group_tests(tests, make_folder, remove_folder);
    slc_tokenizer_close(tokenizer);
    return failed;
}
