/* The kinds of tokenizer.json that are read and that are refused, and texts that are hard: long ones, and no UTF-8. */
#include "tests/support/base/folder.h"

#include "tests/support/tokenizer/made_bpe.h"
#include "lib/tokenizer/tokenizer.h"

#include <pthread.h>
#include <stdio.h>

static const char *const few_merges[] = {"h e", "l l", "he ll", "Ġ w", "a a", "aa aa"};
enum { FEW = sizeof few_merges / sizeof *few_merges };

static slc_tokenizer *open_text(const char *json)
{
    slc_tokenizer *tokenizer;
    works(slc_tokenizer_open(write_file("tokenizer.json", json, strlen(json)), &tokenizer));
    return tokenizer;
}

static slc_tokenizer *open_made(const char *pre_tokenizer, const char *sections)
{
    char *json = made_bpe(few_merges, FEW, pre_tokenizer, sections);
    slc_tokenizer *tokenizer = open_text(json);
    free(json);
    return tokenizer;
}

/* The tokens as the file has them, with "|" between them. */
static void encodes_to(const slc_tokenizer *tokenizer, const char *text, size_t bytes, const char *expected)
{
    char shown[1024] = "";
    slc_token_list list = {0};
    works(slc_tokenizer_encode(tokenizer, text, bytes, true, &list));
    for (size_t i = 0; i < list.count; i++) {
        strncat(shown, i ? "|" : "", sizeof shown - strlen(shown) - 1);
        strncat(shown, slc_tokenizer_text(tokenizer, list.tokens[i]), sizeof shown - strlen(shown) - 1);
    }
    assert_string_equal(shown, expected);
    free(list.tokens);
}

static void words_are_merged_by_rank(void **state)
{
    (void)state;
    slc_tokenizer *tokenizer = open_made(", \"add_prefix_space\": false", "");
    encodes_to(tokenizer, "hello hell", 10, "hell|o|Ġ|hell");
    encodes_to(tokenizer, "aaaaaaa w", 9, "aaaa|aa|a|Ġw");
    encodes_to(tokenizer, "w  w\n", 5, "w|Ġ|Ġw|Ċ");
    encodes_to(tokenizer, "we're 'S", 8, "w|e|'|r|e|Ġ|'|S");
    encodes_to(tokenizer, "\0\xC2\xA0", 3, "Ā|Â|ł");
    encodes_to(tokenizer, "", 0, "");
    slc_tokenizer_close(tokenizer);
    tokenizer = open_made("", "");
    encodes_to(tokenizer, "w", 1, "Ġw");
    encodes_to(tokenizer, " w", 2, "Ġw");
    encodes_to(tokenizer, "\tw", 2, "Ġ|ĉ|w");
    slc_tokenizer_close(tokenizer);
    tokenizer = open_made(", \"add_prefix_space\": false, \"use_regex\": false", "");
    encodes_to(tokenizer, "a  aa", 5, "a|Ġ|Ġ|aa");
    slc_tokenizer_close(tokenizer);
}

static void added_tokens_are_found_before_all_else(void **state)
{
    (void)state;
    slc_tokenizer *tokenizer =
        open_made(", \"add_prefix_space\": false",
                  ", \"normalizer\": {\"type\": \"Lowercase\"}, \"added_tokens\": ["
                  "{\"id\": 262, \"content\": \"<s>\", \"special\": true, \"normalized\": false},"
                  "{\"id\": 263, \"content\": \"<s>>\", \"normalized\": false},"
                  "{\"id\": 264, \"content\": \"Abc\", \"normalized\": true},"
                  "{\"id\": 265, \"content\": \"Mask\", \"normalized\": false, \"lstrip\": true, \"rstrip\": true},"
                  "{\"id\": 266, \"content\": \"one\", \"normalized\": false, \"single_word\": true}]");
    encodes_to(tokenizer, "x<s>y<s>><s", 11, "x|<s>|y|<s>>|<|s");
    encodes_to(tokenizer, "ABCabcMASK", 10, "Abc|Abc|m|a|s|k");
    encodes_to(tokenizer, "x  Mask \n Mask y", 16, "x|Mask|Mask|y");
    encodes_to(tokenizer, "one,one onet", 12, "one|,|one|Ġ|o|n|e|t");
    encodes_to(tokenizer, "oneone", 6, "o|n|e|o|n|e");
    encodes_to(tokenizer, "\xC3\xA9one", 5, "Ã|©|o|n|e");

    const int32_t tokens[] = {262, 'x', 264, 262};
    char *text;
    size_t bytes;
    works(slc_tokenizer_decode(tokenizer, tokens, 4, true, &text, &bytes));
    assert_string_equal(text, "xabc");
    free(text);
    works(slc_tokenizer_decode(tokenizer, tokens, 4, false, &text, NULL));
    assert_string_equal(text, "<s>xabc<s>");
    free(text);
    slc_tokenizer_close(tokenizer);
}

