/* The columns of the tables that `sluice nccl` shows, in the order in which people and the JSON have them.
 * bench/nccl/nccl_test.c covers this file. */
#include "bench/nccl/summary/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 40, MOST_SEQUENCES = 5 };

/* A list of columns has for each: X(key, heading, type, unit, width, gap, value, doc), where slc_nccl_column says what
 * they are, and `value` is what the row has. A list becomes the columns of a table and a function that fills cells. */
#define COLUMN(key, heading, type, unit, width, gap, value, doc) {key, heading, SLC_NCCL_##type, unit, width, gap, doc},
#define CELL(key, heading, type, unit, width, gap, value, doc) cell->MEMBER_##type = value, cell++;
#define COLUMNS(list) .columns = list, .column_count = sizeof list / sizeof *list
#define MEMBER_TEXT text
#define MEMBER_COUNT integer
#define MEMBER_BYTES integer
#define MEMBER_SECONDS number
#define MEMBER_RATE number
#define MEMBER_MEAN number
#define MEMBER_PERCENT number
#define MEMBER_KEY key
#define MEMBER_SWITCH yes
#define MEMBER_LIST json
#define MEMBER_OBJECT json
#define NUMBER(value) ((int64_t)(value))

/* ---- Ranks ---- */

static int by_number(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts the numbers and writes them as "0-3, 5"; what does not fit ends with "…". */
static void ranges(int *numbers, size_t count, char *out, size_t size)
{
    size_t used = 0;
    *out = 0;
    qsort(numbers, count, sizeof *numbers, by_number);
    for (size_t i = 0, end; i < count; i = end) {
        char range[32];
        for (end = i + 1; end < count && numbers[end] <= numbers[end - 1] + 1; end++) continue;
        int first = numbers[i], last = numbers[end - 1];
        snprintf(range, sizeof range, last > first ? "%s%d-%d" : "%s%d", i ? ", " : "", first, last);
        if (used + strlen(range) + 4 >= size) {
            strcat(out, "…");
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s", range);
    }
}

const char *slc_nccl_own_ranks(const slc_nccl_process *p, char *out)
{
    int ranks[SLC_RECORD_COMMUNICATORS];
    size_t count = 0;
    for (uint32_t i = 0; i < p->header.communicators; i++)
        if (p->communicators[i].key == p->communicators[0].key && p->communicators[i].rank >= 0)
            ranks[count++] = p->communicators[i].rank;
    if (!count && p->header.launch_rank >= 0) ranks[count++] = p->header.launch_rank;
    snprintf(out, SLC_NCCL_RANKS_BYTES, "-");
    if (count) ranges(ranks, count, out, SLC_NCCL_RANKS_BYTES);
    return out;
}

/* ---- Processes ---- */

static int64_t first_rank(const slc_nccl_process *p)
{
    return p->header.communicators > 0 ? p->communicators[0].rank : SLC_NCCL_NONE;
}

static const char *cut(const char *text, int most, char *room)
{
    snprintf(room, SLC_NCCL_CELL_BYTES, "%.*s", most, text);
    return room;
}

#define PROCESSES(X)                                                                                                   \
    X(NULL, "rank", TEXT, "", -7, 0, slc_nccl_own_ranks(p, cell->room), "")                                            \
    X("host", "host", TEXT, "", -16, 0, h->host, "where it runs")                                                      \
    X("pid", "pid", COUNT, "", 8, 0, h->pid, "its number there")                                                       \
    X("state", "state", TEXT, "", -9, 1, slc_nccl_state_name(p->state),                                                \
      "`running`, `stopped`, `gone` (it died without an orderly end), `ended`, or `elsewhere` (of another machine or " \
      "boot: not known)")                                                                                              \
    X("rank", NULL, COUNT, "", 0, 0, first_rank(p), "its rank in its first communicator; `null`: it has none")         \
    X("command", NULL, TEXT, "", 0, 0, h->command, "the program and its arguments")                                    \
    X("nccl", NULL, TEXT, "", 0, 0, h->nccl_path, "the library that its calls go to")                                  \
    X("nccl_version", NULL, COUNT, "", 0, 0, h->nccl_version ? h->nccl_version : SLC_NCCL_NONE,                        \
      "as NCCL has it; `null`: not known")                                                                             \
    X("calls", "calls", COUNT, "", 9, 0, NUMBER(h->entries), "calls that it made")                                     \
    X("calls_kept", "kept", COUNT, "", 9, 0, NUMBER(p->entry_count), "those of them that the record still has")        \
    X(NULL, "program", TEXT, "", 0, 1, cut(h->command, 60, cell->room), "")                                            \
    X("times_lost", NULL, COUNT, "", 0, 0, NUMBER(h->times_lost), "operations whose times are lost")                   \
    X("nccl_s", NULL, SECONDS, "s", 0, 0, busy->span_s > 0 ? busy->busy_s : NAN,                                       \
      "how long operations ran on its streams, those at the same time counted once")                                   \
    X("span_s", NULL, SECONDS, "s", 0, 0, busy->span_s > 0 ? busy->span_s : NAN, "from the first of them to the last")

static size_t count_processes(const slc_nccl_summary *s)
{
    return s->records->count;
}

static bool fill_process(const slc_nccl_summary *s, size_t row, slc_nccl_cell *cell)
{
    const slc_nccl_process *p = &s->records->processes[row];
    const slc_record_header *h = &p->header;
    const slc_nccl_busy *busy = &s->busy[row];
    PROCESSES(CELL)
    return true;
}

static const slc_nccl_column process_columns[] = {PROCESSES(COLUMN)};
const slc_nccl_table slc_nccl_processes = {
    "processes", COLUMNS(process_columns), count_processes, fill_process, MOST_ROWS, "processes"};

/* ---- Communicators ---- */

static const char *have_of(const slc_nccl_communicator_sum *c, char *room)
{
    snprintf(room, 32, "%zu of %d", c->rank_count, c->size);
    return room;
}

/* Says where it comes from, and which ranks have no record. */
static const char *remarks(const slc_nccl_communicator_sum *c, char *room)
{
    enum { MOST = 4096 }; /* a line has no room for more */
    int *missing = malloc(MOST * sizeof *missing);
    size_t count = 0, have = 0, used = 0;
    char text[80];
    for (int rank = 0; missing && rank < c->size && count < MOST; rank++) {
        while (have < c->rank_count && c->ranks[have].row->rank < rank) have++;
        if (have == c->rank_count || c->ranks[have].row->rank > rank) missing[count++] = rank;
    }
    ranges(missing, count, text, sizeof text);
    free(missing);
    *room = 0;
    if (c->parent_key)
        used = (size_t)snprintf(room, SLC_NCCL_CELL_BYTES, "split from %04x", (unsigned)(c->parent_key >> 48));
    if (count) snprintf(room + used, SLC_NCCL_CELL_BYTES - used, "%sno record of rank %s", used ? "  " : "", text);
    return room;
}

static json_t *ranks_json(const slc_nccl_communicator_sum *c)
{
    json_t *ranks = json_array();
    for (size_t k = 0; k < c->rank_count; k++) json_array_append_new(ranks, json_integer(c->ranks[k].row->rank));
    return ranks;
}

static json_t *transforms_json(const slc_nccl_transformed *t)
{
    json_t *reasons = json_object();
    for (unsigned r = 0; r < SLC_RECORD_PASS_REASONS; r++)
        if (t->passed[r] && slc_nccl_pass_reason_name(r))
            json_object_set_new(reasons, slc_nccl_pass_reason_name(r), json_integer(NUMBER(t->passed[r])));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "fused_calls", NUMBER(t->fused_calls), "fused_groups",
                     NUMBER(t->fused_groups), "compressed_calls", NUMBER(t->compressed_calls), "bytes_compressed",
                     NUMBER(t->bytes_compressed), "bytes_sent", NUMBER(t->bytes_sent), "passed", reasons);
}

#define COMMUNICATORS(X)                                                                                               \
    X("key", "communicator", KEY, "", -12, 0, c->key, "the same on all ranks")                                         \
    X("parent", NULL, KEY, "", 0, 0, c->parent_key, "the key of that from which it was split; `null`: it was not")     \
    X("size", NULL, COUNT, "", 0, 0, c->size, "its ranks")                                                             \
    X("ranks", NULL, LIST, "", 0, 0, ranks_json(c), "those of them that have a record")                                \
    X(NULL, "ranks", TEXT, "", -11, 0, have_of(c, cell->room), "")                                                     \
    X("calls", NULL, COUNT, "", 0, 0, NUMBER(c->calls), "what these called, also where the record lost it")            \
    X(NULL, "calls a rank", COUNT, "", 14, 0, NUMBER(c->calls / c->rank_count), "")                                    \
    X("transforms", NULL, OBJECT, "", 0, 0, transforms_json(&c->transformed),                                          \
      "what the shim fused into how many groups, what it compressed, from and to how many bytes, and what it passed "  \
      "on unchanged, by the reason")                                                                                   \
    X(NULL, "", TEXT, "", 0, 1, remarks(c, cell->room), "")

static size_t count_communicators(const slc_nccl_summary *s)
{
    return s->communicator_count;
}

static bool fill_communicator(const slc_nccl_summary *s, size_t row, slc_nccl_cell *cell)
{
    const slc_nccl_communicator_sum *c = &s->communicators[row];
    COMMUNICATORS(CELL)
    return true;
}

static const slc_nccl_column communicator_columns[] = {COMMUNICATORS(COLUMN)};
const slc_nccl_table slc_nccl_communicators = {
    "communicators", COLUMNS(communicator_columns), count_communicators, fill_communicator, MOST_ROWS, "communicators"};

/* ---- Traffic ---- */

static double rate_of(const slc_nccl_traffic *t)
{
    return t->timed_s > 0 ? (double)t->timed_bytes / t->timed_s * 1e-9 : NAN;
}

#define TRAFFIC(X)                                                                                                     \
    X("communicator", "communicator", KEY, "", -12, 0, t->communicator->key, "its key")                                \
    X("operation", "operation", TEXT, "", -15, 0, slc_nccl_operation_name(t->operation), "as in a record")             \
    X("dtype", "dtype", TEXT, "", -11, 0, slc_nccl_dtype_name(t->dtype), "NCCL's name")                                \
    X("calls", NULL, COUNT, "", 0, 0, NUMBER(t->calls), "of all ranks that have a record")                             \
    X(NULL, "calls a rank", MEAN, "", 12, 0, (double)t->calls / (double)ranks, "")                                     \
    X("bytes", NULL, BYTES, "bytes", 0, 0, NUMBER(t->bytes), "those of the operations' larger buffer")                 \
    X(NULL, "bytes", BYTES, "", 11, 0, NUMBER(t->bytes / ranks), "")                                                   \
    X(NULL, "mean size", BYTES, "", 11, 0, NUMBER(t->bytes / t->calls), "")                                            \
    X("calls_timed", NULL, COUNT, "", 0, 0, NUMBER(t->timed_calls), "those whose times are known")                     \
    X("time_s", NULL, SECONDS, "s", 0, 0, t->timed_s > 0 ? t->timed_s : NAN,                                           \
      "how long these took, waiting for the other ranks included; a group is timed together, and its operations "      \
      "share the time by their bytes")                                                                                 \
    X(NULL, "mean time", SECONDS, "", 11, 0, t->timed_s > 0 ? t->timed_s / (double)t->timed_calls : NAN, "")           \
    X("algbw", "algbw", RATE, "GB/s", 8, 0, rate_of(t), "their bytes over that time, as nccl-tests counts")            \
    X("busbw", "busbw", RATE, "GB/s", 8, 0, rate_of(t) * slc_nccl_bus_factor(t->operation, t->communicator->size),     \
      "what the busiest link carried")

static size_t count_traffic(const slc_nccl_summary *s)
{
    return s->traffic_count;
}

static bool fill_traffic(const slc_nccl_summary *s, size_t row, slc_nccl_cell *cell)
{
    const slc_nccl_traffic *t = &s->traffic[row];
    const size_t ranks = t->communicator->rank_count;
    TRAFFIC(CELL)
    return true;
}

static const slc_nccl_column traffic_columns[] = {TRAFFIC(COLUMN)};
const slc_nccl_table slc_nccl_traffic_rows = {"traffic", COLUMNS(traffic_columns), count_traffic, fill_traffic,
                                              MOST_ROWS, "rows; --json has them"};

/* ---- Sizes ---- */

#define SIZES(X)                                                                                                       \
    X("up_to", "size up to", BYTES, "bytes", -12, 0, NUMBER(UINT64_C(1) << 2 * row),                                   \
      "a power of 4; the class has what does not fit into the one before")                                             \
    X("calls", "calls", COUNT, "", 12, 0, NUMBER(class->calls), "of all ranks that have a record")                     \
    X(NULL, "", PERCENT, "", 7, 0, 100 * (double)class->calls / (double)calls, "")                                     \
    X("bytes", "bytes", BYTES, "bytes", 11, 0, NUMBER(class->bytes), "theirs together")                                \
    X(NULL, "", PERCENT, "", 7, 0, bytes ? 100 * (double)class->bytes / (double)bytes : 0, "")

static size_t count_sizes(const slc_nccl_summary *s)
{
    (void)s;
    return SLC_NCCL_SIZE_CLASSES;
}

static bool fill_size(const slc_nccl_summary *s, size_t row, slc_nccl_cell *cell)
{
    const slc_nccl_size_class *class = &s->sizes[row];
    uint64_t calls = 0, bytes = 0;
    for (unsigned i = 0; i < SLC_NCCL_SIZE_CLASSES; i++) {
        calls += s->sizes[i].calls;
        bytes += s->sizes[i].bytes;
    }
    if (!class->calls) return false;
    SIZES(CELL)
    return true;
}

static const slc_nccl_column size_columns[] = {SIZES(COLUMN)};
const slc_nccl_table slc_nccl_sizes = {"sizes", COLUMNS(size_columns), count_sizes, fill_size, MOST_ROWS, ""};

/* ---- Small calls that could go together ---- */

static uint64_t key_of(const slc_nccl_sequence *q)
{
    return q->process->communicators[q->first->communicator].key;
}

static const char *describe_call(const slc_nccl_sequence *q, char *room)
{
    snprintf(room, 64, "%04x %s %s", (unsigned)(key_of(q) >> 48), slc_nccl_operation_name(q->first->operation),
             slc_nccl_dtype_name(q->first->dtype));
    return room;
}

#define SEQUENCES(X)                                                                                                   \
    X(NULL, "times", COUNT, "", 6, 0, NUMBER(q->count), "")                                                            \
    X("communicator", NULL, KEY, "", 0, 0, key_of(q), "its key")                                                       \
    X("operation", NULL, TEXT, "", 0, 0, slc_nccl_operation_name(q->first->operation), "as in a record")               \
    X("dtype", NULL, TEXT, "", 0, 0, slc_nccl_dtype_name(q->first->dtype), "NCCL's name")                              \
    X("grouped", NULL, SWITCH, "", 0, 0, q->grouped, "the calls are in one group, else in none")                       \
    X("calls", "n", COUNT, "", 6, 0, NUMBER(q->calls), "small calls that follow each other within 50 us")              \
    X(NULL, "", TEXT, "", -36, 1, describe_call(q, cell->room), "")                                                    \
    X("bytes", "bytes", BYTES, "bytes", 11, 0, NUMBER(q->bytes), "theirs together")                                    \
    X("count", NULL, COUNT, "", 0, 0, NUMBER(q->count), "how often such a sequence came, on all ranks")                \
    X("saved_s", "save", SECONDS, "s", 9, 0, q->saved_s, "what a sequence would save if it went together")             \
    X("spent_s", "cost", SECONDS, "s", 9, 0, q->spent_s, "what that would cost")                                       \
    X(NULL, "in", TEXT, "", -9, 1, q->grouped ? "a group" : "no group", "")                                            \
    X("caller", "called from", TEXT, "", 0, 1, slc_nccl_caller(q->process, q->first, cell->room),                      \
      "where the first one was called, as library+0xOFFSET")

static size_t count_sequences(const slc_nccl_summary *s)
{
    return s->grouping.count;
}

static bool fill_sequence(const slc_nccl_summary *s, size_t row, slc_nccl_cell *cell)
{
    const slc_nccl_sequence *q = &s->grouping.sequences[row];
    SEQUENCES(CELL)
    return true;
}

static const slc_nccl_column sequence_columns[] = {SEQUENCES(COLUMN)};
const slc_nccl_table slc_nccl_sequences = {"sequences",    COLUMNS(sequence_columns), count_sequences, fill_sequence,
                                           MOST_SEQUENCES, "kinds; --json has them"};
