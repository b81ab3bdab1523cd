/* Special tokens by their names in Hugging Face's files: a text, or an object with "content". */
#include "lib/data/tokenizer_files/special_tokens.h"

#include "lib/base/status.h"
#include "lib/data/tokenizer_files/tokenizer_files_parts.h"

#include <stddef.h>

static const struct {
    const char *key;
    size_t field;
    const char *usual[3]; /* the names that it has if no file says it */
} rows[] = {
    {"bos_token", offsetof(slc_special_tokens, begin), {"<|endoftext|>", "<s>"}},
    {"eos_token", offsetof(slc_special_tokens, end), {"<|endoftext|>", "</s>"}},
    {"cls_token", offsetof(slc_special_tokens, first), {"[CLS]"}},
    {"sep_token", offsetof(slc_special_tokens, last), {"[SEP]"}},
    {"mask_token", offsetof(slc_special_tokens, mask), {"[MASK]"}},
    {"pad_token", offsetof(slc_special_tokens, padding), {"[PAD]"}},
};

static const char *named(const json_t *names, const char *key)
{
    const json_t *value = json_object_get(names, key);
    return json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
}

static sluice_status find_token(const slc_tokenizer *tokenizer, const char *path, json_t *const files[2], size_t row,
                                int32_t *out)
{
    const char *text = named(files[0], rows[row].key);
    if (!text) text = named(files[1], rows[row].key);
    *out = text ? slc_tokenizer_find(tokenizer, text) : -1;
    if (text && *out < 0)
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s: its tokenizer_config.json or special_tokens_map.json calls \"%s\" the %s, and its "
                         "tokenizer.json has no such token",
                         path, text, rows[row].key);
    for (size_t i = 0; *out < 0 && rows[row].usual[i]; i++) *out = slc_tokenizer_find(tokenizer, rows[row].usual[i]);
    return SLUICE_OK;
}

sluice_status slc_special_tokens_find(const slc_tokenizer *tokenizer, const char *path, slc_special_tokens *out)
{
    json_t *files[2] = {0};
    sluice_status status = slc_tokenizer_file_read(path, "tokenizer_config.json", &files[0]);
    if (!status) status = slc_tokenizer_file_read(path, "special_tokens_map.json", &files[1]);
    for (size_t i = 0; !status && i < sizeof rows / sizeof *rows; i++)
        status = find_token(tokenizer, path, files, i, (int32_t *)((char *)out + rows[i].field));
    json_decref(files[0]);
    json_decref(files[1]);
    return status;
}
