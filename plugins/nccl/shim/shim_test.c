/* The shim as a program meets it: every way in which NCCL is found, what the record then holds, and what happens if
 * something is not as it should be. Programs are client.c and linked.c of tests/nccl/programs/shim, and NCCL is
 * echo_nccl.c there. */
#include "plugins/nccl/nccl_abi.h"
#include "plugins/nccl/record/record.h"
#include "tests/nccl/programs/shim/echo_nccl.h"
#include "tests/nccl/programs/shim/run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

static const slc_record_entry *entry(const record *it, uint64_t index)
{
    const slc_record_entry *there = &it->entries[index % it->header->entry_count];
    assert_int_equal(there->sequence, (uint32_t)(index + 1));
    return there;
}

static unsigned operation(const slc_record_entry *e)
{
    return (unsigned)(e->stream_operation_dtype >> 48) & 0xff;
}

static const char *caller_module(const record *it, const slc_record_entry *e)
{
    unsigned row = (unsigned)(e->caller_module_redop >> 48) & 0xff;
    assert_true(row < it->header->modules);
    const char *path = it->modules[row].path, *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *file_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* The record of three all-reduces on a communicator of one rank. */
static void expect_three(const record *it, const char *module)
{
    const slc_record_communicator *row = it->rows;
    assert_int_equal(it->header->communicators, 1);
    assert_int_equal(row->state, SLC_RECORD_ROW_DESTROYED);
    assert_int_equal(row->size, 1);
    assert_int_equal(row->calls, 3);
    assert_int_equal(row->returned, 3);
    assert_int_equal(row->collectives, 3);
    assert_int_equal(it->header->entries, 5);
    assert_int_equal(it->header->nccl_version, ECHO_VERSION);
    assert_int_equal(it->header->state, SLC_RECORD_ENDED);
    const unsigned operations[] = {SLC_RECORD_INIT, SLC_RECORD_ALL_REDUCE, SLC_RECORD_ALL_REDUCE, SLC_RECORD_ALL_REDUCE,
                                   SLC_RECORD_DESTROY};
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(operation(entry(it, i)), operations[i]);
        assert_string_equal(caller_module(it, entry(it, i)), module);
    }
}

static void expect_three_of(run *r, const char *const *arguments, const char *module)
{
    record it;
    run_with(r, NO_SETTINGS, arguments);
    expect_well(r);
    assert_string_equal(r->printed, "");
    assert_int_equal(map_records(r->folder, &it, 1), 1);
    assert_int_equal(it.header->pid, r->pid);
    assert_string_equal(it.header->nccl_path, ECHO_PATH);
    expect_three(&it, module);
    unmap(&it);
}

/* ---- Ways in ---- */

static void linked(void **state)
{
    expect_three_of(*state, PROGRAM(LINKED), file_of(LINKED));
}

static void local_by_rpath(void **state)
{
    run *r = *state;
    record it;
    run_with(r, SETTINGS("LD_LIBRARY_PATH="), PROGRAM(CLIENT, "module", MODULE));
    expect_well(r);
    assert_int_equal(map_records(r->folder, &it, 1), 1);
    expect_three(&it, file_of(MODULE));
    unmap(&it);
}

static void default_handle(void **state)
{
    expect_three_of(*state, PROGRAM(CLIENT, "default", ECHO_PATH), file_of(CLIENT));
}

static void soname(void **state)
{
    expect_three_of(*state, PROGRAM(CLIENT, "soname"), file_of(CLIENT));
}

static void absolute_path(void **state)
{
    expect_three_of(*state, PROGRAM(CLIENT, "path", ECHO_PATH), file_of(CLIENT));
}

