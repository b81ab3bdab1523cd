/* Reads files as one row of tokens. Windows are read with pread and not mapped, so that the resident set stays what
 * training needs. */
#include "lib/data/text.h"

#include "lib/base/array.h"
#include "lib/base/bisect.h"
#include "lib/base/file/path_error.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "lib/data/file_kind.h"
#include "lib/data/folder_entries.h"
#include "lib/data/text_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECE = 4096, STREAM_WINDOWS = 0x74657874 /* keeps these draws apart from a model's */ };

/* ---- Opening ---- */

static sluice_status cannot_read(const char *path)
{
    return slc_error(slc_path_status(errno), "cannot read %s: %s; name a text file that every rank can read", path,
                     strerror(errno));
}

static slc_text_file_part *new_file(slc_text *text)
{
    if (!SLC_ROOM_FOR_ONE(text->files, text->count)) return NULL;
    slc_text_file_part *file = &text->files[text->count++];
    *file = (slc_text_file_part){.file = SLC_FILE_NONE};
    return file;
}

static sluice_status of_one_kind(const slc_text *text, const slc_text_file_part *file)
{
    const slc_text_file_part *first = &text->files[0];
    if (file->format.kind == first->format.kind) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "%s holds %s and %s holds %s; give files of one kind", file->file.path,
                     slc_token_kind_name(file->format.kind), first->file.path, slc_token_kind_name(first->format.kind));
}

static sluice_status pass_over(slc_text *text, const char *path, const char *kind)
{
    if (text->passed_over++) return SLUICE_OK;
    if (asprintf(&text->first_passed_over, "%s (it is %s)", path, kind) < 0) {
        text->first_passed_over = NULL;
        return slc_error(SLUICE_ERR_MEMORY, "list of text files");
    }
    return SLUICE_OK;
}

/* `named`: the user named this file, and not the folder that it is in. */
static sluice_status add_file(slc_text *text, const char *path, bool named)
{
    const char *kind = NULL;
    slc_text_file_part *file = new_file(text);
    if (!file) return slc_error(SLUICE_ERR_MEMORY, "list of text files");
    sluice_status status = slc_file_open(path, &file->file);
    if (!status && !file->file.bytes)
        status = slc_error(SLUICE_ERR_ARGUMENT, "%s is empty; name a file with text in it", path);
    if (!status && !text->uint16) status = slc_file_kind(&file->file, &kind);
    if (!status && kind && named)
        status = slc_error(SLUICE_ERR_ARGUMENT, "%s holds no text: it is %s; name a file of plain text", path, kind);
    if (!status && kind) {
        slc_file_close(&file->file);
        text->count--;
        return pass_over(text, path, kind);
    }
    if (!status)
        status = text->uint16 ? slc_token_format_uint16(&file->file, &file->format)
                              : slc_token_format_of(&file->file, &file->format);
    if (!status) status = of_one_kind(text, file);
    if (status) return status;
    file->first = text->tokens;
    text->tokens += file->format.tokens;
    text->vocabulary = file->format.vocabulary;
    return SLUICE_OK;
}

static sluice_status add_regular(void *context, const char *path, const struct stat *info)
{
    return S_ISREG(info->st_mode) && info->st_size > 0 ? add_file(context, path, false) : SLUICE_OK;
}

static sluice_status add_directory(slc_text *text, const char *path)
{
    size_t before = text->count;
    sluice_status status = slc_folder_each(path, false, add_regular, text);
    if (status || text->count > before) return status;
    if (text->first_passed_over)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "directory %s holds no text; the first of its files is %s; name files "
                         "of plain text",
                         path, text->first_passed_over);
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "directory %s holds no regular file with text in it; folders in it are not read (a folder of images "
        "for each class is for --model vit or beit)",
        path);
}

static sluice_status add_path(slc_text *text, const char *path)
{
    struct stat info;
    if (stat(path, &info)) return cannot_read(path);
    return S_ISDIR(info.st_mode) ? add_directory(text, path) : add_file(text, path, true);
}

