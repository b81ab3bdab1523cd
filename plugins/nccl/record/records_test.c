/* Whatever is in a record, it is read or refused with a sentence; what is read is in range. */
#include "tests/support/base/folder.h"

#include "plugins/nccl/record/records.h"
#include "lib/base/numbers/random.h"
#include "tests/support/nccl_record/made_records.h"
#include "tests/support/seed.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static const made_call all_reduce = {.operation = SLC_RECORD_ALL_REDUCE,
                                     .dtype = 7,
                                     .thread = 1,
                                     .stream = 0xffee00,
                                     .send = 0x7f0000001000,
                                     .receive = 0x7f0000002000,
                                     .caller = 0x1234,
                                     .count = 1000,
                                     .peer = -1,
                                     .time_ns = 2000000};

static sluice_status read_folder(slc_nccl_records *out)
{
    const char *folder = test_folder();
    return slc_nccl_records_read(&folder, 1, out);
}

static sluice_status read_again(slc_nccl_records *records)
{
    const char *folder = test_folder();
    return slc_nccl_records_again(&folder, 1, records);
}

/* A rank of two, with calls of all kinds that the tests look at. */
static made_record a_rank(const char *host, int64_t pid, int rank, uint32_t room)
{
    made_record r = made_record_new(host, pid, room, true);
    made_communicator(&r, 0xabc, rank, 2);
    made_module(&r, "/usr/lib/libtorch_cuda.so");
    for (unsigned i = 0; i < 10; i++) {
        made_call call = all_reduce;
        call.count = 1000 + i;
        call.time_ns += 1000 * i;
        call.group = i;
        call.flags = i % 2 ? SLC_RECORD_GROUPED : 0;
        uint64_t index = made_entry(&r, &call);
        if (i % 3 == 0) made_time(&r, index, call.time_ns + 5, call.time_ns + 105);
    }
    return r;
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    slc_nccl_records records;
    char caller[300];
    made_record second = a_rank("b", 7, 0, 64), first = a_rank("a", 9, 1, 64);
    made_record_write(&second, path_of("b-7-1.nccl"), 0);
    made_record_write(&first, path_of("a-9-1.nccl"), 0);
    works(read_folder(&records));
    assert_int_equal(records.count, 2);
    const slc_nccl_process *p = &records.processes[0];
    assert_string_equal(p->header.host, "b"); /* by rank */
    assert_int_equal(p->state, SLC_NCCL_ENDED);
    assert_int_equal(p->entry_count, 10);
    for (unsigned i = 0; i < 10; i++) {
        const slc_nccl_entry *e = &p->entries[i];
        assert_int_equal(e->index, i);
        assert_int_equal(e->number, i + 1);
        assert_int_equal(e->count, 1000 + i);
        assert_int_equal(e->send, all_reduce.send);
        assert_int_equal(e->receive, all_reduce.receive);
        assert_int_equal(e->stream, all_reduce.stream);
        assert_int_equal(e->operation, SLC_RECORD_ALL_REDUCE);
        assert_int_equal(e->dtype, 7);
        assert_int_equal(e->redop, 0);
        assert_int_equal(e->thread, 1);
        assert_int_equal(e->group, i);
        assert_int_equal(e->flags, i % 2 ? SLC_RECORD_GROUPED : 0);
        assert_int_equal(e->peer, -1);
        assert_int_equal(e->end_ns - e->begin_ns, i % 3 ? 0 : 100);
        assert_int_equal(slc_nccl_entry_bytes(p, e), 4 * (1000 + i));
        assert_string_equal(slc_nccl_caller(p, e, caller), "libtorch_cuda.so+0x1234");
    }
    slc_nccl_records_free(&records);
    made_record_free(&first);
    made_record_free(&second);
}

