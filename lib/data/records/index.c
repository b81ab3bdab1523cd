/* The index of a file says where its records begin, which labels they have, and which of them are odd. The file is read
 * once, in large pieces, and each record is checked where it ends; the beginnings of a large one are written as they
 * are found, 8 bytes each, and never lie in memory. record_files_test.c covers this file. */
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

enum { PIECE = 1 << 20, HELD = 1 << 13, VERSION = 2 };
static const uint64_t KEPT_FROM = UINT64_C(64) << 20;

/* The head of an index: 104 bytes, little endian as all of it. The beginnings of the records follow as numbers, then
 * the labels, each as its length in 4 bytes and its bytes. */
typedef struct {
    char magic[8];
    uint32_t version, form, header, label_count; /* the last one: UINT32_MAX for more than a set can have */
    uint64_t bytes, pieces;                      /* of the data: its size, and a hash of pieces of it */
    int64_t changed_s, changed_ns;
    uint64_t fields; /* a hash of the fields that records were checked for */
    uint64_t count, label_bytes, odd[SLC_RECORDS_ODDITIES];
} index_head;
_Static_assert(sizeof(index_head) == 104, "an index begins with 104 bytes");

/* ---- Finding ---- */

typedef struct {
    const slc_file *data;
    slc_records_form form;
    slc_records_check *check; /* NULL: beginnings alone are wanted */
    bool header;              /* the first record is none */
    bool inside;              /* of a record, and not of the empty lines before it */
    bool counts;              /* it is a record, and no header */
    bool quoted;              /* inside quotes of a CSV */
    bool keeps;               /* numbers go to `fd` */
    uint64_t line;            /* where the line begins that may be a record */
    uint64_t begin;           /* where the record begins that it is inside of */
    uint64_t count;           /* of records */
    uint64_t most;            /* no more are wanted; 0: all are */
    uint64_t *held;           /* not written yet, or all of them */
    uint64_t held_count;
    int fd;
    uint64_t written; /* bytes of the index */
} finder;

static sluice_status cannot_keep(const slc_file *data, int why)
{
    if (why == ENOMEM) return slc_error(SLUICE_ERR_MEMORY, "index of %s", data->path);
    return slc_error(SLUICE_ERR_IO, "cannot keep the index of %s: %s", data->path, strerror(why));
}

static int write_held(finder *f)
{
    const int why = slc_write_at(f->fd, f->held, f->held_count * sizeof *f->held, f->written);
    f->written += f->held_count * sizeof *f->held;
    f->held_count = 0;
    return why;
}

static sluice_status begin_record(finder *f)
{
    int why = 0;
    f->begin = f->line;
    f->counts = !f->header;
    f->header = false;
    if (!f->counts) return SLUICE_OK;
    f->count++;
    if (f->keeps && f->held_count == HELD) why = write_held(f);
    if (!why && !f->keeps && !SLC_ROOM_FOR_ONE(f->held, f->held_count)) why = ENOMEM;
    if (why) return cannot_keep(f->data, why);
    f->held[f->held_count++] = f->begin;
    return SLUICE_OK;
}

/* Checks the record that ends before byte `end` of the file. A record that began in an earlier piece is read again. */
static sluice_status end_record(finder *f, const char *piece, uint64_t first, uint64_t end)
{
    const uint64_t place[2] = {f->begin, end};
    if (!f->check || !f->counts) return SLUICE_OK;
    return slc_records_check_next(f->check, place, f->begin < first ? NULL : piece + (f->begin - first));
}

/* Returns the next byte that matters inside a record: a line's end, or in CSV a quote too. */
static const char *next_mark(const finder *f, const char *at, const char *end)
{
    const char *line = memchr(at, '\n', (size_t)(end - at));
    if (f->form != SLC_RECORDS_CSV) return line ? line : end;
    const char *last = line ? line : end, *quote = memchr(at, '"', (size_t)(last - at));
    return quote ? quote : last;
}

