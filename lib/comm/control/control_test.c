/* The control connections, without a world around them: memory runs out while a message is read, or a rank has left
 * that a collective needs. */
#include "lib/base/clock.h"
#include "lib/comm/control/control.h"
#include "lib/comm/control/socket.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static size_t most_bytes = SIZE_MAX;

/* The linker puts this in realloc's place. */
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes)
{
    return bytes > most_bytes ? NULL : __real_realloc(memory, bytes);
}

/* Rank 0 of a world of two, whose other rank is the far end of its socket. */
typedef struct {
    slc_failure failure;
    slc_control control;
    slc_rendezvous rendezvous;
    int fds[2], far;
} rank_0;

static void rank_0_open(rank_0 *rank)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    rank->fds[0] = -1;
    rank->fds[1] = ends[0];
    rank->far = ends[1];
    slc_failure_init(&rank->failure);
    rank->rendezvous = (slc_rendezvous){.rank = 0, .size = 2, .fds = rank->fds};
    assert_int_equal(slc_control_init(&rank->control, &rank->rendezvous, &rank->failure, 60), SLUICE_OK);
}

static void rank_0_close(rank_0 *rank)
{
    slc_control_fini(&rank->control);
    slc_failure_fini(&rank->failure);
    close(rank->far);
}

/* Rank 1 sends a part for which rank 0 has no memory: rank 0 fails, says so to rank 1, and nothing wakes it any more.
 */
static void test_no_memory(void **state)
{
    (void)state;
    rank_0 rank;
    rank_0_open(&rank);
    slc_frame frame = {.kind = SLC_FRAME_COLLECT, .rank = 1, .bytes = 1 << 20};
    static char data[1 << 16];
    assert_int_equal(write(rank.far, &frame, sizeof frame), sizeof frame);
    assert_int_equal(write(rank.far, data, sizeof data), sizeof data);
    most_bytes = sizeof data;
    for (int i = 0; i < 3; i++) slc_control_step(&rank.control, slc_clock_ns());
    assert_int_equal(slc_failure_get(&rank.failure), SLUICE_ERR_MEMORY);
    assert_true(strstr(rank.failure.line, "rank 1"));
    struct pollfd polls[2];
    assert_int_equal(slc_control_polls(&rank.control, polls), 0);
    most_bytes = SIZE_MAX;
    slc_control_tell(&rank.control);
    char said[8192];
    ssize_t got = read(rank.far, said, sizeof said);
    assert_true(got > 0 && memmem(said, (size_t)got, rank.failure.line, strlen(rank.failure.line)));

    rank_0_close(&rank);
}

/* Another rank's failure keeps its whole line, in which a path may come before the reason: a line of 2000 bytes, and
 * what is put before it. */
static void test_long_line(void **state)
{
    (void)state;
    char line[2001];
    rank_0 rank;
    rank_0_open(&rank);
    snprintf(line, sizeof line, "%01981d: no space is left", 7);
    slc_frame frame = {.kind = SLC_FRAME_FAIL, .status = SLUICE_ERR_IO, .rank = 1, .bytes = strlen(line)};
    assert_int_equal(write(rank.far, &frame, sizeof frame), sizeof frame);
    assert_int_equal(write(rank.far, line, frame.bytes), frame.bytes);
    slc_control_step(&rank.control, slc_clock_ns());
    assert_int_equal(slc_failure_get(&rank.failure), SLUICE_ERR_PEER);
    assert_non_null(strstr(sluice_last_error(), "rank 1 failed: 0"));
    assert_non_null(strstr(sluice_last_error(), line));
    rank_0_close(&rank);
}

/* The failure says which collective the others were in. */
static void test_left(void **state)
{
    (void)state;
    static const struct {
        slc_collect_kind kind;
        const char *said;
    } cases[] = {{SLC_COLLECT_BARRIER, "rank 1 left while others were in a barrier"},
                 {SLC_COLLECT_MEET, "rank 1 left while others were in a call of all ranks"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rank_0 rank;
        rank_0_open(&rank);
        slc_frame frame = {.kind = SLC_FRAME_LEAVE, .rank = 1};
        assert_int_equal(write(rank.far, &frame, sizeof frame), sizeof frame);
        slc_control_step(&rank.control, slc_clock_ns());
        assert_int_equal(slc_failure_get(&rank.failure), SLUICE_OK);
        slc_control_collect(&rank.control, &(slc_collect){.kind = cases[i].kind, .src = "", .bytes = 0});
        assert_int_equal(slc_failure_get(&rank.failure), SLUICE_ERR_PEER);
        assert_string_equal(rank.failure.line, cases[i].said);
        rank_0_close(&rank);
    }
}

/* In a pipeline the line has the stage too, of which replicas are neighbours. */
static void test_lost_stage(void **state)
{
    (void)state;
    slc_failure failure;
    slc_failure_init(&failure);
    slc_control control = {.rank = 0, .size = 6, .failure = &failure, .stages = 3};
    slc_socket link = {.fd = -1, .rank = 3};
    slc_socket_lose(&control, &link, 0);
    assert_int_equal(slc_failure_get(&failure), SLUICE_ERR_PEER);
    assert_string_equal(failure.line, "rank 3 (stage 1 of 3) died: its connection was closed");
    slc_failure_fini(&failure);
}

/* A host that does not answer is told from a rank that closed its connection, whatever the network said of it. */
static void test_lost(void **state)
{
    (void)state;
    static const struct {
        int error;
        const char *said;
    } cases[] = {{ETIMEDOUT, "rank 1 is gone: its host does not answer"},
                 {EHOSTUNREACH, "rank 1 is gone: its host does not answer"},
                 {EHOSTDOWN, "rank 1 is gone: its host does not answer"},
                 {ENETUNREACH, "rank 1 is gone: its host does not answer"},
                 {ENETDOWN, "rank 1 is gone: its host does not answer"},
                 {ECONNRESET, "rank 1 died: its connection was closed"},
                 {0, "rank 1 died: its connection was closed"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        slc_failure failure;
        slc_failure_init(&failure);
        slc_control control = {.rank = 0, .size = 2, .failure = &failure};
        slc_socket link = {.fd = -1, .rank = 1};
        slc_socket_lose(&control, &link, cases[i].error);
        assert_int_equal(slc_failure_get(&failure), SLUICE_ERR_PEER);
        assert_string_equal(failure.line, cases[i].said);
        slc_failure_fini(&failure);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory), cmocka_unit_test(test_left),
                                       cmocka_unit_test(test_lost), cmocka_unit_test(test_lost_stage),
                                       cmocka_unit_test(test_long_line)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