static void fork_and_exec(void **state)
{
    run *r = *state;
    record all[2];
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "fork", ECHO_PATH));
    expect_well(r);
    assert_int_equal(map_records(r->folder, all, 2), 2);
    int parent = all[0].header->pid == r->pid ? 0 : 1;
    expect_three(&all[parent], file_of(CLIENT));
    const record *child = &all[!parent];
    assert_int_equal(child->header->communicators, 2);
    assert_int_equal(child->header->entries, 10);
    assert_int_equal(child->rows[1].calls, 3);
    for (int i = 0; i < 2; i++) unmap(&all[i]);
    run_clear(r);
    expect_three_of(r, PROGRAM(CLIENT, "exec", ECHO_PATH), file_of(CLIENT));
}

/* Each call goes to the copy of NCCL that its communicator came from. */
static void two_copies(void **state)
{
    run *r = *state;
    record it;
    run_with(r, SETTINGS("LD_LIBRARY_PATH="), PROGRAM(CLIENT, "two", MODULE, OTHER_ECHO));
    expect_well(r);
    assert_int_equal(map_records(r->folder, &it, 1), 1);
    assert_int_equal(it.header->communicators, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(it.rows[i].calls, 3);
    unmap(&it);
}

/* A constructor holds the loader's lock, so whoever makes the first call may wait for it, and hold nothing meanwhile.
 */
static void constructors_may_call(void **state)
{
    run *r = *state;
    record it[2];
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "constructor", ECHO_PATH, CONSTRUCTOR));
    expect_well(r);
    assert_int_equal(map_records(r->folder, it, 1), 1);
    assert_int_equal(it[0].header->communicators, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(it[0].rows[i].calls, 3);
    unmap(&it[0]);
}

static void forks_during_the_first_call(void **state)
{
    run *r = *state;
    record it[2];
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "constructor_fork", ECHO_PATH, CONSTRUCTOR));
    expect_well(r);
    assert_int_equal(map_records(r->folder, it, 2), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(it[i].header->communicators, it[i].header->pid == r->pid ? 2 : 1);
        unmap(&it[i]);
    }
}

static void clones_leave_the_record_alone(void **state)
{
    run *r = *state;
    record it;
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "clone", ECHO_PATH));
    expect_well(r);
    assert_int_equal(map_records(r->folder, &it, 1), 1);
    assert_int_equal(it.header->pid, r->pid);
    assert_int_equal(it.header->state, SLC_RECORD_RUNNING);
    unmap(&it);
}

static void nothing_without_a_call(void **state)
{
    run *r = *state;
    record none;
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "idle"));
    expect_well(r);
    assert_int_equal(map_records(r->folder, &none, 0), 0);
}

/* ---- What is recorded ---- */

typedef struct {
    unsigned operation, row, dtype, redop, flags;
    uint64_t count, stream;
    int peer;
    uint32_t number;
} expected;

static void expect_entry(const record *it, uint64_t index, const expected *e)
{
    const slc_record_entry *there = entry(it, index);
    assert_int_equal(operation(there), e->operation);
    assert_int_equal(there->send_communicator >> 48, e->row);
    assert_int_equal(there->stream_operation_dtype >> 56, e->dtype);
    assert_int_equal(there->stream_operation_dtype & SLC_RECORD_LOW48, e->stream);
    assert_int_equal(there->caller_module_redop >> 56, e->redop);
    assert_int_equal(there->group_flags >> 24, e->flags);
    assert_int_equal(there->count, e->count);
    assert_int_equal(there->peer, e->peer);
    assert_int_equal(there->number, e->number);
    assert_int_equal(there->receive_thread >> 48, 1);
}

static uint64_t hash_of(const record *it, unsigned row)
{
    uint64_t hash = it->rows[row].key;
    for (uint64_t i = 0; i < it->header->entries; i++) {
        const slc_record_entry *e = entry(it, i);
        unsigned op = operation(e), dtype = (unsigned)(e->stream_operation_dtype >> 56);
        bool split = op == SLC_RECORD_SPLIT;
        if (e->send_communicator >> 48 != row || op > SLC_RECORD_SPLIT || (!e->count && !split)) continue;
        uint64_t term = slc_record_hash_term(op, split ? 0 : e->count, dtype, (unsigned)(e->caller_module_redop >> 56),
                                             split ? -1 : e->peer);
        hash = hash * SLC_RECORD_HASH_STEP + term;
    }
    return hash;
}

