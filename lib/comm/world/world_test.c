/* Worlds: their description of themselves, small collectives, abuse of submission, and the transports that they accept.
 */
#include "tests/support/comm/forked_ranks.h"
#include "lib/comm/transport.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <limits.h>
#include <sys/stat.h>

typedef struct {
    int size, port;
    bool direct, mixed;
} test_case;

static void check_small_collectives(sluice_world *world)
{
    int rank = sluice_world_rank(world), size = sluice_world_size(world);
    for (int round = 0; round < 20; round++) {
        double sums[3] = {0.1 * (rank + 1), rank, round}, first = 0.1, all[RANKS_MAX] = {0};
        for (int r = 1; r < size; r++) first += 0.1 * (r + 1);
        CHECK(!sluice_world_all_reduce(world, sums, 3));
        CHECK(sums[0] == first); /* added in rank order, so with the same bits */
        CHECK(sums[1] == size * (size - 1) / 2 && sums[2] == (double)round * size);
        double own = rank * 10 + round;
        CHECK(!sluice_world_all_gather(world, &own, sizeof own, all));
        for (int r = 0; r < size; r++) CHECK(all[r] == r * 10 + round);
        int root = round % size, data[2] = {rank == root ? round : -1, 7};
        CHECK(!sluice_world_broadcast(world, data, sizeof data, root));
        CHECK(data[0] == round && data[1] == 7);
        CHECK(!sluice_world_barrier(world));
    }
    /* This is larger than a socket takes at a time. */
    size_t bytes = 6 << 20;
    char *large = malloc(bytes);
    CHECK(large);
    for (size_t i = 0; i < bytes; i++) large[i] = rank == size - 1 ? (char)(i * 31 + i / 4096) : 0;
    CHECK(!sluice_world_broadcast(world, large, bytes, size - 1));
    for (size_t i = 0; i < bytes; i++) CHECK(large[i] == (char)(i * 31 + i / 4096));
    free(large);
    CHECK(sluice_world_broadcast(world, NULL, 0, size) == SLUICE_ERR_ARGUMENT);
    /* A part that no message may hold is refused before anything is sent or read. */
    const size_t most = (size_t)1 << 30;
    double sum = 0;
    CHECK(sluice_world_broadcast(world, NULL, most + 1, 0) == SLUICE_ERR_ARGUMENT);
    CHECK(sluice_world_all_gather(world, NULL, most / (size_t)size + 1, NULL) == SLUICE_ERR_ARGUMENT);
    CHECK(sluice_world_all_reduce(world, NULL, most / sizeof sum + 1) == SLUICE_ERR_ARGUMENT);
    CHECK(sluice_world_all_reduce(world, NULL, SIZE_MAX / 4) == SLUICE_ERR_ARGUMENT);
    CHECK(!sluice_world_all_reduce(world, &sum, 1));
}

