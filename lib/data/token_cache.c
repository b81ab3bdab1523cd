#include "lib/data/token_cache.h"

#include "lib/base/array.h"
#include "lib/base/file/make_folder.h"
#include "lib/base/hash/crc32c.h"
#include "lib/base/hash/sha256.h"
#include "lib/base/status.h"
#include "lib/base/text/ending.h"
#include "lib/data/folder_entries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 18, WAIT_MS = 20, TRIES = 100 };

static const char magic[8] = "SlcTokn1", suffix[] = ".tokens", draft_suffix[] = ".making";
static const double LEFT_OVER_S = 86400; /* a file that nobody has made further for a day */

/* The head of the file, a header and then a part for each file of the text. Both lie there as they are: all fields are
 * aligned, little endian. */
typedef struct {
    char magic[8];
    uint64_t files, tokens, bytes; /* bytes: of the tokens */
    uint32_t width, crc32c;        /* of the tokens */
    uint32_t head_crc32c, zero;    /* of the head, with 0 here */
} header;

typedef struct {
    uint64_t tokens, closed; /* of a file of the text */
} part;

uint64_t slc_token_cache_head_bytes(size_t files)
{
    return sizeof(header) + files * sizeof(part);
}

/* ---- The name ---- */

static sluice_status hash_file(slc_sha256 *hash, const slc_file *file, void *piece)
{
    sluice_status status = SLUICE_OK;
    slc_sha256_add(hash, &file->bytes, sizeof file->bytes);
    for (uint64_t at = 0; !status && at < file->bytes; at += PIECE) {
        const size_t count = file->bytes - at < PIECE ? (size_t)(file->bytes - at) : PIECE;
        status = slc_file_read(file, at, count, piece);
        if (!status) slc_sha256_add(hash, piece, count);
    }
    return status;
}

static sluice_status name_tokens(const slc_text *text, const slc_text_encoding *how, uint32_t width, char key[65])
{
    const uint64_t identity[] = {slc_tokenizer_fingerprint(how->tokenizer), slc_tokenizer_vocabulary(how->tokenizer),
                                 (uint64_t)(int64_t)how->between, width, text->count};
    slc_sha256 hash;
    void *piece = malloc(PIECE);
    sluice_status status = piece ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "a piece of the text");
    slc_sha256_init(&hash);
    slc_sha256_add(&hash, magic, sizeof magic);
    slc_sha256_add(&hash, identity, sizeof identity);
    for (size_t i = 0; !status && i < text->count; i++) status = hash_file(&hash, &text->files[i].file, piece);
    slc_sha256_finish(&hash, key);
    free(piece);
    return status;
}

/* ---- A file that is there ---- */

static bool read_at(int fd, void *out, uint64_t bytes, uint64_t at)
{
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t got = pread(fd, (char *)out + done, bytes - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (uint64_t)got;
    }
    return true;
}

static bool find_checksum(int fd, uint64_t begin, uint64_t bytes, uint32_t *out)
{
    unsigned char *piece = malloc(PIECE);
    bool read = piece != NULL;
    *out = 0;
    for (uint64_t at = 0; read && at < bytes; at += PIECE) {
        const uint64_t count = bytes - at < PIECE ? bytes - at : PIECE;
        read = read_at(fd, piece, count, begin + at);
        if (read) *out = slc_crc32c(*out, piece, count);
    }
    free(piece);
    return read;
}

static uint32_t head_checksum(header head, const part *parts)
{
    head.head_crc32c = 0;
    return slc_crc32c(slc_crc32c(0, &head, sizeof head), parts, head.files * sizeof *parts);
}

