/* Recognises llm.c's token files. The bytes of the magics are not text in any usual encoding, so no text is taken for
 * tokens. text_test.c covers this file. */
#include "lib/data/tokens.h"

#include "lib/base/status.h"

enum { HEADER_WORDS = 256, MAGIC_EVALUATION = 20240522, MAGIC_CHECKPOINT = 20240326 };

static const struct {
    const char *name;
    int32_t magic, version;
    uint32_t width, vocabulary;
} kinds[] = {
    [SLC_TOKENS_BYTES] = {"bytes", 0, 0, 1, 256},
    [SLC_TOKENS_GPT2] = {"GPT-2's tokens", 20240520, 1, 2, 50257},
    [SLC_TOKENS_LLAMA3] = {"Llama 3's tokens", 20240801, 7, 4, 128256},
    [SLC_TOKENS_UINT16] = {"tokens of 2 bytes", 0, 0, 2, 65536},
};

const char *slc_token_kind_name(slc_token_kind kind)
{
    return kinds[kind].name;
}

static sluice_status check(const slc_file *file, const slc_token_format *format, const int32_t words[3])
{
    const char *path = file->path, *name = kinds[format->kind].name;
    if (words[1] != kinds[format->kind].version)
        return slc_error(SLUICE_ERR_FORMAT, "%s: version %d of a file of %s; version %d is read", path, words[1], name,
                         kinds[format->kind].version);
    uint64_t bytes = file->bytes < format->begin ? 0 : file->bytes - format->begin;
    if (words[2] < 1 || bytes % format->width || bytes / format->width != (uint64_t)words[2])
        return slc_error(SLUICE_ERR_FORMAT, "%s: says that it holds %d of %s; after its header are %llu bytes", path,
                         words[2], name, (unsigned long long)bytes);
    return SLUICE_OK;
}

sluice_status slc_token_format_uint16(const slc_file *file, slc_token_format *out)
{
    *out = (slc_token_format){.kind = SLC_TOKENS_UINT16,
                              .width = kinds[SLC_TOKENS_UINT16].width,
                              .vocabulary = kinds[SLC_TOKENS_UINT16].vocabulary,
                              .tokens = file->bytes / 2};
    if (file->bytes % 2 == 0) return SLUICE_OK;
    return slc_error(SLUICE_ERR_FORMAT, "%s: has %llu bytes, and tokens of 2 bytes each make an even number",
                     file->path, (unsigned long long)file->bytes);
}

sluice_status slc_token_format_of(const slc_file *file, slc_token_format *out)
{
    int32_t words[3] = {0};
    sluice_status status = file->bytes < sizeof words ? SLUICE_OK : slc_file_read(file, 0, sizeof words, words);
    if (status) return status;
    if (words[0] == MAGIC_EVALUATION || words[0] == MAGIC_CHECKPOINT)
        return slc_error(SLUICE_ERR_FORMAT, "%s: is llm.c's %s, which is no text", file->path,
                         words[0] == MAGIC_CHECKPOINT ? "checkpoint" : "evaluation set");
    slc_token_kind kind = words[0] == kinds[SLC_TOKENS_GPT2].magic     ? SLC_TOKENS_GPT2
                          : words[0] == kinds[SLC_TOKENS_LLAMA3].magic ? SLC_TOKENS_LLAMA3
                                                                       : SLC_TOKENS_BYTES;
    *out = (slc_token_format){.kind = kind, .width = kinds[kind].width, .vocabulary = kinds[kind].vocabulary};
    if (kind == SLC_TOKENS_BYTES) {
        out->tokens = file->bytes;
        return SLUICE_OK;
    }
    out->begin = HEADER_WORDS * sizeof words[0];
    status = check(file, out, words);
    out->tokens = (uint64_t)words[2];
    return status;
}
