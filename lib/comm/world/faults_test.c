/* When a rank dies, stalls, leaves early or fails, every other rank must learn which one it is, on every path, and by
 * the cause's own status: what would only be noticed when a limit has run out has the status TIMEOUT. */
#include "tests/support/comm/forked_ranks.h"
#include "tests/support/scale.h"

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <cmocka.h>

enum { ELEMENTS = 1 << 20, TENSORS = 3, ROWS = 500, VICTIM_CODE = 7 };
static const double stall_s = 2.5; /* the limit in tests of ranks that stall: five heartbeats */

/* The kind of operation that is on its way. */
typedef enum { SUMS, EXCHANGE, ROW_SUMS } traffic;

typedef enum {
    KILLED,
    KILLED_FIRST,
    STOPPED,
    LEAVES,
    FAILS,
    KILLED_IDLE,
    OTHER_OPERATION,
    OTHER_SKIP,
    OTHER_COLLECTIVE
} fault;

typedef struct {
    int size, port, victim;
    bool direct, mixed;
    traffic carries;
    fault what;
} test_case;

typedef struct {
    slc_device *device;
    slc_segment segment;
    sluice_world *world;
    traffic carries;
    slc_rows rows;
    slc_compress_group group;
    void *server_memory;
    slc_residue servers[TENSORS];
} rig;

static void rig_open(rig *all, const test_case *test, int rank)
{
    sluice_world_config config = test_config(rank, test->size, test->port);
    config.direct = test->direct;
    if (test->mixed) setenv("SLUICE_COMM_HOST_ID", rank % 2 ? "odd" : "even", 1);
    if (test->what == STOPPED) config.timeout_s = stall_s;
    CHECK(!sluice_world_create(&config, &all->world));
    CHECK(!slc_device_open("cpu", &all->device));
    CHECK(!slc_segment_create(all->device, ELEMENTS * 4 * 4, &all->segment));
    char *scratch = (char *)all->segment.base + ELEMENTS * 4;
    CHECK(!slc_comm_attach(slc_world_comm(all->world), &all->segment, scratch, ELEMENTS * 4 * 3));
    all->carries = test->carries;
    all->rows = (slc_rows){480, ROWS, ROWS, (char *)all->segment.base + ELEMENTS * 2};
    slc_row_list *own = (slc_row_list *)(void *)((char *)all->rows.lists + (uint64_t)rank * slc_row_list_bytes(ROWS));
    own->count = ROWS;
    for (uint32_t i = 0; i < ROWS; i++) own->rows[i] = i;
    const uint32_t size = (uint32_t)test->size;
    const slc_compress_shape shapes[TENSORS] = {{1000, 0, size}, {10 * ELEMENTS, 0, size}, {17, 0, size}};
    CHECK(!slc_compress_group_init(&all->group, TENSORS, shapes));
    CHECK((all->server_memory = calloc(1, slc_compress_group_server_bytes(&all->group) + 64)));
    slc_compress_group_residues(&all->group, NULL, all->server_memory, NULL, all->servers);
}

static void rig_close(rig *all)
{
    close_rank(all->world, &all->segment, all->device);
    slc_compress_group_fini(&all->group);
    free(all->server_memory);
}

static slc_op endless_op(const rig *all)
{
    char *base = all->segment.base;
    if (all->carries == ROW_SUMS) {
        slc_op op = slc_reduce_rows_op(&all->rows, SLUICE_FP32, SLUICE_FP32, 480 * ROWS, 4800, base, base + ELEMENTS,
                                       SLC_WHOLE, 0.5f);
        op.what = "endless rows";
        return op;
    }
    if (all->carries == EXCHANGE) {
        slc_op op = slc_exchange_op(&all->group, base, base + ELEMENTS * 4, all->servers);
        op.what = "endless exchange";
        return op;
    }
    uint64_t elements = ELEMENTS / 480 * 480; /* for any world of up to five ranks */
    return (slc_op){.kind = SLC_ALL_REDUCE,
                    .dtype = SLUICE_FP32,
                    .elements = elements,
                    .block_elements = 4800,
                    .block_count = (elements + 4799) / 4800,
                    .src = all->segment.base,
                    .dst = all->segment.base,
                    .scale = 0.5f,
                    .what = "endless sum"};
}