/* All ranks get what the root has found, or its failure with its line, and other ranks' failures are not asked. */
static void check_sharing(sluice_world *world)
{
    const int rank = sluice_world_rank(world), size = sluice_world_size(world);
    for (int root = 0; root < size; root++) {
        const bool leads = rank == root;
        int data[2] = {leads ? root : -1, leads ? 7 : -1};
        CHECK(!sluice_world_share(world, leads ? SLUICE_OK : SLUICE_ERR_IO, data, sizeof data, root));
        CHECK(data[0] == root && data[1] == 7);
        CHECK(!sluice_world_share(world, SLUICE_OK, NULL, 0, root));
        sluice_status failed = leads ? slc_error(SLUICE_ERR_PATH, "rank %d found no file", root) : SLUICE_OK;
        char line[64];
        snprintf(line, sizeof line, "rank %d found no file", root);
        data[0] = rank;
        CHECK(sluice_world_share(world, failed, data, sizeof data, root) == SLUICE_ERR_PATH);
        CHECK(!strcmp(sluice_last_error(), line) && data[0] == rank);
        failed = leads ? slc_error(SLUICE_ERR_PATH, "%02000d", root) : SLUICE_OK; /* a long path, and the reason */
        CHECK(sluice_world_share(world, failed, NULL, 0, root) == SLUICE_ERR_PATH);
        CHECK(strlen(sluice_last_error()) == 2000 && sluice_last_error()[1999] == '0' + root);
        CHECK(!sluice_world_check(world)); /* the world is whole all the same */
    }
    CHECK(sluice_world_share(world, SLUICE_OK, NULL, 0, size) == SLUICE_ERR_ARGUMENT);
    CHECK(sluice_world_share(world, SLUICE_OK, NULL, 1, 0) == SLUICE_ERR_ARGUMENT);
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = test_config(rank, test->size, test->port);
    config.direct = test->direct;
    if (test->mixed) setenv("SLUICE_COMM_HOST_ID", rank < 2 ? "here" : "there", 1);
    sluice_world *world;
    CHECK(!sluice_world_create(&config, &world));
    CHECK(sluice_world_rank(world) == rank && sluice_world_size(world) == test->size);
    const char *path = test->size == 1 ? "alone" : test->mixed ? "mixed" : test->direct ? "direct" : "messages";
    CHECK(!strcmp(sluice_world_path(world), path));
    CHECK(!strcmp(sluice_world_transport(world), test->size > 1 && (test->mixed || !test->direct) ? "ucx" : "none"));
    CHECK(sluice_world_local_size(world) == (test->mixed ? 2 : test->direct ? test->size : 1));
    CHECK(sluice_world_local_rank(world) == (test->mixed ? rank % 2 : test->direct ? rank : 0));
    check_small_collectives(world);
    check_sharing(world);
    sluice_world_destroy(world);
    return 0;
}

