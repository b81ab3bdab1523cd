/* See tokenizer_files.h. transformers (4.57 and 5.x) reads a folder in this way: the class that tokenizer_config.json
 * names prepares a text as that file says, or by the class's defaults, whatever tokenizer.json says;
 * PreTrainedTokenizerFast takes tokenizer.json as it is, but for add_prefix_space. Without tokenizer_config.json the
 * model's family chooses a class. */
#include "lib/data/tokenizer_files/tokenizer_files.h"

#include "lib/base/file/json_file.h"
#include "lib/base/status.h"
#include "lib/data/tokenizer_files/special_tokens.h"
#include "lib/data/tokenizer_files/tokenizer_files_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char config_name[] = "tokenizer_config.json";

/* ---- Copies ---- */

static bool same_folder(const char *path, const char *to)
{
    struct stat from, target;
    char *folder = slc_tokenizer_file_path(path, ".");
    bool same = folder && !stat(folder, &from) && !stat(to, &target) && from.st_dev == target.st_dev &&
                from.st_ino == target.st_ino;
    free(folder);
    return same;
}

static sluice_status copy_file(const char *path, const char *to, const char *name)
{
    char *from = slc_tokenizer_file_path(path, name), *target = NULL, *text = NULL;
    size_t length = 0;
    if (asprintf(&target, "%s/%s", to, name) < 0) target = NULL;
    sluice_status status = from && target ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%s", name);
    if (!status && !access(from, F_OK)) {
        status = slc_json_file_read(from, &text, &length);
        if (!status && memchr(text, 0, length))
            status = slc_error(SLUICE_ERR_FORMAT, "%s: it has a byte 0, so it is no text; it is not copied", from);
        if (!status) {
            text[length] = 0; /* there is room: files are read with one byte more */
            status = slc_json_file_write(target, text);
        }
    }
    free(text);
    free(target);
    free(from);
    return status;
}

static sluice_status copy_files(const char *path, const char *to)
{
    static const char *const names[] = {"tokenizer.json",    config_name,  "special_tokens_map.json",
                                        "added_tokens.json", "vocab.json", "vocab.txt",
                                        "merges.txt"};
    sluice_status status = SLUICE_OK;
    if (same_folder(path, to)) return status;
    for (size_t i = 0; !status && i < sizeof names / sizeof *names; i++) status = copy_file(path, to, names[i]);
    return status;
}

/* ---- A tokenizer_config.json if there is none ---- */

static int set_flag(json_t *object, const char *key, bool value)
{
    return json_object_set_new(object, key, json_boolean(value));
}

/* Adds what transformers calls added_tokens_decoder: with it no other file is asked for added tokens. */
static int add_added_tokens(json_t *config, const slc_tokenizer *tokenizer)
{
    json_t *decoder = json_object();
    slc_tokenizer_added token;
    int failed = json_object_set_new(config, "added_tokens_decoder", decoder);
    for (size_t i = 0; !failed && slc_tokenizer_added_token(tokenizer, i, &token); i++) {
        char number[16];
        json_t *entry = json_pack("{s:s, s:b, s:b, s:b, s:b, s:b}", "content", token.text, "lstrip", token.lstrip,
                                  "normalized", token.normalized, "rstrip", token.rstrip, "single_word",
                                  token.single_word, "special", token.special);
        snprintf(number, sizeof number, "%d", token.number);
        failed = json_object_set_new(decoder, number, entry);
    }
    return failed;
}

/* Names a special token in the configuration, if it is an added one: transformers looks for named tokens in each text
 * before all else, and tokenizer.json does so for added ones alone. */
static int name_token(json_t *config, const char *key, const slc_tokenizer *tokenizer, int32_t number)
{
    slc_tokenizer_added token;
    for (size_t i = 0; number >= 0 && slc_tokenizer_added_token(tokenizer, i, &token); i++)
        if (token.number == number) return json_object_set_new(config, key, json_string(token.text));
    return 0;
}

static int add_special_tokens(json_t *config, const slc_tokenizer *tokenizer, const slc_special_tokens *special)
{
    return name_token(config, "bos_token", tokenizer, special->begin) |
           name_token(config, "eos_token", tokenizer, special->end) |
           name_token(config, "unk_token", tokenizer, slc_tokenizer_unknown(tokenizer)) |
           name_token(config, "cls_token", tokenizer, special->first) |
           name_token(config, "sep_token", tokenizer, special->last) |
           name_token(config, "mask_token", tokenizer, special->mask) |
           name_token(config, "pad_token", tokenizer, special->padding);
}

/* Makes a tokenizer_config.json. For GPT-2 it leaves token_type_ids out of the inputs, because the model would take
 * them for tokens of its own. */
static json_t *make_config(const slc_tokenizer *tokenizer, const slc_special_tokens *special)
{
    const slc_tokenizer_manner manner = slc_tokenizer_get_manner(tokenizer);
    json_t *config =
        json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast", "clean_up_tokenization_spaces", 0);
    int failed = json_object_set_new(config, "model_input_names",
                                     !manner.wordpiece
                                         ? json_pack("[s, s]", "input_ids", "attention_mask")
                                         : json_pack("[s, s, s]", "input_ids", "token_type_ids", "attention_mask"));
    failed |= add_special_tokens(config, tokenizer, special) | add_added_tokens(config, tokenizer);
    if (!manner.wordpiece) failed |= set_flag(config, "add_prefix_space", manner.add_prefix_space);
    if (manner.bert)
        failed |= set_flag(config, "do_lower_case", manner.do_lower_case) |
                  set_flag(config, "strip_accents", manner.strip_accents) |
                  set_flag(config, "tokenize_chinese_chars", manner.tokenize_chinese_chars);
    if (!failed) return config;
    json_decref(config);
    return NULL;
}

