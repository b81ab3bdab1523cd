/* Files as one row of tokens. Windows are read with pread and not mapped, so that the resident set stays what training
 * needs. */
#include "lib/data/text.h"

#include "lib/base/file/file.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/data/folder_entries.h"
#include "lib/data/tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECE = 4096, STREAM_WINDOWS = 0x74657874 /* keeps these draws apart from a model's */ };

typedef struct {
    slc_file file;
    slc_token_format format;
    uint64_t first; /* token, in the whole text */
} text_file;

struct slc_text {
    text_file *files;
    size_t count, room;
    uint64_t tokens;
    uint32_t vocabulary;
    uint64_t fingerprint;
};

/* ---- Opening ---- */

static sluice_status cannot_read(const char *path)
{
    return slc_error(SLUICE_ERR_IO, "cannot read %s: %s; name a text file that every rank can read", path,
                     strerror(errno));
}

static text_file *new_file(slc_text *text)
{
    if (text->count == text->room) {
        size_t room = text->room ? 2 * text->room : 16;
        text_file *files = realloc(text->files, room * sizeof *files);
        if (!files) return NULL;
        text->files = files;
        text->room = room;
    }
    text_file *file = &text->files[text->count++];
    *file = (text_file){.file = SLC_FILE_NONE};
    return file;
}

static sluice_status add_file(slc_text *text, const char *path)
{
    text_file *file = new_file(text);
    if (!file) return slc_error(SLUICE_ERR_MEMORY, "list of text files");
    sluice_status status = slc_file_open(path, &file->file);
    if (!status && !file->file.bytes)
        status = slc_error(SLUICE_ERR_ARGUMENT, "%s is empty; name a file with text in it", path);
    if (!status) status = slc_token_format_of(&file->file, &file->format);
    if (status) return status;
    if (file->format.kind != text->files[0].format.kind)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s holds %s and %s holds %s; give files of one kind", path,
                         slc_token_kind_name(file->format.kind), text->files[0].file.path,
                         slc_token_kind_name(text->files[0].format.kind));
    file->first = text->tokens;
    text->tokens += file->format.tokens;
    text->vocabulary = file->format.vocabulary;
    return SLUICE_OK;
}

static sluice_status add_regular(void *context, const char *path, const struct stat *info)
{
    return S_ISREG(info->st_mode) && info->st_size > 0 ? add_file(context, path) : SLUICE_OK;
}

static sluice_status add_directory(slc_text *text, const char *path)
{
    size_t before = text->count;
    sluice_status status = slc_folder_each(path, false, add_regular, text);
    if (!status && text->count == before)
        status = slc_error(SLUICE_ERR_ARGUMENT, "directory %s holds no regular file with text in it", path);
    return status;
}

static sluice_status add_path(slc_text *text, const char *path)
{
    struct stat info;
    if (stat(path, &info)) return cannot_read(path);
    return S_ISDIR(info.st_mode) ? add_directory(text, path) : add_file(text, path);
}

static sluice_status take_fingerprint(slc_text *text)
{
    unsigned char piece[PIECE];
    uint64_t hash = SLC_FNV_START;
    for (size_t i = 0; i < text->count; i++) {
        const slc_file *file = &text->files[i].file;
        size_t count = file->bytes < PIECE ? (size_t)file->bytes : PIECE;
        sluice_status status = slc_file_read(file, 0, count, piece);
        if (status) return status;
        hash = slc_fnv(hash, &file->bytes, sizeof file->bytes);
        hash = slc_fnv(hash, piece, count);
    }
    text->fingerprint = hash;
    return SLUICE_OK;
}

sluice_status slc_text_open(const char *const *paths, size_t count, slc_text **out)
{
    if (count == 0) return slc_error(SLUICE_ERR_ARGUMENT, "no text: name at least one file");
    slc_text *text = calloc(1, sizeof *text);
    if (!text) return slc_error(SLUICE_ERR_MEMORY, "text");
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < count; i++) status = add_path(text, paths[i]);
    if (!status) status = take_fingerprint(text);
    if (status) {
        slc_text_close(text);
        return status;
    }
    *out = text;
    return SLUICE_OK;
}

void slc_text_close(slc_text *text)
{
    if (!text) return;
    for (size_t i = 0; i < text->count; i++) slc_file_close(&text->files[i].file);
    free(text->files);
    free(text);
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
    *hash = SLC_FNV_START;
    for (size_t i = 0; !status && i < text->count; i++) status = slc_file_hash(&text->files[i].file, hash);
    return status;
}

uint64_t slc_text_fingerprint(const slc_text *text)
{
    return text->fingerprint;
}

bool slc_text_file(const slc_text *text, size_t index, slc_text_range *out)
{
    if (index >= text->count) return false;
    *out = (slc_text_range){text->files[index].first, text->files[index].format.tokens};
    return true;
}

/* The file that holds token `at` of the text. */
static const text_file *file_at(const slc_text *text, uint64_t at)
{
    size_t low = 0, high = text->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (text->files[middle].first <= at)
            low = middle;
        else
            high = middle;
    }
    return &text->files[low];
}

static uint32_t token_at(const unsigned char *piece, uint32_t width, size_t i)
{
    uint32_t token = 0;
    memcpy(&token, piece + i * width, width); /* little endian, as the files */
    return token;
}

sluice_status slc_text_read(const slc_text *text, uint64_t first, size_t count, int32_t *out)
{
    unsigned char piece[PIECE];
    while (count) {
        const text_file *file = file_at(text, first);
        uint32_t width = file->format.width;
        uint64_t inside = first - file->first, left = file->format.tokens - inside;
        size_t take = count < PIECE / width ? count : PIECE / width;
        if (take > left) take = (size_t)left;
        sluice_status status = slc_file_read(&file->file, file->format.begin + inside * width, take * width, piece);
        if (status) return status;
        for (size_t i = 0; i < take; i++) {
            uint32_t token = token_at(piece, width, i);
            if (token >= text->vocabulary)
                return slc_error(SLUICE_ERR_FORMAT, "%s: token %llu is %u; it must be below the vocabulary of %u",
                                 file->file.path, (unsigned long long)(inside + i), token, text->vocabulary);
            out[i] = (int32_t)token;
        }
        first += take;
        out += take;
        count -= take;
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
