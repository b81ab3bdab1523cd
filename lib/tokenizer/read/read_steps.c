/* The sections for what comes before and after the model: normaliser, pre-tokenizer, post-processor, decoder.
 * lib/tokenizer/tokenizer_test.c covers this file. */
#include "lib/tokenizer/read/read.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static bool is_absent(const json_t *section)
{
    return !section || json_is_null(section);
}

/* ---- Normaliser ---- */

static sluice_status add_step(const char *path, slc_normalizer *normalizer, slc_normalize_step step)
{
    if (normalizer->count == SLC_NORMALIZE_STEPS)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: normalizer: more than %d steps are not supported", path,
                         SLC_NORMALIZE_STEPS);
    normalizer->steps[normalizer->count++] = step;
    return SLUICE_OK;
}

static sluice_status read_bert_normalizer(const char *path, const json_t *from, slc_normalizer *out)
{
    static const char section[] = "normalizer";
    bool clean = true, chinese = true, lowercase = true;
    sluice_status status = slc_read_flag(path, section, from, "clean_text", &clean);
    if (!status) status = slc_read_flag(path, section, from, "handle_chinese_chars", &chinese);
    if (!status) status = slc_read_flag(path, section, from, "lowercase", &lowercase);
    bool strip = lowercase; /* if it is null */
    if (!status) status = slc_read_flag(path, section, from, "strip_accents", &strip);
    if (!status && clean) status = add_step(path, out, SLC_NORMALIZE_CLEAN);
    if (!status && chinese) status = add_step(path, out, SLC_NORMALIZE_CHINESE);
    if (!status && strip) status = add_step(path, out, SLC_NORMALIZE_NFD);
    if (!status && strip) status = add_step(path, out, SLC_NORMALIZE_STRIP_ACCENTS);
    if (!status && lowercase) status = add_step(path, out, SLC_NORMALIZE_LOWERCASE);
    return status;
}

sluice_status slc_read_normalizer(const char *path, const json_t *normalizer, slc_tokenizer *out)
{
    static const struct {
        const char *type;
        slc_normalize_step step;
    } rows[] = {{"NFC", SLC_NORMALIZE_NFC},
                {"NFD", SLC_NORMALIZE_NFD},
                {"NFKC", SLC_NORMALIZE_NFKC},
                {"NFKD", SLC_NORMALIZE_NFKD},
                {"Lowercase", SLC_NORMALIZE_LOWERCASE},
                {"StripAccents", SLC_NORMALIZE_STRIP_MARKS}};
    const char *type = slc_read_type(normalizer);
    if (is_absent(normalizer)) return SLUICE_OK;
    if (!strcmp(type, "BertNormalizer")) return read_bert_normalizer(path, normalizer, &out->normalizer);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(type, rows[i].type)) return add_step(path, &out->normalizer, rows[i].step);
    if (strcmp(type, "Sequence") != 0)
        return slc_read_unsupported(path, "normalizer", type,
                                    "BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents and Sequence are");
    const json_t *list = json_object_get(normalizer, "normalizers");
    sluice_status status = json_is_array(list) ? SLUICE_OK : slc_read_fault(path, "normalizer", "normalizers", "list");
    for (size_t i = 0; i < json_array_size(list) && !status; i++)
        status = slc_read_normalizer(path, json_array_get(list, i), out);
    return status;
}

/* ---- Pre-tokenizer ---- */

static sluice_status read_words(const char *path, const json_t *from, slc_tokenizer *out)
{
    static const struct {
        const char *type;
        slc_words words;
    } rows[] = {{"ByteLevel", SLC_WORDS_BYTE_LEVEL},
                {"BertPreTokenizer", SLC_WORDS_BERT},
                {"Whitespace", SLC_WORDS_WHITESPACE},
                {"WhitespaceSplit", SLC_WORDS_WHITESPACE_SPLIT}};
    const char *type = slc_read_type(from);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(type, rows[i].type) != 0) continue;
        out->words = rows[i].words;
        return SLUICE_OK;
    }
    return slc_read_unsupported(path, "pre_tokenizer", type,
                                "ByteLevel, BertPreTokenizer, Whitespace and WhitespaceSplit are");
}

sluice_status slc_read_pre_tokenizer(const char *path, const json_t *pre_tokenizer, slc_tokenizer *out)
{
    static const char section[] = "pre_tokenizer";
    const json_t *only = pre_tokenizer, *list = json_object_get(only, "pretokenizers");
    bool use_regex = true, add_prefix_space = true;
    if (!strcmp(slc_read_type(only), "Sequence") && json_array_size(list) == 1) only = json_array_get(list, 0);
    sluice_status status = is_absent(only) ? SLUICE_OK : read_words(path, only, out);
    bool byte_level = out->words == SLC_WORDS_BYTE_LEVEL;
    if (!status && byte_level != (out->model == SLC_MODEL_BPE))
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "%s: %s with the pre_tokenizer \"%s\" is not supported; BPE needs "
                         "ByteLevel, and only BPE has it",
                         path, byte_level ? "WordPiece" : "BPE", is_absent(only) ? "null" : slc_read_type(only));
    if (status || !byte_level) return status;
    status = slc_read_flag(path, section, only, "use_regex", &use_regex);
    if (!status) status = slc_read_flag(path, section, only, "add_prefix_space", &add_prefix_space);
    if (!use_regex) out->words = SLC_WORDS_WHOLE;
    out->add_prefix_space = add_prefix_space;
    return status;
}

