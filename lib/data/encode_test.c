/* A text that is encoded in pieces has the tokens of the whole text, whatever stands where it is cut. */
#include "tests/support/base/folder.h"

#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "lib/data/text.h"
#include "tests/support/tokenizer/made_bpe.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

#include <dirent.h>
#include <stdio.h>

enum { TEXT_MOST = 4096 };

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

static sluice_status count_pieces(uint64_t done, uint64_t bytes, void *context)
{
    assert_true(done <= bytes);
    ++*(uint64_t *)context;
    return SLUICE_OK;
}

/* Returns the number of pieces. */
static uint64_t same_as_whole(const slc_tokenizer *tokenizer, const char *bytes, size_t count, size_t piece_bytes)
{
    static int32_t tokens[2 * TEXT_MOST];
    slc_token_list whole = {0};
    uint64_t pieces = 0;
    const char *path = write_file("text", bytes, count);
    slc_text *text = open_encoded(&path, 1,
                                  &(slc_text_encoding){.tokenizer = tokenizer,
                                                       .between = 0,
                                                       .piece_bytes = piece_bytes,
                                                       .progress = count_pieces,
                                                       .context = &pieces});
    works(slc_tokenizer_encode(tokenizer, bytes, count, false, &whole));
    if (slc_text_tokens(text) != whole.count)
        fail_msg("pieces of %zu: %llu tokens, whole: %zu, of \"%.*s\"", piece_bytes,
                 (unsigned long long)slc_text_tokens(text), whole.count, (int)count, bytes);
    works(slc_text_read(text, 0, whole.count, tokens));
    if (whole.count) assert_memory_equal(tokens, whole.tokens, whole.count * sizeof *tokens);
    free(whole.tokens);
    slc_text_close(text);
    return pieces;
}

/* Spaces of all kinds, tokens that take the spaces next to them along, and bytes that are no UTF-8; for every fourth
 * part a `seam` instead, unless that is NULL. */
static size_t draw_text(uint64_t round, const char *seam, char out[TEXT_MOST])
{
    static const char *const parts[] = {
        " ",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "\u00a0",
        "\xc2\x85",
        "\u2003",
        "\u2028",
        "\u3000",
        "\u200b",
        "a",
        "word",
        "Word",
        "z.",
        "9",
        ",",
        "'s",
        "'",
        "<left>",
        "<right>",
        "e\u0301",
        "\u00e9",
        "\u3002",
        "\u4e2d",
        "\xff",
        "\xe3\x80",
        "[MASK]",
        "<|endoftext|>",
        "\u0130",
        "\u1680",
        "\u00df",
        "\u2581",
        "x",
        "Mask",
        "mask",
        " one",
        "one",
        "a\tb",
        "b",
        "    ",
        "\ufe0f\ufe0f",
    };
    enum { PARTS = sizeof parts / sizeof *parts };
    size_t used = 0, count = 1 + slc_random_below(test_seed(3), 1, round, 200);
    for (size_t i = 0; i < count; i++) {
        const char *part = parts[slc_random_below(test_seed(4), round, i, PARTS)];
        if (seam && slc_random_below(test_seed(6), round, i, 4) == 0) part = seam;
        memcpy(out + used, part, strlen(part));
        used += strlen(part);
    }
    return used;
}

/* ---- Kinds of tokenizers, by what reaches over a space ---- */

static slc_tokenizer *open_json(const char *json)
{
    slc_tokenizer *tokenizer = NULL;
    works(slc_tokenizer_open(write_file("tokenizer.json", json, strlen(json)), &tokenizer));
    return tokenizer;
}

static const char *const merges[] = {"o r", "a Ċ", "x Ġ", "xĠ x", "n e", "k Ġ", "Ġ Ġ", "r y", "Ġ r", "Ġr y"};
enum { MERGES = sizeof merges / sizeof *merges };

/* A BPE with these keys of the pre-tokenizer and these sections; "#" in them is the number of the first added token. */
static slc_tokenizer *open_bpe(const char *keys, const char *sections, const char *model_keys)
{
    char filled[2048] = "", number[16];
    snprintf(number, sizeof number, "%d", 256 + MERGES);
    for (const char *c = sections; *c; c++) strncat(filled, *c == '#' ? number : c, *c == '#' ? sizeof number : 1);
    char *json = made_bpe(merges, MERGES, keys, filled), *model = strstr(json, "\"type\": \"BPE\"");
    char *whole = malloc(strlen(json) + strlen(model_keys) + 1);
    assert_non_null(whole);
    sprintf(whole, "%.*s%s%s", (int)(model - json), json, model_keys, model);
    slc_tokenizer *tokenizer = open_json(whole);
    free(whole);
    free(json);
    return tokenizer;
}