static void entries_say_what_was_called(void **state)
{
    enum { NONE = 0xff, F32 = ncclFloat32 };
    run *r = *state;
    record it;
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "everything", ECHO_PATH));
    expect_well(r);
    assert_int_equal(map_records(r->folder, &it, 1), 1);
    const expected all[] = {
        {SLC_RECORD_INIT, 0, NONE, NONE, 0, 2, 0, -1, 0},
        {SLC_RECORD_BROADCAST, 0, ncclInt8, NONE, 0, 8, 0, 1, 1},
        {SLC_RECORD_SEND, 0, ncclInt8, NONE, SLC_RECORD_GROUPED, 5, 0, 0, 2},
        {SLC_RECORD_RECEIVE, 0, ncclInt8, NONE, SLC_RECORD_GROUPED, 6, 0, 0, 3},
        {SLC_RECORD_SPLIT, 0, NONE, NONE, 0, 4, 0, 9, 4},
        {SLC_RECORD_SPLIT, 0, NONE, NONE, 0, (uint64_t)-1, 0, 9, 5},
        {SLC_RECORD_ALL_REDUCE, 0, F32, ncclSum, 0, 0, 0, -1, 5}, /* of nothing: not counted */
        {SLC_RECORD_ALL_REDUCE, 1, F32, SLC_RECORD_CUSTOM_REDOP, 0, 2, 0x1234, -1, 1},
        {SLC_RECORD_ALL_REDUCE, 0, F32, ncclAvg, SLC_RECORD_FAILED, ECHO_REFUSED, 0, -1, 6},
        {SLC_RECORD_DESTROY, 1, NONE, NONE, 0, 0, 0, -1, 1},
    };
    const uint64_t count = sizeof all / sizeof *all;
    assert_int_equal(it.header->entries, count); /* NCCL's own call of ncclBroadcast is not among them */
    for (uint64_t i = 0; i < count; i++) expect_entry(&it, i, &all[i]);
    assert_int_equal(entry(&it, 2)->group_flags & 0xffffff, entry(&it, 3)->group_flags & 0xffffff);
    assert_int_equal(entry(&it, 2)->receive_thread & SLC_RECORD_LOW48, 1); /* the first send to rank 0 */
    assert_int_equal(entry(&it, 3)->send_communicator & SLC_RECORD_LOW48, 1);
    for (uint64_t i = 1; i < count; i++) assert_true(entry(&it, i)->time_ns >= entry(&it, i - 1)->time_ns);
    assert_int_equal(it.rows[0].rank, 1);
    assert_int_equal(it.rows[0].calls, 6);
    assert_int_equal(it.rows[0].returned, 6);
    assert_int_equal(it.rows[0].collectives, 4);
    assert_int_equal(it.rows[0].state, SLC_RECORD_ROW_READY);
    assert_int_equal(it.rows[1].parent_key, it.rows[0].key);
    assert_int_equal(it.rows[1].size, 1);
    assert_true(it.rows[1].key && it.rows[1].key != it.rows[0].key);
    for (unsigned row = 0; row < 2; row++) assert_int_equal(it.rows[row].hash, hash_of(&it, row));
    unmap(&it);
}