static void go_on_until_failure(rig *all)
{
    slc_comm *comm = slc_world_comm(all->world);
    slc_op op = endless_op(all);
    uint32_t index = 0;
    sluice_status status = SLUICE_OK;
    while (!status) {
        status = slc_comm_submit(comm, &op, 1, &index);
        if (!status) status = slc_comm_wait(comm, index + 1);
    }
}

static void expect(rig *all, const test_case *test, sluice_status status, const char *part)
{
    char line[1024];
    CHECK(sluice_world_check(all->world) == status);
    snprintf(line, sizeof line, "%s", sluice_last_error());
    if (!strstr(line, part)) {
        fprintf(stderr, "\"%s\" should say \"%s\"\n", line, part);
        _exit(1);
    }
    /* Every other call fails in the same way. */
    slc_op op = endless_op(all);
    double value = 0;
    CHECK(slc_comm_submit(slc_world_comm(all->world), &op, 1, NULL) == status && !strcmp(line, sluice_last_error()));
    CHECK(sluice_world_barrier(all->world) == status && !strcmp(line, sluice_last_error()));
    CHECK(sluice_world_all_reduce(all->world, &value, 1) == status && !strcmp(line, sluice_last_error()));
    CHECK(slc_comm_attach(slc_world_comm(all->world), &all->segment, NULL, 0) == status);
    (void)test;
}

/* Returns another operation on the same bytes. */
static slc_op other_op(rig *all)
{
    slc_op op = endless_op(all);
    if (all->carries == SUMS) op.block_count--;
    if (all->carries == ROW_SUMS) op.kind = SLC_GATHER_ROWS;
    if (all->carries != EXCHANGE) return op;
    static slc_compress_group other;
    static slc_residue servers[TENSORS];
    const slc_compress_shape *shapes = all->group.shapes;
    CHECK(!slc_compress_group_init(&other, TENSORS, (slc_compress_shape[]){shapes[2], shapes[1], shapes[0]}));
    CHECK(other.stride == all->group.stride);
    for (int i = 0; i < TENSORS; i++) servers[i] = all->servers[TENSORS - 1 - i];
    op.group = &other, op.servers = servers;
    return op;
}

static sluice_status die(void *context)
{
    (void)context;
    kill(getpid(), SIGKILL);
    return SLUICE_OK;
}

static void suffer(rig *all, const test_case *test)
{
    slc_comm *comm = slc_world_comm(all->world);
    slc_op op = endless_op(all);
    for (int i = 0; i < 3; i++) CHECK(!slc_comm_submit(comm, &op, 1, NULL));
    static const bool yes = true;
    switch (test->what) {
    case KILLED: /* in the middle of an operation */
        CHECK(!slc_comm_submit(comm, &(slc_op){.kind = SLC_BARRIER, .start = die}, 1, NULL));
        pause();
        break;
    case KILLED_FIRST:
    case KILLED_IDLE:
        usleep(200000);
        kill(getpid(), SIGKILL);
        break;
    case STOPPED: kill(getpid(), SIGSTOP); break;
    case LEAVES:
        CHECK(!slc_comm_wait(comm, 3));
        rig_close(all);
        exit(VICTIM_CODE);
    case FAILS:
        CHECK(!slc_comm_wait(comm, 3));
        slc_comm_fail(comm, SLUICE_ERR_IO, "disk on fire");
        CHECK(slc_comm_wait(comm, 4) == SLUICE_ERR_IO && strstr(sluice_last_error(), "disk on fire"));
        rig_close(all);
        exit(VICTIM_CODE);
    case OTHER_OPERATION:
        op = other_op(all);
        CHECK(!slc_comm_submit(comm, &op, 1, NULL));
        break;
    case OTHER_SKIP: /* it is soon far ahead */
        op.skip = &yes;
        for (int i = 0; i < 300; i++) CHECK(!slc_comm_submit(comm, &op, 1, NULL));
        break;
    case OTHER_COLLECTIVE: {
        double values[2] = {0};
        CHECK(sluice_world_all_reduce(all->world, values, 2) == SLUICE_ERR_MISMATCH);
        break;
    }
    }
}

