/* The whole text is made again with each token: what a token adds may depend on those before it (a character that ends,
 * a space that a decoder leaves out), and texts are as short as a model's context. */
#include "bench/eval/token_text.h"

#include "bench/cli/path_hints.h"

#include "lib/base/file/json_object.h"
#include "lib/base/status.h"
#include "lib/data/tokenizer_files/special_tokens.h"
#include "lib/data/tokenizer_files/tokenizer_files.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 256, ENDS_MAX = 16 };

typedef enum { BY_NUMBERS, BY_BYTES, BY_TOKENIZER } token_way;

struct slc_token_text {
    token_way way;
    uint32_t vocabulary;
    const char *weights, *path; /* the caller's; path: of the tokenizer, or NULL */
    slc_tokenizer *tokenizer;
    char *note; /* as slc_token_text_note says */
    int32_t ends[ENDS_MAX];
    uint32_t end_count;
    slc_token_list tokens; /* those that were added */
    char *text;
    size_t bytes, told; /* of the text; of these, those that the caller has */
};

/* ---- Tokens that end a text ---- */

static void add_end(slc_token_text *t, const json_t *token)
{
    const json_int_t value = json_integer_value(token);
    if (!json_is_integer(token) || value < 0 || value >= t->vocabulary || t->end_count == ENDS_MAX) return;
    t->ends[t->end_count++] = (int32_t)value;
}

/* Reads eos_token_id, a number or a list. A token that the model has not, such as GPT-2's own in a byte vocabulary,
 * ends nothing. *found: the file has the key. */
static sluice_status read_ends(slc_token_text *t, const char *name, bool *found)
{
    char path[4096];
    size_t index;
    json_t *content, *token;
    *found = false;
    if (!t->weights) return SLUICE_OK;
    if (snprintf(path, sizeof path, "%s/%s", t->weights, name) >= (int)sizeof path || access(path, F_OK))
        return SLUICE_OK;
    sluice_status status = slc_json_object_read(path, &content);
    if (status) return status;
    json_t *ends = json_object_get(content, "eos_token_id");
    *found = ends && !json_is_null(ends);
    if (json_is_array(ends))
        json_array_foreach (ends, index, token) add_end(t, token);
    add_end(t, ends);
    json_decref(content);
    return SLUICE_OK;
}

static sluice_status find_ends(slc_token_text *t, const sluice_model_config *model)
{
    slc_special_tokens special;
    bool found = false;
    sluice_status status = read_ends(t, "generation_config.json", &found);
    if (!status && !found) status = read_ends(t, "config.json", &found);
    if (status || found) return status;
    if (model->end_token) t->ends[t->end_count++] = (int32_t)(model->end_token - 1);
    if (model->end_token || !t->tokenizer) return SLUICE_OK;
    status = slc_special_tokens_find(t->tokenizer, t->path, &special);
    if (!status && special.end >= 0) t->ends[t->end_count++] = special.end;
    return status;
}

bool slc_token_text_ends(const slc_token_text *t, int32_t token)
{
    for (uint32_t i = 0; i < t->end_count; i++)
        if (t->ends[i] == token) return true;
    return false;
}

/* ---- Life ---- */

static sluice_status choose_way(slc_token_text *t)
{
    t->way = t->vocabulary == BYTES ? BY_BYTES : BY_NUMBERS;
    if (!t->path) return SLUICE_OK;
    t->way = BY_TOKENIZER;
    sluice_status status = slc_hint_tokenizer(slc_tokenizer_open(t->path, &t->tokenizer), t->path);
    if (!status) status = slc_tokenizer_files_compare(t->tokenizer, t->path, &t->note);
    if (status) return status;
    const uint32_t most = slc_tokenizer_vocabulary(t->tokenizer);
    if (most <= t->vocabulary) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "the tokenizer of %s has %u tokens, and the model of %s a vocabulary of %u; give --tokenizer the one "
        "that the weights were trained with",
        t->path, most, t->weights ? t->weights : "this run", t->vocabulary);
}

sluice_status slc_token_text_open(const char *weights, const char *tokenizer, const sluice_model_config *model,
                                  slc_token_text **out)
{
    slc_token_text *t = calloc(1, sizeof *t);
    if (!t) return slc_error(SLUICE_ERR_MEMORY, "a text");
    t->weights = weights;
    t->path = tokenizer ? tokenizer : weights && slc_tokenizer_exists(weights) ? weights : NULL;
    t->vocabulary = model->vocabulary;
    sluice_status status = choose_way(t);
    if (!status) status = find_ends(t, model);
    if (status) {
        slc_token_text_close(t);
        return status;
    }
    *out = t;
    return SLUICE_OK;
}

void slc_token_text_close(slc_token_text *t)
{
    if (!t) return;
    slc_tokenizer_close(t->tokenizer);
    free(t->note);
    free(t->tokens.tokens);
    free(t->text);
    free(t);
}

const char *slc_token_text_note(const slc_token_text *t)
{
    return t->note;
}

const char *slc_token_text_kind(const slc_token_text *t)
{
    static const char *const names[] = {[BY_NUMBERS] = "none", [BY_BYTES] = "bytes", [BY_TOKENIZER] = "tokenizer.json"};
    return names[t->way];
}

/* ---- From text ---- */