static void a_profiler_plugin_records_the_same(void **state)
{
    enum { NONE = 0xff, INSIDE = SLC_RECORD_INSIDE, BF16 = ncclBfloat16 };
    run *r = *state;
    record it;
    run_with(r, SETTINGS("LD_PRELOAD=" RUNTIME), PROGRAM(CLIENT, "profiled", SHIM));
    expect_well(r);
    assert_string_equal(r->printed, "mask 604\n");
    assert_int_equal(map_records(r->folder, &it, 1), 1);
    const expected all[] = {
        {SLC_RECORD_INIT, 0, NONE, NONE, INSIDE, 2, 0, -1, 0},
        {SLC_RECORD_ALL_REDUCE, 0, BF16, NONE, INSIDE | SLC_RECORD_CAPTURED, 5, 0, -1, 1},
        {SLC_RECORD_ALL_TO_ALL, 0, BF16, NONE, INSIDE | SLC_RECORD_CAPTURED, 5, 0, -1, 2},
        {SLC_RECORD_SEND, 0, ncclInt8, NONE, INSIDE, 6, 0, 0, 3},
        {SLC_RECORD_DESTROY, 0, NONE, NONE, INSIDE, 0, 0, -1, 3},
    };
    const uint64_t count = sizeof all / sizeof *all;
    assert_int_equal(it.header->entries, count);
    for (uint64_t i = 0; i < count; i++) expect_entry(&it, i, &all[i]);
    assert_int_equal(entry(&it, 1)->caller_module_redop >> 48 & 0xff, SLC_RECORD_NO_MODULE);
    assert_int_equal(it.rows[0].key, 77);
    assert_int_equal(it.rows[0].rank, 1);
    assert_int_equal(it.rows[0].calls, 3);
    assert_int_equal(it.rows[0].returned, 3);
    assert_int_equal(it.rows[0].hash, hash_of(&it, 0));
    assert_int_equal(it.rows[0].state, SLC_RECORD_ROW_DESTROYED);
    unmap(&it);

    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "profiled", SHIM)); /* a call is not recorded twice */
    expect_well(r);
    assert_string_equal(r->printed, "mask 0\n");
}

static void a_steady_state_takes_no_memory(void **state)
{
    run *r = *state;
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "steady", ECHO_PATH));
    expect_well(r);
}

static void killed_processes_leave_whole_entries(void **state)
{
    run *r = *state;
    for (int round = 0; round < 8; round++) {
        char ready[8];
        record it;
        int output = run_start(r, SETTINGS("SLUICE_SHIM_ENTRIES=40000"), PROGRAM(CLIENT, "threads", ECHO_PATH));
        assert_true(read(output, ready, sizeof ready) > 0);
        usleep((useconds_t)(random() % 200000));
        kill(r->pid, SIGKILL);
        run_finish(r, output);
        assert_int_equal(map_records(r->folder, &it, 1), 1);
        assert_int_equal(it.header->entry_count, 65536);
        assert_int_equal(it.header->state, SLC_RECORD_RUNNING);
        uint64_t begun = it.header->entries, first = begun > 65536 ? begun - 65536 : 0, open_ones = 0;
        for (uint64_t i = first; i < begun; i++) {
            const slc_record_entry *e = &it.entries[i % 65536];
            if (e->sequence != (uint32_t)(i + 1)) {
                open_ones++;
                continue;
            }
            if (operation(e) == SLC_RECORD_INIT) continue;
            assert_int_equal(operation(e), SLC_RECORD_ALL_REDUCE);
            assert_int_equal(e->count, 100);
            assert_string_equal(caller_module(&it, e), file_of(CLIENT));
        }
        assert_true(open_ones <= 3); /* one a thread */
        unmap(&it);
        run_clear(r);
    }
}

/* Threads that are interrupted while they write, in a ring that comes round at once, spoil no other's entry. */
static void a_quick_ring_has_no_torn_entries(void **state)
{
    run *r = *state;
    record it;
    run_with(r, SETTINGS("SLUICE_SHIM_ENTRIES=16"), PROGRAM(CLIENT, "quickly", ECHO_PATH));
    expect_well(r);
    assert_int_equal(map_records(r->folder, &it, 1), 1);
    assert_int_equal(it.header->entries, 8 * 100001);
    uint64_t begun = it.header->entries;
    unsigned whole = 0;
    for (uint64_t i = begun - 16; i < begun; i++) {
        const slc_record_entry *e = &it.entries[i % 16];
        if (e->sequence != (uint32_t)(i + 1)) continue; /* its place was another's: it is left out */
        uint64_t mine = e->count;
        assert_int_equal(operation(e), SLC_RECORD_ALL_REDUCE);
        assert_int_equal(e->send_communicator & SLC_RECORD_LOW48, mine << 12);
        assert_int_equal(e->receive_thread & SLC_RECORD_LOW48, mine << 12);
        assert_int_equal(e->stream_operation_dtype & SLC_RECORD_LOW48, mine << 8);
        assert_int_equal(e->stream_operation_dtype >> 56, mine);
        assert_int_equal(it.rows[e->send_communicator >> 48].rank, mine);
        whole++;
    }
    assert_true(whole > 0);
    for (unsigned i = 0; i < 16; i++) assert_true(it.entries[i].sequence != 0); /* no place is left taken */
    unmap(&it);
}