static sluice_status find_in(finder *f, const char *piece, size_t bytes, uint64_t first)
{
    const char *at = piece, *end = piece + bytes;
    sluice_status status = SLUICE_OK;
    while (!status && at < end) {
        if (!f->inside) {
            for (; at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'); at++)
                if (*at == '\n') f->line = first + (uint64_t)(at - piece) + 1;
            if (at == end || (f->most && f->count == f->most)) break;
            f->inside = true;
            status = begin_record(f);
            continue;
        }
        if (f->quoted) {
            const char *quote = memchr(at, '"', (size_t)(end - at));
            f->quoted = !quote;
            at = quote ? quote + 1 : end;
            continue;
        }
        at = next_mark(f, at, end);
        if (at == end) break;
        if (*at++ == '"') {
            f->quoted = true;
            continue;
        }
        f->inside = false;
        f->line = first + (uint64_t)(at - piece);
        status = end_record(f, piece, first, f->line);
    }
    return status;
}

/* `making` is NULL where only beginnings are wanted. */
static sluice_status find_all(slc_index_making *making, finder *f)
{
    const slc_file *data = f->data;
    char *piece = malloc(PIECE);
    sluice_status status = piece ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "index of %s", data->path);
    for (uint64_t first = 0; !status && first < data->bytes && (!f->most || f->count < f->most); first += PIECE) {
        const size_t bytes = (size_t)slc_least(PIECE, data->bytes - first);
        status = slc_file_read(data, first, bytes, piece);
        if (!status) status = find_in(f, piece, bytes, first);
        if (!status && f->inside && first + bytes == data->bytes) status = end_record(f, piece, first, data->bytes);
        if (!making) continue;
        making->done += bytes;
        if (!status && making->how->progress)
            status = making->how->progress(making->done, making->bytes, making->how->context);
    }
    free(piece);
    return status;
}

sluice_status slc_records_index_begin(const slc_records_file *part, uint64_t places[SLC_INDEX_BEGINNINGS],
                                      uint64_t *count)
{
    finder f = {.data = &part->file, .form = part->form, .fd = -1, .most = SLC_INDEX_BEGINNINGS};
    sluice_status status = find_all(NULL, &f);
    *count = f.count;
    for (uint64_t i = 0; i < SLC_INDEX_BEGINNINGS; i++) places[i] = i < f.count ? f.held[i] : part->file.bytes;
    free(f.held);
    return status;
}

/* ---- Keeping ---- */

/* Returns a hash of the fields and their names: an index holds only for records that were checked for the same ones. */
static uint64_t hash_fields(const slc_records *set)
{
    return slc_fnv(slc_fnv(SLC_FNV_START, set->names.of, sizeof set->names.of), set->have, sizeof set->have);
}

static sluice_status make_head(const slc_records_file *part, bool header, const slc_records *set, index_head *out)
{
    struct stat info;
    *out = (index_head){.magic = "SLCINDX",
                        .version = VERSION,
                        .form = part->form,
                        .header = header,
                        .bytes = part->file.bytes,
                        .fields = hash_fields(set),
                        .pieces = SLC_FNV_START};
    if (fstat(part->file.fd, &info))
        return slc_error(SLUICE_ERR_IO, "cannot read %s: %s", part->file.path, strerror(errno));
    out->changed_s = info.st_mtim.tv_sec;
    out->changed_ns = info.st_mtim.tv_nsec;
    return slc_file_hash_pieces(&part->file, &out->pieces);
}

/* Returns the path of a file's index: .NAME.sluice-index beside the file, or NAME-HASH.sluice-index in the folder for
 * indices, where a hash of the file's path tells files of one name apart. NULL: no memory. */
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

/* Takes the labels of an index, which come in their order. */
static bool take_labels(const slc_file *file, const index_head *head, slc_labels *out)
{
    char *text = malloc(head->label_bytes + 1);
    uint64_t at = 0;
    bool good = text && !slc_file_read(file, sizeof *head + 8 * head->count, (size_t)head->label_bytes, text);
    *out = (slc_labels){.many = head->label_count == UINT32_MAX};
    for (uint32_t i = 0; good && !out->many && i < head->label_count; i++) {
        uint32_t bytes = 0;
        good = head->label_bytes - at >= sizeof bytes;
        if (good) memcpy(&bytes, text + at, sizeof bytes);
        at += sizeof bytes;
        good = good && head->label_bytes - at >= bytes && !slc_labels_add(out, (slc_span){text + at, bytes});
        at += bytes;
    }
    free(text);
    good = good && at == head->label_bytes;
    if (!good) slc_labels_free(out);
    return good;
}

/* Returns true if `head` is the head of an index of this file, with `bytes` bytes: it equals `want` except in what was
 * found in the data, and what it counts fills those bytes. */
static bool is_of_file(const index_head *head, const index_head *want, uint64_t bytes)
{
    index_head begun = *head;
    begun.count = begun.label_bytes = begun.label_count = 0;
    memset(begun.odd, 0, sizeof begun.odd);
    const uint64_t room = bytes - sizeof *head;
    return !memcmp(&begun, want, sizeof begun) && head->count <= room / 8 &&
           room - 8 * head->count == head->label_bytes;
}