static void test_worlds(void **state)
{
    (void)state;
    const test_case cases[] = {{.size = 1, .direct = true},
                               {.size = 2, .direct = true},
                               {.size = 3, .direct = true},
                               {.size = 2},
                               {.size = 5},
                               {.size = 4, .direct = true, .mixed = true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_case test = cases[i];
        test.port = free_port();
        assert_int_equal(run_ranks(test.size, body, &test), 0);
    }
}

typedef struct {
    int size, port, other; /* rank `other` runs as another user */
} users_case;

static int join_as_user(int rank, void *argument)
{
    const users_case *test = argument;
    sluice_world_config config = test_config(rank, test->size, test->port);
    sluice_world *world;
    uint32_t index;
    config.join_timeout_s = 5;
    if (rank == test->other) CHECK(!setuid(65534));
    CHECK(!sluice_world_create(&config, &world));
    CHECK(!strcmp(sluice_world_path(world), test->size == 2 || rank == test->other ? "messages" : "mixed"));
    CHECK(sluice_world_local_size(world) == (rank == test->other ? 1 : test->size - 1));
    slc_comm *comm = slc_world_comm(world);
    CHECK(!slc_comm_submit(comm, &(slc_op){.kind = SLC_BARRIER}, 1, &index) && !slc_comm_wait(comm, index + 1));
    sluice_world_destroy(world);
    return 0;
}

/* Returns true if other users may enter the folder of this name, and all folders that lead to it. */
static bool others_may_enter(const char *folder)
{
    char path[PATH_MAX];
    struct stat facts;
    if (!realpath(folder, path)) return false;
    for (char *end = path + strlen(path); end > path; *end = 0) {
        if (stat(path, &facts) || !(facts.st_mode & S_IXOTH)) return false;
        while (*--end != '/') {
        }
    }
    return true;
}

/* Ranks of two users of one host send messages. */
static void test_users(void **state)
{
    (void)state;
    const char *plugins = getenv("SLUICE_TRANSPORT_PATH");
    if (geteuid()) {
        puts("SKIP: ranks of two users: only root can become another one");
        skip();
    }
    if (plugins && !others_may_enter(plugins)) {
        printf("SKIP: ranks of two users: the folder %s is closed to other users\n", plugins);
        skip();
    }
    for (int size = 2; size <= 3; size++)
        for (int other = 0; other < size; other++) {
            users_case test = {.size = size, .port = free_port(), .other = other};
            assert_int_equal(run_ranks(size, join_as_user, &test), 0);
        }
}

static sluice_status count_up(void *context)
{
    ++*(int *)context;
    return SLUICE_OK;
}

static sluice_status refuse(void *context)
{
    (void)context;
    return SLUICE_ERR_NON_FINITE;
}

/* Operations that submission refuses, the order of calls and gates, and a hook that fails. It runs in a child, because
 * it starts a thread. */
static int submission_body(int rank, void *argument)
{
    sluice_world_config config = test_config(0, 1, 1);
    sluice_world *world;
    slc_device *device;
    slc_segment segment;
    (void)rank;
    (void)argument;
    CHECK(!sluice_world_create(&config, &world));
    slc_comm *comm = slc_world_comm(world);
    slc_op op = {.kind = SLC_ALL_REDUCE,
                 .dtype = SLUICE_FP32,
                 .elements = 64,
                 .block_elements = 32,
                 .block_count = 2,
                 .scale = 2};
    CHECK(slc_comm_submit(comm, &op, 1, NULL) == SLUICE_ERR_ORDER); /* nothing is attached */
    CHECK(!slc_device_open("cpu", &device) && !slc_segment_create(device, 4096, &segment));
    CHECK(!slc_comm_attach(comm, &segment, NULL, 0));
    float *values = segment.base;
    op.src = op.dst = values;
    slc_op bad = op;
    bad.elements = 65;
    CHECK(slc_comm_submit(comm, &bad, 1, NULL) == SLUICE_ERR_ARGUMENT);
    bad = op;
    bad.first_block = 1;
    CHECK(slc_comm_submit(comm, &bad, 1, NULL) == SLUICE_ERR_ARGUMENT);
    bad = op;
    bad.elements = 2048;
    bad.block_elements = 1024;
    CHECK(slc_comm_submit(comm, &bad, 1, NULL) == SLUICE_ERR_ARGUMENT); /* beyond the arena */
    bad = op;
    bad.dst = values + 64;
    CHECK(slc_comm_submit(comm, &bad, 1, NULL) == SLUICE_ERR_ARGUMENT);

    int calls = 0;
    slc_gate gate;
    slc_gate_init(&gate);
    for (int i = 0; i < 64; i++) values[i] = (float)i;
    slc_op both[2] = {op, {.kind = SLC_CALL, .call = count_up, .context = &calls}};
    both[0].wait[1] = &gate;
    both[0].wait_value[1] = 1;
    uint32_t index;
    CHECK(!slc_comm_submit(comm, both, 2, &index));
    usleep(50000);
    CHECK(!slc_gate_passed(slc_comm_completed(comm), index + 1) && calls == 0);
    slc_gate_post(&gate, 1);
    slc_comm_notify(comm);
    CHECK(!slc_comm_wait(comm, index + 2) && calls == 1);
    for (int i = 0; i < 64; i++) CHECK(values[i] == 2.0f * (float)i);

    /* These are more operations than the queue holds. They wait for a gate that another thread would open; here it is
     * open. */
    slc_op many[64];
    for (int i = 0; i < 64; i++) many[i] = both[1];
    for (int i = 0; i < 200; i++) CHECK(!slc_comm_submit(comm, many, 64, &index));
    CHECK(!slc_comm_wait(comm, index + 64) && calls == 1 + 200 * 64);

    both[1].call = refuse;
    CHECK(!slc_comm_submit(comm, &both[1], 1, &index));
    CHECK(slc_comm_wait(comm, index + 1) == SLUICE_ERR_NON_FINITE);
    CHECK(slc_comm_submit(comm, &op, 1, NULL) == SLUICE_ERR_NON_FINITE);
    close_rank(world, &segment, device);
    return 0;
}

static void test_submission(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, submission_body, NULL), 0);
}