static void bytes_of_each_operation(void **state)
{
    (void)state;
    static const uint64_t expected[SLC_RECORD_OPERATION_COUNT] = {
        [SLC_RECORD_ALL_REDUCE] = 4000, [SLC_RECORD_REDUCE_SCATTER] = 8000, [SLC_RECORD_ALL_GATHER] = 8000,
        [SLC_RECORD_REDUCE] = 4000,     [SLC_RECORD_BROADCAST] = 4000,      [SLC_RECORD_ALL_TO_ALL] = 8000,
        [SLC_RECORD_GATHER] = 8000,     [SLC_RECORD_SCATTER] = 8000,        [SLC_RECORD_SEND] = 4000,
        [SLC_RECORD_RECEIVE] = 4000};
    slc_record_communicator row = {.size = 2};
    slc_nccl_process p = {.header = {.communicators = 1}, .communicators = &row};
    for (unsigned operation = 1; operation < SLC_RECORD_OPERATION_COUNT; operation++) {
        slc_nccl_entry e = {.operation = operation, .dtype = 7, .count = 1000};
        assert_int_equal(slc_nccl_entry_bytes(&p, &e), expected[operation]);
        assert_string_not_equal(slc_nccl_operation_name(operation), "unknown");
    }
    slc_nccl_entry huge = {.operation = SLC_RECORD_ALL_GATHER, .dtype = 7, .count = UINT64_MAX / 8};
    assert_int_equal(slc_nccl_entry_bytes(&p, &huge), UINT64_C(1) << 62);
    assert_string_equal(slc_nccl_dtype_name(9), "bfloat16");
    assert_int_equal(slc_nccl_dtype_bytes(0xff), 0);
    assert_string_equal(slc_nccl_redop_name(4), "avg");
}

static void the_ring_goes_round(void **state)
{
    (void)state;
    enum { ROOM = 7 };
    slc_nccl_records records = {0};
    made_record r = made_record_new("a", 1, ROOM, true);
    r.header->state = SLC_RECORD_RUNNING;
    snprintf(r.header->boot_id, sizeof r.header->boot_id, "another");
    made_communicator(&r, 1, 0, 1);
    r.communicators[0].calls = UINT64_C(0xfffffffff); /* numbers need more than 32 bits */
    uint64_t numbered = r.communicators[0].calls;
    made_record_write(&r, path_of("a-1-1.nccl"), 0);
    works(read_folder(&records));
    for (uint64_t done = 0; done < 60;) {
        for (uint64_t more = done % 5 + 1; more--; done++) {
            made_call call = all_reduce;
            call.count = done;
            made_time(&r, made_entry(&r, &call), (int64_t)done, (int64_t)done + 1);
        }
        uint64_t writing = done % 3 ? done - 1 - done % 2 : UINT64_MAX;
        slc_record_entry *unfinished = writing == UINT64_MAX ? NULL : &r.entries[writing % ROOM];
        if (unfinished) unfinished->sequence = 0;
        made_record_write(&r, path_of("a-1-1.nccl"), 0);
        works(read_again(&records));
        const slc_nccl_process *p = &records.processes[0];
        uint64_t oldest = done > ROOM ? done - ROOM : 0;
        assert_int_equal(p->state, SLC_NCCL_ELSEWHERE);
        assert_int_equal(p->entries_gone, oldest);
        size_t n = 0;
        for (uint64_t i = oldest; i < done; i++) {
            if (i == writing) continue;
            assert_int_equal(p->entries[n].index, i);
            assert_int_equal(p->entries[n].count, i);
            assert_int_equal(p->entries[n].number, numbered + i + 1);
            assert_int_equal(p->entries[n++].begin_ns, i);
        }
        assert_int_equal(p->entry_count, n);
        if (unfinished) unfinished->sequence = (uint32_t)(writing + 1);
    }
    slc_nccl_records_free(&records);
    made_record_free(&r);
}

