/* Any text must be read as a tokenizer.json or be refused with a line. A tokenizer that was read must encode any text
 * to tokens that it knows, and decode these. */
#include "tests/support/base/file_fuzz.h"
#include "tests/support/base/splice_fuzz.h"
#include "lib/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const seeds[] = {
    "{\"added_tokens\":[{\"id\":6,\"content\":\"<s>\",\"special\":true,\"normalized\":false,\"lstrip\":true},{\"id\":1,"
    "\"content\":\"b\",\"rstrip\":true,\"single_word\":true}],\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{"
    "\"type\":\"NFKC\"},{\"type\":\"Lowercase\"}]},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
    "\"use_regex\":true},\"post_processor\":{\"type\":\"ByteLevel\"},\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{"
    "\"type\":\"BPE\",\"dropout\":null,\"unk_token\":\"a\",\"fuse_unk\":true,\"ignore_merges\":false,\"vocab\":{\"a\":"
    "0,"
    "\"b\":1,\"\\u0120\":2,\"ab\":3,\"\\u0120ab\":4,\"abab\":5},\"merges\":[\"a b\",[\"\\u0120\",\"ab\"],\"ab ab\"]}}",
    "{\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":true}],\"normalizer\":{\"type\":\"BertNormalizer\","
    "\"clean_text\":true,\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},\"pre_tokenizer\":{"
    "\"type\":\"BertPreTokenizer\"},\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{"
    "\"id\":\"[C]\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{\"[C]\":{\"id\":"
    "\"[C]\","
    "\"ids\":[1],\"tokens\":[\"[C]\"]}}},\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
    "\"model\":{"
    "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":"
    "9,"
    "\"vocab\":{\"[UNK]\":0,\"[C]\":1,\"a\":2,\"##b\":3,\"##a\":4,\"##\":5,\"'\":6,\"\\u00e9\":7}}}",
    "{\"normalizer\":{\"type\":\"StripAccents\"},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
    "\"Whitespace\"}]},\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"s\",1],\"cls\":[\"c\",0]},\"model\":{"
    "\"vocab\":{\"[UNK]\":0,\"a\":1}}}",
};

static void check(const slc_tokenizer *tokenizer, const char *given, size_t size)
{
    slc_token_list list = {0};
    char *text;
    size_t bytes;
    if (slc_tokenizer_encode(tokenizer, given, size, true, &list)) abort();
    for (size_t i = 0; i < list.count; i++)
        if (!slc_tokenizer_text(tokenizer, list.tokens[i])) abort();
    if (slc_tokenizer_decode(tokenizer, list.tokens, list.count, size % 2, &text, &bytes)) abort();
    if (text[bytes]) abort();
    free(text);
    free(list.tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char hard[] = "abab b<s> B\xC3\xA9\xCC\x81 a'b \xE4\xB8\xAD\xFF [UNK]\t\nab";
    size_t length;
    char *json = fuzz_splice(seeds, sizeof seeds / sizeof *seeds, data, size, &length);
    slc_tokenizer *tokenizer = NULL;
    int fd;
    const char *path = fuzz_file(&fd);
    fuzz_put(fd, json, length);
    free(json);
    if (slc_tokenizer_open(path, &tokenizer)) {
        if (!*sluice_last_error() || tokenizer) abort();
        return 0;
    }
    check(tokenizer, hard, sizeof hard - 1);
    check(tokenizer, (const char *)data, size);
    slc_tokenizer_close(tokenizer);
    return 0;
}
