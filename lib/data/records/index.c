/* The index of a file says where its records begin. The file is read once, in large pieces; the beginnings of a large
 * one are written as they are found, 8 bytes each, and never lie in memory. record_files_test.c covers this file. */
#include "lib/base/array.h"
#include "lib/base/file/draft.h"
#include "lib/base/file/path_error.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/data/records/records_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20, HELD = 1 << 13, VERSION = 1 };
static const uint64_t KEPT_FROM = UINT64_C(64) << 20;

/* The beginning of an index; 64 bytes, little endian, as all of it. The numbers follow. */
typedef struct {
    char magic[8];
    uint32_t version, form, header, unused;
    uint64_t bytes, pieces; /* of the data: its size, and a hash of pieces of it */
    int64_t changed_s, changed_ns;
    uint64_t count;
} index_head;
_Static_assert(sizeof(index_head) == 64, "an index begins with 64 bytes");

/* ---- Finding ---- */

typedef struct {
    slc_records_form form;
    bool header;    /* the first record is none */
    bool inside;    /* of a record, and not of the empty lines before it */
    bool quoted;    /* inside quotes of a CSV */
    bool keeps;     /* numbers go to `fd` */
    uint64_t line;  /* where the line begins that may be a record */
    uint64_t count; /* of records */
    uint64_t *held; /* not written yet, or all of them */
    uint64_t held_count;
    int fd;
    uint64_t written; /* bytes of the index */
} finder;

static int write_held(finder *f)
{
    const int why = slc_write_at(f->fd, f->held, f->held_count * sizeof *f->held, f->written);
    f->written += f->held_count * sizeof *f->held;
    f->held_count = 0;
    return why;
}

/* Returns 0, ENOMEM or what writing gave. */
static int add_beginning(finder *f, uint64_t at)
{
    if (f->header) {
        f->header = false;
        return 0;
    }
    f->count++;
    if (f->keeps && f->held_count == HELD) {
        const int why = write_held(f);
        if (why) return why;
    }
    if (!f->keeps && !SLC_ROOM_FOR_ONE(f->held, f->held_count)) return ENOMEM;
    f->held[f->held_count++] = at;
    return 0;
}

/* Returns the next byte that matters inside a record: a line's end, or in CSV a quote too. */
static const char *next_mark(const finder *f, const char *at, const char *end)
{
    const char *line = memchr(at, '\n', (size_t)(end - at));
    if (f->form != SLC_RECORDS_CSV) return line ? line : end;
    const char *last = line ? line : end, *quote = memchr(at, '"', (size_t)(last - at));
    return quote ? quote : last;
}

static int find_in(finder *f, const char *piece, size_t bytes, uint64_t first)
{
    const char *at = piece, *end = piece + bytes;
    while (at < end) {
        if (!f->inside) {
            for (; at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'); at++)
                if (*at == '\n') f->line = first + (uint64_t)(at - piece) + 1;
            if (at == end) break;
            f->inside = true;
            const int why = add_beginning(f, f->line);
            if (why) return why;
        }
        if (f->quoted) {
            const char *quote = memchr(at, '"', (size_t)(end - at));
            f->quoted = !quote;
            at = quote ? quote + 1 : end;
            continue;
        }
        at = next_mark(f, at, end);
        if (at == end) break;
        if (*at == '"') {
            f->quoted = true;
        } else {
            f->inside = false;
            f->line = first + (uint64_t)(at - piece) + 1;
        }
        at++;
    }
    return 0;
}

static sluice_status cannot_keep(const slc_file *data, int why)
{
    if (why == ENOMEM) return slc_error(SLUICE_ERR_MEMORY, "index of %s", data->path);
    return slc_error(SLUICE_ERR_IO, "cannot keep the index of %s: %s", data->path, strerror(why));
}

static sluice_status find_all(const slc_file *data, slc_index_making *making, finder *f)
{
    char *piece = malloc(PIECE);
    sluice_status status = piece ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "index of %s", data->path);
    for (uint64_t first = 0; !status && first < data->bytes; first += PIECE) {
        const size_t bytes = (size_t)slc_least(PIECE, data->bytes - first);
        status = slc_file_read(data, first, bytes, piece);
        if (status) break;
        const int why = find_in(f, piece, bytes, first);
        if (why) status = cannot_keep(data, why);
        making->done += bytes;
        if (!status && making->how->progress)
            status = making->how->progress(making->done, making->bytes, making->how->context);
    }
    free(piece);
    return status;
}

/* ---- Keeping ---- */

static sluice_status make_head(const slc_records_file *part, bool header, index_head *out)
{
    struct stat info;
    *out = (index_head){.magic = "SLCINDX",
                        .version = VERSION,
                        .form = part->form,
                        .header = header,
                        .bytes = part->file.bytes,
                        .pieces = SLC_FNV_START};
    if (fstat(part->file.fd, &info))
        return slc_error(SLUICE_ERR_IO, "cannot read %s: %s", part->file.path, strerror(errno));
    out->changed_s = info.st_mtim.tv_sec;
    out->changed_ns = info.st_mtim.tv_nsec;
    return slc_file_hash_pieces(&part->file, &out->pieces);
}

/* NAME's index is .NAME.sluice-index beside it. In a folder of the user's, files of one name are told apart by a hash
 * of where they lie. NULL: no memory. */
static char *index_path(const slc_records_how *how, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *out = NULL, *full = how->index_folder ? realpath(path, NULL) : NULL;
    const char *known = full ? full : path;
    int wrote;
    if (how->index_folder)
        wrote = asprintf(&out, "%s/%s-%016" PRIx64 ".sluice-index", how->index_folder, name,
                         slc_fnv(SLC_FNV_START, known, strlen(known)));
    else
        wrote = asprintf(&out, "%.*s.%s.sluice-index", (int)(name - path), path, name);
    free(full);
    return wrote < 0 ? NULL : out;
}