static bool has_module(const record *it, const char *path)
{
    for (unsigned i = 0; i < it->header->modules; i++)
        if (!strcmp(it->modules[i].path, path)) return true;
    return false;
}

static void modules_are_told_apart(void **state)
{
    run *r = *state;
    char first[128], second[128], command[1024];
    record it;
    snprintf(first, sizeof first, "%s/first.so", r->folder);
    snprintf(second, sizeof second, "%s/second.so", r->folder);
    snprintf(command, sizeof command, "mkdir %s/records && cp %s %s && cp %s %s", r->folder, MODULE, first, MODULE,
             second);
    assert_int_equal(system(command), 0);
    strcat(r->folder, "/records");
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "reloaded", ECHO_PATH, first, second));
    expect_well(r);
    assert_int_equal(map_records(r->folder, &it, 1), 1);
    *strrchr(r->folder, '/') = 0;
    if (!strstr(r->printed, "same")) print_message("the second module was loaded elsewhere\n");
    assert_true(has_module(&it, first));
    assert_true(has_module(&it, second));
    const char *last = caller_module(&it, entry(&it, it.header->entries - 1));
    assert_string_equal(last, "second.so");
    unmap(&it);
}

/* ---- NCCL libraries that lack something ---- */

static void missing_functions_are_named(void **state)
{
    run *r = *state;
    run_with(r, NO_SETTINGS, PROGRAM(LINKED, "missing"));
    expect_well(r);
    assert_non_null(strstr(r->printed, "ncclCommRevoke is not in " ECHO_PATH));
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "missing", ECHO_PATH));
    expect_well(r);
}

static void missing_functions_are_not_found_by_name(void **state)
{
    run *r = *state;
    run_with(r, NO_SETTINGS, PROGRAM(LINKED, "asked"));
    expect_well(r);
}

static void a_missing_library_is_named(void **state)
{
    run *r = *state;
    run_with(r, SETTINGS("SLUICE_SHIM_NCCL=/nowhere/libnccl.so.2"), PROGRAM(LINKED, "none"));
    expect_well(r);
    assert_non_null(strstr(r->printed, "no NCCL library for this process: /nowhere/libnccl.so.2: "));
    assert_ptr_equal(strstr(strchr(r->printed, '\n') + 1, "sluice"), NULL);
    run_with(r, SETTINGS("SLUICE_SHIM_NCCL=" SHIM), PROGRAM(LINKED, "none")); /* which would call itself for ever */
    expect_well(r);
    assert_non_null(strstr(r->printed, "what was opened has no ncclGetVersion of its own"));
}

/* ---- Another dlsym ---- */

static void another_dlsym_is_named_if_it_comes_first(void **state)
{
    run *r = *state;
    run_with(r, SETTINGS("LD_PRELOAD=" RUNTIME ":" OTHER_DLSYM ":" SHIM), PROGRAM(LINKED, "missing"));
    expect_well(r);
    assert_non_null(strstr(r->printed, OTHER_DLSYM " has a dlsym of its own"));
    run_with(r, SETTINGS("LD_PRELOAD=" RUNTIME ":" SHIM ":" OTHER_DLSYM), PROGRAM(LINKED, "missing"));
    expect_well(r);
    assert_null(strstr(r->printed, "dlsym of its own"));
}

