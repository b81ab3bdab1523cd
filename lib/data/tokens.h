/* llm.c's token files (https://github.com/karpathy/llm.c, dev/data/data_common.py: write_datafile): 256 int32, of which
 * the first three are magic, version and the number of tokens; then the tokens, little endian.
 *   20240520, version 1: GPT-2's tokens, uint16;
 *   20240801, version 7: Llama 3's, uint32 */
#pragma once

#include "lib/base/file/file.h"

typedef enum {
    SLC_TOKENS_BYTES,
    SLC_TOKENS_GPT2,
    SLC_TOKENS_LLAMA3,
    SLC_TOKENS_UINT16, /* of any tokenizer, without a header: nothing in the file says so */
} slc_token_kind;

const char *slc_token_kind_name(slc_token_kind kind); /* "bytes", "GPT-2's tokens" */

typedef struct {
    slc_token_kind kind;
    uint32_t width;      /* bytes of one token */
    uint32_t vocabulary; /* every token of a correct file is below it */
    uint64_t begin;      /* offset of the first token, in bytes */
    uint64_t tokens;
} slc_token_format;

/* Recognises the format by the file's beginning: a file with none of llm.c's magics holds bytes. Errors: IO; FORMAT
 * (another version; a number of tokens that does not fit the file, or none; llm.c's checkpoints and evaluation sets,
 * which are not text). Any thread. */
sluice_status slc_token_format_of(const slc_file *file, slc_token_format *out);
/* Takes the whole file as tokens of 2 bytes, little endian. Errors: FORMAT (an odd number of bytes). Any thread. */
sluice_status slc_token_format_uint16(const slc_file *file, slc_token_format *out);