/* Takes the index of an earlier run if it is of this file, as it is now; anything else is no index. */
static bool take_kept(const char *path, const index_head *want, slc_records_index *out)
{
    index_head head;
    slc_file file;
    slc_labels labels = {0};
    if (access(path, R_OK) || slc_file_open(path, &file)) return false;
    const bool good = file.bytes >= sizeof head && !slc_file_read(&file, 0, sizeof head, &head) &&
                      is_of_file(&head, want, file.bytes) && take_labels(&file, &head, &labels);
    if (!good) {
        slc_file_close(&file);
        return false;
    }
    *out = (slc_records_index){.count = head.count, .file = file, .at = sizeof head, .labels = labels};
    memcpy(out->odd, head.odd, sizeof out->odd);
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

static int write_part(finder *f, const void *data, uint64_t bytes)
{
    const int why = slc_write_at(f->fd, data, bytes, f->written);
    f->written += bytes;
    return why;
}

/* Writes what stands behind the numbers, and the head, which is whole then. */
static int write_rest(finder *f, const slc_records_index *index, index_head *head)
{
    const slc_labels *labels = &index->labels;
    int why = write_held(f);
    head->count = f->count;
    head->label_count = labels->many ? UINT32_MAX : labels->count;
    head->label_bytes = labels->bytes + labels->count * sizeof(uint32_t);
    memcpy(head->odd, index->odd, sizeof head->odd);
    for (uint32_t i = 0; !why && i < labels->count; i++) {
        const uint32_t bytes = (uint32_t)strlen(labels->names[i]);
        why = write_part(f, &bytes, sizeof bytes);
        if (!why) why = write_part(f, labels->names[i], bytes);
    }
    return why ? why : slc_write_at(f->fd, head, sizeof *head, 0);
}

/* Finds the records of a large file. The index gets its name when it is complete; an index that can have no name is
 * gone after the run. */
static sluice_status find_and_keep(slc_index_making *making, const char *path, index_head *head, finder *f,
                                   slc_records_index *out)
{
    slc_draft draft = SLC_DRAFT_NONE;
    const bool named = slc_draft_open(path, &draft) == SLUICE_OK;
    if (!named) note_unkept(making, f->data->path);
    f->fd = named ? draft.fd : open_nameless();
    f->written = sizeof *head;
    f->held = malloc(HELD * sizeof *f->held);
    if (f->fd < 0) {
        const int why = errno;
        return slc_error(slc_path_status(why),
                         "cannot keep the index of %s in TMPDIR: %s; name a folder with "
                         "--data-index",
                         f->data->path, strerror(why));
    }
    sluice_status status = f->held ? find_all(making, f) : slc_error(SLUICE_ERR_MEMORY, "index");
    const int why = status ? 0 : write_rest(f, out, head);
    if (!status && why) status = cannot_keep(f->data, why);
    const int fd = status ? -1 : fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
    if (!status && fd < 0) status = cannot_keep(f->data, errno);
    if (named && status) slc_draft_drop(&draft);
    if (named && !status && slc_draft_keep(&draft, path)) note_unkept(making, f->data->path);
    if (!named) close(f->fd);
    if (status) return status;
    char *name = strdup(path);
    if (!name) {
        close(fd);
        return slc_error(SLUICE_ERR_MEMORY, "index of %s", f->data->path);
    }
    out->file = (slc_file){.path = name, .fd = fd, .bytes = f->written};
    out->at = sizeof *head;
    return SLUICE_OK;
}

/* ---- Indexes ---- */

static sluice_status look_through(const slc_records_file *part, bool header, slc_index_making *making, finder *f,
                                  slc_records_index *out)
{
    index_head head;
    char *path = NULL;
    if (!f->keeps) {
        sluice_status status = find_all(making, f);
        out->begins = f->held;
        f->held = NULL;
        return status;
    }
    sluice_status status = make_head(part, header, making->set, &head);
    if (!status && !(path = index_path(making->how, part->file.path)))
        status = slc_error(SLUICE_ERR_MEMORY, "index of %s", part->file.path);
    if (!status && take_kept(path, &head, out)) {
        f->count = out->count;
        making->done += part->file.bytes;
    } else if (!status) {
        status = find_and_keep(making, path, &head, f, out);
    }
    free(path);
    return status;
}

sluice_status slc_records_index_make(const slc_records_file *part, bool header, slc_index_making *making,
                                     slc_records_index *out)
{
    const uint64_t from = making->how->index_from ? making->how->index_from : KEPT_FROM;
    slc_records_check check = {.set = making->set, .part = part, .index = out};
    finder f = {.data = &part->file,
                .form = part->form,
                .check = &check,
                .header = header,
                .fd = -1,
                .keeps = part->file.bytes >= from};
    *out = (slc_records_index){.file = SLC_FILE_NONE};
    sluice_status status = look_through(part, header, making, &f, out);
    out->count = f.count;
    slc_records_check_end(&check);
    free(f.held);
    return status;
}

void slc_records_index_free(slc_records_index *index)
{
    free(index->begins);
    slc_labels_free(&index->labels);
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
