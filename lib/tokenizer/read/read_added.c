/* The section "added_tokens". lib/tokenizer/tokenizer_test.c covers this file. */
#include "lib/tokenizer/read/read.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static sluice_status read_token(const char *path, const json_t *from, slc_added_token *out)
{
    static const char section[] = "added_tokens";
    const char *text = "";
    const json_t *number = json_object_get(from, "id");
    json_int_t value = json_integer_value(number);
    sluice_status status = slc_read_text(path, section, from, "content", &text);
    if (status) return status;
    if (!*text) return slc_read_fault(path, section, "content", "text of a token");
    if (!json_is_integer(number) || value < 0 || value >= SLC_TOKEN_LIMIT)
        return slc_error(SLUICE_ERR_FORMAT, "%s: added_tokens: the number of \"%.100s\" is not from 0 to %d", path,
                         text, SLC_TOKEN_LIMIT - 1);
    *out = (slc_added_token){.bytes = strlen(text), .number = (int32_t)value};
    status = slc_read_flag(path, section, from, "special", &out->special);
    out->normalized = !out->special;
    if (!status) status = slc_read_flag(path, section, from, "normalized", &out->normalized);
    if (!status) status = slc_read_flag(path, section, from, "single_word", &out->single_word);
    if (!status) status = slc_read_flag(path, section, from, "lstrip", &out->lstrip);
    if (!status) status = slc_read_flag(path, section, from, "rstrip", &out->rstrip);
    if (!status && !(out->text = strdup(text))) status = slc_error(SLUICE_ERR_MEMORY, "%s", path);
    return status;
}

/* tokenizers numbers a token as the model does, or else by the first number that is free; a file that says otherwise is
 * damaged, and the two would not agree. */
static sluice_status check_number(const char *path, const slc_tokenizer *tokenizer, const slc_added_token *token,
                                  int32_t next)
{
    int32_t known = slc_vocabulary_find(&tokenizer->vocabulary, token->text, token->bytes);
    int32_t expected = known >= 0 ? known : next;
    if (token->number == expected) return SLUICE_OK;
    return slc_error(SLUICE_ERR_FORMAT, "%s: added_tokens: \"%.100s\" has the number %d, %s %d", path, token->text,
                     token->number, known >= 0 ? "but in model.vocab it has" : "where the next free one is", expected);
}

/* Makes the text of an added token that is looked for in normalised text. */
static sluice_status normalized_text(const char *path, slc_tokenizer *out, const slc_added_token *token,
                                     slc_chars *work, slc_chars *text)
{
    sluice_status status = slc_normalize(&out->normalizer, token->text, token->bytes, text, work);
    if (!status && !text->count)
        status = slc_error(SLUICE_ERR_UNSUPPORTED,
                           "%s: added_tokens: nothing is left of \"%.100s\" after it is "
                           "normalised; set its \"normalized\" to false",
                           path, token->text);
    return status;
}

static sluice_status make_finders(const char *path, slc_tokenizer *out)
{
    size_t count = out->added_count, plain = 0, normal = 0;
    slc_added_pattern *raw = calloc(count + 1, sizeof *raw), *normalized = calloc(count + 1, sizeof *normalized);
    slc_chars work = {0};
    sluice_status status = SLUICE_OK;
    out->normalized = calloc(count + 1, sizeof *out->normalized);
    if (!raw || !normalized || !out->normalized) status = slc_error(SLUICE_ERR_MEMORY, "added tokens of %s", path);
    for (size_t i = 0; i < count && !status; i++) {
        const slc_added_token *token = &out->added[i];
        if (!token->normalized) {
            raw[plain++] = (slc_added_pattern){token->text, token->bytes, token};
            continue;
        }
        slc_chars *text = &out->normalized[i];
        status = normalized_text(path, out, token, &work, text);
        if (!status) status = slc_chars_append(text, "", 1);
        if (!status) normalized[normal++] = (slc_added_pattern){text->data, text->count - 1, token};
    }
    free(work.data);
    if (status) {
        free(raw);
        free(normalized);
        return status;
    }
    slc_added_finder_init(&out->in_text, raw, plain);
    slc_added_finder_init(&out->in_normalized, normalized, normal);
    return SLUICE_OK;
}

sluice_status slc_read_added_tokens(const char *path, const json_t *added, slc_tokenizer *out)
{
    size_t count = json_array_size(added);
    int32_t next = (int32_t)out->vocabulary.count;
    sluice_status status = SLUICE_OK;
    if (added && !json_is_null(added) && !json_is_array(added))
        return slc_read_fault(path, "the file", "added_tokens", "list");
    out->added = calloc(count + 1, sizeof *out->added);
    if (!out->added) return slc_error(SLUICE_ERR_MEMORY, "%zu added tokens of %s", count, path);
    for (size_t i = 0; i < count && !status; i++) {
        slc_added_token *token = &out->added[i];
        out->added_count++;
        status = read_token(path, json_array_get(added, i), token);
        if (!status) status = check_number(path, out, token, next);
        if (!status && token->number >= next) next = token->number + 1;
    }
    return status ? status : make_finders(path, out);
}
