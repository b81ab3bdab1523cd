/* Tokens to text. tokenizer_test.c covers this file. */
#include "lib/tokenizer/tokenizer_parts.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

/* ---- Byte level: each character stands for a byte ---- */

static sluice_status append_bytes(const char *token, slc_chars *out)
{
    size_t before = out->count, length = strlen(token);
    sluice_status status = SLUICE_OK;
    for (size_t at = 0; at < length && !status;) {
        int byte = slc_bpe_byte_of(slc_rune_next(token, &at));
        if (byte < 0) { /* an added token is its own text */
            out->count = before;
            return slc_chars_append(out, token, length);
        }
        status = slc_chars_append(out, &(char){(char)byte}, 1);
    }
    return status;
}

/* ---- WordPiece ---- */

/* Replaces `from` wherever it stands in the text from `first` on; `to` is not longer. */
static void replace_all(slc_chars *text, size_t first, const char *from, const char *to)
{
    size_t from_bytes = strlen(from), to_bytes = strlen(to), end = first;
    for (size_t at = first; at < text->count;) {
        if (text->data[at] != *from || text->count - at < from_bytes ||
            memcmp(text->data + at, from, from_bytes) != 0) {
            text->data[end++] = text->data[at++];
            continue;
        }
        memcpy(text->data + end, to, to_bytes);
        end += to_bytes;
        at += from_bytes;
    }
    text->count = end;
}

/* Takes back spaces before punctuation and in English contractions, in one token and the space before it. */
static void clean_up(slc_chars *text, size_t first)
{
    static const char *const rows[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                          {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                          {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) replace_all(text, first, rows[i][0], rows[i][1]);
}

static sluice_status append_piece(const slc_tokenizer *tokenizer, const char *token, bool leads, slc_chars *out)
{
    size_t skip = strlen(tokenizer->decode_prefix), first = out->count;
    bool continues = !leads && !strncmp(token, tokenizer->decode_prefix, skip);
    sluice_status status = leads || continues ? SLUICE_OK : slc_chars_append(out, " ", 1);
    if (continues) token += skip;
    if (!status) status = slc_chars_append(out, token, strlen(token));
    if (!status && tokenizer->decode_cleanup) clean_up(out, first);
    return status;
}

/* ---- All ---- */

static sluice_status append_token(const slc_tokenizer *tokenizer, const char *token, bool leads, slc_chars *out)
{
    if (tokenizer->decoding == SLC_DECODE_BYTE_LEVEL) return append_bytes(token, out);
    if (tokenizer->decoding == SLC_DECODE_WORDPIECE) return append_piece(tokenizer, token, leads, out);
    sluice_status status = leads ? SLUICE_OK : slc_chars_append(out, " ", 1);
    return status ? status : slc_chars_append(out, token, strlen(token));
}

/* True if the token is left out as a special one. Hugging Face's tokenizers knows special tokens by their texts, so one
 * whose normalised text is another one is not left out. */
static bool is_left_out(const slc_tokenizer *tokenizer, int32_t token)
{
    return tokenizer->special[token] && !strcmp(tokenizer->told[token], tokenizer->texts[token]);
}

sluice_status slc_tokenizer_bytes(const slc_tokenizer *tokenizer, int32_t token, size_t *bytes)
{
    slc_chars own = {0};
    *bytes = 0;
    if (tokenizer->decoding != SLC_DECODE_BYTE_LEVEL)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "which bytes of a text a token stands for is known for byte-level BPE "
                                                 "alone");
    if (!slc_tokenizer_text(tokenizer, token))
        return slc_error(SLUICE_ERR_ARGUMENT, "token %d is not in the tokenizer's vocabulary of %u", token,
                         tokenizer->size);
    sluice_status status = append_bytes(tokenizer->texts[token], &own);
    *bytes = own.count;
    free(own.data);
    return status;
}

sluice_status slc_tokenizer_decode(const slc_tokenizer *tokenizer, const int32_t *tokens, size_t count,
                                   bool skip_special, char **text, size_t *bytes)
{
    slc_chars joined = {0}, whole = {0};
    sluice_status status = SLUICE_OK;
    bool leads = true;
    *text = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        if (!slc_tokenizer_text(tokenizer, tokens[i]))
            status = slc_error(SLUICE_ERR_ARGUMENT, "token %d is not in the tokenizer's vocabulary of %u", tokens[i],
                               tokenizer->size);
        if (status || (skip_special && is_left_out(tokenizer, tokens[i]))) continue;
        status = append_token(tokenizer, tokenizer->told[tokens[i]], leads, &joined);
        leads = false;
    }
    if (!status) status = slc_chars_append_repaired(&whole, joined.data, joined.count);
    if (!status) status = slc_chars_append(&whole, "", 1);
    free(joined.data);
    if (status) {
        free(whole.data);
        return status;
    }
    if (bytes) *bytes = whole.count - 1;
    *text = whole.data;
    return SLUICE_OK;
}
