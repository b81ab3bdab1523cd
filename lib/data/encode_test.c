/* A text that is encoded in pieces has the tokens of the whole text, whatever stands where it is cut. */
#include "lib/base/file/folder_test.h"

#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/data/text.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

#include <dirent.h>

static const char *const folders[] = {"tokenizer_bpe", "tokenizer_wordpiece"};
enum { FOLDERS = sizeof folders / sizeof *folders, TEXT_MOST = 4096 };

static slc_tokenizer *open_golden(const char *name)
{
    char path[PATH_MAX];
    slc_tokenizer *tokenizer = NULL;
    snprintf(path, sizeof path, "%s/%s", SLUICE_GOLDEN_DIR, name);
    works(slc_tokenizer_open(path, &tokenizer));
    return tokenizer;
}

static slc_text *open_encoded(const char *const *paths, size_t count, const slc_text_encoding *how)
{
    slc_text *text = NULL;
    works(slc_text_open(paths, count, &text));
    assert_true(slc_text_is_bytes(text));
    works(slc_text_encode(text, how));
    assert_false(slc_text_is_bytes(text));
    return text;
}

static void same_as_whole(const slc_tokenizer *tokenizer, const char *bytes, size_t count, size_t piece_bytes)
{
    static int32_t tokens[2 * TEXT_MOST];
    slc_token_list whole = {0};
    const char *path = write_file("text", bytes, count);
    slc_text *text =
        open_encoded(&path, 1, &(slc_text_encoding){.tokenizer = tokenizer, .between = 0, .piece_bytes = piece_bytes});
    works(slc_tokenizer_encode(tokenizer, bytes, count, false, &whole));
    if (slc_text_tokens(text) != whole.count)
        fail_msg("pieces of %zu: %llu tokens, whole: %zu, of \"%.*s\"", piece_bytes,
                 (unsigned long long)slc_text_tokens(text), whole.count, (int)count, bytes);
    works(slc_text_read(text, 0, whole.count, tokens));
    if (whole.count) assert_memory_equal(tokens, whole.tokens, whole.count * sizeof *tokens);
    free(whole.tokens);
    slc_text_close(text);
}

/* Spaces of all kinds, tokens that take the spaces next to them along, and bytes that are no UTF-8. */
static size_t draw_text(uint64_t round, char out[TEXT_MOST])
{
    static const char *const parts[] = {
        " ",      " ",       "  ",      "\n",     "\r\n",   "\t",     "\u00a0", "\xc2\x85", "\u2003", "\u2028",
        "\u3000", "\u200b",  "a",       "word",   "Word",   "z.",     "9",      ",",        "'s",     "'",
        "<left>", "<right>", "e\u0301", "\u00e9", "\u3002", "\u4e2d", "\xff",   "\xe3\x80", "[MASK]", "<|endoftext|>",
        "\u0130", "\u1680",  "\u00df",  "\u2581", "x",
    };
    enum { PARTS = sizeof parts / sizeof *parts };
    size_t used = 0, count = 1 + slc_random_below(test_seed(3), 1, round, 200);
    for (size_t i = 0; i < count; i++) {
        const char *part = parts[slc_random_below(test_seed(4), round, i, PARTS)];
        memcpy(out + used, part, strlen(part));
        used += strlen(part);
    }
    return used;
}

static void pieces_have_the_tokens_of_the_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 5, 16, 61, 0};
    char text[TEXT_MOST];
    for (size_t f = 0; f < FOLDERS; f++) {
        slc_tokenizer *tokenizer = open_golden(folders[f]);
        for (uint64_t round = 0; round < (uint64_t)test_rounds(300); round++)
            same_as_whole(tokenizer, text, draw_text(round, text), sizes[round % 6]);
        slc_tokenizer_close(tokenizer);
    }
}

