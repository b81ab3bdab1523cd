/* The text of tokens comes in whole characters, whatever pieces they are made in, and bytes that are no UTF-8 become
 * U+FFFD as in Python; without a tokenizer and a vocabulary of bytes, text is refused and numbers are shown. */
#include "bench/eval/token_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static slc_token_text *open_text(uint32_t vocabulary)
{
    const sluice_model_config model =
        SLUICE_INIT(sluice_model_config, .family = SLUICE_GPT2, .vocabulary = vocabulary, .end_token = 11);
    slc_token_text *text;
    assert_int_equal(slc_token_text_open("/nowhere", NULL, &model, &text), SLUICE_OK);
    return text;
}

typedef struct {
    const char *bytes, *text; /* as bytes.decode("utf-8", "replace") gives it */
    size_t count;             /* bytes */
} sample;
#define SAMPLE(bytes, text)                                                                                            \
    {                                                                                                                  \
        bytes, text, sizeof bytes - 1                                                                                  \
    }
#define MARK "\xef\xbf\xbd"

static const sample samples[] = {
    SAMPLE("plain", "plain"),
    SAMPLE("\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82"),
    SAMPLE("a\x80z", "a" MARK "z"),
    SAMPLE("\xc0\xaf", MARK MARK),                   /* an overlong form */
    SAMPLE("\xe0\x80\xaf", MARK MARK MARK),          /* the same */
    SAMPLE("\xed\xa0\x80", MARK MARK MARK),          /* a surrogate */
    SAMPLE("\xe2\x82z", MARK "z"),                   /* one mark for what began well */
    SAMPLE("\xf0\x9f\x99", MARK),                    /* and at the end */
    SAMPLE("\xf4\x90\x80\x80", MARK MARK MARK MARK), /* beyond the last character */
    SAMPLE("\xff\xfe", MARK MARK),
    SAMPLE("\xf1\x80\xe2\x82\xac", MARK "\xe2\x82\xac"),
};

static bool is_whole(const char *text, size_t bytes)
{
    return !bytes || ((unsigned char)text[0] & 0xc0) != 0x80;
}

static void bytes_come_in_whole_characters(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        slc_token_text *text = open_text(256);
        char got[64] = "";
        size_t used = 0;
        for (size_t k = 0; k < samples[i].count; k++) {
            slc_text_piece piece;
            assert_int_equal(slc_token_text_add(text, (unsigned char)samples[i].bytes[k], &piece), SLUICE_OK);
            assert_true(is_whole(piece.at, piece.bytes));
            memcpy(got + used, piece.at, piece.bytes);
            used += piece.bytes;
        }
        const slc_text_piece rest = slc_token_text_finish(text);
        memcpy(got + used, rest.at, rest.bytes);
        assert_string_equal(got, samples[i].text);
        const slc_text_piece all = slc_token_text_all(text);
        assert_int_equal(all.bytes, strlen(samples[i].text));
        assert_memory_equal(all.at, samples[i].text, all.bytes);
        slc_token_text_close(text);
    }
}

static void a_byte_0_is_a_character(void **state)
{
    (void)state;
    slc_token_text *text = open_text(256);
    slc_text_piece piece;
    const int32_t tokens[] = {'a', 0, 'b'};
    for (int i = 0; i < 3; i++) assert_int_equal(slc_token_text_add(text, tokens[i], &piece), SLUICE_OK);
    piece = slc_token_text_all(text);
    assert_int_equal(piece.bytes, 3);
    assert_memory_equal(piece.at, "a\0b", 3);
    slc_token_text_close(text);
}

static void other_vocabularies_show_numbers(void **state)
{
    (void)state;
    slc_token_text *text = open_text(1000);
    slc_token_list list = {0};
    slc_text_piece piece;
    assert_string_equal(slc_token_text_kind(text), "none");
    assert_int_equal(slc_token_text_encode(text, "a", 1, &list), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "tokenizer.json"));
    assert_int_equal(slc_token_text_add(text, 999, &piece), SLUICE_OK);
    assert_int_equal(slc_token_text_add(text, 3, &piece), SLUICE_OK);
    assert_int_equal(slc_token_text_add(text, 1000, &piece), SLUICE_ERR_ARGUMENT);
    piece = slc_token_text_all(text);
    assert_int_equal(piece.bytes, 6);
    assert_memory_equal(piece.at, "999 3 ", 6);
    assert_true(slc_token_text_ends(text, 10));
    assert_false(slc_token_text_ends(text, 11));
    slc_token_text_close(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_in_whole_characters),
        cmocka_unit_test(a_byte_0_is_a_character),
        cmocka_unit_test(other_vocabularies_show_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
