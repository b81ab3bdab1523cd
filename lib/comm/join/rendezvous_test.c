/* Joining: ranks are let in, refused, or named as missing, and strangers that talk nonsense do no harm. */
#include "lib/base/clock.h"
#include "tests/support/comm/forked_ranks.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <cmocka.h>

typedef enum {
    FINE,
    OTHER_SIZE,
    OTHER_TOKEN,
    SAME_RANK,
    ABSENT,
    ABSENT_FIRST,
    OTHER_THROTTLE,
    OTHER_DEPTH,
    SAME_FIRST_RANK,
    NO_PLUGIN,
    NONSENSE
} odd;

typedef struct {
    int size, port;
    odd what;
    int strangers_gone[2]; /* a pipe, whose writing end closes when they have all come */
    int joined[2];         /* a pipe, whose writing end closes when the ranks have joined */
} test_case;

static sluice_status join(const test_case *test, sluice_world_config config)
{
    sluice_world *world = NULL;
    sluice_status status = sluice_world_create(&config, &world);
    (void)test;
    if (!status) status = sluice_world_barrier(world);
    char line[1024]; /* leaving must not change it */
    snprintf(line, sizeof line, "%s", sluice_last_error());
    sluice_world_destroy(world);
    CHECK(!strcmp(line, sluice_last_error()));
    return status;
}

static int dial(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int attempt = 0; attempt < 10000; attempt++) { /* 20 s */
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (!connect(fd, (struct sockaddr *)&address, sizeof address)) return fd;
        close(fd);
        usleep(2000);
    }
    return -1;
}

static void wait_for_rank_0(const test_case *test)
{
    int fd = dial(test->port);
    CHECK(fd >= 0);
    close(fd);
}

static void expect(sluice_status have, sluice_status status, const char *part)
{
    if (have == status && (!part || strstr(sluice_last_error(), part))) return;
    fprintf(stderr, "%s: \"%s\" should be %s and say \"%s\"\n", sluice_status_name(have), sluice_last_error(),
            sluice_status_name(status), part ? part : "");
    _exit(1);
}

/* The last rank is the odd one. A rank that waits for another in vain waits for a second. */
static int odd_body(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = test_config(rank, test->size, test->port);
    const odd what = test->what;
    const bool last = rank == test->size - 1;
    if (!last && (what == OTHER_TOKEN || what == ABSENT || what == ABSENT_FIRST || what == SAME_FIRST_RANK))
        config.join_timeout_s = 1;
    if (!last && what == OTHER_SIZE) config.join_timeout_s = 2;
    switch (what) {
    case FINE: expect(join(test, config), SLUICE_OK, NULL); break;
    case OTHER_SIZE: {
        config.size += last;
        if (last) wait_for_rank_0(test), usleep(200000); /* rank 1 comes before it, if the machine is not busy */
        sluice_status status = join(test, config);
        if (status == SLUICE_ERR_TIMEOUT && !last && rank) break; /* it came when rank 0 had given up already */
        expect(status, SLUICE_ERR_MISMATCH, "launched as one of");
        break;
    }
    case OTHER_TOKEN:
        config.job_token = last ? "another" : "test";
        if (last)
            expect(join(test, config), SLUICE_ERR_MISMATCH, "token");
        else
            expect(join(test, config), SLUICE_ERR_TIMEOUT, "missing: 2");
        break;
    case SAME_RANK:
        config.rank = last ? 1 : rank;
        if (last) wait_for_rank_0(test);
        expect(join(test, config), SLUICE_ERR_MISMATCH, "rank 1");
        break;
    case ABSENT:
        if (last) return 0;
        expect(join(test, config), SLUICE_ERR_TIMEOUT, "missing: 2");
        break;
    case ABSENT_FIRST:
        if (rank == 0) return 0;
        expect(join(test, config), SLUICE_ERR_TIMEOUT, "missing: 0");
        break;
    case OTHER_THROTTLE:
        config.throttle = last ? "1gbit" : "";
        expect(join(test, config), SLUICE_ERR_MISMATCH, "throttled");
        break;
    case OTHER_DEPTH:
        if (last) setenv("SLUICE_COMM_DEPTH", "8", 1);
        expect(join(test, config), SLUICE_ERR_MISMATCH, "SLUICE_COMM_DEPTH is 8 on rank 2 and 4 on rank 0");
        break;
    case SAME_FIRST_RANK: /* it has no rank 0 to ask */
        if (last) {
            config.rank = 0;
            wait_for_rank_0(test);
            expect(join(test, config), SLUICE_ERR_SYSTEM, "is rank 0 too: give each process its own rank");
        } else
            expect(join(test, config), SLUICE_ERR_TIMEOUT, "missing: 2");
        break;
    case NO_PLUGIN:
        config.direct = 0;
        config.transport = "nosuch";
        expect(join(test, config), SLUICE_ERR_UNSUPPORTED, "libsluice_transport_nosuch.so");
        break;
    case NONSENSE: break;
    }
    return 0;
}