/* A gate that a hook posts, with the count of completed operations at that moment. */
typedef struct {
    slc_comm *comm;
    slc_gate ran;
    uint32_t completed;
} witness;

static sluice_status note(void *context)
{
    witness *w = context;
    w->completed = atomic_load(&slc_comm_completed(w->comm)->value);
    slc_gate_post(&w->ran, 1);
    return SLUICE_OK;
}

/* A call runs while the barrier before it waits for the other rank; it ends, and is counted, after the barrier. */
static int calls_body(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = test_config(rank, 2, test->port);
    config.direct = test->direct;
    sluice_world *world;
    CHECK(!sluice_world_create(&config, &world));
    slc_comm *comm = slc_world_comm(world);
    witness call = {.comm = comm}, end = {.comm = comm};
    slc_gate_init(&call.ran);
    slc_gate_init(&end.ran);
    uint32_t index, behind;
    if (rank == 1) CHECK(!sluice_world_barrier(world)); /* waits until the other rank's call has run */
    CHECK(!slc_comm_submit(comm, &(slc_op){.kind = SLC_BARRIER, .call = note, .context = &end}, 1, &index));
    CHECK(!slc_comm_submit(comm, &(slc_op){.kind = SLC_CALL, .call = note, .context = &call}, 1, &behind));
    CHECK(behind == index + 1);
    if (rank == 0) {
        slc_gate_wait(&call.ran, 1, UINT64_MAX);
        CHECK(call.completed == index && !slc_gate_passed(&end.ran, 1));
        CHECK(!slc_gate_passed(slc_comm_completed(comm), index + 1));
        CHECK(!sluice_world_barrier(world));
    }
    CHECK(!slc_comm_wait(comm, behind + 1) && slc_gate_passed(&end.ran, 1) && end.completed == index);

    /* An operation that waits for the count of another finds what the other's hooks did. */
    int hooks = 0;
    slc_op pair[2] = {{.kind = SLC_CALL, .start = count_up, .call = count_up, .end = count_up, .context = &hooks},
                      {.kind = SLC_BARRIER, .wait = {slc_comm_completed(comm)}, .start = count_up, .context = &hooks}};
    pair[1].wait_value[0] = behind + 2;
    CHECK(!slc_comm_submit(comm, pair, 2, NULL));
    CHECK(!slc_comm_wait(comm, behind + 3) && hooks == 4);
    sluice_world_destroy(world);
    return 0;
}

static void test_calls(void **state)
{
    (void)state;
    for (int direct = 0; direct < 2; direct++) {
        test_case test = {.size = 2, .port = free_port(), .direct = direct};
        assert_int_equal(run_ranks(2, calls_body, &test), 0);
    }
}

static void ignore_lost(void *context, int rank, const char *why)
{
    (void)context;
    (void)rank;
    (void)why;
}

static void test_loading(void **state)
{
    (void)state;
    slc_transport transport;
    assert_int_equal(slc_transport_open(&transport, "nosuch", "", "", 0, 2, ignore_lost, NULL), SLUICE_ERR_UNSUPPORTED);
    assert_non_null(strstr(sluice_last_error(), "libsluice_transport_nosuch.so"));
    assert_int_equal(slc_transport_open(&transport, "../ucx", "", "", 0, 2, ignore_lost, NULL), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_transport_open(&transport, "ucx", "fast", "", 0, 2, ignore_lost, NULL), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "fast"));
    assert_int_equal(slc_transport_open(&transport, "ucx", "1gbit,never", "", 0, 2, ignore_lost, NULL),
                     SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_transport_open(&transport, "throttle", "1gbit", "", 0, 2, ignore_lost, NULL),
                     SLUICE_ERR_UNSUPPORTED);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worlds), cmocka_unit_test(test_users),   cmocka_unit_test(test_submission),
        cmocka_unit_test(test_calls),  cmocka_unit_test(test_loading),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
