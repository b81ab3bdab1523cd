/* The file is read with pread, never mapped, so that one that shrinks causes an error and not a signal. A writer may be
 * at work meanwhile: an entry counts when it had its sequence before it was copied, had it afterwards, and the ring had
 * not come round to it by then. records_test.c covers this file. */
#include "plugins/nccl/record/read_file.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_ENTRIES = 1 << 24,
    MOST_RANKS = 1 << 20,
    PIECE = 1024,    /* entries that are read at a time */
    CHANGING = 1024, /* the latest entries, whose flags and times may come late */
    MOST_OPEN = 256  /* descriptors below this number may stay open */
};
#define LATEST_NS (INT64_C(1) << 61)

typedef struct {
    slc_file file;
    slc_nccl_process *process;
    slc_record_header header;
    size_t room;         /* in process->entries */
    uint64_t incomplete; /* index of the first entry that is being written */
    slc_record_entry before[PIECE], entries[PIECE];
    slc_record_time times[PIECE];
} reader;

/* The length of the character at `text`, or 0: it is not UTF-8, or steers a terminal. */
static size_t character_bytes(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0x20, 0xa0, 0x800, 0x10000};
    size_t bytes = *text < 0x80 ? 1 : *text < 0xc0 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : *text < 0xf8 ? 4 : 0;
    uint32_t code = bytes < 2 ? *text : *text & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    bool valid = code >= least[bytes] && code != 0x7f && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return valid ? bytes : 0;
}

/* Ends the text, and puts a question mark for each byte that must not be printed. */
static void clean(char *text, size_t size)
{
    text[size - 1] = 0;
    for (char *at = text; *at;) {
        size_t bytes = character_bytes((unsigned char *)at);
        if (!bytes) *at = '?';
        at += bytes ? bytes : 1;
    }
}

static bool lies_in(const slc_record_header *h, uint64_t at, uint64_t bytes)
{
    return at >= SLC_RECORD_HEADER_BYTES && at <= h->file_bytes && bytes <= h->file_bytes - at;
}

static bool is_time(int64_t ns)
{
    return ns >= 0 && ns < LATEST_NS;
}

/* Returns what is wrong with the header, or NULL. */
static const char *header_fault(const slc_record_header *h)
{
    if (h->header_bytes != SLC_RECORD_HEADER_BYTES || h->entry_bytes != sizeof(slc_record_entry))
        return "the sizes in its header are not those of its version";
    if (h->entry_count < 1 || h->entry_count > MOST_ENTRIES) return "its number of entries is out of range";
    if (!lies_in(h, h->communicators_at, SLC_RECORD_COMMUNICATORS * sizeof(slc_record_communicator)))
        return "its communicators lie outside of it";
    if (!lies_in(h, h->modules_at, SLC_RECORD_MODULES * sizeof(slc_record_module)))
        return "its modules lie outside of it";
    if (!lies_in(h, h->entries_at, h->entry_count * sizeof(slc_record_entry))) return "its entries lie outside of it";
    if (h->times_at && !lies_in(h, h->times_at, h->entry_count * sizeof(slc_record_time)))
        return "its times lie outside of it";
    if (h->communicators > SLC_RECORD_COMMUNICATORS) return "it has more communicators than rows for them";
    if (h->modules > SLC_RECORD_MODULES) return "it has more modules than rows for them";
    if (h->pid < 1 || h->pid > INT32_MAX) return "its process has no possible number";
    if (h->entries > UINT64_MAX / 2) return "its count of entries is out of range";
    if (h->state != SLC_RECORD_RUNNING && h->state != SLC_RECORD_ENDED) return "its process is in no known state";
    if (!is_time(h->first_call_ns) || h->realtime_minus_monotonic_ns <= -LATEST_NS ||
        h->realtime_minus_monotonic_ns >= LATEST_NS)
        return "its clock is out of range";
    return NULL;
}