/* When ranks disagree none is to blame alone, and all hear the same. */
static bool differs(fault what)
{
    return what == OTHER_OPERATION || what == OTHER_SKIP || what == OTHER_COLLECTIVE;
}

static int survive(rig *all, const test_case *test)
{
    char part[32];
    snprintf(part, sizeof part, "rank %d ", test->victim);
    if (test->what == KILLED_IDLE) {
        CHECK(sluice_world_barrier(all->world) == SLUICE_ERR_PEER);
    } else if (test->what == OTHER_COLLECTIVE) {
        double value = 0;
        CHECK(sluice_world_all_reduce(all->world, &value, 1) == SLUICE_ERR_MISMATCH);
    } else
        go_on_until_failure(all);
    if (test->what == STOPPED)
        expect(all, test, SLUICE_ERR_TIMEOUT, part);
    else
        expect(all, test, differs(test->what) ? SLUICE_ERR_MISMATCH : SLUICE_ERR_PEER, part);
    rig_close(all);
    return 0;
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    if (rank != test->victim) return survive(&all, test);
    suffer(&all, test);
    go_on_until_failure(&all);
    rig_close(&all);
    return VICTIM_CODE;
}

static void end_case(const test_case *test, ranks *all)
{
    const fault what = test->what;
    const bool killed = what == KILLED || what == KILLED_FIRST || what == STOPPED || what == KILLED_IDLE;
    ranks_outlive(all, test->victim, what == STOPPED, killed ? 128 + SIGKILL : VICTIM_CODE);
}

/* The worlds of all cases run at the same time, because most of them wait. */
static void check_cases(test_case *tests, size_t count)
{
    enum { MOST = 5 };
    ranks all[MOST];
    assert_true(count <= MOST);
    for (size_t i = 0; i < count; i++) {
        tests[i].port = free_port();
        ranks_start(&all[i], tests[i].size, body, &tests[i]);
    }
    for (size_t i = 0; i < count; i++) end_case(&tests[i], &all[i]);
}

/* Rank 0 is the middle of the star, so both it and another one must be tried; under a sanitizer each on one path. */
static void check_paths(fault what, int size)
{
    test_case tests[] = {{.size = size, .victim = 0, .direct = false, .what = what},
                         {.size = size, .victim = 1, .direct = true, .what = what},
                         {.size = 4, .victim = 2, .direct = true, .mixed = true, .what = what},
                         {.size = size, .victim = 0, .direct = true, .what = what},
                         {.size = size, .victim = 1, .direct = false, .what = what}};
    check_cases(tests, test_brief() ? 3 : sizeof tests / sizeof *tests);
}

static void test_killed(void **state)
{
    (void)state;
    check_paths(KILLED, 3);
    check_paths(KILLED_FIRST, 2);
    check_paths(KILLED_IDLE, 3);
}

static void check_traffic(traffic carries)
{
    const fault faults[] = {KILLED, OTHER_OPERATION, OTHER_SKIP};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const test_case messages = {.size = 3, .victim = 1, .carries = carries, .what = faults[i]};
        test_case tests[] = {messages, messages, messages};
        tests[1].direct = tests[2].direct = tests[2].mixed = true;
        tests[2].size = 4;
        if (test_brief())
            check_cases(&tests[i], 1);
        else
            check_cases(tests, sizeof tests / sizeof *tests);
    }
}

static void test_exchange(void **state)
{
    (void)state;
    check_traffic(EXCHANGE);
}

static void test_rows(void **state)
{
    (void)state;
    check_traffic(ROW_SUMS);
}

static void test_stopped(void **state)
{
    (void)state;
    test_case tests[] = {{.size = 3, .victim = 2, .direct = true, .what = STOPPED},
                         {.size = 3, .victim = 0, .direct = false, .what = STOPPED}};
    check_cases(tests, sizeof tests / sizeof *tests);
}

static void test_leaves(void **state)
{
    (void)state;
    check_paths(LEAVES, 3);
}

static void test_fails(void **state)
{
    (void)state;
    check_paths(FAILS, 3);
}