static void a_token_stands_between_files(void **state)
{
    (void)state;
    slc_tokenizer *tokenizer = open_golden("tokenizer_bpe");
    const char *paths[] = {write_file("one", "Hello world", 11), write_file("two", " ", 1),
                           write_file("three", "Hello", 5)};
    slc_text *bytes = NULL;
    works(slc_text_open(paths, 3, &bytes));
    for (int32_t between = -1; between < 1; between++) {
        slc_text *text = open_encoded(paths, 3, &(slc_text_encoding){.tokenizer = tokenizer, .between = between});
        slc_token_list first = {0}, last = {0};
        slc_text_range range;
        int32_t tokens[32];
        uint64_t closed = between < 0 ? 0 : 1, hashes[2];
        works(slc_tokenizer_encode(tokenizer, "Hello world", 11, false, &first));
        works(slc_tokenizer_encode(tokenizer, "Hello", 5, false, &last));
        assert_int_equal(slc_text_tokens(text), first.count + 1 + last.count + 2 * closed);
        assert_int_equal(slc_text_vocabulary(text), slc_tokenizer_vocabulary(tokenizer));
        works(slc_text_read(text, 0, slc_text_tokens(text), tokens));
        assert_memory_equal(tokens, first.tokens, first.count * sizeof *tokens);
        if (closed) assert_int_equal(tokens[first.count], between);
        assert_true(slc_text_file(text, 2, &range));
        assert_int_equal(range.tokens, last.count);
        assert_memory_equal(tokens + range.first, last.tokens, last.count * sizeof *tokens);
        assert_true(slc_text_file(text, 1, &range));
        assert_int_equal(range.first, first.count + closed);
        assert_int_equal(range.tokens, 1);
        assert_true(slc_text_fingerprint(text) != slc_text_fingerprint(bytes));
        works(slc_text_content(text, &hashes[0]));
        works(slc_text_content(bytes, &hashes[1]));
        assert_true(hashes[0] != hashes[1]);
        assert_int_equal(slc_text_encode(text, &(slc_text_encoding){.tokenizer = tokenizer}), SLUICE_ERR_ORDER);
        free(first.tokens);
        free(last.tokens);
        slc_text_close(text);
    }
    slc_text_close(bytes);
    slc_tokenizer_close(tokenizer);
}

static sluice_status stop_at_half(uint64_t done, uint64_t bytes, void *context)
{
    ++*(int *)context;
    assert_true(done <= bytes);
    return 2 * done >= bytes ? slc_error(SLUICE_ERR_INTERRUPTED, "enough") : SLUICE_OK;
}

static int files_in(const char *folder)
{
    DIR *entries = opendir(folder);
    int count = 0;
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries));) count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

static void it_can_be_stopped_and_leaves_nothing(void **state)
{
    (void)state;
    slc_tokenizer *tokenizer = open_golden("tokenizer_wordpiece");
    char content[4000], folder[PATH_MAX];
    memset(content, ' ', sizeof content);
    for (size_t i = 0; i < sizeof content; i += 3) content[i] = 'a';
    const char *path = write_file("long", content, sizeof content);
    snprintf(folder, sizeof folder, "%s", path_of("tokens"));
    char command[PATH_MAX + 8];
    snprintf(command, sizeof command, "mkdir %s", folder);
    assert_int_equal(system(command), 0);
    int calls = 0;
    slc_text_encoding how = {
        .tokenizer = tokenizer, .between = -1, .progress = stop_at_half, .context = &calls, .piece_bytes = 400};
    slc_text *text = NULL;
    setenv("TMPDIR", folder, 1);
    works(slc_text_open(&path, 1, &text));
    fails(slc_text_encode(text, &how), SLUICE_ERR_INTERRUPTED, "enough");
    assert_true(calls >= 4 && calls <= 7);
    assert_int_equal(files_in(folder), 0);
    slc_text_close(text);
    setenv("TMPDIR", "/nowhere", 1);
    works(slc_text_open(&path, 1, &text));
    fails(slc_text_encode(text, &how), SLUICE_ERR_PATH, "/nowhere: No such file or directory; name a folder with room");
    slc_text_close(text);
    unsetenv("TMPDIR");
    slc_tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_have_the_tokens_of_the_whole),
        cmocka_unit_test(a_token_stands_between_files),
        cmocka_unit_test(it_can_be_stopped_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
