/* Tokens of a text, made once. A file is cut into pieces where its tokens are the same as those of the uncut file: both
 * kinds of tokenizers split words apart before anything else, and no word reaches from a character that is no space to
 * a space after it. */
#include "lib/data/text_parts.h"

#include "lib/base/file/path_error.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20, NARROW = 1 << 16 };

typedef struct {
    slc_text *text;
    const slc_text_encoding *how;
    uint64_t done, bytes;  /* of all files */
    bool cuts, cuts_lines; /* may a piece end before a space, before the end of a line? */
    char *piece;
    size_t room;
    slc_token_list list;
    uint32_t width;
} encoder;

/* ---- The file of tokens ---- */

static sluice_status no_file(const char *folder, int why)
{
    return slc_error(slc_path_status(why),
                     "cannot keep the tokens of the text in %s: %s; name a folder with room in TMPDIR", folder,
                     strerror(why));
}

static sluice_status open_tokens(slc_file *out)
{
    const char *folder = getenv("TMPDIR");
    char *path = NULL;
    if (!folder || !*folder) folder = "/var/tmp";
    if (asprintf(&path, "%s/sluice-tokens-XXXXXX", folder) < 0)
        return slc_error(SLUICE_ERR_MEMORY, "tokens of the text");
    int file = mkostemp(path, O_CLOEXEC);
    if (file < 0) {
        int why = errno;
        free(path);
        return no_file(folder, why);
    }
    unlink(path);
    *out = (slc_file){.path = path, .fd = file};
    return SLUICE_OK;
}

static sluice_status append_bytes(slc_file *file, const char *data, size_t bytes)
{
    while (bytes) {
        ssize_t wrote = pwrite(file->fd, data, bytes, (off_t)file->bytes);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) {
            int why = wrote ? errno : ENOSPC;
            char *end = strrchr(file->path, '/');
            return slc_error(SLUICE_ERR_IO,
                             "cannot keep the tokens of the text in %.*s: %s; name a folder with room in TMPDIR",
                             (int)(end - file->path), file->path, strerror(why));
        }
        data += wrote;
        bytes -= (size_t)wrote;
        file->bytes += (uint64_t)wrote;
    }
    return SLUICE_OK;
}

/* Packs the tokens of the list in place and empties it. */
static sluice_status flush_tokens(encoder *e, slc_text_file_part *part)
{
    char *packed = (char *)e->list.tokens;
    size_t count = e->list.count;
    for (size_t i = 0; e->width == 2 && i < count; i++) {
        uint16_t token = (uint16_t)e->list.tokens[i];
        memcpy(packed + 2 * i, &token, sizeof token);
    }
    part->format.tokens += count;
    e->list.count = 0;
    return append_bytes(&e->text->encoded, packed, count * e->width);
}

/* ---- Where a file may be cut ---- */

static bool begins_apart(const slc_tokenizer *tokenizer, const char *text, size_t cut, bool *apart)
{
    slc_token_list whole = {0}, parts = {0};
    size_t bytes = strlen(text);
    bool done = !slc_tokenizer_encode(tokenizer, text, bytes, false, &whole) &&
                !slc_tokenizer_encode(tokenizer, text, cut, false, &parts) &&
                !slc_tokenizer_encode(tokenizer, text + cut, bytes - cut, false, &parts);
    *apart = done && whole.count == parts.count &&
             (!whole.count || !memcmp(whole.tokens, parts.tokens, whole.count * sizeof *whole.tokens));
    free(whole.tokens);
    free(parts.tokens);
    return done;
}

/* A token that was added to the vocabulary may have spaces in it, and then no space is a place to cut at. A tokenizer
 * that puts a space before a text does it before the end of a line, but not before a space. */
static sluice_status learn_cuts(encoder *e)
{
    const slc_tokenizer *tokenizer = e->how->tokenizer;
    uint32_t vocabulary = slc_tokenizer_vocabulary(tokenizer);
    bool lines = false, spaces = false;
    if (!begins_apart(tokenizer, "word\nword", 4, &lines) || !begins_apart(tokenizer, "word word", 4, &spaces))
        return slc_error(SLUICE_ERR_MEMORY, "tokens of the text");
    e->cuts = spaces;
    for (uint32_t i = 0; e->cuts && i < vocabulary; i++) {
        const char *token = slc_tokenizer_text(tokenizer, (int32_t)i);
        if (token && strpbrk(token, " \n")) e->cuts = false;
    }
    e->cuts_lines = e->cuts && lines;
    return SLUICE_OK;
}

/* Does a character that is surely no space end before place `at`? Spaces beyond ASCII begin with the bytes c2, e1 9a,
 * e2 80, e2 81 and e3 80 80; other signs with these bytes do no harm if they are not cut after. */