/* Reads and checks the header. *begun: the process has written it. */
static sluice_status read_header(reader *r, bool *begun)
{
    slc_record_header *h = &r->header;
    const char *path = r->file.path;
    static const char nothing[sizeof h->magic];
    *begun = r->file.bytes > 0;
    if (!*begun) return SLUICE_OK;
    if (r->file.bytes < SLC_RECORD_HEADER_BYTES)
        return slc_error(SLUICE_ERR_FORMAT, "%s: it has %llu bytes, less than the header of a record; remove it", path,
                         (unsigned long long)r->file.bytes);
    sluice_status status = slc_file_read(&r->file, 0, sizeof *h, h);
    if (status) return status;
    *begun = memcmp(h->magic, nothing, sizeof nothing) != 0;
    if (!*begun) return SLUICE_OK;
    if (memcmp(h->magic, SLC_RECORD_MAGIC, sizeof h->magic))
        return slc_error(SLUICE_ERR_FORMAT, "%s: it is no record of the NCCL shim; remove it", path);
    if (h->version != SLC_RECORD_VERSION)
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s: the record has version %u, and this sluice reads version %d; read it with the sluice "
                         "that the shim came with",
                         path, h->version, SLC_RECORD_VERSION);
    const char *fault = header_fault(h);
    if (fault) return slc_error(SLUICE_ERR_FORMAT, "%s: the record is damaged: %s; remove it", path, fault);
    if (h->file_bytes > r->file.bytes)
        return slc_error(SLUICE_ERR_FORMAT, "%s: the record is cut: it has %llu of its %llu bytes; copy it again", path,
                         (unsigned long long)r->file.bytes, (unsigned long long)h->file_bytes);
    clean(h->host, sizeof h->host);
    clean(h->boot_id, sizeof h->boot_id);
    clean(h->command, sizeof h->command);
    clean(h->nccl_path, sizeof h->nccl_path);
    return SLUICE_OK;
}

static sluice_status check_row(const reader *r, const slc_record_communicator *row, unsigned number)
{
    const char *fault = NULL;
    if (row->state > SLC_RECORD_ROW_FAILED)
        fault = "is in no known state";
    else if (row->size < 0 || row->size > MOST_RANKS)
        fault = "has an impossible number of ranks";
    else if (row->rank < -1 || (row->rank >= 0 && row->rank >= row->size))
        fault = "has a rank that is not in it";
    else if (row->calls > UINT64_MAX / 2 || row->collectives > UINT64_MAX / 2)
        fault = "has an impossible count of calls";
    if (!fault) return SLUICE_OK;
    return slc_error(SLUICE_ERR_FORMAT, "%s: the record is damaged: communicator %u %s (rank %d of %d); remove it",
                     r->file.path, number, fault, row->rank, row->size);
}

/* Reads the rows until they are the same twice, so that a row's counts and hash belong together; a process that stands
 * still in the midst of a change leaves them as they are. */
static sluice_status read_communicators(reader *r)
{
    enum { TRIES = 8 };
    slc_nccl_process *p = r->process;
    size_t bytes = r->header.communicators * sizeof *p->communicators;
    if (!bytes) return SLUICE_OK;
    slc_record_communicator *rows = malloc(2 * bytes);
    if (!rows) return slc_error(SLUICE_ERR_MEMORY, "communicators of %s", r->file.path);
    slc_record_communicator *earlier = rows + r->header.communicators;
    sluice_status status = slc_file_read(&r->file, r->header.communicators_at, bytes, rows);
    for (int i = 0; !status && i < TRIES && (!i || memcmp(rows, earlier, bytes)); i++) {
        memcpy(earlier, rows, bytes);
        status = slc_file_read(&r->file, r->header.communicators_at, bytes, rows);
    }
    for (unsigned i = 0; !status && i < r->header.communicators; i++) status = check_row(r, &rows[i], i);
    if (status) {
        free(rows);
        return status;
    }
    free(p->communicators);
    p->communicators = rows;
    return SLUICE_OK;
}

/* Gives a number its high bits again: the nearest one to the calls of the communicator. */
static uint64_t whole_number(uint32_t low, uint64_t calls)
{
    int64_t ahead = (int32_t)(low - (uint32_t)calls);
    return ahead < 0 && calls < (uint64_t)-ahead ? low : calls + (uint64_t)ahead;
}

static void unpack(const reader *r, const slc_record_entry *e, const slc_record_time *t, slc_nccl_entry *out)
{
    unsigned communicator = (unsigned)(e->send_communicator >> 48);
    bool has_row = communicator != SLC_RECORD_NO_COMMUNICATOR;
    *out = (slc_nccl_entry){
        .number = has_row ? whole_number(e->number, r->process->communicators[communicator].calls) : e->number,
        .time_ns = e->time_ns,
        .count = e->count,
        .send = e->send_communicator & SLC_RECORD_LOW48,
        .receive = e->receive_thread & SLC_RECORD_LOW48,
        .stream = e->stream_operation_dtype & SLC_RECORD_LOW48,
        .caller = e->caller_module_redop & SLC_RECORD_LOW48,
        .operation = (unsigned)(e->stream_operation_dtype >> 48 & 0xff),
        .dtype = (unsigned)(e->stream_operation_dtype >> 56),
        .redop = (unsigned)(e->caller_module_redop >> 56),
        .thread = (unsigned)(e->receive_thread >> 48),
        .group = e->group_flags & 0xffffff,
        .flags = e->group_flags >> 24,
        .communicator = communicator,
        .module = (unsigned)(e->caller_module_redop >> 48 & 0xff),
        .peer = e->peer,
    };
    if (t && t->sequence == e->sequence && is_time(t->begin_ns) && is_time(t->end_ns) && t->begin_ns <= t->end_ns) {
        out->begin_ns = t->begin_ns;
        out->end_ns = t->end_ns;
    }
}

