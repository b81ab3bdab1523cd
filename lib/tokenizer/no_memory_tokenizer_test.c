/* A tokenizer that runs out of memory says so wherever that is, and the call after it works. */
#include "tests/support/base/failing_memory.h"
#include "tests/support/base/folder.h"
#include "tests/support/tokenizer/made_bpe.h"
#include "lib/tokenizer/tokenizer.h"
#include "lib/tokenizer/unicode/normalize.h"

#include <stdio.h>

static const char *const few_merges[] = {"h e", "l l", "he ll", "Ġ w"};
static const char text[] = "Hello w\xCC\x88\xCC\xA3orld, hell\xC3\xA9 \xEA\xB0\x81 \xE2\x84\xAB w hello";

static sluice_status normalize(void *context)
{
    const slc_normalizer every = {
        .steps = {SLC_NORMALIZE_CLEAN, SLC_NORMALIZE_NFD, SLC_NORMALIZE_LOWERCASE, SLC_NORMALIZE_NFKC}, .count = 4};
    slc_chars out = {0}, work = {0};
    sluice_status status = slc_normalize(&every, context, strlen(context), &out, &work);
    free(out.data);
    free(work.data);
    return status;
}

static sluice_status open_and_close(void *path)
{
    slc_tokenizer *tokenizer = NULL;
    sluice_status status = slc_tokenizer_open(path, &tokenizer);
    if (!status) slc_tokenizer_close(tokenizer);
    return status;
}

static sluice_status encode(void *tokenizer)
{
    slc_token_list list = {0};
    sluice_status status = slc_tokenizer_encode(tokenizer, text, strlen(text), true, &list);
    free(list.tokens);
    return status;
}

static void memory_that_runs_out_is_told(void **state)
{
    (void)state;
    char *json = made_bpe(few_merges, 4, ", \"add_prefix_space\": false",
                          ", \"normalizer\": {\"type\": \"NFD\"}, \"added_tokens\": ["
                          "{\"id\": 260, \"content\": \"<s>\", \"special\": true, \"normalized\": false}]");
    char *path = strdup(write_file("tokenizer.json", json, strlen(json)));
    slc_tokenizer *tokenizer;
    works(slc_tokenizer_open(path, &tokenizer));
    assert_true(memory_runs_out("normalize", 16, normalize, (void *)(uintptr_t)text, NULL) > 5);
    /* Marks that stand in the middle grow a list of their own. */
    char many[4096] = "a";
    for (int i = 0; i < 200; i++) strcat(many, "\xCC\x88\xCC\xA3");
    assert_true(memory_runs_out("normalize marks", 16, normalize, strcat(many, "b"), NULL) > 5);
    assert_true(memory_runs_out("open", 16, open_and_close, path, NULL) > 5);
    assert_true(memory_runs_out("encode", 16, encode, tokenizer, NULL) > 2);
    slc_tokenizer_close(tokenizer);
    free(path);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_that_runs_out_is_told)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
