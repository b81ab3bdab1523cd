/* Text: files in sequence, and windows drawn from them. A file that begins as llm.c's token files do (tokens.h)
 * holds tokens; of any other, each byte is one, until slc_text_encode makes a tokenizer's tokens of them. All files of
 * a text are of one kind.
 *
 * A window is a function of (seed, index of the sequence) alone. The sequences of a job are numbered so that a step's
 * global batch is the same however it is split: ((step * M + micro_batch) * N + rank) * batch + b.
 * Any thread; a text is read only, but for slc_text_encode and slc_text_limit, which come before any reading. */
#pragma once

#include "lib/data/records/records.h"
#include "lib/tokenizer/tokenizer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct slc_text slc_text;

/* A path is a regular file, or a directory: its regular files in order of their names (symbolic links and
 * subdirectories in it are passed over). A file that holds no text by its content (file_kind.h) is refused; in a
 * directory it is passed over, unless nothing else is there. The caller closes. Errors: PATH (missing, no permission),
 * IO (unreadable), ARGUMENT (empty, no text, a device, no path, files of two kinds), FORMAT (a token file that is not
 * what its header says), MEMORY. */
sluice_status slc_text_open(const char *const *paths, size_t count, slc_text **out);
/* Takes files as tokens of 2 bytes each, little endian and without a header, whatever is in them. Errors: as above;
 * FORMAT for an odd number of bytes. */
sluice_status slc_text_open_uint16(const char *const *paths, size_t count, slc_text **out);
void slc_text_close(slc_text *text); /* NULL is allowed */

/* One line on the files of directories that were passed over because they hold no text, and on what the first one is;
 * NULL: there are none. Valid as long as the text. */
const char *slc_text_passed_over(const slc_text *text);

bool slc_text_is_bytes(const slc_text *text); /* the files hold text, and nobody has encoded it */

/* A folder in which tokens of texts are kept between runs, and shared by processes of a host. */
typedef struct {
    const char *folder;   /* made where it is not there */
    uint64_t limit_bytes; /* files that were used longest ago go where all of them have more */
    uint64_t least_bytes; /* a text with fewer is not kept */
} slc_text_cache;

typedef struct {
    const slc_tokenizer *tokenizer; /* used during the call only */
    int32_t between;                /* the token between one file and the next; -1: none */
    /* Called after each piece of the text: bytes that are done, of all of them. A status that is not OK ends the
     * encoding and is returned. NULL: none. */
    sluice_status (*progress)(uint64_t done, uint64_t bytes, void *context);
    void *context;
    size_t piece_bytes;          /* of text in memory at a time; 0: 1 MiB. The tokens do not depend on it */
    const slc_text_cache *cache; /* used during the call only; NULL: none */
} slc_text_encoding;

/* Makes the tokens of a text of bytes, file by file, each file's as encode(text, add_special_tokens=False) gives them.
 * They lie in a file without a name in the folder TMPDIR (/var/tmp where it is not set), with 2 bytes a token (4 where
 * the vocabulary has more than 65536), and not in memory. With a cache they are taken from there, or made once: while
 * another process makes them, this one waits and calls `progress` with nothing done. If the cache fails, tokens are
 * made as without one. Call it once, before any reading. After an error the text can only be closed. Errors: PATH
 * (TMPDIR), IO (also no room for the tokens), MEMORY, ORDER (no bytes), what `progress` returned. */
sluice_status slc_text_encode(slc_text *text, const slc_text_encoding *how);

/* Makes a text of the field "text" of records: their tokens, or their bytes if how->tokenizer is NULL, with the
 * token how->between between one record and the next. The records must outlive the text. Tokens lie as slc_text_encode
 * says; `progress` gets shares of the files' bytes. Errors: those of slc_text_encode and slc_records_read. */
sluice_status slc_text_of_records(const slc_records *records, const slc_text_encoding *how, slc_text **out);

uint64_t slc_text_tokens(const slc_text *text);
/* Every token is below the vocabulary: 256 for bytes, GPT-2's 50257, Llama 3's 128256; or what slc_text_limit set last.
 * The caller sets its model's vocabulary, before any reading, if that is another: a token beyond it is then an error
 * and not an address beyond a table. */
uint32_t slc_text_vocabulary(const slc_text *text);
void slc_text_limit(slc_text *text, uint32_t vocabulary);
/* A hash of the files' sizes and beginnings, and of the encoding: ranks compare it to see that they read the same text.
 */
uint64_t slc_text_fingerprint(const slc_text *text);
/* The largest token, which takes as long as reading them all. Errors: IO. */
sluice_status slc_text_largest(const slc_text *text, uint32_t *token);
/* A hash of every byte, which takes as long as reading them once: a run that is resumed sees whether its text is
 * another. Errors: IO, MEMORY. */
sluice_status slc_text_content(const slc_text *text, uint64_t *hash);

/* Tokens [first, first + count); the caller checks the range. Errors: IO (also a file that has shrunk), FORMAT (a token
 * beyond the vocabulary, with its file and place). */
sluice_status slc_text_read(const slc_text *text, uint64_t first, size_t count, int32_t *out);

typedef struct {
    uint64_t first, tokens;
} slc_text_range;

/* The last tenth is held out for evaluation. Errors: ARGUMENT if either part has no window of tokens + 1. */
sluice_status slc_text_split(const slc_text *text, uint32_t tokens, slc_text_range *train, slc_text_range *held_out);

/* The index-th file's part of the text, without the token after it; false after the last. */
bool slc_text_file(const slc_text *text, size_t index, slc_text_range *out);
/* The path of a file that there is. Valid as long as the text. */
const char *slc_text_path(const slc_text *text, size_t index);

/* Windows of sequences [first_sequence, first_sequence + batch): inputs and targets, batch x tokens each; a target is
 * the token after its input. `range` has room for a window. */
sluice_status slc_text_windows(const slc_text *text, slc_text_range range, uint64_t seed, uint64_t first_sequence,
                               uint32_t batch, uint32_t tokens, int32_t *inputs, int32_t *targets);