static void processes_come_and_go(void **state)
{
    (void)state;
    slc_nccl_records records;
    made_record first = a_rank("a", 9, 0, 64), second = a_rank("a", 10, 1, 64), other = a_rank("a", 11, 0, 64);
    other.communicators[0].key = 5;
    made_record_write(&first, path_of("a-9-1.nccl"), 0);
    made_record_write(&other, path_of("a-11-1.nccl"), 0);
    write_file("a-12-1.nccl", "", 0); /* begins only */
    write_file("a-13-1.nccl", second.header + 1, 8192);
    works(read_folder(&records));
    assert_int_equal(records.count, 2);
    made_record_write(&second, path_of("a-10-1.nccl"), 0);
    assert_int_equal(unlink(path_of("a-9-1.nccl")), 0);
    assert_int_equal(unlink(path_of("a-11-1.nccl")), 0);
    works(read_again(&records));
    assert_int_equal(records.count, 2); /* the first one stays: it shares a communicator with the second */
    assert_int_equal(records.processes[0].header.pid, 9);
    assert_int_equal(records.processes[0].entry_count, 10);
    assert_int_equal(records.processes[1].header.pid, 10);
    assert_int_equal(unlink(path_of("a-10-1.nccl")), 0);
    works(read_again(&records));
    assert_int_equal(records.count, 0);
    slc_nccl_records_free(&records);
    made_record_free(&first);
    made_record_free(&second);
    made_record_free(&other);
}

/* A process that ends in order removes its file; what it called since the look before is read all the same. */
static void the_last_calls_before_the_end(void **state)
{
    (void)state;
    slc_nccl_records records;
    made_record first = a_rank("a", 9, 0, 64), second = a_rank("a", 10, 1, 64);
    first.header->state = SLC_RECORD_RUNNING;
    snprintf(first.header->boot_id, sizeof first.header->boot_id, "another");
    made_record_write(&first, path_of("a-9-1.nccl"), 0);
    made_record_write(&second, path_of("a-10-1.nccl"), 0);
    works(read_folder(&records));
    assert_int_equal(records.processes[0].state, SLC_NCCL_ELSEWHERE);
    made_entry(&first, &all_reduce);
    first.header->state = SLC_RECORD_ENDED;
    made_record_write(&first, path_of("a-9-1.nccl"), 0);
    assert_int_equal(unlink(path_of("a-9-1.nccl")), 0);
    for (int look = 0; look < 2; look++) {
        works(read_again(&records));
        assert_int_equal(records.count, 2);
        const slc_nccl_process *p = &records.processes[0];
        assert_int_equal(p->state, SLC_NCCL_ENDED);
        assert_int_equal(p->header.state, SLC_RECORD_ENDED);
        assert_int_equal(p->entry_count, 11);
        assert_int_equal(p->communicators[0].calls, 11);
    }
    slc_nccl_records_free(&records);
    made_record_free(&first);
    made_record_free(&second);
}

static void a_damaged_file_is_left_out(void **state)
{
    (void)state;
    slc_nccl_records records;
    made_record first = a_rank("a", 9, 0, 64), second = a_rank("a", 10, 1, 64);
    second.header->state = SLC_RECORD_RUNNING;
    snprintf(second.header->boot_id, sizeof second.header->boot_id, "another");
    made_record_write(&first, path_of("a-9-1.nccl"), 0);
    made_record_write(&second, path_of("a-10-1.nccl"), 0);
    write_file("cut.nccl", second.header, 4500);
    for (int look = 0; look < 2; look++) {
        works(look ? read_again(&records) : read_folder(&records));
        assert_int_equal(records.count, 2);
        assert_int_equal(records.refused_count, 1);
        assert_non_null(strstr(records.refused[0].why, "cut.nccl: the record is cut"));
    }
    /* A file that was read well before leaves the records while it is damaged, and comes back when it is whole again.
     */
    made_record_write(&second, path_of("a-10-1.nccl"), 100);
    works(read_again(&records));
    assert_int_equal(records.count, 1);
    assert_int_equal(records.refused_count, 2);
    made_record_write(&second, path_of("a-10-1.nccl"), 0);
    works(read_again(&records));
    assert_int_equal(records.count, 2);
    assert_int_equal(records.processes[1].entry_count, 10);
    assert_int_equal(records.refused_count, 2);
    slc_nccl_records_free(&records);
    made_record_free(&first);
    made_record_free(&second);
}

