/* Tokenizers that `tokenizers` trained, and what it made of texts (tests/golden/make_tokenizers.py): tokens and decoded
 * texts must be the same. */
#include "tests/support/base/folder.h"

#include "lib/tokenizer/tokenizer.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>

static const char *const folders[] = {"tokenizer_bpe", "tokenizer_wordpiece"};
enum { FOLDERS = sizeof folders / sizeof *folders };

static const char *golden_path(const char *folder, const char *file)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/%s", SLUICE_GOLDEN_DIR, folder, file);
    return path;
}

static const char *text_of(const json_t *sample, const char *key, size_t *bytes)
{
    const json_t *value = json_object_get(sample, key);
    assert_true(json_is_string(value));
    *bytes = json_string_length(value);
    return json_string_value(value);
}

static void same_tokens(const slc_tokenizer *tokenizer, const json_t *sample, bool special)
{
    size_t bytes;
    const char *text = text_of(sample, "text", &bytes);
    const json_t *expected = json_object_get(sample, special ? "special_ids" : "ids");
    slc_token_list list = {0};
    works(slc_tokenizer_encode(tokenizer, text, bytes, special, &list));
    if (list.count != json_array_size(expected))
        fail_msg("\"%s\": %zu tokens, not %zu", text, list.count, json_array_size(expected));
    for (size_t i = 0; i < list.count; i++)
        if (list.tokens[i] != json_integer_value(json_array_get(expected, i)))
            fail_msg("\"%s\": token %zu is %d, not %lld", text, i, list.tokens[i],
                     (long long)json_integer_value(json_array_get(expected, i)));
    free(list.tokens);
}

static void same_text(const slc_tokenizer *tokenizer, const json_t *sample, bool skip_special)
{
    const json_t *numbers = json_object_get(sample, "special_ids");
    size_t expected_bytes, bytes, count = json_array_size(numbers);
    const char *expected = text_of(sample, skip_special ? "decoded" : "decoded_special", &expected_bytes);
    int32_t *tokens = malloc((count + 1) * sizeof *tokens);
    char *text;
    for (size_t i = 0; i < count; i++) tokens[i] = (int32_t)json_integer_value(json_array_get(numbers, i));
    works(slc_tokenizer_decode(tokenizer, tokens, count, skip_special, &text, &bytes));
    assert_int_equal(text[bytes], 0);
    if (bytes != expected_bytes || memcmp(text, expected, bytes) != 0)
        fail_msg("decoded to \"%s\", not \"%s\"", text, expected);
    free(text);
    free(tokens);
}

static void tokens_and_texts_are_those_of_tokenizers(void **state)
{
    (void)state;
    for (size_t f = 0; f < FOLDERS; f++) {
        slc_tokenizer *tokenizer;
        works(slc_tokenizer_open(golden_path(folders[f], ""), &tokenizer));
        json_t *samples = json_load_file(golden_path(folders[f], "samples.json"), JSON_ALLOW_NUL, NULL);
        assert_true(json_array_size(samples) > 20);
        size_t i;
        json_t *sample;
        json_array_foreach (samples, i, sample) {
            same_tokens(tokenizer, sample, false);
            same_tokens(tokenizer, sample, true);
            same_text(tokenizer, sample, false);
            same_text(tokenizer, sample, true);
        }
        json_decref(samples);
        slc_tokenizer_close(tokenizer);
    }
}

static void tokens_are_found_by_text_and_number(void **state)
{
    (void)state;
    slc_tokenizer *bpe, *wordpiece;
    assert_true(slc_tokenizer_exists(golden_path("tokenizer_bpe", "")));
    assert_false(slc_tokenizer_exists(golden_path("gpt2", "")));
    works(slc_tokenizer_open(golden_path("tokenizer_bpe", "tokenizer.json"), &bpe));
    works(slc_tokenizer_open(golden_path("tokenizer_wordpiece", "tokenizer.json"), &wordpiece));
    assert_int_equal(slc_tokenizer_vocabulary(bpe), 703);
    assert_int_equal(slc_tokenizer_vocabulary(wordpiece), 703);
    assert_int_equal(slc_tokenizer_find(bpe, "<|endoftext|>"), 0);
    assert_int_equal(slc_tokenizer_find(bpe, "Word"), 702);
    assert_int_equal(slc_tokenizer_find(bpe, "no such token"), -1);
    assert_int_equal(slc_tokenizer_find(wordpiece, "[MASK]"), 4);
    assert_string_equal(slc_tokenizer_text(wordpiece, 2), "[CLS]");
    assert_null(slc_tokenizer_text(bpe, -1));
    assert_null(slc_tokenizer_text(bpe, 703));
    assert_true(slc_tokenizer_fingerprint(bpe) != slc_tokenizer_fingerprint(wordpiece));
    slc_tokenizer_close(wordpiece);
    slc_tokenizer_close(bpe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_and_texts_are_those_of_tokenizers),
        cmocka_unit_test(tokens_are_found_by_text_and_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