static const char *entry_fault(const slc_record_entry *e)
{
    unsigned operation = (unsigned)(e->stream_operation_dtype >> 48 & 0xff);
    unsigned communicator = (unsigned)(e->send_communicator >> 48);
    if (operation < 1 || operation >= SLC_RECORD_OPERATION_COUNT) return "has no known operation";
    if (communicator >= SLC_RECORD_COMMUNICATORS && communicator != SLC_RECORD_NO_COMMUNICATOR)
        return "is of no possible communicator";
    return is_time(e->time_ns) ? NULL : "has a time out of range";
}

static sluice_status add_entry(reader *r, uint64_t index, const slc_record_entry *e, const slc_record_time *t)
{
    slc_nccl_process *p = r->process;
    const char *fault = entry_fault(e);
    if (fault)
        return slc_error(SLUICE_ERR_FORMAT, "%s: the record is damaged: entry %llu %s; remove it", r->file.path,
                         (unsigned long long)index, fault);
    if (p->entry_count == r->room) {
        size_t room = r->room ? 2 * r->room : PIECE;
        slc_nccl_entry *entries = realloc(p->entries, room * sizeof *entries);
        if (!entries) return slc_error(SLUICE_ERR_MEMORY, "entries of %s", r->file.path);
        p->entries = entries;
        r->room = room;
    }
    slc_nccl_entry *out = &p->entries[p->entry_count++];
    unpack(r, e, t, out);
    out->index = index;
    return SLUICE_OK;
}

/* Reads `count` entries from the nth on, which lie next to each other. */
static sluice_status read_piece(reader *r, uint64_t first, size_t count)
{
    const slc_record_header *h = &r->header;
    uint64_t place = first % h->entry_count, begun;
    size_t bytes = count * sizeof *r->entries;
    sluice_status status = slc_file_read(&r->file, h->entries_at + place * sizeof *r->entries, bytes, r->before);
    if (!status) status = slc_file_read(&r->file, h->entries_at + place * sizeof *r->entries, bytes, r->entries);
    if (!status && h->times_at)
        status = slc_file_read(&r->file, h->times_at + place * sizeof *r->times, count * sizeof *r->times, r->times);
    if (!status) status = slc_file_read(&r->file, offsetof(slc_record_header, entries), sizeof begun, &begun);
    for (size_t i = 0; !status && i < count; i++) {
        uint64_t index = first + i;
        const slc_record_entry *e = &r->entries[i];
        unsigned communicator = (unsigned)(e->send_communicator >> 48);
        bool newer = communicator >= h->communicators && communicator < SLC_RECORD_COMMUNICATORS;
        if (begun > index + h->entry_count) continue; /* the ring has come round to it */
        if (r->before[i].sequence != (uint32_t)(index + 1) || e->sequence != (uint32_t)(index + 1) || newer)
            r->incomplete = slc_least(r->incomplete, index);
        else
            status = add_entry(r, index, e, h->times_at ? &r->times[i] : NULL);
    }
    return status;
}

/* Keeps the entries whose index is at least `from` and below `to`. */
static void keep_entries(slc_nccl_process *p, uint64_t from, uint64_t to)
{
    size_t first = 0, end = p->entry_count;
    while (first < end && p->entries[first].index < from) first++;
    while (end > first && p->entries[end - 1].index >= to) end--;
    if (first) memmove(p->entries, p->entries + first, (end - first) * sizeof *p->entries);
    p->entry_count = end - first;
}

static sluice_status read_entries(reader *r)
{
    slc_nccl_process *p = r->process;
    uint64_t end = r->header.entries, count = r->header.entry_count;
    uint64_t oldest = end > count ? end - count : 0, from = slc_most(oldest, p->read_from);
    sluice_status status = SLUICE_OK;
    keep_entries(p, oldest, from);
    r->room = p->entry_count;
    r->incomplete = end;
    for (uint64_t at = from; !status && at < end;) {
        size_t piece = (size_t)slc_least(slc_least(end - at, PIECE), count - at % count);
        status = read_piece(r, at, piece);
        at += piece;
    }
    p->read_from = status ? from : slc_least(r->incomplete, end > CHANGING ? end - CHANGING : 0);
    p->entries_gone = oldest;
    return status;
}