static void a_copy_counts_once(void **state)
{
    (void)state;
    slc_nccl_records records;
    made_record r = a_rank("a", 9, 0, 64);
    made_record_write(&r, path_of("a-9-1.nccl"), 0);
    made_record_write(&r, path_of("copy.nccl"), 0);
    works(read_folder(&records));
    assert_int_equal(records.count, 1);
    slc_nccl_records_free(&records);
    made_record_free(&r);
}

static void states_of_processes(void **state)
{
    (void)state;
    slc_nccl_records records;
    char path[4096];
    pid_t child = fork();
    assert_true(child >= 0);
    while (!child) pause();
    made_record r = a_rank("x", child, 0, 64);
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file,
                            "%*d (%*[^)]) %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                            "%*s %lu",
                            (unsigned long *)&r.header->started),
                     1);
    fclose(file);
    r.header->state = SLC_RECORD_RUNNING;
    gethostname(r.header->host, sizeof r.header->host - 1);
    made_record_write(&r, path_of("r.nccl"), 0);
    works(read_folder(&records));
    assert_int_equal(records.processes[0].state, SLC_NCCL_RUNNING);
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    works(read_again(&records));
    assert_int_equal(records.processes[0].state, SLC_NCCL_STOPPED);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    works(read_again(&records));
    assert_int_equal(records.processes[0].state, SLC_NCCL_GONE);
    slc_nccl_records_free(&records);
    r.header->pid = getpid(); /* its number is used again */
    made_record_write(&r, path_of("r.nccl"), 0);
    works(read_folder(&records));
    assert_int_equal(records.processes[0].state, SLC_NCCL_GONE);
    slc_nccl_records_free(&records);
    snprintf(r.header->host, sizeof r.header->host, "container");
    struct stat namespace;
    assert_int_equal(stat("/proc/self/ns/pid", &namespace), 0);
    const uint64_t namespaces[] = {0, namespace.st_ino, namespace.st_ino + 1};
    const slc_nccl_process_state states[] = {SLC_NCCL_ELSEWHERE, SLC_NCCL_GONE, SLC_NCCL_ELSEWHERE};
    for (int i = 0; i < 3; i++) {
        r.header->pid_namespace = namespaces[i];
        made_record_write(&r, path_of("r.nccl"), 0);
        works(read_folder(&records));
        assert_int_equal(records.processes[0].state, states[i]);
        slc_nccl_records_free(&records);
    }
    made_record_free(&r);
}

static void refused(const made_record *r, size_t bytes, const char *why)
{
    slc_nccl_records records;
    made_record_write(r, path_of("r.nccl"), bytes);
    fails(read_folder(&records), SLUICE_ERR_FORMAT, why);
    assert_non_null(strstr(sluice_last_error(), "r.nccl"));
    slc_nccl_records_free(&records);
}

/* Sets a field of the record to a value and expects the sentence. */
#define REFUSED(field, value, why)                                                                                     \
    do {                                                                                                               \
        made_record r = a_rank("a", 9, 0, 64);                                                                         \
        (field) = (value);                                                                                             \
        refused(&r, 0, why);                                                                                           \
        made_record_free(&r);                                                                                          \
    } while (0)