static void test_disagreement(void **state)
{
    (void)state;
    check_paths(OTHER_OPERATION, 2);
    check_paths(OTHER_SKIP, 2);
    test_case collective = {.size = 3, .victim = 2, .direct = true, .what = OTHER_COLLECTIVE};
    check_cases(&collective, 1);
}

/* ---- Stopped and continued ---- */

typedef struct {
    int size, port;
    double timeout_s;
    _Atomic int *rounds, *over; /* shared with the ranks: how far they are; the test has seen enough */
    FILE *said;                 /* rank 0's log */
} pausing;

static int go_on_until_over(int rank, void *argument)
{
    pausing *test = argument;
    sluice_world *world;
    sluice_world_config config = test_config(rank, test->size, test->port);
    config.timeout_s = test->timeout_s;
    if (rank == 0) dup2(fileno(test->said), STDERR_FILENO);
    CHECK(!sluice_world_create(&config, &world));
    for (double ends = 0; ends == 0;) {
        ends = rank == 0 && atomic_load(test->over);
        CHECK(!sluice_world_all_reduce(world, &ends, 1));
        if (rank == 0) atomic_fetch_add(test->rounds, 1);
        usleep(1000);
    }
    sluice_world_destroy(world);
    return 0;
}

enum { PATIENCE_MS = 100000 }; /* against hanging */

static void wait_for_rounds(const pausing *test, int count)
{
    const int from = atomic_load(test->rounds);
    for (int ms = 0; ms < PATIENCE_MS && atomic_load(test->rounds) - from < count; ms++) usleep(1000);
    assert_true(atomic_load(test->rounds) - from >= count);
}

static void signal_ranks(const ranks *all, int only, int signal)
{
    for (int rank = 0; rank < all->size; rank++)
        if (only < 0 || rank == only) kill(all->pids[rank], signal);
}

static pausing pausing_open(ranks *all, double timeout_s)
{
    _Atomic int *shared = mmap(NULL, 2 * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pausing test = {.size = 3,
                    .port = free_port(),
                    .timeout_s = timeout_s,
                    .rounds = shared,
                    .over = shared + 1,
                    .said = tmpfile()};
    assert_true(shared != MAP_FAILED && test.said);
    ranks_start(all, test.size, go_on_until_over, &test);
    wait_for_rounds(&test, 20);
    return test;
}

static bool was_said(const pausing *test, const char *text)
{
    char said[4096];
    ssize_t got = pread(fileno(test->said), said, sizeof said - 1, 0);
    said[got > 0 ? got : 0] = '\0';
    return strstr(said, text);
}

static void wait_until_said(const pausing *test, const char *text)
{
    for (int ms = 0; ms < PATIENCE_MS && !was_said(test, text); ms += 10) usleep(10000);
    assert_true(was_said(test, text));
}

/* The ranks must go on as if nothing had happened. */
static void pausing_close(pausing *test, ranks *all)
{
    wait_for_rounds(test, 20);
    atomic_store(test->over, 1);
    assert_int_equal(ranks_wait(all), 0);
    fclose(test->said);
    munmap((void *)test->rounds, 2 * sizeof *test->rounds);
}

/* A rank stops for less than the limit, but for so long that rank 0 says so. */
static void test_continued(void **state)
{
    (void)state;
    ranks all;
    pausing test = pausing_open(&all, 30);
    signal_ranks(&all, 2, SIGSTOP);
    wait_until_said(&test, "rank 2 stalled");
    signal_ranks(&all, 2, SIGCONT);
    wait_until_said(&test, "rank 2 is back");
    pausing_close(&test, &all);
}

/* All ranks stop for longer than the limit: none has missed the others. */
static void test_all_continued(void **state)
{
    (void)state;
    ranks all;
    pausing test = pausing_open(&all, 2.5);
    signal_ranks(&all, -1, SIGSTOP);
    usleep(4000000);
    signal_ranks(&all, -1, SIGCONT);
    wait_for_rounds(&test, 20);
    assert_false(was_said(&test, "stalled"));
    pausing_close(&test, &all);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_continued), cmocka_unit_test(test_all_continued), cmocka_unit_test(test_killed),
        cmocka_unit_test(test_exchange),  cmocka_unit_test(test_rows),          cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_leaves),    cmocka_unit_test(test_fails),         cmocka_unit_test(test_disagreement),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
