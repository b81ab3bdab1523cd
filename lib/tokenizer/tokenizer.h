/* Tokenizers in Hugging Face's tokenizer.json: byte-level BPE as GPT-2 has it (Radford et al., 2019, section 2.2) and
 * WordPiece as BERT has it (Devlin et al., arXiv 1810.04805), with the normalisers, pre-tokenizers, post-processors and
 * decoders that these two use. A file that asks for anything else is refused by the name of what it asks for.
 *
 * A tokenizer is read only after it was opened: any number of threads may use one at the same time. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct slc_tokenizer slc_tokenizer;

/* Opens `path`: a tokenizer.json, or a folder that holds one. The caller closes it. Errors: PATH (missing, no
 * permission), IO (unreadable), ARGUMENT (no regular file), FORMAT (damaged; says where), UNSUPPORTED (a kind of
 * tokenizer, normaliser ... that Sluice does not have, by name), MEMORY. */
sluice_status slc_tokenizer_open(const char *path, slc_tokenizer **out);
void slc_tokenizer_close(slc_tokenizer *tokenizer); /* NULL is allowed */

/* Returns true if there is a tokenizer.json in the folder. */
bool slc_tokenizer_exists(const char *folder);

/* One more than the largest token number, added tokens included. */
uint32_t slc_tokenizer_vocabulary(const slc_tokenizer *tokenizer);
/* A hash of the whole tokenizer.json: ranks and resumed runs compare it. */
uint64_t slc_tokenizer_fingerprint(const slc_tokenizer *tokenizer);

/* The number of the token that is written as `text` ("<|endoftext|>", "[MASK]"); -1: there is none. */
int32_t slc_tokenizer_find(const slc_tokenizer *tokenizer, const char *text);
/* The text of a token as the file writes it, ended by 0; NULL: no such number. Valid as long as the tokenizer. */
const char *slc_tokenizer_text(const slc_tokenizer *tokenizer, int32_t token);

/* An added token, which is found in a text before all others. */
typedef struct {
    const char *text; /* valid as long as the tokenizer */
    int32_t number;
    bool special, single_word, lstrip, rstrip, normalized; /* as in the file */
} slc_tokenizer_added;
/* The index-th added token of the file; false after the last. */
bool slc_tokenizer_added_token(const slc_tokenizer *tokenizer, size_t index, slc_tokenizer_added *out);
/* The token for what the vocabulary lacks; -1: none. */
int32_t slc_tokenizer_unknown(const slc_tokenizer *tokenizer);

/* The preparation of a text before its words become tokens, under the names of tokenizer_config.json. */
typedef struct {
    bool wordpiece;  /* else byte-level BPE */
    bool bert, gpt2; /* as transformers' BertTokenizer and GPT2Tokenizer do it, but for what follows */
    bool do_lower_case, strip_accents, tokenize_chinese_chars, add_prefix_space;
} slc_tokenizer_manner;
slc_tokenizer_manner slc_tokenizer_get_manner(const slc_tokenizer *tokenizer);

/* A list that grows; begun as {0}. The caller frees `tokens` with free. */
typedef struct {
    int32_t *tokens;
    size_t count, room;
} slc_token_list;

/* Appends `count` tokens to the list. Error: MEMORY; then the list is as it was. */
sluice_status slc_token_list_append(slc_token_list *list, const int32_t *tokens, size_t count);

/* Appends the tokens of `bytes` bytes of UTF-8 text (which may contain 0) to the list, as Hugging Face's
 * encode(text, add_special_tokens=special) numbers them; no truncation, no padding. Each byte sequence that is no UTF-8
 * counts as U+FFFD, as Python's errors="replace" reads it. Errors: MEMORY; then the list is as it was. */
sluice_status slc_tokenizer_encode(const slc_tokenizer *tokenizer, const char *text, size_t bytes, bool special,
                                   slc_token_list *list);

/* Returns the last place at which a text may be cut: the tokens of the text before it, followed by those of the text
 * after it, are the tokens of the whole (special = false), whatever follows the `bytes` bytes. Only places above 0, and
 * from `from` on, are looked at; 0: there is none. */
size_t slc_tokenizer_last_cut(const slc_tokenizer *tokenizer, const char *text, size_t from, size_t bytes);

/* The number of bytes of a text that a token of byte-level BPE stands for; those of all tokens add up to the text's.
 * Errors: ARGUMENT (a number that is no token), UNSUPPORTED (WordPiece's tokens do not say what lay between them). */
sluice_status slc_tokenizer_bytes(const slc_tokenizer *tokenizer, int32_t token, size_t *bytes);

/* The text of tokens, as Hugging Face's decode(tokens, skip_special_tokens=skip_special) gives it. *text is ended by 0,
 * which *bytes does not count (it may be NULL); the caller frees it. A BPE token may end inside a character: such bytes
 * become U+FFFD, as Python's. Errors: ARGUMENT (a number that is no token), MEMORY. */
sluice_status slc_tokenizer_decode(const slc_tokenizer *tokenizer, const int32_t *tokens, size_t count,
                                   bool skip_special, char **text, size_t *bytes);
