/* examples_test.c covers this file. */
#include "bench/train/data/examples/example.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static sluice_status refuse(const slc_records *records, uint64_t index, const char *why)
{
    char place[SLC_RECORDS_PLACE_ROOM];
    slc_records_place(records, index, place);
    return slc_error(SLUICE_ERR_FORMAT, "%s: %s", place, why);
}

static sluice_status append_text(const slc_example_kind *kind, slc_span text, slc_token_list *list)
{
    if (kind->tokenizer) return slc_tokenizer_encode(kind->tokenizer, text.text, text.bytes, false, list);
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < text.bytes; i++)
        status = slc_token_list_append(list, &(int32_t){(unsigned char)text.text[i]}, 1);
    return status;
}

static sluice_status append_special(slc_token_list *list, int32_t token)
{
    return token < 0 ? SLUICE_OK : slc_token_list_append(list, &token, 1);
}

static sluice_status make_room(slc_example *e, size_t tokens)
{
    if (tokens <= e->room) return SLUICE_OK;
    const size_t room = 2 * tokens;
    uint8_t *types = realloc(e->types, room);
    if (types) e->types = types;
    uint8_t *trained = types ? realloc(e->trained, room) : NULL;
    if (!trained) return slc_error(SLUICE_ERR_MEMORY, "an example of %zu tokens", tokens);
    e->trained = trained;
    e->room = room;
    return SLUICE_OK;
}

/* Cuts the two texts of a pair as "longest_first" of Hugging Face's tokenizers does
 * (tokenizers/src/utils/truncation.rs). */
static void cut_pair(size_t most, size_t *text, size_t *pair)
{
    const bool swapped = *text > *pair;
    size_t shorter = swapped ? *pair : *text, longer = swapped ? *text : *pair;
    if (shorter + longer <= most) return;
    longer = shorter > most ? shorter : (size_t)slc_most(shorter, most - shorter);
    if (shorter + longer > most) {
        shorter = most / 2;
        longer = shorter + most % 2;
    }
    *text = swapped ? longer : shorter;
    *pair = swapped ? shorter : longer;
}

/* Puts special tokens around the texts, [CLS] text [SEP] pair [SEP], if the tokenizer has these. */
static sluice_status frame(const slc_example_kind *kind, slc_example *e)
{
    const bool framed = kind->words.framed;
    size_t specials = framed ? 2 + kind->pairs : 0, text = e->tokens.count, pair = e->pair.count;
    const size_t most = kind->context > specials ? kind->context - specials : 0;
    cut_pair(most, &text, &pair);
    e->cut = text < e->tokens.count || pair < e->pair.count;
    const int32_t first = kind->words.special.first, last = kind->words.special.last;
    e->tokens.count = text;
    if (framed) { /* in front: every token moves by one */
        sluice_status status = append_special(&e->tokens, first);
        if (status) return status;
        memmove(e->tokens.tokens + 1, e->tokens.tokens, text * sizeof first);
        e->tokens.tokens[0] = first;
        status = append_special(&e->tokens, last);
        if (status) return status;
    }
    const size_t begin = e->tokens.count;
    sluice_status status = slc_token_list_append(&e->tokens, e->pair.tokens, pair);
    if (!status && framed && kind->pairs) status = append_special(&e->tokens, last);
    if (!status) status = make_room(e, e->tokens.count);
    if (status) return status;
    memset(e->types, 0, begin);
    memset(e->types + begin, 1, e->tokens.count - begin);
    return SLUICE_OK;
}

static void cut_end(const slc_example_kind *kind, slc_example *e)
{
    e->cut = e->tokens.count > kind->context;
    if (e->cut) e->tokens.count = kind->context;
}

static sluice_status make_text(const slc_example_kind *kind, slc_example *e)
{
    sluice_status status = append_text(kind, e->record.text, &e->tokens);
    if (!status && kind->causal) status = append_special(&e->tokens, kind->words.special.end);
    if (!status && kind->pairs) status = append_text(kind, e->record.pair, &e->pair);
    if (status || !kind->causal) return status ? status : frame(kind, e);
    cut_end(kind, e);
    e->targets = e->tokens.count ? (uint32_t)e->tokens.count - 1 : 0;
    return SLUICE_OK;
}

/* ---- Conversations ---- */

/* Finds how many bytes of the text token `i` is. */
static sluice_status bytes_of(const slc_example_kind *kind, int32_t token, size_t *bytes)
{
    *bytes = 1;
    return kind->tokenizer ? slc_tokenizer_bytes(kind->tokenizer, token, bytes) : SLUICE_OK;
}

/* Finds the tokens that the model learns: a token is the assistant's if a byte of it is. */
static sluice_status find_trained(const slc_example_kind *kind, slc_example *e)
{
    size_t at = 0, part = 0, bytes = 0;
    sluice_status status = make_room(e, e->tokens.count);
    e->targets = 0;
    for (size_t i = 0; !status && i < e->tokens.count; i++, at += bytes) {
        status = bytes_of(kind, e->tokens.tokens[i], &bytes);
        if (status) break;
        while (part < e->chat.part_count && e->chat.parts[part].end <= at) part++;
        e->trained[i] = part < e->chat.part_count && e->chat.parts[part].begin < at + bytes;
        e->targets += i && e->trained[i];
    }
    return status;
}

static sluice_status make_chat(const slc_example_kind *kind, slc_example *e, const char **why)
{
    sluice_status status = slc_chat_lay_out(kind->template, e->record.messages, e->record.message_count, &e->chat, why);
    if (status || *why) return status;
    status = append_text(kind, (slc_span){e->chat.text, e->chat.bytes}, &e->tokens);
    if (status) return status;
    cut_end(kind, e);
    return find_trained(kind, e);
}

sluice_status slc_example_make(const slc_example_kind *kind, const slc_records *records, uint64_t index, slc_example *e)
{
    const char *why = NULL;
    e->tokens.count = e->pair.count = 0;
    e->targets = 0;
    sluice_status status = slc_records_read(records, index, &e->record);
    if (!status) status = kind->template ? make_chat(kind, e, &why) : make_text(kind, e);
    if (status) return status;
    if (why) return refuse(records, index, why);
    if (!e->tokens.count) return refuse(records, index, "has an empty text; remove it");
    e->class = kind->classes ? slc_classes_number(kind->classes, e->record.label) : -1;
    if (kind->classes && e->class < 0)
        return refuse(records, index, "its label is none of the classes that the model answers with");
    return SLUICE_OK;
}

void slc_example_free(slc_example *e)
{
    slc_records_item_free(&e->record);
    slc_chat_text_free(&e->chat);
    free(e->tokens.tokens);
    free(e->pair.tokens);
    free(e->types);
    free(e->trained);
    *e = (slc_example){0};
}
