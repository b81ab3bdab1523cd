/* The section "model": vocabulary, and merges or prefix. lib/tokenizer/tokenizer_test.c covers this file. */
#include "lib/tokenizer/read/read.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static const char section[] = "model";

static sluice_status read_vocabulary(const char *path, const json_t *tokens, slc_vocabulary *out)
{
    size_t bytes = 0;
    const char *text;
    json_t *number;
    if (!json_is_object(tokens) || !json_object_size(tokens))
        return slc_read_fault(path, section, "vocab", "object with the numbers of tokens");
    json_object_foreach ((json_t *)tokens, text, number) bytes += strlen(text) + 1;
    sluice_status status = slc_vocabulary_init(out, json_object_size(tokens), bytes);
    json_object_foreach ((json_t *)tokens, text, number) {
        if (status) break;
        json_int_t value = json_integer_value(number);
        if (!json_is_integer(number) || value < 0 || value >= SLC_TOKEN_LIMIT)
            return slc_error(SLUICE_ERR_FORMAT, "%s: model.vocab: the number of \"%.100s\" is not from 0 to %d", path,
                             text, SLC_TOKEN_LIMIT - 1);
        status = slc_vocabulary_add(out, text, strlen(text), (int32_t)value);
    }
    return status;
}

/* ---- BPE ---- */

/* The two texts of a merge, "a b" or ["a", "b"], and where the first one ends. */
static bool parts_of(const json_t *merge, const char **left, size_t *left_bytes, const char **right)
{
    if (json_is_string(merge)) {
        const char *text = json_string_value(merge), *space = strchr(text, ' ');
        if (!space || strchr(space + 1, ' ')) return false;
        *left = text, *left_bytes = (size_t)(space - text), *right = space + 1;
        return true;
    }
    *left = json_string_value(json_array_get(merge, 0));
    *right = json_string_value(json_array_get(merge, 1));
    *left_bytes = *left ? strlen(*left) : 0;
    return json_array_size(merge) == 2 && *left && *right;
}

static sluice_status read_merge(const char *path, const json_t *merge, size_t rank, const slc_vocabulary *vocabulary,
                                slc_chars *text, slc_bpe_merge *out)
{
    const char *left, *right;
    size_t left_bytes;
    if (!parts_of(merge, &left, &left_bytes, &right))
        return slc_error(SLUICE_ERR_FORMAT, "%s: model.merges[%zu]: is no \"LEFT RIGHT\" or [\"LEFT\", \"RIGHT\"]",
                         path, rank);
    text->count = 0;
    sluice_status status = slc_chars_append(text, left, left_bytes);
    if (!status) status = slc_chars_append(text, right, strlen(right) + 1);
    if (status) return status;
    int32_t first = slc_vocabulary_find(vocabulary, left, left_bytes);
    int32_t second = slc_vocabulary_find(vocabulary, right, strlen(right));
    *out = (slc_bpe_merge){(uint64_t)(uint32_t)first << 32 | (uint32_t)second, (uint32_t)rank,
                           slc_vocabulary_find(vocabulary, text->data, text->count - 1)};
    if (first >= 0 && second >= 0 && out->merged >= 0) return SLUICE_OK;
    return slc_error(SLUICE_ERR_FORMAT, "%s: model.merges[%zu]: \"%.100s\" is no token", path, rank,
                     out->merged < 0 ? text->data
                     : second < 0    ? right
                                     : left);
}

static sluice_status read_merges(const char *path, const json_t *merges, slc_tokenizer *out)
{
    slc_chars text = {0};
    size_t count = json_array_size(merges);
    if (!json_is_array(merges)) return slc_read_fault(path, section, "merges", "list");
    slc_bpe_merge *pairs = malloc((count + 1) * sizeof *pairs);
    sluice_status status = pairs ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%zu merges of %s", count, path);
    for (size_t i = 0; i < count && !status; i++)
        status = read_merge(path, json_array_get(merges, i), i, &out->vocabulary, &text, &pairs[i]);
    if (!status) status = slc_bpe_init(&out->bpe, &out->vocabulary, pairs, count);
    free(text.data);
    free(pairs);
    return status;
}