static void damage_is_named(void **state)
{
    (void)state;
    REFUSED(r.header->magic[0], 'x', "no record of the NCCL shim");
    REFUSED(r.header->version, 2, "version 2");
    REFUSED(r.header->header_bytes, 512, "sizes");
    REFUSED(r.header->entry_bytes, 65, "sizes");
    REFUSED(r.header->entry_count, 0, "number of entries");
    REFUSED(r.header->entry_count, UINT32_MAX, "number of entries");
    REFUSED(r.header->entry_count, 1 << 20, "entries lie outside");
    REFUSED(r.header->communicators_at, UINT64_MAX - 10, "communicators lie outside");
    REFUSED(r.header->communicators_at, 0, "communicators lie outside");
    REFUSED(r.header->modules_at, UINT64_MAX, "modules lie outside");
    REFUSED(r.header->entries_at, r.header->file_bytes - 1, "entries lie outside");
    REFUSED(r.header->times_at, r.header->file_bytes - 1, "times lie outside");
    REFUSED(r.header->communicators, SLC_RECORD_COMMUNICATORS + 1, "more communicators");
    REFUSED(r.header->modules, SLC_RECORD_MODULES + 1, "more modules");
    REFUSED(r.header->pid, -1, "no possible number");
    REFUSED(r.header->entries, UINT64_MAX, "count of entries");
    REFUSED(r.header->state, 9, "no known state");
    REFUSED(r.header->first_call_ns, -1, "clock");
    REFUSED(r.header->realtime_minus_monotonic_ns, INT64_MIN, "clock");
    REFUSED(r.communicators[0].state, 99, "communicator 0 is in no known state");
    REFUSED(r.communicators[0].size, -1, "number of ranks");
    REFUSED(r.communicators[0].size, (1 << 20) + 1, "number of ranks");
    REFUSED(r.communicators[0].calls, UINT64_MAX, "count of calls");
    REFUSED(r.communicators[0].rank, 2, "rank 2 of 2");
    REFUSED(r.communicators[0].rank, -2, "a rank that is not in it");
    REFUSED(r.entries[3].time_ns, -1, "entry 3 has a time");
    REFUSED(r.entries[3].stream_operation_dtype, 0, "entry 3 has no known operation");
    REFUSED(r.entries[3].stream_operation_dtype, UINT64_MAX, "entry 3 has no known operation");
    REFUSED(r.entries[3].send_communicator, UINT64_C(0xfff0) << 48, "entry 3 is of no possible communicator");
    made_record r = a_rank("a", 9, 0, 64);
    refused(&r, 100, "less than the header");
    refused(&r, 5000, "cut");
    size_t bytes = r.header->file_bytes++;
    refused(&r, bytes, "cut");
    made_record_free(&r);
}

static void texts_can_be_printed(void **state)
{
    (void)state;
    slc_nccl_records records;
    made_record r = a_rank("a", 9, 0, 64);
    memset(r.header->host, 'x', sizeof r.header->host);
    strcpy(r.header->command, "a\033[2Jb \xc3\xa4 \xff \xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82");
    memset(r.modules[0].path, '\n', sizeof r.modules[0].path);
    made_record_write(&r, path_of("r.nccl"), 0);
    works(read_folder(&records));
    const slc_nccl_process *p = &records.processes[0];
    assert_int_equal(strlen(p->header.host), sizeof r.header->host - 1);
    assert_string_equal(p->header.command, "a?[2Jb \xc3\xa4 ? ?? ??? ???? ??");
    assert_int_equal(p->modules[0].path[0], '?');
    slc_nccl_records_free(&records);
    made_record_free(&r);
}

static void nothing_there(void **state)
{
    (void)state;
    slc_nccl_records records;
    fails(read_folder(&records), SLUICE_ERR_ARGUMENT, "LD_PRELOAD=/PATH/libsluice_nccl.so");
    const char *none = path_of("none");
    fails(slc_nccl_records_read(&none, 1, &records), SLUICE_ERR_ARGUMENT, "none has no records");
}

static uint64_t draw(uint64_t limit)
{
    static uint64_t index;
    return slc_random_below(test_seed(16), 3, index++, limit);
}

