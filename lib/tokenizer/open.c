/* Opens and closes tokenizers, and answers about their tokens. golden_tokens_test.c covers this file. */
#include "lib/tokenizer/tokenizer_parts.h"

#include "lib/base/file/json_file.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"
#include "lib/tokenizer/cuts.h"
#include "lib/tokenizer/read/read.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Opening ---- */

/* Makes the tables by token number. An added token takes the place of the model's token of the same number, which has
 * the same text. */
static sluice_status index_tokens(const char *path, slc_tokenizer *out)
{
    int32_t last = 0;
    for (size_t i = 0; i < out->vocabulary.count; i++)
        if (out->vocabulary.entries[i].number > last) last = out->vocabulary.entries[i].number;
    for (size_t i = 0; i < out->added_count; i++)
        if (out->added[i].number > last) last = out->added[i].number;
    out->size = (uint32_t)last + 1;
    out->texts = calloc(out->size, sizeof *out->texts);
    out->told = calloc(out->size, sizeof *out->told);
    out->special = calloc(out->size, sizeof *out->special);
    if (!out->texts || !out->told || !out->special)
        return slc_error(SLUICE_ERR_MEMORY, "%u tokens of %s", out->size, path);
    for (size_t i = 0; i < out->vocabulary.count; i++) {
        const slc_token_entry *entry = &out->vocabulary.entries[i];
        if (out->texts[entry->number])
            return slc_error(SLUICE_ERR_FORMAT, "%s: model.vocab: \"%.100s\" and \"%.100s\" have the same number, %d",
                             path, out->texts[entry->number], entry->text, entry->number);
        out->texts[entry->number] = out->told[entry->number] = entry->text;
    }
    for (size_t i = 0; i < out->added_count; i++) {
        const slc_added_token *token = &out->added[i];
        out->texts[token->number] = token->text;
        out->told[token->number] = token->normalized ? out->normalized[i].data : token->text;
        out->special[token->number] |= token->special;
    }
    return SLUICE_OK;
}

static sluice_status check_special(const char *path, const slc_tokenizer *tokenizer, const slc_token_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!slc_tokenizer_text(tokenizer, list->tokens[i]))
            return slc_error(SLUICE_ERR_FORMAT, "%s: post_processor: there is no token %d", path, list->tokens[i]);
    return SLUICE_OK;
}

static sluice_status read_root(const char *path, const json_t *root, slc_tokenizer *out)
{
    if (!json_is_object(root)) return slc_error(SLUICE_ERR_FORMAT, "%s: is no {...}", path);
    sluice_status status = slc_read_token_model(path, json_object_get(root, "model"), out);
    if (!status) status = slc_read_normalizer(path, json_object_get(root, "normalizer"), out);
    out->bert_normalizer = !strcmp(slc_read_type(json_object_get(root, "normalizer")), "BertNormalizer");
    if (!status) status = slc_read_pre_tokenizer(path, json_object_get(root, "pre_tokenizer"), out);
    if (!status) status = slc_read_post_processor(path, json_object_get(root, "post_processor"), out);
    if (!status) status = slc_read_decoder(path, json_object_get(root, "decoder"), out);
    if (!status) status = slc_read_added_tokens(path, json_object_get(root, "added_tokens"), out);
    if (!status) status = index_tokens(path, out);
    if (!status) status = check_special(path, out, &out->before);
    if (!status) status = check_special(path, out, &out->after);
    if (!status) slc_cuts_learn(out);
    return status;
}

static sluice_status read_file(const char *path, slc_tokenizer *out)
{
    char *text = NULL;
    size_t length = 0;
    json_error_t why;
    sluice_status status = slc_json_file_read(path, &text, &length);
    if (status) return status;
    json_t *root = json_loadb(text, length, 0, &why);
    out->fingerprint = slc_fnv(SLC_FNV_START, text, length);
    free(text);
    if (!root) return slc_error(SLUICE_ERR_FORMAT, "%s: line %d, column %d: %s", path, why.line, why.column, why.text);
    status = read_root(path, root, out);
    json_decref(root);
    return status;
}

/* Writes the path of the file in a folder; false: it is too long. */
static bool file_in(const char *folder, char out[PATH_MAX])
{
    int length = snprintf(out, PATH_MAX, "%s/tokenizer.json", folder);
    return length > 0 && length < PATH_MAX;
}