static void a_template_surrounds_the_text(void **state)
{
    (void)state;
    slc_tokenizer *tokenizer = open_made(
        ", \"add_prefix_space\": false",
        ", \"post_processor\": {\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\"}, {\"type\": "
        "\"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"B\"}}, {\"Sequence\": {\"id\": \"A\"}}, "
        "{\"SpecialToken\": {\"id\": \"E\"}}], \"special_tokens\": {\"B\": {\"ids\": [1, 2]}, \"E\": {\"ids\": [3]}}}, "
        "{\"type\": \"BertProcessing\", \"sep\": [\"s\", 83], \"cls\": [\"c\", 67]}]}");
    encodes_to(tokenizer, "x", 1, "C|ā|Ă|x|ă|S");
    slc_token_list list = {0};
    works(slc_tokenizer_encode(tokenizer, "x", 1, false, &list));
    assert_int_equal(list.count, 1);
    works(slc_tokenizer_encode(tokenizer, "yz", 2, false, &list)); /* appends */
    assert_int_equal(list.count, 3);
    assert_int_equal(list.tokens[2], 'z');
    free(list.tokens);
    slc_tokenizer_close(tokenizer);
}

static void what_is_no_utf8_becomes_u_fffd(void **state)
{
    (void)state;
    static const struct {
        const char *given, *decoded;
    } rows[] = {{"a\xFFz", "a\xEF\xBF\xBDz"},
                {"\xC0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD"},
                {"\xE2\x82", "\xEF\xBF\xBD"},
                {"\xE2\x82z", "\xEF\xBF\xBDz"},
                {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
                {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
                {"\xF0\x9F\x98", "\xEF\xBF\xBD"},
                {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"}};
    slc_tokenizer *tokenizer = open_made(", \"add_prefix_space\": false", "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        slc_token_list list = {0};
        char *text;
        works(slc_tokenizer_encode(tokenizer, rows[i].given, strlen(rows[i].given), false, &list));
        works(slc_tokenizer_decode(tokenizer, list.tokens, list.count, false, &text, NULL));
        assert_string_equal(text, rows[i].decoded);
        free(text);
        free(list.tokens);
    }
    const int32_t half[] = {0xE2, 0x82, 'x'};
    char *text;
    works(slc_tokenizer_decode(tokenizer, half, 3, false, &text, NULL));
    assert_string_equal(text, "\xEF\xBF\xBDx");
    free(text);
    const int32_t none[] = {'x', 262};
    fails(slc_tokenizer_decode(tokenizer, none, 2, false, &text, NULL), SLUICE_ERR_ARGUMENT, "token 262");
    slc_tokenizer_close(tokenizer);
}

/* Quadratic time would take minutes here, and the limit of the test's time would end it. */
static void long_texts_take_linear_time(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    static const char *const units[] = {" ", "a", "\n", "he", "\xCC\x81\xCC\xB4", "<s", "!"};
    slc_tokenizer *bpe =
        open_made("", ", \"normalizer\": {\"type\": \"NFD\"}, \"added_tokens\": [{\"id\": 262, \"content\": "
                      "\"<s>\", \"lstrip\": true}]");
    slc_tokenizer *wordpiece = open_text(
        "{\"normalizer\": {\"type\": \"BertNormalizer\"}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, "
        "\"model\": "
        "{\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0, \"h\": 1, \"##e\": 2, \"##h\": 3, \"a\": 4, \"##a\": 5}, "
        "\"max_input_chars_per_word\": 100000000}}");
    char *text = malloc(BYTES);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t unit = strlen(units[i]), bytes = BYTES / unit * unit;
        slc_token_list list = {0};
        for (size_t at = 0; at < bytes; at++) text[at] = units[i][at % unit];
        works(slc_tokenizer_encode(bpe, text, bytes, false, &list));
        assert_true(list.count > 0);
        works(slc_tokenizer_encode(wordpiece, text, bytes, false, &list));
        free(list.tokens);
    }
    free(text);
    slc_tokenizer_close(bpe);
    slc_tokenizer_close(wordpiece);
}

typedef struct {
    const slc_tokenizer *tokenizer;
    slc_token_list list;
    sluice_status status;
} encoder;

static void *encode_many(void *given)
{
    encoder *e = given;
    for (int i = 0; i < 200 && !e->status; i++)
        e->status = slc_tokenizer_encode(e->tokenizer, "hello wide world", 16, true, &e->list);
    return NULL;
}

static void threads_share_a_tokenizer(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    slc_tokenizer *tokenizer = open_made("", "");
    pthread_t threads[THREADS];
    encoder encoders[THREADS] = {0};
    for (int i = 0; i < THREADS; i++) {
        encoders[i].tokenizer = tokenizer;
        assert_int_equal(pthread_create(&threads[i], NULL, encode_many, &encoders[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(encoders[i].status, SLUICE_OK);
        assert_int_equal(encoders[i].list.count, 200 * 12);
        free(encoders[i].list.tokens);
    }
    slc_tokenizer_close(tokenizer);
}

static void wordpiece_takes_the_longest_piece(void **state)
{
    (void)state;
    slc_tokenizer *tokenizer = open_text(
        "{\"normalizer\": {\"type\": \"BertNormalizer\", \"strip_accents\": null}, \"pre_tokenizer\": {\"type\": "
        "\"BertPreTokenizer\"}, \"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 2], \"cls\": "
        "[\"[CLS]\", 1]}, \"decoder\": {\"type\": \"WordPiece\"}, \"model\": {\"type\": \"WordPiece\", \"vocab\": "
        "{\"[UNK]\": "
        "0, \"[CLS]\": 1, \"[SEP]\": 2, \"un\": 3, \"##aff\": 4, \"##able\": 5, \"##a\": 6, \"##\": 7, \",\": 8, "
        "\"e\": 9, "
        "\"\\u4e2d\": 10}, \"max_input_chars_per_word\": 10}}");
    encodes_to(tokenizer, "UNaffable,", 10, "[CLS]|un|##aff|##able|,|[SEP]");
    encodes_to(tokenizer,
               "unaf una\t\0"
               "e\n",
               12, "[CLS]|[UNK]|un|##a|e|[SEP]");
    encodes_to(tokenizer,
               "\xC3\xA9\xC3\x89\xE4\xB8\xAD"
               "e",
               8, "[CLS]|[UNK]|中|e|[SEP]");
    encodes_to(tokenizer, "unaaaaaaaa unaaaaaaaaa", 22, "[CLS]|un|##a|##a|##a|##a|##a|##a|##a|##a|[UNK]|[SEP]");
    const int32_t tokens[] = {1, 3, 6, 8, 9, 2};
    char *text;
    works(slc_tokenizer_decode(tokenizer, tokens, 6, false, &text, NULL));
    assert_string_equal(text, "[CLS] una, e [SEP]");
    free(text);
    slc_tokenizer_close(tokenizer);
}

/* ---- What is refused ---- */

#define MODEL "\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0, \"a\": 1}}"

static void other_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        sluice_status status;
        const char *why;
    } rows[] = {
        {"", SLUICE_ERR_FORMAT, "line 1, column 0"},
        {"{\"model\": {", SLUICE_ERR_FORMAT, "line 1, column"},
        {"[]", SLUICE_ERR_FORMAT, "is no {...}"},
        {"{}", SLUICE_ERR_FORMAT, "\"model\" is no object"},
        {"{\"model\": {\"type\": \"Unigram\"}}", SLUICE_ERR_UNSUPPORTED, "model \"Unigram\" is not supported"},
        {"{\"model\": {\"vocab\": {\"[UNK]\": 16777216}}}", SLUICE_ERR_FORMAT, "the number of \"[UNK]\""},
        {"{\"model\": {\"vocab\": {\"[UNK]\": 0, \"b\": 0}}}", SLUICE_ERR_FORMAT, "have the same number, 0"},
        {"{\"model\": {\"vocab\": {\"b\": 0}}}", SLUICE_ERR_FORMAT, "\"unk_token\" is no token"},
        {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0}, \"max_input_chars_per_word\": -1}}",
         SLUICE_ERR_FORMAT, "max_input_chars_per_word"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": []}}", SLUICE_ERR_UNSUPPORTED,
         "ByteLevel"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]}}", SLUICE_ERR_FORMAT,
         "model.merges[0]: \"ab\" is no token"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [[\"a\"]]}}", SLUICE_ERR_FORMAT,
         "model.merges[0]: is no"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [], \"byte_fallback\": true}}",
         SLUICE_ERR_UNSUPPORTED, "byte_fallback"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [], \"dropout\": 0.1}}",
         SLUICE_ERR_UNSUPPORTED, "dropout"},
        {"{" MODEL ", \"normalizer\": {\"type\": \"Precompiled\"}}", SLUICE_ERR_UNSUPPORTED,
         "normalizer \"Precompiled\""},
        {"{" MODEL ", \"normalizer\": {\"type\": \"BertNormalizer\", \"lowercase\": 1}}", SLUICE_ERR_FORMAT,
         "\"lowercase\" is no true or false"},
        {"{" MODEL ", \"pre_tokenizer\": {\"type\": \"Metaspace\"}}", SLUICE_ERR_UNSUPPORTED,
         "pre_tokenizer \"Metaspace\""},
        {"{" MODEL ", \"pre_tokenizer\": {\"type\": \"ByteLevel\"}}", SLUICE_ERR_UNSUPPORTED, "WordPiece with"},
        {"{" MODEL ", \"post_processor\": {\"type\": \"RobertaProcessing\"}}", SLUICE_ERR_UNSUPPORTED,
         "post_processor \"RobertaProcessing\""},
        {"{" MODEL ", \"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"x\", 7], \"cls\": [\"x\", 1]}}",
         SLUICE_ERR_FORMAT, "there is no token 7"},
        {"{" MODEL ", \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": []}}", SLUICE_ERR_UNSUPPORTED,
         "has the text 0 times"},
        {"{" MODEL ", \"decoder\": {\"type\": \"Metaspace\"}}", SLUICE_ERR_UNSUPPORTED, "decoder \"Metaspace\""},
        {"{" MODEL ", \"added_tokens\": {}}", SLUICE_ERR_FORMAT, "\"added_tokens\" is no list"},
        {"{" MODEL ", \"added_tokens\": [{\"content\": \"x\"}]}", SLUICE_ERR_FORMAT, "the number of \"x\""},
        {"{" MODEL ", \"added_tokens\": [{\"id\": 5, \"content\": \"x\"}]}", SLUICE_ERR_FORMAT,
         "\"x\" has the number 5"},
        {"{" MODEL ", \"added_tokens\": [{\"id\": 0, \"content\": \"a\"}]}", SLUICE_ERR_FORMAT,
         "in model.vocab it has 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        slc_tokenizer *tokenizer;
        const char *path = write_file("refused.json", rows[i].json, strlen(rows[i].json));
        fails(slc_tokenizer_open(path, &tokenizer), rows[i].status, rows[i].why);
        assert_non_null(strstr(sluice_last_error(), "refused.json"));
        assert_null(tokenizer);
    }
    slc_tokenizer *tokenizer;
    fails(slc_tokenizer_open(path_of("absent.json"), &tokenizer), SLUICE_ERR_PATH, "absent.json");
    write_file("tokenizer.json", "{" MODEL "}", strlen("{" MODEL "}"));
    works(slc_tokenizer_open(test_folder(), &tokenizer));
    slc_tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_merged_by_rank),          cmocka_unit_test(added_tokens_are_found_before_all_else),
        cmocka_unit_test(a_template_surrounds_the_text),     cmocka_unit_test(what_is_no_utf8_becomes_u_fffd),
        cmocka_unit_test(long_texts_take_linear_time),       cmocka_unit_test(threads_share_a_tokenizer),
        cmocka_unit_test(wordpiece_takes_the_longest_piece), cmocka_unit_test(other_files_are_refused),
    };
#if defined(__SANITIZE_THREAD__)
    cmocka_set_test_filter("threads_share_a_tokenizer"); /* the others have one thread */
#endif
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