/* Everything that others count with is in range. */
static void in_range(const slc_nccl_records *records)
{
    char caller[300];
    uint64_t sum = 0;
    for (size_t i = 0; i < records->count; i++) {
        const slc_nccl_process *p = &records->processes[i];
        for (size_t k = 0; k < p->entry_count; k++) {
            const slc_nccl_entry *e = &p->entries[k];
            assert_true(e->communicator < p->header.communicators || e->communicator == SLC_RECORD_NO_COMMUNICATOR);
            assert_true(e->module < p->header.modules || e->module == SLC_RECORD_NO_MODULE);
            assert_true(!k || p->entries[k - 1].index < e->index);
            assert_true(e->begin_ns >= 0 && e->begin_ns <= e->end_ns);
            assert_true(e->operation >= 1 && e->operation < SLC_RECORD_OPERATION_COUNT);
            sum += slc_nccl_entry_bytes(p, e) + strlen(slc_nccl_caller(p, e, caller));
        }
        for (uint32_t k = 0; k < p->header.communicators; k++)
            assert_true(p->communicators[k].size >= 0 && p->communicators[k].rank >= -1);
        assert_int_equal(p->header.host[sizeof p->header.host - 1], 0);
        assert_true(slc_nccl_state_name(p->state) != NULL);
    }
    assert_true(sum < UINT64_MAX);
}

static void any_bytes_are_read_or_refused(void **state)
{
    (void)state;
    unsigned read = 0, bad = 0;
    for (unsigned trial = 0; trial < 1500; trial++) {
        slc_nccl_records records;
        made_record r = a_rank("a", 9, 0, 16);
        size_t bytes = r.header->file_bytes; /* before it is damaged */
        for (uint64_t changes = 1 + draw(6); changes--;) {
            static const unsigned char extremes[] = {0, 1, 0x7f, 0x80, 0xff};
            unsigned char *const regions[] = {r.file, (unsigned char *)r.communicators, (unsigned char *)r.entries};
            static const size_t sizes[] = {sizeof(slc_record_header), 256, 1024};
            uint64_t region = draw(3);
            regions[region][draw(sizes[region])] = draw(2) ? extremes[draw(5)] : (unsigned char)draw(256);
        }
        size_t length = draw(4) ? bytes : 1 + draw(bytes);
        write_file("r.nccl", r.file, length);
        sluice_status status = read_folder(&records);
        if (!status) status = read_again(&records);
        if (!status) in_range(&records);
        if (status && status != SLUICE_ERR_FORMAT && status != SLUICE_ERR_ARGUMENT)
            fail_msg("%s: %s", sluice_status_name(status), sluice_last_error());
        read += !status;
        bad += status != 0;
        slc_nccl_records_free(&records);
        made_record_free(&r);
    }
    assert_true(read > 100 && bad > 100);
}

/* Writes calls into a mapped record as fast as it can, as the shim would, until it is killed. */
static void write_without_end(const char *path, uint64_t bytes)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    unsigned char *file = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED) _exit(1);
    slc_record_header *h = (slc_record_header *)file;
    slc_record_entry *entries = (slc_record_entry *)(file + h->entries_at);
    slc_record_communicator *row = (slc_record_communicator *)(file + h->communicators_at);
    for (;;) {
        uint64_t n = __atomic_fetch_add(&h->entries, 1, __ATOMIC_SEQ_CST);
        slc_record_entry *e = &entries[n % h->entry_count];
        __atomic_store_n(&row->calls, n + 1, __ATOMIC_RELAXED);
        __atomic_store_n(&e->sequence, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&e->number, (uint32_t)(n + 1), __ATOMIC_RELEASE);
        __atomic_store_n(&e->time_ns, (int64_t)n, __ATOMIC_RELEASE);
        __atomic_store_n(&e->count, n, __ATOMIC_RELEASE);
        __atomic_store_n(&e->send_communicator, n & SLC_RECORD_LOW48, __ATOMIC_RELEASE);
        __atomic_store_n(&e->stream_operation_dtype, (uint64_t)SLC_RECORD_ALL_REDUCE << 48 | (uint64_t)7 << 56,
                         __ATOMIC_RELEASE);
        __atomic_store_n(&e->caller_module_redop, n & SLC_RECORD_LOW48, __ATOMIC_RELEASE);
        __atomic_store_n(&e->sequence, (uint32_t)(n + 1), __ATOMIC_RELEASE);
    }
}