static void check_case(int size, odd what)
{
    test_case test = {.size = size, .port = free_port(), .what = what};
    assert_int_equal(run_ranks(size, odd_body, &test), 0);
}

static void test_joins(void **state)
{
    (void)state;
    for (int size = 1; size <= 5; size++) check_case(size, FINE);
}

static void test_refusals(void **state)
{
    (void)state;
    check_case(3, OTHER_SIZE);
    check_case(3, OTHER_TOKEN);
    check_case(3, SAME_RANK);
    check_case(3, OTHER_THROTTLE);
    check_case(3, OTHER_DEPTH);
    check_case(3, SAME_FIRST_RANK);
    check_case(2, NO_PLUGIN);
}

static void test_missing(void **state)
{
    (void)state;
    check_case(3, ABSENT);
    check_case(3, ABSENT_FIRST);
}

/* ---- Strangers ---- */

/* Rank 0 listens first, strangers come, the other rank comes last. */
static int nonsense_body(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = test_config(rank == 1 ? 1 : 0, 2, test->port);
    char none;
    if (rank < 2) close(test->strangers_gone[1]);
    if (rank == 2) {
        close(test->joined[1]);
        static const char *const words[] = {"GET / HTTP/1.0\r\n\r\n", "SLUICER\n", "S", ""};
        int held[100];
        for (int i = 0; i < 100; i++) { /* these are more than rank 0 listens to at a time; some stay and say nothing */
            held[i] = dial(test->port);
            CHECK(held[i] >= 0);
            const char *text = words[i % 4];
            if (send(held[i], text, strlen(text), MSG_NOSIGNAL) < 0) CHECK(errno == EPIPE || errno == ECONNRESET);
            if (i % 3 == 0) close(held[i]);
        }
        char garbage[4096];
        for (size_t i = 0; i < sizeof garbage; i++) garbage[i] = (char)(i * 7 + i / 13);
        memcpy(garbage, "SLUICER\n", 8);
        int fd = dial(test->port);
        CHECK(fd >= 0);
        if (send(fd, garbage, sizeof garbage, MSG_NOSIGNAL) < 0) CHECK(errno == EPIPE || errno == ECONNRESET);
        close(test->strangers_gone[1]);
        CHECK(!read(test->joined[0], &none, 1)); /* those that say nothing stay while rank 1 joins */
        return 0;
    }
    if (rank == 1) CHECK(!read(test->strangers_gone[0], &none, 1));
    expect(join(test, config), SLUICE_OK, NULL);
    return 0;
}

static void test_nonsense(void **state)
{
    (void)state;
    test_case test = {.size = 3, .port = free_port(), .what = NONSENSE};
    assert_int_equal(pipe(test.strangers_gone), 0);
    assert_int_equal(pipe(test.joined), 0);
    ranks all;
    ranks_start(&all, 3, nonsense_body, &test);
    close(test.strangers_gone[1]), close(test.joined[1]);
    assert_int_equal(ranks_wait(&all), 0);
    close(test.strangers_gone[0]), close(test.joined[0]);
}

/* Runs a rank while something else answers at rank 0's address. */
static int wrong_server_body(int rank, void *argument)
{
    const test_case *test = argument;
    if (rank == 0) {
        struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_port = htons((uint16_t)test->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        CHECK(!bind(fd, (struct sockaddr *)&address, sizeof address) && !listen(fd, 4));
        int client = accept(fd, NULL, NULL);
        char text[2048];
        memset(text, 'x', sizeof text);
        CHECK(send(client, text, sizeof text, MSG_NOSIGNAL) > 0);
        while (read(client, text, sizeof text) > 0) {
        }
        return 0;
    }
    sluice_world_config config = test_config(1, 2, test->port);
    expect(join(test, config), SLUICE_ERR_MISMATCH, "not rank 0");
    return 0;
}

static void test_wrong_server(void **state)
{
    (void)state;
    test_case test = {.size = 2, .port = free_port()};
    assert_int_equal(run_ranks(2, wrong_server_body, &test), 0);
}

static void test_bad_config(void **state)
{
    (void)state;
    sluice_world *world;
    sluice_world_config config = test_config(2, 2, 1);
    assert_int_equal(sluice_world_create(&config, &world), SLUICE_ERR_ARGUMENT);
    config = test_config(0, 2, 0);
    assert_int_equal(sluice_world_create(&config, &world), SLUICE_ERR_ARGUMENT);
    config = test_config(0, 1, 1);
    config.join_timeout_s = 0;
    assert_int_equal(sluice_world_create(&config, &world), SLUICE_ERR_ARGUMENT);
    config = test_config(1, 2, 1);
    config.master_addr = "no.such.host.invalid";
    config.join_timeout_s = 1;
    assert_int_not_equal(sluice_world_create(&config, &world), SLUICE_OK);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joins),    cmocka_unit_test(test_refusals),     cmocka_unit_test(test_missing),
        cmocka_unit_test(test_nonsense), cmocka_unit_test(test_wrong_server), cmocka_unit_test(test_bad_config),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
