/* Any text must be encoded to the tokens that the plain algorithm gives, which merges the least pair of a whole word
 * again and again. Byte-level BPE must decode them to the same text, and WordPiece must give tokens that it knows. A
 * text that is cut where it may be cut must give the tokens of the whole. */
#include "tests/support/base/file_fuzz.h"
#include "tests/support/tokenizer/made_bpe.h"
#include "lib/base/text/utf8.h"
#include "lib/tokenizer/pretokenize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const merges[] = {
    "a b",   "ab a",  "a a", "b a", "aa a", "aa aa", "Ġ a", "Ġ ab", "Ġa b", "Ġ Ġ", "ĠĠ Ġ", "' s", "\xC3\x83 \xC2\xA9",
    "ab ab", "aba b", "1 2", "! !"};
enum { MERGES = sizeof merges / sizeof *merges };

/* Merges of a text that is one word, and added tokens that take space along. */
static const char *const over_spaces[] = {"a Ġ", "aĠ a", "b Ċ", "1 Ġ", "Ġ Ġ", "a b"};
enum { OVER_SPACES = sizeof over_spaces / sizeof *over_spaces };
static const char added_json[] = ", \"added_tokens\": [{\"id\": 262, \"content\": \"abb\", \"normalized\": false, "
                                 "\"rstrip\": true}, {\"id\": 263, \"content\": \" 22\", \"normalized\": false, "
                                 "\"single_word\": true}]";

static const char wordpiece_json[] = "{\"added_tokens\":[{\"id\":9,\"content\":\"<m>\",\"normalized\":true,\"lstrip\":"
                                     "true,\"rstrip\":true}],\"normalizer\":{"
                                     "\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
                                     "\"decoder\":{\"type\":\"WordPiece\"},"
                                     "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0,\"a\":1,\"b\":2,\"ab\":"
                                     "3,\"##a\":4,\"##b\":5,\"##abab\":6,"
                                     "\"'\":7,\"\\u4e2d\":8}}}";

static slc_tokenizer *open_json(const char *json)
{
    int fd;
    slc_tokenizer *tokenizer;
    const char *path = fuzz_file(&fd);
    fuzz_put(fd, json, strlen(json));
    if (slc_tokenizer_open(path, &tokenizer)) abort();
    return tokenizer;
}

/* ranks[a][b]: one more than the rank of the merge of tokens a and b, 0 if there is none. merged[r]: the token that the
 * merge of rank r makes. */
static size_t ranks[256 + MERGES][256 + MERGES];
static int32_t merged[MERGES];

static void fill_ranks(const slc_tokenizer *tokenizer)
{
    for (size_t i = 0; i < MERGES; i++) {
        const char *space = strchr(merges[i], ' ');
        char left[16] = "", both[16];
        memcpy(left, merges[i], (size_t)(space - merges[i]));
        snprintf(both, sizeof both, "%s%s", left, space + 1);
        int32_t first = slc_tokenizer_find(tokenizer, left), second = slc_tokenizer_find(tokenizer, space + 1);
        merged[i] = slc_tokenizer_find(tokenizer, both);
        if (first < 0 || second < 0 || merged[i] < 0) abort();
        ranks[first][second] = i + 1;
    }
}

/* Replaces the tokens of a word's bytes by the word's tokens; returns how many. */
static size_t merge_plainly(int32_t *tokens, size_t count)
{
    for (;;) {
        size_t at = 0;
        size_t least = SIZE_MAX;
        for (size_t i = 0; i + 1 < count; i++) {
            size_t rank = ranks[tokens[i]][tokens[i + 1]];
            if (rank && rank < least) least = rank, at = i;
        }
        if (least == SIZE_MAX) return count;
        tokens[at] = merged[least - 1];
        memmove(tokens + at + 1, tokens + at + 2, (count - at - 2) * sizeof *tokens);
        count--;
    }
}

static void check_bpe(const slc_tokenizer *tokenizer, const char *given, size_t size)
{
    slc_token_list list = {0};
    slc_chars repaired = {0};
    char *text;
    size_t bytes, place = 0;
    if (slc_tokenizer_encode(tokenizer, given, size, true, &list)) abort();
    if (slc_tokenizer_decode(tokenizer, list.tokens, list.count, false, &text, &bytes)) abort();
    if (slc_chars_append_repaired(&repaired, given, size)) abort();
    if (bytes != repaired.count || (bytes && memcmp(text, repaired.data, bytes) != 0)) abort();
    free(text);

    int32_t *tokens = malloc((bytes + 1) * sizeof *tokens);
    for (size_t at = 0, first; slc_words_next(SLC_WORDS_BYTE_LEVEL, repaired.data, bytes, &at, &first);) {
        for (size_t i = first; i < at; i++) tokens[i - first] = (unsigned char)repaired.data[i];
        size_t count = merge_plainly(tokens, at - first);
        if (place + count > list.count || memcmp(list.tokens + place, tokens, count * sizeof *tokens) != 0) abort();
        place += count;
    }
    if (place != list.count) abort();
    free(tokens);
    free(repaired.data);
    free(list.tokens);
}

static void check_wordpiece(const slc_tokenizer *tokenizer, const char *given, size_t size)
{
    slc_token_list list = {0};
    char *text;
    size_t bytes;
    if (slc_tokenizer_encode(tokenizer, given, size, false, &list)) abort();
    for (size_t i = 0; i < list.count; i++)
        if (!slc_tokenizer_text(tokenizer, list.tokens[i])) abort();
    if (slc_tokenizer_decode(tokenizer, list.tokens, list.count, false, &text, &bytes)) abort();
    if (slc_utf8_valid(text, bytes) != bytes) abort();
    free(text);
    free(list.tokens);
}

static void check_cut(const slc_tokenizer *tokenizer, const char *given, size_t size)
{
    slc_token_list whole = {0}, parts = {0};
    const size_t cut = slc_tokenizer_last_cut(tokenizer, given, 0, size);
    if (!cut) return;
    if (cut >= size || slc_tokenizer_encode(tokenizer, given, size, false, &whole)) abort();
    if (slc_tokenizer_encode(tokenizer, given, cut, false, &parts)) abort();
    if (slc_tokenizer_encode(tokenizer, given + cut, size - cut, false, &parts)) abort();
    if (whole.count != parts.count ||
        (whole.count && memcmp(whole.tokens, parts.tokens, whole.count * sizeof *whole.tokens) != 0))
        abort();
    free(whole.tokens);
    free(parts.tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static slc_tokenizer *bpe, *wordpiece, *one_word, *added;
    if (!bpe) {
        char *json = made_bpe(merges, MERGES, ", \"add_prefix_space\": false", "");
        bpe = open_json(json);
        free(json);
        fill_ranks(bpe);
        wordpiece = open_json(wordpiece_json);
        json = made_bpe(over_spaces, OVER_SPACES, ", \"use_regex\": false", "");
        one_word = open_json(json);
        free(json);
        json = made_bpe(over_spaces, OVER_SPACES, "", added_json);
        added = open_json(json);
        free(json);
    }
    check_bpe(bpe, (const char *)data, size);
    check_wordpiece(wordpiece, (const char *)data, size);
    check_cut(bpe, (const char *)data, size);
    check_cut(wordpiece, (const char *)data, size);
    check_cut(one_word, (const char *)data, size);
    check_cut(added, (const char *)data, size);
    return 0;
}