static bool is_whole(int fd, const slc_text *text, uint32_t width, header *head, part *parts)
{
    struct stat info;
    const uint64_t begin = slc_token_cache_head_bytes(text->count);
    uint64_t tokens = 0;
    uint32_t crc32c;
    if (fstat(fd, &info) || !read_at(fd, head, sizeof *head, 0)) return false;
    if (memcmp(head->magic, magic, sizeof magic) || head->files != text->count || head->width != width) return false;
    if (!read_at(fd, parts, text->count * sizeof *parts, sizeof *head)) return false;
    for (size_t i = 0; i < text->count; i++) tokens += parts[i].tokens;
    return head->head_crc32c == head_checksum(*head, parts) && head->tokens == tokens &&
           head->bytes == tokens * width && (uint64_t)info.st_size == begin + head->bytes &&
           find_checksum(fd, begin, head->bytes, &crc32c) && crc32c == head->crc32c;
}

static void take_parts(slc_text *text, const header *head, const part *parts)
{
    uint64_t begin = slc_token_cache_head_bytes(text->count);
    text->tokens = 0;
    for (size_t i = 0; i < text->count; i++) {
        slc_text_file_part *to = &text->files[i];
        to->first = text->tokens;
        to->closed = (uint32_t)parts[i].closed;
        to->format = (slc_token_format){.kind = to->format.kind,
                                        .width = head->width,
                                        .vocabulary = text->vocabulary,
                                        .begin = begin,
                                        .tokens = parts[i].tokens};
        text->tokens += parts[i].tokens;
        begin += parts[i].tokens * head->width;
    }
}

/* Takes the tokens from the file, if there is one. A damaged file counts as absent, and is made anew. The file becomes
 * the one that was used last. */
static bool take_tokens(slc_text *text, uint32_t width, const char *path)
{
    header head;
    part *parts = calloc(text->count, sizeof *parts);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *name = strdup(path);
    const bool taken = parts && name && fd >= 0 && is_whole(fd, text, width, &head, parts);
    if (taken) {
        take_parts(text, &head, parts);
        text->encoded =
            (slc_file){.path = name, .fd = fd, .bytes = slc_token_cache_head_bytes(text->count) + head.bytes};
        futimens(fd, NULL);
    } else {
        free(name);
        if (fd >= 0) close(fd);
    }
    free(parts);
    return taken;
}

/* ---- A file that is made ---- */

static bool is_named(int fd, const char *path)
{
    struct stat open, named;
    return !fstat(fd, &open) && !stat(path, &named) && open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

static sluice_status wait_a_little(const slc_text *text, const slc_text_encoding *how)
{
    const struct timespec wait = {.tv_nsec = WAIT_MS * 1000000};
    nanosleep(&wait, NULL);
    return how->progress ? how->progress(0, slc_text_file_bytes(text), how->context) : SLUICE_OK;
}

/* Opens the draft and waits for its lock; *fd is -1, without an error, if the draft cannot be opened or locked. The
 * process that held the lock before may have given the file its name, or died. */
static sluice_status lock_draft(const slc_text *text, const slc_text_encoding *how, const char *path, int *fd)
{
    sluice_status status = SLUICE_OK;
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (!status && *fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            close(*fd);
            *fd = -1;
            break;
        }
        status = wait_a_little(text, how);
    }
    if (status && *fd >= 0) close(*fd);
    if (status) *fd = -1;
    return status;
}

static void close_draft(slc_token_cache *c)
{
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
}

static sluice_status find_kept(slc_text *text, const slc_text_encoding *how, uint32_t width, slc_token_cache *c,
                               bool *found)
{
    sluice_status status = SLUICE_OK;
    for (int i = 0; !status && i < TRIES; i++) {
        *found = take_tokens(text, width, c->path);
        if (*found) return SLUICE_OK;
        status = lock_draft(text, how, c->draft, &c->fd);
        if (status || c->fd < 0) return status;
        if (is_named(c->fd, c->draft) && !ftruncate(c->fd, 0)) {
            /* The file's maker may have ended between our look and our lock. */
            *found = take_tokens(text, width, c->path);
            if (!*found) return SLUICE_OK;
            unlink(c->draft);
        }
        close_draft(c);
        if (*found) return SLUICE_OK;
    }
    return status;
}