/* ---- Post-processor ---- */

static sluice_status read_special(const char *path, const json_t *number, slc_token_list *list)
{
    json_int_t value = json_integer_value(number);
    int32_t token = (int32_t)value;
    if (!json_is_integer(number) || value < 0 || value >= SLC_TOKEN_LIMIT)
        return slc_error(SLUICE_ERR_FORMAT, "%s: post_processor: a special token's number is not from 0 to %d", path,
                         SLC_TOKEN_LIMIT - 1);
    return slc_token_list_append(list, &token, 1);
}

/* {"SpecialToken": {"id": NAME}}, whose numbers are in the processor's special_tokens. */
static sluice_status read_template_special(const char *path, const json_t *special, const json_t *table,
                                           slc_token_list *list)
{
    const char *name = json_string_value(json_object_get(special, "id"));
    const json_t *numbers = json_object_get(json_object_get(table, name ? name : ""), "ids");
    sluice_status status = SLUICE_OK;
    if (!name || !json_is_array(numbers))
        return slc_read_fault(path, "post_processor", name ? name : "id", "special token of the template");
    for (size_t i = 0; i < json_array_size(numbers) && !status; i++)
        status = read_special(path, json_array_get(numbers, i), list);
    return status;
}

static sluice_status read_template(const char *path, const json_t *from, slc_token_list *before, slc_token_list *after)
{
    const json_t *single = json_object_get(from, "single"), *table = json_object_get(from, "special_tokens");
    sluice_status status = SLUICE_OK;
    size_t texts = 0;
    for (size_t i = 0; i < json_array_size(single) && !status; i++) {
        const json_t *special = json_object_get(json_array_get(single, i), "SpecialToken");
        const json_t *sequence = json_object_get(json_array_get(single, i), "Sequence");
        const char *name = json_string_value(json_object_get(sequence, "id"));
        if (special)
            status = read_template_special(path, special, table, texts ? after : before);
        else if (!name || strcmp(name, "A") != 0)
            return slc_read_fault(path, "post_processor", "single", "list of special tokens and the sequence A");
        else
            texts++;
    }
    if (!status && texts != 1)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "%s: post_processor: a template that has the text %zu times is not "
                         "supported",
                         path, texts);
    return status;
}

static sluice_status read_processor(const char *path, const json_t *from, slc_token_list *before, slc_token_list *after)
{
    const char *type = slc_read_type(from);
    if (!strcmp(type, "ByteLevel")) return SLUICE_OK; /* it changes offsets alone */
    if (!strcmp(type, "TemplateProcessing")) return read_template(path, from, before, after);
    if (strcmp(type, "BertProcessing") != 0)
        return slc_read_unsupported(path, "post_processor", type,
                                    "ByteLevel, BertProcessing, TemplateProcessing and Sequence are");
    sluice_status status = read_special(path, json_array_get(json_object_get(from, "cls"), 1), before);
    return status ? status : read_special(path, json_array_get(json_object_get(from, "sep"), 1), after);
}

sluice_status slc_read_post_processor(const char *path, const json_t *post_processor, slc_tokenizer *out)
{
    if (is_absent(post_processor)) return SLUICE_OK;
    if (strcmp(slc_read_type(post_processor), "Sequence") != 0)
        return read_processor(path, post_processor, &out->before, &out->after);
    const json_t *list = json_object_get(post_processor, "processors");
    sluice_status status =
        json_is_array(list) ? SLUICE_OK : slc_read_fault(path, "post_processor", "processors", "list");
    for (size_t i = 0; i < json_array_size(list) && !status; i++) {
        slc_token_list outer = {0}; /* each processor adds around what the one before has made */
        status = read_processor(path, json_array_get(list, i), &outer, &out->after);
        if (!status) status = slc_token_list_append(&outer, out->before.tokens, out->before.count);
        free(out->before.tokens);
        out->before = outer;
    }
    return status;
}

/* ---- Decoder ---- */

sluice_status slc_read_decoder(const char *path, const json_t *decoder, slc_tokenizer *out)
{
    const char *type = slc_read_type(decoder), *prefix = "##";
    out->decoding = SLC_DECODE_SPACES;
    if (is_absent(decoder)) return SLUICE_OK;
    out->decoding = SLC_DECODE_BYTE_LEVEL;
    if (!strcmp(type, "ByteLevel")) return SLUICE_OK;
    if (strcmp(type, "WordPiece") != 0)
        return slc_read_unsupported(path, "decoder", type, "ByteLevel and WordPiece are");
    out->decoding = SLC_DECODE_WORDPIECE;
    out->decode_cleanup = true;
    sluice_status status = slc_read_text(path, "decoder", decoder, "prefix", &prefix);
    if (!status) status = slc_read_flag(path, "decoder", decoder, "cleanup", &out->decode_cleanup);
    if (!status && !(out->decode_prefix = strdup(prefix))) status = slc_error(SLUICE_ERR_MEMORY, "%s", path);
    return status;
}