sluice_status slc_token_text_encode(const slc_token_text *t, const char *string, size_t bytes, slc_token_list *list)
{
    if (t->way == BY_TOKENIZER) return slc_tokenizer_encode(t->tokenizer, string, bytes, true, list);
    if (t->way == BY_NUMBERS)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "%s has no tokenizer.json, and its vocabulary of %u is not that of bytes, so text cannot become "
            "its tokens; put the model's tokenizer.json there, "
            "give --tokenizer PATH, or give --prompt-tokens",
            t->weights ? t->weights : "the model", t->vocabulary);
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < bytes; i++) {
        const int32_t token = (unsigned char)string[i];
        status = slc_token_list_append(list, &token, 1);
    }
    return status;
}

/* ---- To text ---- */

/* Returns how many bytes from s on are one character, or the beginning of one that goes wrong; *whole: it is a
 * character. 0: it may become one (Unicode 15, table 3-7). */
static size_t character_at(const int32_t *s, size_t left, bool *whole)
{
    const int32_t first = s[0];
    const size_t length = first < 0x80   ? 1
                          : first < 0xc2 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    *whole = length > 0;
    if (length <= 1) return 1;
    for (size_t i = 1; i < length; i++) {
        if (i == left) return *whole = false, 0;
        const int32_t least = i > 1 ? 0x80 : first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        const int32_t most = i > 1 ? 0xbf : first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        if (s[i] < least || s[i] > most) return *whole = false, i;
    }
    return length;
}

static const char REPLACEMENT[] = "\xef\xbf\xbd";
enum { MARK = sizeof REPLACEMENT - 1 };

static sluice_status bytes_to_text(const slc_token_text *t, char **text, size_t *bytes)
{
    char *to = *text = malloc(t->tokens.count * MARK + 1);
    if (!to) return slc_error(SLUICE_ERR_MEMORY, "a text of %zu bytes", t->tokens.count);
    for (size_t i = 0, length; i < t->tokens.count; i += length) {
        bool whole;
        length = character_at(t->tokens.tokens + i, t->tokens.count - i, &whole);
        if (!length) length = t->tokens.count - i;
        for (size_t k = 0; whole && k < length; k++) to[k] = (char)t->tokens.tokens[i + k];
        if (!whole) memcpy(to, REPLACEMENT, MARK);
        to += whole ? length : MARK;
    }
    *bytes = (size_t)(to - *text);
    return SLUICE_OK;
}

static sluice_status numbers_to_text(const slc_token_text *t, char **text, size_t *bytes)
{
    enum { WIDTH = 12 };
    *text = malloc(t->tokens.count * WIDTH + 1);
    *bytes = 0;
    if (!*text) return slc_error(SLUICE_ERR_MEMORY, "a text of %zu numbers", t->tokens.count);
    for (size_t i = 0; i < t->tokens.count; i++)
        *bytes += (size_t)snprintf(*text + *bytes, WIDTH + 1, "%d ", t->tokens.tokens[i]);
    return SLUICE_OK;
}

static sluice_status make_text(slc_token_text *t)
{
    char *text = NULL;
    size_t bytes = 0;
    sluice_status status = SLUICE_OK;
    switch (t->way) {
    case BY_NUMBERS: status = numbers_to_text(t, &text, &bytes); break;
    case BY_BYTES: status = bytes_to_text(t, &text, &bytes); break;
    case BY_TOKENIZER:
        status = slc_tokenizer_decode(t->tokenizer, t->tokens.tokens, t->tokens.count, true, &text, &bytes);
    }
    if (status) return status;
    free(t->text);
    t->text = text;
    t->bytes = bytes;
    return SLUICE_OK;
}

/* Gives the text up to `end` that was not given yet. */
static slc_text_piece take_untold(slc_token_text *t, size_t end)
{
    if (end <= t->told) return (slc_text_piece){"", 0};
    const slc_text_piece piece = {t->text + t->told, end - t->told};
    t->told = end;
    return piece;
}

/* Vocabularies are made larger than the tokenizer's, so that their size suits processors. As in transformers, tokens
 * that only fill up have no text. */
static bool has_text(const slc_token_text *t, int32_t token)
{
    return t->way != BY_TOKENIZER || slc_tokenizer_text(t->tokenizer, token);
}

/* A replacement character at the end may be the beginning of a character that the next token ends. */
sluice_status slc_token_text_add(slc_token_text *t, int32_t token, slc_text_piece *piece)
{
    if (token < 0 || (uint32_t)token >= t->vocabulary)
        return slc_error(SLUICE_ERR_ARGUMENT, "token %d is outside the %u that there are", token, t->vocabulary);
    *piece = (slc_text_piece){"", 0};
    if (!has_text(t, token)) return SLUICE_OK;
    sluice_status status = slc_token_list_append(&t->tokens, &token, 1);
    if (!status) status = make_text(t);
    if (status) return status;
    size_t end = t->bytes;
    while (end >= MARK && !memcmp(t->text + end - MARK, REPLACEMENT, MARK)) end -= MARK;
    *piece = take_untold(t, end);
    return SLUICE_OK;
}

slc_text_piece slc_token_text_finish(slc_token_text *t)
{
    return take_untold(t, t->bytes);
}

slc_text_piece slc_token_text_all(const slc_token_text *t)
{
    return (slc_text_piece){t->text ? t->text : "", t->bytes};
}