static sluice_status take_fingerprint(slc_text *text)
{
    text->fingerprint = SLC_FNV_START;
    for (size_t i = 0; i < text->count; i++) {
        sluice_status status = slc_file_hash_pieces(&text->files[i].file, &text->fingerprint);
        if (status) return status;
    }
    return SLUICE_OK;
}

static sluice_status describe_passed_over(slc_text *text)
{
    if (!text->passed_over) return SLUICE_OK;
    int written = text->passed_over == 1
                      ? asprintf(&text->note, "%s holds no text and is passed over", text->first_passed_over)
                      : asprintf(&text->note, "%zu files hold no text and are passed over; the first is %s",
                                 text->passed_over, text->first_passed_over);
    if (written >= 0) return SLUICE_OK;
    text->note = NULL;
    return slc_error(SLUICE_ERR_MEMORY, "list of text files");
}

static sluice_status open_text(const char *const *paths, size_t count, bool uint16, slc_text **out)
{
    if (count == 0) return slc_error(SLUICE_ERR_ARGUMENT, "no text: name at least one file");
    slc_text *text = calloc(1, sizeof *text);
    if (!text) return slc_error(SLUICE_ERR_MEMORY, "text");
    text->encoded = SLC_FILE_NONE;
    text->uint16 = uint16;
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < count; i++) status = add_path(text, paths[i]);
    if (!status) status = take_fingerprint(text);
    if (!status) status = describe_passed_over(text);
    if (status) {
        slc_text_close(text);
        return status;
    }
    *out = text;
    return SLUICE_OK;
}

sluice_status slc_text_open(const char *const *paths, size_t count, slc_text **out)
{
    return open_text(paths, count, false, out);
}

sluice_status slc_text_open_uint16(const char *const *paths, size_t count, slc_text **out)
{
    return open_text(paths, count, true, out);
}

void slc_text_close(slc_text *text)
{
    if (!text) return;
    for (size_t i = 0; i < text->count; i++) slc_file_close(&text->files[i].file);
    slc_file_close(&text->encoded);
    free(text->files);
    free(text->first_passed_over);
    free(text->note);
    free(text);
}

const char *slc_text_passed_over(const slc_text *text)
{
    return text->note;
}

bool slc_text_is_bytes(const slc_text *text)
{
    return text->encoded.fd < 0 && text->files[0].format.kind == SLC_TOKENS_BYTES;
}

/* ---- Reading ---- */

uint64_t slc_text_tokens(const slc_text *text)
{
    return text->tokens;
}

uint32_t slc_text_vocabulary(const slc_text *text)
{
    return text->vocabulary;
}

void slc_text_limit(slc_text *text, uint32_t vocabulary)
{
    text->vocabulary = vocabulary;
}

sluice_status slc_text_content(const slc_text *text, uint64_t *hash)
{
    sluice_status status = SLUICE_OK;
    if (text->records) {
        status = slc_records_content(text->records, hash);
        *hash = slc_fnv(*hash, &text->encoding, sizeof text->encoding);
        return status;
    }
    *hash = text->encoding ? slc_fnv(SLC_FNV_START, &text->encoding, sizeof text->encoding) : SLC_FNV_START;
    for (size_t i = 0; !status && i < text->count; i++) status = slc_file_hash(&text->files[i].file, hash);
    return status;
}

uint64_t slc_text_fingerprint(const slc_text *text)
{
    if (!text->encoding) return text->fingerprint;
    return slc_fnv(text->fingerprint, &text->encoding, sizeof text->encoding);
}

bool slc_text_file(const slc_text *text, size_t index, slc_text_range *out)
{
    if (index >= text->count) return false;
    const slc_text_file_part *file = &text->files[index];
    *out = (slc_text_range){file->first, file->format.tokens - file->closed};
    return true;
}

const char *slc_text_path(const slc_text *text, size_t index)
{
    return text->files[index].file.path;
}

/* The file that holds token `at` of the text. */
static const slc_text_file_part *file_at(const slc_text *text, uint64_t at)
{
    SLC_BISECT(size_t, next, 1, text->count, text->files[next].first <= at);
    return &text->files[next - 1];
}

