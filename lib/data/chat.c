/* Each template is a row of a table but llama-2's, which has turns in pairs. */
#include "lib/data/chat.h"

#include "lib/base/file/json_file.h"
#include "lib/base/status.h"
#include "lib/data/tokenizer_files/tokenizer_files_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHATML, ZEPHYR, LLAMA2, PLAIN, TEMPLATES };

/* The text around a message: what comes before the role, between role and content, after the content, and at the end of
 * the turn, which the model does not learn. "%" is the end token. */
static const struct {
    const char *name, *role, *content, *after, *turn;
    const char *known[3]; /* texts of the template in Jinja */
} rows[TEMPLATES] = {
    [CHATML] =
        {"chatml",
         "<|im_start|>",
         "\n",
         "<|im_end|>",
         "\n",
         {"{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
          "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% "
          "endif %}",
          "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% for "
          "message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' "
          "+ '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"}},
    [ZEPHYR] = {"zephyr",
                "<|",
                "|>\n",
                "%",
                "\n",
                {"{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + "
                 "message['content'] + eos_token }}\n{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' + "
                 "message['content'] + eos_token }}\n{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  "
                 "+ message['content'] + eos_token }}\n{% endif %}\n{% if loop.last and add_generation_prompt %}\n{{ "
                 "'<|assistant|>' }}\n{% endif %}\n{% endfor %}"}},
    [LLAMA2] = {"llama-2", NULL, NULL, NULL, NULL, {NULL}},
    [PLAIN] =
        {"plain", NULL, "", "%", "", {"{% for message in messages %}{{ message.content }}{{ eos_token }}{% endfor %}"}},
};

const char *slc_chat_template_name(size_t index)
{
    return index < TEMPLATES ? rows[index].name : NULL;
}

static void list_names(char *out, size_t room)
{
    size_t used = 0;
    for (int i = 0; i < TEMPLATES; i++)
        used += (size_t)snprintf(out + used, used < room ? room - used : 0, "%s%s", i ? ", " : "", rows[i].name);
}

sluice_status slc_chat_template_named(const char *name, const char *begin, const char *end, slc_chat_template *out)
{
    char names[128];
    *out = (slc_chat_template){.kind = -1};
    for (int i = 0; i < TEMPLATES; i++)
        if (!strcmp(rows[i].name, name)) out->kind = i;
    list_names(names, sizeof names);
    if (out->kind < 0)
        return slc_error(SLUICE_ERR_ARGUMENT, "there is no template \"%s\" for conversations; the templates are %s",
                         name, names);
    if (out->kind != CHATML && !*end)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "the template \"%s\" writes the end token, and the tokenizer has none (eos_token); use chatml",
                         name);
    if (snprintf(out->begin, sizeof out->begin, "%s", begin) >= (int)sizeof out->begin ||
        snprintf(out->end, sizeof out->end, "%s", end) >= (int)sizeof out->end)
        return slc_error(SLUICE_ERR_ARGUMENT, "the begin or the end token has more than %zu bytes",
                         sizeof out->end - 1);
    return SLUICE_OK;
}

/* ---- A model's own ---- */

/* True if the file's text is that of the known template. A line's end inside of a text of the template may stand there
 * itself, or as \n; the file may end with one. */
static bool is_template(const char *known, const char *text, size_t bytes)
{
    size_t at = 0;
    for (; *known && at < bytes; known++, at++) {
        const bool escaped = at + 1 < bytes && text[at] == '\\' && text[at + 1] == 'n';
        if (*known != (escaped ? '\n' : text[at])) return false;
        at += escaped;
    }
    return !*known && (at == bytes || (at + 1 == bytes && text[at] == '\n'));
}

static sluice_status recognize(const char *path, const char *text, size_t bytes, const char **name)
{
    char names[128];
    for (int i = 0; i < TEMPLATES; i++)
        for (size_t k = 0; k < sizeof rows[i].known / sizeof *rows[i].known && rows[i].known[k]; k++)
            if (is_template(rows[i].known[k], text, bytes)) {
                *name = rows[i].name;
                return SLUICE_OK;
            }
    list_names(names, sizeof names);
    return slc_error(
        SLUICE_ERR_UNSUPPORTED,
        "%s: its template for conversations is none of those that Sluice knows (%s); name one with "
        "--chat-template, or lay the conversations out with transformers' apply_chat_template into a field "
        "\"text\"",
        path, names);
}

sluice_status slc_chat_template_find(const char *path, const char **name)
{
    json_t *config = NULL;
    char *file = slc_tokenizer_file_path(path, "chat_template.jinja"), *text = NULL;
    size_t length;
    *name = NULL;
    sluice_status status = file ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "chat_template.jinja");
    if (!status && !access(file, F_OK)) {
        status = slc_json_file_read(file, &text, &length);
        if (!status) status = recognize(path, text, length, name);
    } else if (!status) {
        status = slc_tokenizer_file_read(path, "tokenizer_config.json", &config);
        const json_t *template = json_object_get(config, "chat_template");
        if (!status && template && !json_is_null(template)) /* a list of templates has no text */
            status = recognize(path, json_string_value(template), json_string_length(template), name);
    }
    json_decref(config);
    free(text);
    free(file);
    return status;
}

