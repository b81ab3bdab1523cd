/* Makes the tokens of a text, once. A file is cut into pieces where the tokenizer says that the tokens are those of the
 * uncut file. */
#include "lib/data/text.h"

#include "lib/base/file/path_error.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/status.h"
#include "lib/data/text_parts.h"
#include "lib/data/token_cache.h"

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
    uint64_t done, bytes; /* of all files */
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
    const int why = slc_write_at(file->fd, data, bytes, file->bytes);
    file->bytes += bytes;
    if (!why) return SLUICE_OK;
    return slc_error(SLUICE_ERR_IO, "cannot keep the tokens of the text in %.*s: %s; name a folder with room in TMPDIR",
                     (int)(strrchr(file->path, '/') - file->path), file->path, strerror(why));
}

/* Packs the tokens of the list in place and empties it. */
static sluice_status flush_tokens(encoder *e, slc_text_file_part *part)
{
    char *packed = (char *)e->list.tokens;
    size_t count = e->list.count;
    for (size_t i = 0; e->width < 4 && i < count; i++) {
        uint16_t token = (uint16_t)e->list.tokens[i];
        memcpy(packed + e->width * i, &token, e->width); /* little endian */
    }
    part->format.tokens += count;
    e->list.count = 0;
    return append_bytes(&e->text->encoded, packed, count * e->width);
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

/* Encodes a file piece by piece. A piece without a place to cut at grows until there is one. */
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
        size_t searched = held; /* what is left of an earlier piece has no place to cut at */
        read += take;
        held += take;
        size_t cut = held;
        if (read < part->file.bytes) cut = slc_tokenizer_last_cut(e->how->tokenizer, e->piece, searched, held);
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
    sluice_status status = SLUICE_OK;
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

/* ---- Records ---- */

enum { FLUSHED_AT = 1 << 16 /* tokens */ };

static sluice_status encode_record(encoder *e, slc_span text)
{
    if (e->how->tokenizer) return slc_tokenizer_encode(e->how->tokenizer, text.text, text.bytes, false, &e->list);
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < text.bytes; i++)
        status = slc_token_list_append(&e->list, &(int32_t){(unsigned char)text.text[i]}, 1);
    return status;
}

static sluice_status encode_records(encoder *e, const slc_records *records, slc_text_file_part *part)
{
    const uint64_t count = slc_records_count(records);
    slc_records_item record = {0};
    sluice_status status = SLUICE_OK;
    for (uint64_t i = 0; !status && i < count; i++) {
        status = slc_records_read(records, i, &record);
        if (!status) status = encode_record(e, record.text);
        if (!status && e->how->between >= 0 && i + 1 < count)
            status = slc_token_list_append(&e->list, &e->how->between, 1);
        if (status || (e->list.count < FLUSHED_AT && i + 1 < count)) continue;
        status = flush_tokens(e, part);
        if (!status && e->how->progress)
            status = e->how->progress((uint64_t)((double)e->bytes * (double)(i + 1) / (double)count), e->bytes,
                                      e->how->context);
    }
    slc_records_item_free(&record);
    return status;
}

sluice_status slc_text_of_records(const slc_records *records, const slc_text_encoding *how, slc_text **out)
{
    const uint64_t vocabulary = how->tokenizer ? slc_tokenizer_vocabulary(how->tokenizer) : 256;
    const uint64_t identity[2] = {how->tokenizer ? slc_tokenizer_fingerprint(how->tokenizer) : 0,
                                  (uint64_t)(int64_t)how->between};
    slc_text *text = calloc(1, sizeof *text);
    if (!text) return slc_error(SLUICE_ERR_MEMORY, "text of records");
    text->encoded = SLC_FILE_NONE;
    text->files = calloc(1, sizeof *text->files);
    encoder e = {.text = text, .how = how, .width = vocabulary <= 256 ? 1 : vocabulary > NARROW ? 4 : 2};
    e.bytes = slc_records_bytes(records);
    sluice_status status = text->files ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "text of records");
    if (!status) {
        text->count = 1;
        text->files[0] = (slc_text_file_part){.file = {.path = strdup(slc_records_path(records)), .fd = -1}};
        text->files[0].format = (slc_token_format){.width = e.width, .vocabulary = (uint32_t)vocabulary};
        if (!text->files[0].file.path) status = slc_error(SLUICE_ERR_MEMORY, "text of records");
    }
    text->records = records;
    text->vocabulary = (uint32_t)vocabulary;
    text->fingerprint = slc_records_fingerprint(records);
    text->encoding = slc_fnv(SLC_FNV_START, identity, sizeof identity) | 1; /* never 0 */
    if (!status) status = open_tokens(&text->encoded);
    if (!status) status = encode_records(&e, records, &text->files[0]);
    free(e.list.tokens);
    if (status) {
        slc_text_close(text);
        return status;
    }
    text->tokens = text->files[0].format.tokens;
    *out = text;
    return SLUICE_OK;
}

/* Makes the tokens in the cache's file. The text's file takes over the cache's descriptor. */
static sluice_status encode_into_cache(encoder *e, slc_token_cache *cache)
{
    e->text->encoded =
        (slc_file){.path = strdup(cache->draft), .fd = cache->fd, .bytes = slc_token_cache_head_bytes(e->text->count)};
    sluice_status status = e->text->encoded.path ? encode_files(e) : slc_error(SLUICE_ERR_MEMORY, "tokens of the text");
    if (!status) slc_token_cache_keep(cache, e->text);
    return status;
}

/* Makes the tokens in the cache's file or, if there is none or it cannot be written, in a file without a name. */
static sluice_status make_tokens(encoder *e, slc_token_cache *cache)
{
    if (cache->fd >= 0) {
        sluice_status status = encode_into_cache(e, cache);
        slc_token_cache_end(cache);
        if (status != SLUICE_ERR_IO) return status;
        slc_file_close(&e->text->encoded);
        e->done = e->list.count = 0;
    }
    sluice_status status = open_tokens(&e->text->encoded);
    return status ? status : encode_files(e);
}

sluice_status slc_text_encode(slc_text *text, const slc_text_encoding *how)
{
    if (!slc_text_is_bytes(text)) return slc_error(SLUICE_ERR_ORDER, "a text is encoded once, and only from bytes");
    uint64_t identity[2] = {slc_tokenizer_fingerprint(how->tokenizer), (uint64_t)(int64_t)how->between};
    encoder e = {.text = text, .how = how, .bytes = slc_text_file_bytes(text)};
    text->vocabulary = slc_tokenizer_vocabulary(how->tokenizer);
    e.width = text->vocabulary > NARROW ? 4 : 2;
    slc_token_cache cache;
    bool found;
    sluice_status status = slc_token_cache_look(text, how, e.width, &cache, &found);
    if (!status && !found) status = make_tokens(&e, &cache);
    slc_token_cache_end(&cache);
    text->encoding = slc_fnv(SLC_FNV_START, identity, sizeof identity) | 1; /* never 0 */
    free(e.list.tokens);
    free(e.piece);
    return status;
}