static uint32_t token_at(const unsigned char *piece, uint32_t width, size_t i)
{
    uint32_t token = 0;
    memcpy(&token, piece + i * width, width); /* little endian, as the files */
    return token;
}

/* Reads up to PIECE bytes of tokens from `first` on, at most `count` tokens and none of the next file. */
static sluice_status read_piece(const slc_text *text, uint64_t first, size_t count, int32_t *out, size_t *taken)
{
    unsigned char piece[PIECE];
    const slc_text_file_part *part = file_at(text, first);
    const slc_file *file = text->encoded.fd >= 0 ? &text->encoded : &part->file;
    uint32_t width = part->format.width;
    uint64_t inside = first - part->first, left = part->format.tokens - inside;
    size_t take = count < PIECE / width ? count : PIECE / width;
    if (take > left) take = (size_t)left;
    sluice_status status = slc_file_read(file, part->format.begin + inside * width, take * width, piece);
    if (status) return status;
    for (size_t i = 0; i < take; i++) {
        uint32_t token = token_at(piece, width, i);
        if (token >= text->vocabulary)
            return slc_error(SLUICE_ERR_FORMAT, "%s: token %llu is %u; it must be below the vocabulary of %u",
                             file->path, (unsigned long long)(inside + i), token, text->vocabulary);
        out[i] = (int32_t)token;
    }
    *taken = take;
    return SLUICE_OK;
}

sluice_status slc_text_read(const slc_text *text, uint64_t first, size_t count, int32_t *out)
{
    while (count) {
        size_t taken = 0;
        sluice_status status = read_piece(text, first, count, out, &taken);
        if (status) return status;
        first += taken;
        out += taken;
        count -= taken;
    }
    return SLUICE_OK;
}

sluice_status slc_text_split(const slc_text *text, uint32_t tokens, slc_text_range *train, slc_text_range *held_out)
{
    uint64_t tenth = text->tokens / 10, window = (uint64_t)tokens + 1;
    if (tenth < window)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "%s%s: %llu tokens are too short a text: a context of %u needs %llu, a tenth of them for evaluation; "
            "give more text or a shorter context",
            text->files[0].file.path, text->count > 1 ? " and the other files" : "", (unsigned long long)text->tokens,
            tokens, (unsigned long long)(10 * window));
    *train = (slc_text_range){0, text->tokens - tenth};
    *held_out = (slc_text_range){text->tokens - tenth, tenth};
    return SLUICE_OK;
}

sluice_status slc_text_largest(const slc_text *text, uint32_t *token)
{
    int32_t piece[PIECE];
    sluice_status status = SLUICE_OK;
    *token = 0;
    for (uint64_t first = 0; !status && first < text->tokens; first += PIECE) {
        const size_t count = text->tokens - first < PIECE ? (size_t)(text->tokens - first) : PIECE;
        status = slc_text_read(text, first, count, piece);
        for (size_t i = 0; !status && i < count; i++)
            if ((uint32_t)piece[i] > *token) *token = (uint32_t)piece[i];
    }
    return status;
}

/* A window is read once, into the targets; the inputs are the same tokens one place earlier. */
sluice_status slc_text_windows(const slc_text *text, slc_text_range range, uint64_t seed, uint64_t first_sequence,
                               uint32_t batch, uint32_t tokens, int32_t *inputs, int32_t *targets)
{
    uint64_t places = range.tokens - tokens;
    for (uint32_t b = 0; b < batch; b++, inputs += tokens, targets += tokens) {
        uint64_t at = range.first + slc_random_below(seed, STREAM_WINDOWS, first_sequence + b, places);
        sluice_status status = slc_text_read(text, at, 1, inputs);
        if (!status) status = slc_text_read(text, at + 1, tokens, targets);
        if (status) return status;
        memcpy(inputs + 1, targets, (tokens - 1) * sizeof *inputs);
    }
    return SLUICE_OK;
}