static void a_running_process_is_read(void **state)
{
    (void)state;
    slc_nccl_records records = {0};
    made_record r = made_record_new("a", 1, 4096, false);
    r.header->state = SLC_RECORD_RUNNING;
    snprintf(r.header->boot_id, sizeof r.header->boot_id, "another");
    made_communicator(&r, 1, 0, 1);
    made_record_write(&r, path_of("r.nccl"), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) write_without_end(path_of("r.nccl"), r.header->file_bytes);
    uint64_t seen = 0;
    /* On a busy machine the writer may not have written anything yet, so the reader goes on for a while. */
    const time_t late = time(NULL) + 60;
    for (unsigned i = 0; i < 300 || (!seen && time(NULL) < late); i++) {
        works(read_again(&records));
        const slc_nccl_process *p = &records.processes[0];
        for (size_t k = 0; k < p->entry_count; k++) {
            const slc_nccl_entry *e = &p->entries[k];
            if (e->count != e->index || e->send != e->index || e->caller != e->index ||
                e->time_ns != (int64_t)e->index || e->number != e->index + 1)
                fail_msg("entry %llu is torn", (unsigned long long)e->index);
        }
        seen += p->entry_count;
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(seen > 0);
    works(read_again(&records));
    const slc_nccl_process *p = &records.processes[0];
    const uint64_t begun = p->header.entries < 4096 ? p->header.entries : 4096;
    assert_true(p->entry_count + 1 >= begun); /* all but the one that was being written */
    slc_nccl_records_free(&records);
    made_record_free(&r);
}

static void a_file_that_shrinks(void **state)
{
    (void)state;
    made_record r = a_rank("a", 9, 0, 65536);
    r.header->state = SLC_RECORD_RUNNING;
    r.header->entries = 65536;
    made_record_write(&r, path_of("r.nccl"), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    while (!child)
        if (truncate(path_of("r.nccl"), (off_t)(SLC_RECORD_HEADER_BYTES + rand() % 4000000)) ||
            truncate(path_of("r.nccl"), (off_t)r.header->file_bytes))
            _exit(1);
    for (unsigned i = 0; i < 60; i++) {
        slc_nccl_records records;
        sluice_status status = read_folder(&records);
        if (status && status != SLUICE_ERR_FORMAT && status != SLUICE_ERR_IO)
            fail_msg("%s: %s", sluice_status_name(status), sluice_last_error());
        if (!status) in_range(&records);
        slc_nccl_records_free(&records);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    made_record_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_was_written_is_read, empty_folder),
        cmocka_unit_test(bytes_of_each_operation),
        cmocka_unit_test_setup(the_ring_goes_round, empty_folder),
        cmocka_unit_test_setup(processes_come_and_go, empty_folder),
        cmocka_unit_test_setup(the_last_calls_before_the_end, empty_folder),
        cmocka_unit_test_setup(a_damaged_file_is_left_out, empty_folder),
        cmocka_unit_test_setup(a_copy_counts_once, empty_folder),
        cmocka_unit_test_setup(states_of_processes, empty_folder),
        cmocka_unit_test_setup(damage_is_named, empty_folder),
        cmocka_unit_test_setup(texts_can_be_printed, empty_folder),
        cmocka_unit_test_setup(nothing_there, empty_folder),
        cmocka_unit_test_setup(any_bytes_are_read_or_refused, empty_folder),
        cmocka_unit_test_setup(a_running_process_is_read, empty_folder),
        cmocka_unit_test_setup(a_file_that_shrinks, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