#define PLAIN ", \"add_prefix_space\": false"
#define ONE_WORD PLAIN ", \"use_regex\": false"
#define ADDED(text, rest) ", \"added_tokens\": [{\"id\": #, \"content\": \"" text "\", " rest "}]"
#define WORDPIECE                                                                                                      \
    "\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0, \"a\": 1, \"word\": 2, \"##a\": 3, \"x\": 4, "     \
    "\"##word\": 5, \"word x\": 6, \"z\": 7, \"##.\": 8, \".\": 9, \"one\": 10, \"9\": 11}}}"

static const struct {
    const char *name, *seam, *keys, *sections, *model; /* keys NULL: sections and model are a file; NULL: WORDPIECE */
    bool cuts;
} kinds[] = {
    {"merges over spaces", "x x", ONE_WORD, "", "", true},
    {"merges over spaces, prefix", "a\nx", ", \"use_regex\": false", "", "", true},
    {"a text that is a token", " ry 9", ONE_WORD, "", "\"ignore_merges\": true, ", false},
    {"one word of another case", "X X", ONE_WORD, ", \"normalizer\": {\"type\": \"Lowercase\"}", "", false},
    {"spaces are left out", "a x", NULL,
     "{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}, ",
     "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"x\": 1, \"ax\": 2}, \"merges\": [\"a x\"]}}", false},
    {"takes the space after it", "Mask  a", PLAIN, ADDED("Mask", "\"normalized\": false, \"rstrip\": true"), "", true},
    {"takes it whatever its case", "MASK a", PLAIN,
     ", \"normalizer\": {\"type\": \"Lowercase\"}" ADDED("Mask", "\"normalized\": true, \"rstrip\": true"), "", true},
    {"takes it without its marks", "Mask\ufe0f\ufe0f b", PLAIN,
     ", \"normalizer\": {\"type\": \"StripAccents\"}" ADDED("Mask", "\"normalized\": true, \"rstrip\": true"), "",
     true},
    {"stands alone", "one one", PLAIN, ADDED(" one", "\"normalized\": false, \"single_word\": true"), "", true},
    {"has a space when normalised", "a b", PLAIN,
     ", \"normalizer\": {\"type\": \"BertNormalizer\"}" ADDED("a\\tb", "\"normalized\": true"), "", true},
    {"has spaces in it", "word  Word", PLAIN, ADDED("word  Word", "\"normalized\": false"), "", true},
    {"is spaces", "a     b", PLAIN, ADDED("    ", "\"normalized\": false"), "", true},
    {"marks vanish", " \ufe0f\ufe0f  b", PLAIN, ", \"normalizer\": {\"type\": \"StripAccents\"}", "", true},
    {"signs become spaces", "\u00e9\u02d8  b", PLAIN,
     ", \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFKD\"}, {\"type\": "
     "\"StripAccents\"}]}",
     "", true},
    {"the text is one word", "word x", NULL, "{", NULL, false},
    {"between white space", "word. x", NULL, "{\"pre_tokenizer\": {\"type\": \"Whitespace\"}, ", NULL, true},
    {"only at white space", "word\u4e2d x", NULL,
     "{\"normalizer\": {\"type\": \"BertNormalizer\"}, \"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, ", NULL,
     true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static slc_tokenizer *open_kind(size_t kind)
{
    char json[1024];
    if (kinds[kind].keys) return open_bpe(kinds[kind].keys, kinds[kind].sections, kinds[kind].model);
    snprintf(json, sizeof json, "%s%s", kinds[kind].sections, kinds[kind].model ? kinds[kind].model : WORDPIECE);
    return open_json(json);
}

static const size_t sizes[] = {1, 2, 5, 16, 61, 0};

static void pieces_have_the_tokens_of_the_whole(void **state)
{
    (void)state;
    static const char *const folders[] = {"tokenizer_bpe", "tokenizer_wordpiece"};
    char text[TEXT_MOST];
    for (size_t f = 0; f < 2; f++) {
        slc_tokenizer *tokenizer = open_golden(folders[f]);
        uint64_t rounds = test_rounds(300), pieces = 0;
        for (uint64_t round = 0; round < rounds; round++)
            pieces += same_as_whole(tokenizer, text, draw_text(round, NULL, text), sizes[round % 6]);
        assert_true(pieces > 2 * rounds);
        slc_tokenizer_close(tokenizer);
    }
}

static void no_cut_goes_through_a_token(void **state)
{
    (void)state;
    char text[TEXT_MOST];
    for (size_t kind = 0; kind < KINDS; kind++) {
        slc_tokenizer *tokenizer = open_kind(kind);
        uint64_t rounds = test_rounds(150), pieces = 0;
        print_message("%s\n", kinds[kind].name);
        for (uint64_t round = 0; round < rounds; round++)
            pieces += same_as_whole(tokenizer, text, draw_text(round, kinds[kind].seam, text), sizes[round % 6]);
        assert_int_equal(pieces > rounds, kinds[kind].cuts);
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
        cmocka_unit_test(no_cut_goes_through_a_token),
        cmocka_unit_test(a_token_stands_between_files),
        cmocka_unit_test(it_can_be_stopped_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