static bool word_ends(const unsigned char *text, size_t at)
{
    unsigned char last = text[at - 1];
    if (last < 0x80)
        return (last >= '0' && last <= '9') || (last >= 'a' && last <= 'z') || (last >= 'A' && last <= 'Z') ||
               last == '.' || last == ',';
    if (at < 3 || text[at - 2] < 0x80 || text[at - 2] == 0xc2 || text[at - 3] < 0x80) return false;
    unsigned lead = text[at - 3], next = text[at - 2];
    return !(lead == 0xe1 && next == 0x9a) && !(lead == 0xe2 && (next == 0x80 || next == 0x81)) &&
           !(lead == 0xe3 && next == 0x80 && last == 0x80);
}

/* The last place to cut at, above 0; 0: there is none. */
static size_t last_cut(const encoder *e, size_t bytes)
{
    const unsigned char *text = (const unsigned char *)e->piece;
    for (size_t at = bytes - 1; e->cuts && at > 0; at--)
        if ((text[at] == ' ' || (text[at] == '\n' && e->cuts_lines)) && word_ends(text, at)) return at;
    return 0;
}

/* ---- Files ---- */

static sluice_status make_room(encoder *e, size_t bytes)
{
    if (bytes <= e->room) return SLUICE_OK;
    char *piece = realloc(e->piece, bytes);
    if (!piece) return slc_error(SLUICE_ERR_MEMORY, "%zu bytes of text at once", bytes);
    e->piece = piece;
    e->room = bytes;
    return SLUICE_OK;
}

static sluice_status encode_piece(encoder *e, slc_text_file_part *part, size_t bytes)
{
    sluice_status status = slc_tokenizer_encode(e->how->tokenizer, e->piece, bytes, false, &e->list);
    if (!status) status = flush_tokens(e, part);
    e->done += bytes;
    if (!status && e->how->progress) status = e->how->progress(e->done, e->bytes, e->how->context);
    return status;
}

/* A piece without a place to cut at grows until there is one. */
static sluice_status encode_file(encoder *e, slc_text_file_part *part)
{
    sluice_status status = SLUICE_OK;
    uint64_t read = 0;
    size_t held = 0;
    part->format = (slc_token_format){.kind = part->format.kind,
                                      .width = e->width,
                                      .vocabulary = e->text->vocabulary,
                                      .begin = e->text->encoded.bytes};
    while (!status && (read < part->file.bytes || held)) {
        uint64_t left = part->file.bytes - read;
        size_t most = e->how->piece_bytes ? e->how->piece_bytes : PIECE_BYTES;
        size_t take = left < most ? (size_t)left : most;
        status = make_room(e, held + take);
        if (!status) status = slc_file_read(&part->file, read, take, e->piece + held);
        if (status) break;
        read += take;
        held += take;
        size_t cut = read < part->file.bytes ? last_cut(e, held) : held;
        if (!cut) continue;
        status = encode_piece(e, part, cut);
        memmove(e->piece, e->piece + cut, held - cut);
        held -= cut;
    }
    return status;
}

static sluice_status close_file(encoder *e, slc_text_file_part *part)
{
    int32_t *room = realloc(e->list.tokens, (e->list.room > 1 ? e->list.room : 1) * sizeof *room);
    if (!room) return slc_error(SLUICE_ERR_MEMORY, "tokens of the text");
    if (!e->list.room) e->list.room = 1;
    e->list.tokens = room;
    e->list.tokens[e->list.count++] = e->how->between;
    part->closed = 1;
    return flush_tokens(e, part);
}

static sluice_status encode_files(encoder *e)
{
    slc_text *text = e->text;
    sluice_status status = learn_cuts(e);
    text->tokens = 0;
    for (size_t i = 0; !status && i < text->count; i++) {
        slc_text_file_part *part = &text->files[i];
        part->first = text->tokens;
        status = encode_file(e, part);
        if (!status && e->how->between >= 0 && i + 1 < text->count) status = close_file(e, part);
        text->tokens += part->format.tokens;
    }
    return status;
}

sluice_status slc_text_encode(slc_text *text, const slc_text_encoding *how)
{
    if (!slc_text_is_bytes(text)) return slc_error(SLUICE_ERR_ORDER, "a text is encoded once, and only from bytes");
    uint64_t identity[2] = {slc_tokenizer_fingerprint(how->tokenizer), (uint64_t)(int64_t)how->between};
    encoder e = {.text = text, .how = how};
    for (size_t i = 0; i < text->count; i++) e.bytes += text->files[i].file.bytes;
    text->vocabulary = slc_tokenizer_vocabulary(how->tokenizer);
    e.width = text->vocabulary > NARROW ? 4 : 2;
    sluice_status status = open_tokens(&text->encoded);
    if (!status) status = encode_files(&e);
    text->encoding = slc_fnv(SLC_FNV_START, identity, sizeof identity) | 1; /* never 0 */
    free(e.list.tokens);
    free(e.piece);
    return status;
}