/* ---- Laying out ---- */

static sluice_status append(slc_chat_text *out, const char *text, size_t bytes)
{
    if (out->bytes + bytes > out->room) {
        const size_t room = 2 * (out->bytes + bytes) + 256;
        char *grown = realloc(out->text, room);
        if (!grown) return slc_error(SLUICE_ERR_MEMORY, "a conversation of %zu bytes", room);
        out->text = grown;
        out->room = room;
    }
    if (bytes) memcpy(out->text + out->bytes, text, bytes);
    out->bytes += bytes;
    return SLUICE_OK;
}

static sluice_status append_words(slc_chat_text *out, const char *words)
{
    return append(out, words, strlen(words));
}

/* Marks what has been appended since `begin` as the assistant's. */
static sluice_status mark(slc_chat_text *out, size_t begin)
{
    if (out->part_count == out->part_room) {
        const size_t room = 2 * out->part_room + 4;
        slc_chat_part *grown = realloc(out->parts, room * sizeof *grown);
        if (!grown) return slc_error(SLUICE_ERR_MEMORY, "the turns of a conversation");
        out->parts = grown;
        out->part_room = room;
    }
    out->parts[out->part_count++] = (slc_chat_part){begin, out->bytes};
    return SLUICE_OK;
}

static sluice_status lay_out_turn(const slc_chat_template *t, const slc_records_message *m, slc_chat_text *out)
{
    const char *after = rows[t->kind].after;
    sluice_status status = SLUICE_OK;
    if (rows[t->kind].role) {
        status = append_words(out, rows[t->kind].role);
        if (!status) status = append(out, m->role.text, m->role.bytes);
    }
    if (!status) status = append_words(out, rows[t->kind].content);
    const size_t begin = out->bytes;
    if (!status) status = append(out, m->content.text, m->content.bytes);
    if (!status) status = append_words(out, *after == '%' ? t->end : after);
    if (!status && slc_span_is(m->role, "assistant")) status = mark(out, begin);
    return status ? status : append_words(out, rows[t->kind].turn);
}

/* Lays a conversation out as llama-2 wants it: user and assistant take turns, and the words of the system stand inside
 * the first of the user's. */
static sluice_status lay_out_llama2(const slc_chat_template *t, const slc_records_message *messages, size_t count,
                                    slc_chat_text *out, const char **why)
{
    const bool system = count && slc_span_is(messages[0].role, "system");
    sluice_status status = SLUICE_OK;
    for (size_t i = system; !status && i < count; i++) {
        const slc_records_message *m = &messages[i];
        const bool users = (i - system) % 2 == 0;
        if (!slc_span_is(m->role, users ? "user" : "assistant")) {
            *why = "the template llama-2 has turns of user and assistant, one after the other, and a system's first";
            return SLUICE_OK;
        }
        if (users) {
            status = append_words(out, t->begin);
            if (!status) status = append_words(out, "[INST] ");
            if (!status && system && i == 1) {
                status = append_words(out, "<<SYS>>\n");
                if (!status) status = append(out, messages[0].content.text, messages[0].content.bytes);
                if (!status) status = append_words(out, "\n<</SYS>>\n\n");
            }
            if (!status) status = append(out, m->content.text, m->content.bytes);
            if (!status) status = append_words(out, " [/INST]");
            continue;
        }
        status = append_words(out, " ");
        const size_t begin = out->bytes;
        if (!status) status = append(out, m->content.text, m->content.bytes);
        if (!status) status = append_words(out, " ");
        if (!status) status = append_words(out, t->end);
        if (!status) status = mark(out, begin);
    }
    return status;
}

sluice_status slc_chat_lay_out(const slc_chat_template *t, const slc_records_message *messages, size_t count,
                               slc_chat_text *out, const char **why)
{
    sluice_status status = SLUICE_OK;
    *why = NULL;
    out->bytes = out->part_count = 0;
    for (size_t i = 0; i < count; i++)
        if (!slc_span_is(messages[i].role, "user") && !slc_span_is(messages[i].role, "assistant") &&
            !slc_span_is(messages[i].role, "system"))
            *why = "the role of a message is none of system, user and assistant";
    if (*why) return SLUICE_OK;
    if (t->kind == LLAMA2) status = lay_out_llama2(t, messages, count, out, why);
    for (size_t i = 0; t->kind != LLAMA2 && !status && i < count; i++) status = lay_out_turn(t, &messages[i], out);
    if (!status && !*why && !out->part_count) *why = "the assistant says nothing, so there is nothing to learn";
    return status;
}

void slc_chat_text_free(slc_chat_text *text)
{
    free(text->text);
    free(text->parts);
    *text = (slc_chat_text){0};
}
