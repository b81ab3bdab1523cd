/* The files of a tokenizer go along when they are saved; if no tokenizer_config.json does, one is written that keeps
 * other programs from their own defaults. Files that say different things are told of. */
#include "tests/support/base/folder.h"

#include "lib/data/tokenizer_files/special_tokens.h"
#include "lib/data/tokenizer_files/tokenizer_files.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static slc_tokenizer *tokenizer;

static const char *make_tokenizer(const char *name)
{
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "rm -rf %s/tok %s/to && mkdir %s/tok %s/to && cp %s/%s/tokenizer.json %s/tok/",
             test_folder(), test_folder(), test_folder(), test_folder(), SLUICE_GOLDEN_DIR, name, test_folder());
    assert_int_equal(system(command), 0);
    slc_tokenizer_close(tokenizer);
    works(slc_tokenizer_open(path_of("tok"), &tokenizer));
    return path_of("tok");
}

static void put(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

static json_t *load(const char *name)
{
    json_error_t error;
    json_t *root = json_load_file(path_of(name), 0, &error);
    if (!root) fail_msg("%s:%d: %s", name, error.line, error.text);
    return root;
}

static void agree(const json_t *root, const char *key, const char *expected)
{
    char *found = json_dumps(json_object_get(root, key), JSON_ENCODE_ANY | JSON_COMPACT);
    if (!found || strcmp(found, expected)) fail_msg("\"%s\" is %s, not %s", key, found ? found : "absent", expected);
    free(found);
}

static void files_go_along(void **state)
{
    (void)state;
    char folder[PATH_MAX], command[4 * PATH_MAX];
    snprintf(folder, sizeof folder, "%s", make_tokenizer("tokenizer_bpe"));
    put("tok/merges.txt", "a b\n");
    put("tok/config.json", "{}");
    put("tok/tokenizer_config.json", "{\"eos_token\": \"<left>\"}");
    works(slc_tokenizer_files_save(folder, path_of("to")));
    snprintf(
        command, sizeof command,
        "cmp %s/tokenizer.json %s/to/tokenizer.json && cmp %s/tokenizer_config.json %s/to/tokenizer_config.json && "
        "test \"$(ls %s/to | xargs)\" = 'merges.txt tokenizer.json tokenizer_config.json'",
        folder, test_folder(), folder, test_folder(), test_folder());
    assert_int_equal(system(command), 0);
    works(slc_tokenizer_files_save(folder, folder));
    snprintf(command, sizeof command, "%s/tokenizer.json", folder);
    works(slc_tokenizer_files_save(command, path_of("to")));
    fails(slc_tokenizer_files_save(folder, path_of("nowhere")), SLUICE_ERR_PATH, "nowhere/tokenizer.json");
}

/* Another run left its own file there. */
static void a_config_is_written_where_there_is_none(void **state)
{
    (void)state;
    const char *folder = make_tokenizer("tokenizer_bpe");
    put("to/tokenizer_config.json", "{\"tokenizer_class\": \"BertTokenizer\"}");
    works(slc_tokenizer_files_save(folder, path_of("to")));
    json_t *root = load("to/tokenizer_config.json");
    agree(root, "tokenizer_class", "\"PreTrainedTokenizerFast\"");
    agree(root, "eos_token", "\"<|endoftext|>\"");
    agree(root, "bos_token", "\"<|endoftext|>\"");
    agree(root, "add_prefix_space", "false");
    agree(root, "model_input_names", "[\"input_ids\",\"attention_mask\"]");
    assert_null(json_object_get(root, "mask_token"));
    assert_null(json_object_get(root, "do_lower_case"));
    const json_t *added = json_object_get(root, "added_tokens_decoder");
    assert_int_equal(json_object_size(added), 4);
    agree(json_object_get(added, "700"), "content", "\"<left>\"");
    agree(json_object_get(added, "700"), "lstrip", "true");
    agree(json_object_get(added, "700"), "rstrip", "false");
    agree(json_object_get(added, "701"), "rstrip", "true");
    agree(json_object_get(added, "702"), "single_word", "true");
    agree(json_object_get(added, "702"), "normalized", "true");
    agree(json_object_get(added, "0"), "special", "true");
    json_decref(root);

    char file[PATH_MAX];
    make_tokenizer("tokenizer_wordpiece");
    snprintf(file, sizeof file, "%s/tok/tokenizer.json", test_folder());
    works(slc_tokenizer_files_save(file, path_of("to")));
    root = load("to/tokenizer_config.json");
    agree(root, "cls_token", "\"[CLS]\"");
    agree(root, "sep_token", "\"[SEP]\"");
    agree(root, "mask_token", "\"[MASK]\"");
    agree(root, "pad_token", "\"[PAD]\"");
    agree(root, "unk_token", "\"[UNK]\"");
    agree(root, "do_lower_case", "true");
    agree(root, "strip_accents", "true");
    agree(root, "tokenize_chinese_chars", "true");
    agree(root, "model_input_names", "[\"input_ids\",\"token_type_ids\",\"attention_mask\"]");
    json_decref(root);

    /* The saved folder gives the same special tokens as the one before, and its two files do not contradict each other.
     */
    slc_special_tokens before, after;
    char *line;
    works(slc_special_tokens_find(tokenizer, path_of("tok"), &before));
    works(slc_special_tokens_find(tokenizer, path_of("to"), &after));
    assert_memory_equal(&before, &after, sizeof before);
    works(slc_tokenizer_files_compare(tokenizer, path_of("to"), &line));
    assert_null(line);

    /* A folder that is saved to itself. */
    works(slc_tokenizer_files_save(path_of("tok"), path_of("tok")));
    works(slc_tokenizer_files_compare(tokenizer, path_of("tok"), &line));
    assert_null(line);
    json_decref(load("tok/tokenizer_config.json"));
}

/* transformers would make a token of the vocabulary an added one, and find it in texts. */
static void only_added_tokens_are_named(void **state)
{
    (void)state;
    make_tokenizer("tokenizer_wordpiece");
    put("tok/tokenizer.json", "{\"added_tokens\": [{\"id\": 1, \"content\": \"[CLS]\", \"special\": true}], "
                              "\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0, \"[CLS]\": 1, "
                              "\"[SEP]\": 2, \"a\": 3}}}");
    works(slc_tokenizer_files_save(path_of("tok"), path_of("to")));
    json_t *root = load("to/tokenizer_config.json");
    agree(root, "cls_token", "\"[CLS]\"");
    assert_null(json_object_get(root, "sep_token"));
    assert_null(json_object_get(root, "unk_token"));
    assert_null(json_object_get(root, "do_lower_case"));
    json_decref(root);
}

/* ---- Files that differ ---- */

static void says(const char *config, const char *why)
{
    char *line;
    put("tok/tokenizer_config.json", config);
    works(slc_tokenizer_files_compare(tokenizer, path_of("tok"), &line));
    if (!line != !why || (why && !strstr(line, why))) fail_msg("%s: %s, not %s", config, line, why);
    if (line) assert_non_null(strstr(line, "tok/tokenizer_config.json"));
    if (line) assert_non_null(strstr(line, "follows tokenizer.json"));
    free(line);
}

static void differences_are_told(void **state)
{
    (void)state;
    char *line;
    make_tokenizer("tokenizer_wordpiece");
    works(slc_tokenizer_files_compare(tokenizer, path_of("tok"), &line));
    assert_null(line);
    says("{}", NULL);
    says("{\"tokenizer_class\": \"BertTokenizer\"}", NULL);
    says("{\"do_lower_case\": true, \"strip_accents\": null}", NULL);
    says("{\"do_lower_case\": false}", "sets \"do_lower_case\" to false, and tokenizer.json has it true");
    says("{\"strip_accents\": false, \"tokenizer_class\": \"BertTokenizerFast\"}", "sets \"strip_accents\" to false");
    says("{\"tokenize_chinese_chars\": false}", "sets \"tokenize_chinese_chars\" to false");
    says("{\"tokenizer_class\": \"PreTrainedTokenizerFast\", \"do_lower_case\": false}", "\"do_lower_case\"");
    put("tok/tokenizer_config.json", "{\"do_lower_case\": ");
    fails(slc_tokenizer_files_compare(tokenizer, path_of("tok"), &line), SLUICE_ERR_FORMAT, "tokenizer_config.json:1:");

    /* The class's own defaults are another word than this file's. */
    put("tok/tokenizer.json", "{\"normalizer\": {\"type\": \"BertNormalizer\", \"lowercase\": false}, "
                              "\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, "
                              "\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0, \"a\": 1}}}");
    slc_tokenizer_close(tokenizer);
    works(slc_tokenizer_open(path_of("tok"), &tokenizer));
    says("{\"do_lower_case\": false}", NULL);
    says("{\"tokenizer_class\": \"BertTokenizer\"}", "leaves it to the class to set \"do_lower_case\" to true");
    says("{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}", NULL);
    put("tok/tokenizer.json", "{\"normalizer\": {\"type\": \"Lowercase\"}, "
                              "\"pre_tokenizer\": {\"type\": \"Whitespace\"}, "
                              "\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0, \"a\": 1}}}");
    slc_tokenizer_close(tokenizer);
    works(slc_tokenizer_open(path_of("tok"), &tokenizer));
    says("{\"tokenizer_class\": \"BertTokenizer\", \"strip_accents\": false, \"tokenize_chinese_chars\": false}",
         "names the class BertTokenizer, which prepares text otherwise");

    make_tokenizer("tokenizer_bpe");
    says("{\"add_prefix_space\": false, \"tokenizer_class\": \"GPT2Tokenizer\"}", NULL);
    says("{\"add_prefix_space\": true}", "sets \"add_prefix_space\" to true, and tokenizer.json has it false");
    says("{\"do_lower_case\": true}", "sets \"do_lower_case\" to true");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_go_along),
        cmocka_unit_test(a_config_is_written_where_there_is_none),
        cmocka_unit_test(only_added_tokens_are_named),
        cmocka_unit_test(differences_are_told),
    };
    int failed = cmocka_run_group_tests(tests, make_folder, remove_folder);
    slc_tokenizer_close(tokenizer);
    return failed;
}