/* Takes the index of an earlier run if it is of this file, as it is now; anything else is no index. */
static bool take_kept(const char *path, const index_head *want, slc_records_index *out)
{
    index_head head;
    slc_file file;
    if (access(path, R_OK) || slc_file_open(path, &file)) return false;
    bool good = file.bytes >= sizeof head && !slc_file_read(&file, 0, sizeof head, &head);
    const uint64_t count = good ? head.count : 0;
    head.count = want->count;
    good = good && !memcmp(&head, want, sizeof head) && (file.bytes - sizeof head) / 8 == count && file.bytes % 8 == 0;
    if (!good) {
        slc_file_close(&file);
        return false;
    }
    *out = (slc_records_index){.count = count, .file = file, .at = sizeof head};
    return true;
}

/* Opens a file without a name, in TMPDIR, for an index that nothing can keep. */
static int open_nameless(void)
{
    const char *folder = getenv("TMPDIR");
    char path[PATH_MAX];
    if (!folder || !*folder) folder = "/var/tmp";
    if (snprintf(path, sizeof path, "%s/sluice-index-XXXXXX", folder) >= (int)sizeof path) return -1;
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd;
}

static void note_unkept(slc_index_making *making, const char *path)
{
    if (*making->note) return;
    if (asprintf(making->note,
                 "the index of %s cannot be kept (%s), so every run looks for its records anew; name a folder with "
                 "--data-index",
                 path, sluice_last_error()) < 0)
        *making->note = NULL;
}

/* Finds the records of a large file. The index takes its name when it is whole, and if it can have none it goes with
 * the run. */
static sluice_status find_and_keep(const slc_records_file *part, slc_index_making *making, const char *path,
                                   const index_head *head, finder *f, slc_records_index *out)
{
    slc_draft draft = SLC_DRAFT_NONE;
    const bool named = slc_draft_open(path, &draft) == SLUICE_OK;
    if (!named) note_unkept(making, part->file.path);
    f->fd = named ? draft.fd : open_nameless();
    f->written = sizeof *head;
    f->held = malloc(HELD * sizeof *f->held);
    if (f->fd < 0) {
        const int why = errno;
        return slc_error(slc_path_status(why),
                         "cannot keep the index of %s in TMPDIR: %s; name a folder with "
                         "--data-index",
                         part->file.path, strerror(why));
    }
    sluice_status status = f->held ? find_all(&part->file, making, f) : slc_error(SLUICE_ERR_MEMORY, "index");
    int why = status ? 0 : write_held(f);
    index_head whole = *head;
    whole.count = f->count;
    if (!status && !why) why = slc_write_at(f->fd, &whole, sizeof whole, 0);
    if (!status && why) status = cannot_keep(&part->file, why);
    const int fd = status ? -1 : fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
    if (!status && fd < 0) status = cannot_keep(&part->file, errno);
    if (named && status) slc_draft_drop(&draft);
    if (named && !status && slc_draft_keep(&draft, path)) note_unkept(making, part->file.path);
    if (!named) close(f->fd);
    if (status) return status;
    char *name = strdup(path);
    if (!name) {
        close(fd);
        return slc_error(SLUICE_ERR_MEMORY, "index of %s", part->file.path);
    }
    *out = (slc_records_index){
        .count = f->count, .file = {.path = name, .fd = fd, .bytes = f->written}, .at = sizeof *head};
    return SLUICE_OK;
}

/* ---- Indexes ---- */

sluice_status slc_records_index_make(const slc_records_file *part, bool header, slc_index_making *making,
                                     slc_records_index *out)
{
    const uint64_t from = making->how->index_from ? making->how->index_from : KEPT_FROM;
    finder f = {.form = part->form, .header = header, .fd = -1, .keeps = part->file.bytes >= from};
    index_head head;
    char *path = NULL;
    sluice_status status;
    *out = (slc_records_index){.file = SLC_FILE_NONE};
    if (!f.keeps) {
        status = find_all(&part->file, making, &f);
        *out = (slc_records_index){.count = f.count, .begins = f.held, .file = SLC_FILE_NONE};
        return status;
    }
    status = make_head(part, header, &head);
    if (!status && !(path = index_path(making->how, part->file.path)))
        status = slc_error(SLUICE_ERR_MEMORY, "index of %s", part->file.path);
    if (!status && take_kept(path, &head, out)) {
        making->done += part->file.bytes;
        free(path);
        return SLUICE_OK;
    }
    if (!status) status = find_and_keep(part, making, path, &head, &f, out);
    free(f.held);
    free(path);
    return status;
}

void slc_records_index_free(slc_records_index *index)
{
    free(index->begins);
    slc_file_close(&index->file);
    *index = (slc_records_index){.file = SLC_FILE_NONE};
}

sluice_status slc_records_index_find(const slc_records_index *index, const slc_file *data, uint64_t number,
                                     uint64_t place[2])
{
    const uint64_t count = slc_least(2, index->count - number);
    sluice_status status = SLUICE_OK;
    place[1] = data->bytes;
    if (index->begins)
        memcpy(place, index->begins + number, count * sizeof *place);
    else
        status = slc_file_read(&index->file, index->at + number * sizeof *place, count * sizeof *place, place);
    if (status || (place[0] < place[1] && place[1] <= data->bytes)) return status;
    return slc_error(SLUICE_ERR_IO, "%s: the index in %s is damaged; remove it", data->path, index->file.path);
}