sluice_status slc_tokenizer_open(const char *path, slc_tokenizer **out)
{
    char file[PATH_MAX];
    struct stat info;
    bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    *out = NULL;
    if (folder && !file_in(path, file)) return slc_error(SLUICE_ERR_ARGUMENT, "%.100s...: the path is too long", path);
    slc_tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    if (!tokenizer) return slc_error(SLUICE_ERR_MEMORY, "tokenizer");
    sluice_status status = read_file(folder ? file : path, tokenizer);
    if (status)
        slc_tokenizer_close(tokenizer);
    else
        *out = tokenizer;
    return status;
}

void slc_tokenizer_close(slc_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    for (size_t i = 0; i < tokenizer->added_count; i++) {
        free(tokenizer->added[i].text);
        if (tokenizer->normalized) free(tokenizer->normalized[i].data);
    }
    free(tokenizer->added);
    free(tokenizer->normalized);
    free(tokenizer->in_text.patterns);
    free(tokenizer->in_normalized.patterns);
    slc_vocabulary_fini(&tokenizer->vocabulary);
    slc_bpe_fini(&tokenizer->bpe);
    slc_wordpiece_fini(&tokenizer->wordpiece);
    free(tokenizer->before.tokens);
    free(tokenizer->after.tokens);
    free(tokenizer->decode_prefix);
    free(tokenizer->texts);
    free(tokenizer->told);
    free(tokenizer->special);
    free(tokenizer);
}

/* ---- Answers ---- */

bool slc_tokenizer_exists(const char *folder)
{
    char file[PATH_MAX];
    struct stat info;
    return file_in(folder, file) && stat(file, &info) == 0;
}

uint32_t slc_tokenizer_vocabulary(const slc_tokenizer *tokenizer)
{
    return tokenizer->size;
}

uint64_t slc_tokenizer_fingerprint(const slc_tokenizer *tokenizer)
{
    return tokenizer->fingerprint;
}

int32_t slc_tokenizer_find(const slc_tokenizer *tokenizer, const char *text)
{
    for (size_t i = 0; i < tokenizer->added_count; i++)
        if (!strcmp(tokenizer->added[i].text, text)) return tokenizer->added[i].number;
    return slc_vocabulary_find(&tokenizer->vocabulary, text, strlen(text));
}

const char *slc_tokenizer_text(const slc_tokenizer *tokenizer, int32_t token)
{
    return token >= 0 && (uint32_t)token < tokenizer->size ? tokenizer->texts[token] : NULL;
}

bool slc_tokenizer_added_token(const slc_tokenizer *tokenizer, size_t index, slc_tokenizer_added *out)
{
    if (index >= tokenizer->added_count) return false;
    const slc_added_token *token = &tokenizer->added[index];
    *out = (slc_tokenizer_added){.text = token->text,
                                 .number = token->number,
                                 .special = token->special,
                                 .single_word = token->single_word,
                                 .lstrip = token->lstrip,
                                 .rstrip = token->rstrip,
                                 .normalized = token->normalized};
    return true;
}

int32_t slc_tokenizer_unknown(const slc_tokenizer *tokenizer)
{
    return tokenizer->model == SLC_MODEL_BPE ? tokenizer->bpe.unknown : tokenizer->wordpiece.unknown;
}

static bool has_step(const slc_tokenizer *tokenizer, slc_normalize_step step)
{
    for (size_t i = 0; i < tokenizer->normalizer.count; i++)
        if (tokenizer->normalizer.steps[i] == step) return true;
    return false;
}

slc_tokenizer_manner slc_tokenizer_get_manner(const slc_tokenizer *tokenizer)
{
    return (slc_tokenizer_manner){.wordpiece = tokenizer->model == SLC_MODEL_WORDPIECE,
                                  .bert = tokenizer->bert_normalizer && tokenizer->words == SLC_WORDS_BERT,
                                  .gpt2 = !tokenizer->normalizer.count && tokenizer->words == SLC_WORDS_BYTE_LEVEL,
                                  .do_lower_case = has_step(tokenizer, SLC_NORMALIZE_LOWERCASE),
                                  .strip_accents = has_step(tokenizer, SLC_NORMALIZE_STRIP_ACCENTS) ||
                                                   has_step(tokenizer, SLC_NORMALIZE_STRIP_MARKS),
                                  .tokenize_chinese_chars = has_step(tokenizer, SLC_NORMALIZE_CHINESE),
                                  .add_prefix_space = tokenizer->add_prefix_space};
}