sluice_status slc_token_cache_look(slc_text *text, const slc_text_encoding *how, uint32_t width, slc_token_cache *out,
                                   bool *found)
{
    *out = (slc_token_cache){.cache = how->cache, .fd = -1};
    *found = false;
    if (!how->cache || slc_text_file_bytes(text) < how->cache->least_bytes || slc_make_folder(how->cache->folder))
        return SLUICE_OK;
    sluice_status status = name_tokens(text, how, width, out->key);
    if (status) return status;
    if (asprintf(&out->path, "%s/%s%s", how->cache->folder, out->key, suffix) < 0) out->path = NULL;
    if (asprintf(&out->draft, "%s/%s%s", how->cache->folder, out->key, draft_suffix) < 0) out->draft = NULL;
    if (!out->path || !out->draft) return slc_error(SLUICE_ERR_MEMORY, "name of a text's tokens");
    return find_kept(text, how, width, out, found);
}

/* ---- Keeping it ---- */

static bool write_head(int fd, const slc_text *text, uint64_t bytes)
{
    const uint64_t begin = slc_token_cache_head_bytes(text->count);
    part *parts = calloc(text->count, sizeof *parts);
    header head = {.files = text->count, .tokens = text->tokens, .bytes = bytes, .width = text->files[0].format.width};
    memcpy(head.magic, magic, sizeof magic);
    bool done = parts && find_checksum(fd, begin, bytes, &head.crc32c);
    for (size_t i = 0; done && i < text->count; i++)
        parts[i] = (part){text->files[i].format.tokens, text->files[i].closed};
    if (done) head.head_crc32c = head_checksum(head, parts);
    done = done && !slc_write_at(fd, parts, text->count * sizeof *parts, sizeof head) &&
           !slc_write_at(fd, &head, sizeof head, 0);
    free(parts);
    return done;
}

typedef struct {
    char *path;
    uint64_t bytes;
    struct timespec used;
} kept;

typedef struct {
    kept *all;
    size_t count;
    uint64_t bytes;
} kept_files;

static sluice_status list_kept(void *context, const char *path, const struct stat *info)
{
    kept_files *files = context;
    const bool draft = slc_ends_with(path, draft_suffix);
    if (!S_ISREG(info->st_mode)) return SLUICE_OK;
    if (draft && difftime(time(NULL), info->st_mtime) > LEFT_OVER_S) unlink(path);
    if (draft || !slc_ends_with(path, suffix)) return SLUICE_OK;
    char *copy = strdup(path);
    if (!copy || !SLC_ROOM_FOR_ONE(files->all, files->count)) {
        free(copy);
        return SLUICE_ERR_MEMORY;
    }
    files->all[files->count++] = (kept){copy, (uint64_t)info->st_size, info->st_mtim};
    files->bytes += (uint64_t)info->st_size;
    return SLUICE_OK;
}

static int used_first(const void *a, const void *b)
{
    const kept *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

static void remove_oldest(const slc_token_cache *c)
{
    kept_files files = {0};
    if (!slc_folder_each(c->cache->folder, false, list_kept, &files) && files.count)
        qsort(files.all, files.count, sizeof *files.all, used_first);
    for (size_t i = 0; i < files.count; i++) {
        if (files.bytes > c->cache->limit_bytes && strcmp(files.all[i].path, c->path) && !unlink(files.all[i].path))
            files.bytes -= files.all[i].bytes;
        free(files.all[i].path);
    }
    free(files.all);
}

void slc_token_cache_keep(slc_token_cache *c, const slc_text *text)
{
    const uint64_t head = slc_token_cache_head_bytes(text->count), bytes = text->encoded.bytes - head;
    if (c->fd < 0 || head + bytes > c->cache->limit_bytes || !write_head(c->fd, text, bytes)) return;
    if (rename(c->draft, c->path)) return;
    free(c->draft);
    c->draft = NULL;
    remove_oldest(c);
}

void slc_token_cache_end(slc_token_cache *c)
{
    if (c->fd >= 0 && c->draft) unlink(c->draft);
    if (c->fd >= 0) flock(c->fd, LOCK_UN);
    free(c->draft);
    free(c->path);
    *c = (slc_token_cache){.fd = -1};
}