/* ---- Exports, and the real NCCL ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names that a library defines for others, sorted; with a line feed after each. */
static void exported_names(const char *library, const char *filter, char *out, size_t bytes)
{
    char command[1024], line[256];
    char *names[4096];
    size_t count = 0, used = 0;
    snprintf(command, sizeof command, "nm -D --defined-only %s | sed 's/.* //; s/@.*//' | grep -E '%s'", library,
             filter);
    FILE *list = popen(command, "r");
    assert_non_null(list);
    while (fgets(line, sizeof line, list) && count < 4096) names[count++] = strdup(line);
    pclose(list);
    qsort(names, count, sizeof *names, by_text);
    out[0] = 0;
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(out + used, bytes - used, "%s", names[i]);
        assert_true(used < bytes);
        free(names[i]);
    }
}

static void exports_are_nccls(void **state)
{
    (void)state;
    static const char *const listed[] = {
#define TWO(result, name, parameters, arguments) "nccl" #name "\n", "pnccl" #name "\n",
#define ONE(result, name, parameters, arguments) "nccl" #name "\n",
        SLC_NCCL_FUNCTIONS(TWO, ONE) "dlsym\n", "ncclProfiler_v5\n"};
    const size_t count = sizeof listed / sizeof *listed;
    const char *sorted[sizeof listed / sizeof *listed];
    char ours[8192], wanted[8192] = "";
    if (system("command -v nm >/dev/null")) {
        puts("SKIP: the names in the shim: nm is not installed");
        skip();
    }
    memcpy(sorted, listed, sizeof listed);
    qsort(sorted, count, sizeof *sorted, by_text);
    for (size_t i = 0; i < count; i++) strcat(wanted, sorted[i]);
    exported_names(SHIM, ".", ours, sizeof ours);
    assert_string_equal(ours, wanted);
#ifdef REAL_NCCL
    char theirs[8192];
    exported_names(REAL_NCCL, "^p?nccl", theirs, sizeof theirs);
    exported_names(SHIM, "^(nccl|pnccl)[A-OQ-Z]", ours, sizeof ours); /* all but the profiler plugin */
    assert_string_equal(ours, theirs);
#endif
}

static void the_real_nccl_answers_the_same(void **state)
{
#ifdef REAL_NCCL
    run *r = *state;
    run_with(r, SETTINGS("LD_PRELOAD="), PROGRAM(CLIENT, "answers", REAL_NCCL));
    expect_well(r);
    char bare[sizeof r->printed];
    strcpy(bare, r->printed);
    assert_non_null(strstr(bare, "version 0 2"));
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "answers", REAL_NCCL));
    expect_well(r);
    assert_string_equal(r->printed, bare);
    record it;
    assert_int_equal(map_records(r->folder, &it, 1), 1);
    assert_string_equal(it.header->nccl_path, REAL_NCCL);
    unmap(&it);
#else
    (void)state;
    print_message("SKIP: no libnccl.so.2 was found\n");
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(linked),
        IN_FOLDER(local_by_rpath),
        IN_FOLDER(default_handle),
        IN_FOLDER(soname),
        IN_FOLDER(absolute_path),
        IN_FOLDER(fork_and_exec),
        IN_FOLDER(two_copies),
        IN_FOLDER(constructors_may_call),
        IN_FOLDER(forks_during_the_first_call),
        IN_FOLDER(clones_leave_the_record_alone),
        IN_FOLDER(nothing_without_a_call),
        IN_FOLDER(entries_say_what_was_called),
        IN_FOLDER(a_profiler_plugin_records_the_same),
        IN_FOLDER(a_steady_state_takes_no_memory),
        IN_FOLDER(a_quick_ring_has_no_torn_entries),
        IN_FOLDER(modules_are_told_apart),
        IN_FOLDER(killed_processes_leave_whole_entries),
        IN_FOLDER(missing_functions_are_named),
        IN_FOLDER(missing_functions_are_not_found_by_name),
        IN_FOLDER(a_missing_library_is_named),
        IN_FOLDER(another_dlsym_is_named_if_it_comes_first),
        cmocka_unit_test(exports_are_nccls),
        IN_FOLDER(the_real_nccl_answers_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
