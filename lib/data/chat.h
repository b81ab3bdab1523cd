/* Conversations as the text that a model reads. A model's own template is a program (Jinja), which is not run here; the
 * templates below are known by their names, and a model's is one of them if its text is one that is known for it.
 *
 *   chatml    <|im_start|>ROLE, a new line, CONTENT<|im_end|>, a new line
 *   zephyr    <|ROLE|>, a new line, CONTENT and the end token, a new line
 *   llama-2   begin token, [INST] <<SYS>>...<</SYS>> USER [/INST] ASSISTANT and the end token
 *   plain     CONTENT and the end token (transformers' old default for GPT-2)
 *
 * A model learns what the assistant says, and the end of its turn. One thread at a time uses a text. */
#pragma once

#include "lib/data/records/records.h"

typedef struct slc_chat_template slc_chat_template;

/* The templates one by one from 0; NULL after the last. */
const char *slc_chat_template_name(size_t index);

/* A template with the special tokens that it writes, as text; both strings are copied and may be "". */
struct slc_chat_template {
    int kind;
    char begin[64], end[64];
};

/* Errors: ARGUMENT (no such template; lists the names; or the template needs an end token and there is none). */
sluice_status slc_chat_template_named(const char *name, const char *begin, const char *end, slc_chat_template *out);

/* The name of the template that the tokenizer at `path` (a tokenizer.json, or its folder) has: chat_template of its
 * tokenizer_config.json, or chat_template.jinja beside it. *name is NULL if it has none. Errors: UNSUPPORTED (it has
 * one that is not known), those of reading the files. */
sluice_status slc_chat_template_find(const char *path, const char **name);

/* A part of the text, in bytes, that is the assistant's. */
typedef struct {
    size_t begin, end;
} slc_chat_part;

/* Begun as {0}, used again and again, and freed. */
typedef struct {
    char *text;
    size_t bytes, room;
    slc_chat_part *parts; /* in order */
    size_t part_count, part_room;
} slc_chat_text;

/* Lays a conversation out. *why is NULL, or says what the template cannot lay out: an unknown role, turns in another
 * order, nothing that the assistant says. Error: MEMORY. */
sluice_status slc_chat_lay_out(const slc_chat_template *template, const slc_records_message *messages, size_t count,
                               slc_chat_text *out, const char **why);
void slc_chat_text_free(slc_chat_text *text);