/* Refuses keys that have another value than those of byte-level models. */
static sluice_status refuse_other_bpe(const char *path, const json_t *model)
{
    const json_t *dropout = json_object_get(model, "dropout");
    const char *prefix = "", *suffix = "";
    bool fallback = false;
    sluice_status status = slc_read_text(path, section, model, "continuing_subword_prefix", &prefix);
    if (!status) status = slc_read_text(path, section, model, "end_of_word_suffix", &suffix);
    if (!status) status = slc_read_flag(path, section, model, "byte_fallback", &fallback);
    if (status) return status;
    if (dropout && !json_is_null(dropout) && json_number_value(dropout) != 0)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: model.dropout is not supported: set it to null", path);
    if (*prefix || *suffix || fallback)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: model.%s is not supported; byte-level BPE has none", path,
                         *prefix   ? "continuing_subword_prefix"
                         : *suffix ? "end_of_word_suffix"
                                   : "byte_fallback");
    return SLUICE_OK;
}

static sluice_status read_bpe(const char *path, const json_t *model, slc_tokenizer *out)
{
    const char *unknown = NULL;
    out->model = SLC_MODEL_BPE;
    sluice_status status = refuse_other_bpe(path, model);
    if (!status) status = slc_read_flag(path, section, model, "fuse_unk", &out->bpe.fuse_unknown);
    if (!status) status = slc_read_flag(path, section, model, "ignore_merges", &out->bpe.ignore_merges);
    if (!status) status = slc_read_text(path, section, model, "unk_token", &unknown);
    if (!status) status = read_vocabulary(path, json_object_get(model, "vocab"), &out->vocabulary);
    if (status) return status;
    out->bpe.unknown = unknown ? slc_vocabulary_find(&out->vocabulary, unknown, strlen(unknown)) : -1;
    if (unknown && out->bpe.unknown < 0) return slc_read_fault(path, section, "unk_token", "token of the vocabulary");
    return read_merges(path, json_object_get(model, "merges"), out);
}

/* ---- WordPiece ---- */

static sluice_status read_wordpiece(const char *path, const json_t *model, slc_tokenizer *out)
{
    const char *unknown = "[UNK]", *prefix = "##";
    const json_t *most = json_object_get(model, "max_input_chars_per_word");
    out->model = SLC_MODEL_WORDPIECE;
    sluice_status status = slc_read_text(path, section, model, "unk_token", &unknown);
    if (!status) status = slc_read_text(path, section, model, "continuing_subword_prefix", &prefix);
    if (!status) status = read_vocabulary(path, json_object_get(model, "vocab"), &out->vocabulary);
    if (status) return status;
    if (most && (!json_is_integer(most) || json_integer_value(most) < 0))
        return slc_read_fault(path, section, "max_input_chars_per_word", "number of characters");
    out->wordpiece.most_runes = most ? (size_t)json_integer_value(most) : 100;
    out->wordpiece.unknown = slc_vocabulary_find(&out->vocabulary, unknown, strlen(unknown));
    if (out->wordpiece.unknown < 0) return slc_read_fault(path, section, "unk_token", "token of the vocabulary");
    out->wordpiece.prefix = strdup(prefix);
    if (!out->wordpiece.prefix) return slc_error(SLUICE_ERR_MEMORY, "%s", path);
    return slc_wordpiece_init(&out->wordpiece, &out->vocabulary);
}

sluice_status slc_read_token_model(const char *path, const json_t *model, slc_tokenizer *out)
{
    const char *type = slc_read_type(model);
    if (!json_is_object(model)) return slc_read_fault(path, "the file", section, "object");
    /* Files that are older than "type", GPT-2's among them, are told apart by their keys, as tokenizers does. */
    if (!*type) type = json_object_get(model, "merges") ? "BPE" : "WordPiece";
    if (!strcmp(type, "BPE")) return read_bpe(path, model, out);
    if (!strcmp(type, "WordPiece")) return read_wordpiece(path, model, out);
    return slc_read_unsupported(path, section, type, "byte-level BPE and WordPiece are");
}