/* Reads the modules last: an entry's module is there before the entry. */
static sluice_status read_modules(reader *r)
{
    slc_nccl_process *p = r->process;
    uint32_t count;
    sluice_status status = slc_file_read(&r->file, offsetof(slc_record_header, modules), sizeof count, &count);
    if (status) return status;
    r->header.modules = (uint32_t)slc_least(count, SLC_RECORD_MODULES);
    slc_record_module *modules = realloc(p->modules, (r->header.modules + 1) * sizeof *modules);
    if (!modules) return slc_error(SLUICE_ERR_MEMORY, "modules of %s", r->file.path);
    p->modules = modules;
    status = slc_file_read(&r->file, r->header.modules_at, r->header.modules * sizeof *modules, modules);
    for (uint32_t i = 0; !status && i < r->header.modules; i++) clean(modules[i].path, sizeof modules[i].path);
    for (size_t i = 0; !status && i < p->entry_count; i++)
        if (p->entries[i].module >= r->header.modules) p->entries[i].module = SLC_RECORD_NO_MODULE;
    return status;
}

static bool is_another_record(const slc_record_header *a, const slc_record_header *b)
{
    return a->pid != b->pid || a->started != b->started || a->first_call_ns != b->first_call_ns ||
           a->entry_count != b->entry_count || a->entries > b->entries;
}

/* True if nobody writes the file any more. */
static bool is_over(const slc_nccl_process *process)
{
    return process->header.version && (process->state == SLC_NCCL_GONE || process->state == SLC_NCCL_ENDED);
}

static sluice_status read_all(reader *r, bool *absent)
{
    slc_nccl_process *p = r->process;
    bool begun;
    sluice_status status = read_header(r, &begun);
    *absent = !status && !begun;
    if (status || !begun) return status;
    /* The state comes first: of a process that is gone, all that follows is final. */
    slc_nccl_process_state state = slc_process_state_of(&r->header);
    if (is_another_record(&p->header, &r->header)) {
        p->entry_count = 0;
        p->read_from = 0;
    }
    status = read_communicators(r);
    if (!status) status = read_entries(r);
    if (!status) status = read_modules(r);
    if (status) { /* rows and what names them may not belong together */
        p->entry_count = p->header.communicators = p->header.modules = 0;
        p->read_from = 0;
        return status;
    }
    p->header = r->header;
    p->state = state;
    return SLUICE_OK;
}

static void close_kept(slc_nccl_process *process)
{
    if (!process->kept) return;
    slc_file_close(process->kept);
    free(process->kept);
    process->kept = NULL;
}

/* Keeps the file open while its process may write it. If it cannot be kept open, what the process writes at last is not
 * seen. */
static void keep_file_open(reader *r)
{
    slc_nccl_process *p = r->process;
    if (!p->header.version || is_over(p) || r->file.fd >= MOST_OPEN) return;
    p->kept = malloc(sizeof *p->kept);
    if (!p->kept) return;
    *p->kept = r->file;
    r->file = SLC_FILE_NONE;
}

/* Reads a file that has been removed, if it is still open here. On a shared disk it may be lost all the same. */
static sluice_status read_removed(reader *r)
{
    slc_nccl_process *p = r->process;
    if (!p->kept) return SLUICE_OK;
    bool absent;
    slc_file *file = p->kept;
    r->file = *file;
    p->kept = NULL;
    sluice_status status = read_all(r, &absent);
    slc_file_close(&r->file);
    free(file);
    return status == SLUICE_ERR_IO ? SLUICE_OK : status;
}

sluice_status slc_nccl_file_read(slc_nccl_process *process, bool *absent)
{
    *absent = false;
    if (is_over(process)) return SLUICE_OK;
    reader *r = calloc(1, sizeof *r);
    if (!r) return slc_error(SLUICE_ERR_MEMORY, "reading %s", process->path);
    r->process = process;
    sluice_status status = slc_file_open(process->path, &r->file);
    if (status) {
        *absent = access(process->path, F_OK) && errno == ENOENT;
        if (*absent) status = read_removed(r);
    } else {
        close_kept(process);
        status = read_all(r, absent);
        if (!status) keep_file_open(r);
        slc_file_close(&r->file);
    }
    free(r);
    return status;
}

void slc_nccl_file_free(slc_nccl_process *process)
{
    close_kept(process);
    free(process->path);
    free(process->communicators);
    free(process->modules);
    free(process->entries);
    *process = (slc_nccl_process){0};
}