static sluice_status write_config(const char *path, const char *to)
{
    slc_tokenizer *tokenizer = NULL;
    slc_special_tokens special;
    json_t *config = NULL;
    char *target = NULL, *text = NULL;
    sluice_status status = slc_tokenizer_open(path, &tokenizer);
    if (!status) status = slc_special_tokens_find(tokenizer, path, &special);
    if (!status && (!(config = make_config(tokenizer, &special)) || !(text = json_dumps(config, JSON_INDENT(2))) ||
                    asprintf(&target, "%s/%s", to, config_name) < 0)) {
        target = NULL;
        status = slc_error(SLUICE_ERR_MEMORY, "%s", config_name);
    }
    if (!status) status = slc_json_file_write(target, text);
    free(target);
    free(text);
    json_decref(config);
    slc_tokenizer_close(tokenizer);
    return status;
}

sluice_status slc_tokenizer_files_save(const char *path, const char *to)
{
    char *config = slc_tokenizer_file_path(path, config_name);
    if (!config) return slc_error(SLUICE_ERR_MEMORY, "%s", config_name);
    sluice_status status = copy_files(path, to);
    if (!status && access(config, F_OK)) status = write_config(path, to);
    free(config);
    return status;
}

/* ---- Two files that say different things ---- */

typedef struct {
    const char *key;
    bool told;       /* the key is in the file, or the class has a default for it */
    bool says, does; /* tokenizer_config.json, or the class; tokenizer.json */
} manner_row;

static bool flag_of(const json_t *config, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(config, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

static bool has_flag(const json_t *config, const char *key)
{
    return json_is_boolean(json_object_get(config, key));
}

/* Returns true if the class prepares text by itself. Where none is named the model's family chooses one that does. */
static bool prepares_text(const char *class)
{
    return strncmp(class, "PreTrainedTokenizer", 19) && strcmp(class, "TokenizersBackend") != 0;
}

/* Finds the first key for which tokenizer_config.json prepares a text otherwise than tokenizer.json. With a class of
 * WordPiece, keys that it lacks have BertTokenizer's defaults. */
static sluice_status find_difference(const slc_tokenizer *tokenizer, const json_t *config, char **line)
{
    const slc_tokenizer_manner is = slc_tokenizer_get_manner(tokenizer);
    const char *class = json_string_value(json_object_get(config, "tokenizer_class"));
    const bool own = prepares_text(class ? class : ""), bert = own && is.wordpiece;
    const bool lower = flag_of(config, "do_lower_case", bert);
    const manner_row rows[] = {
        {"do_lower_case", bert || has_flag(config, "do_lower_case"), lower, is.do_lower_case},
        {"strip_accents", bert || has_flag(config, "strip_accents"), flag_of(config, "strip_accents", lower),
         is.strip_accents},
        {"tokenize_chinese_chars", bert, flag_of(config, "tokenize_chinese_chars", true), is.tokenize_chinese_chars},
        {"add_prefix_space", !is.wordpiece, flag_of(config, "add_prefix_space", false), is.add_prefix_space}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const manner_row *row = &rows[i];
        if (!row->told || row->says == row->does) continue;
        if (asprintf(line, "%s \"%s\" %s, and tokenizer.json has it %s",
                     has_flag(config, row->key) ? "sets" : "leaves it to the class to set", row->key,
                     row->says ? "to true" : "to false", row->does ? "true" : "false") >= 0)
            return SLUICE_OK;
        *line = NULL;
        return slc_error(SLUICE_ERR_MEMORY, "%s", config_name);
    }
    const bool gpt2 = class && !is.wordpiece && !strncmp(class, "GPT2Tokenizer", 13);
    if (!(bert && !is.bert) && !(gpt2 && !is.gpt2)) return SLUICE_OK;
    if (asprintf(line, "names the class %s, which prepares text otherwise than tokenizer.json", class) >= 0)
        return SLUICE_OK;
    *line = NULL;
    return slc_error(SLUICE_ERR_MEMORY, "%s", config_name);
}

sluice_status slc_tokenizer_files_compare(const slc_tokenizer *tokenizer, const char *path, char **line)
{
    json_t *config = NULL;
    char *found = NULL, *file = NULL;
    *line = NULL;
    sluice_status status = slc_tokenizer_file_read(path, config_name, &config);
    if (!status && config) status = find_difference(tokenizer, config, &found);
    if (found &&
        (!(file = slc_tokenizer_file_path(path, config_name)) ||
         asprintf(line, "%s %s; Sluice follows tokenizer.json, transformers may make other tokens", file, found) < 0)) {
        *line = NULL;
        status = slc_error(SLUICE_ERR_MEMORY, "%s", config_name);
    }
    free(file);
    free(found);
    json_decref(config);
    return status;
}
