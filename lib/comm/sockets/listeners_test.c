/* The listeners that are new in a process are found, and whoever asks learns whether connections reach one of them. */
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/comm/sockets/listeners.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static int listen_on(const char *address, int backlog, slc_listener *out)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t bytes = sizeof *out;
    memset(out, 0, sizeof *out);
    out->four.sin_family = AF_INET;
    assert_int_equal(inet_pton(AF_INET, address, &out->four.sin_addr), 1);
    assert_int_equal(bind(fd, &out->any, sizeof out->four), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, &out->any, &bytes), 0);
    return fd;
}

static uint64_t in_ms(uint64_t ms)
{
    return slc_clock_ns() + ms * 1000000u;
}

static void expect_failure(const slc_listener *one, const char *part)
{
    assert_int_equal(slc_listeners_probe(one, 1, in_ms(0)), SLUICE_ERR_PEER);
    if (!strstr(sluice_last_error(), part)) fail_msg("\"%s\" should say \"%s\"", sluice_last_error(), part);
}

static void new_listeners_are_found(void **state)
{
    (void)state;
    slc_listener before[SLC_LISTENERS_MOST], after[SLC_LISTENERS_MOST], old, own, all;
    int local[2], fds[3];
    fds[0] = listen_on("127.0.0.1", 1, &old);
    const size_t known = slc_listeners_find(NULL, 0, before);
    assert_true(known >= 1);
    fds[1] = listen_on("127.0.0.1", 1, &own);
    fds[2] = listen_on("0.0.0.0", 1, &all);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, local), 0);
    assert_int_equal(slc_listeners_find(before, known, after), 1);
    assert_memory_equal(after, &own, sizeof own);
    assert_int_equal(slc_listeners_probe(after, 1, in_ms(10000)), SLUICE_OK);
    for (int i = 0; i < 3; i++) close(fds[i]);
    close(local[0]);
    close(local[1]);
}

static void what_does_not_answer_is_named(void **state)
{
    (void)state;
    enum { MOST = 8 };
    slc_listener both[2], full;
    char port[32];
    const int fd = listen_on("127.0.0.1", 1, &both[1]);
    close(listen_on("127.0.0.1", 1, &both[0])); /* nobody listens there any more */
    snprintf(port, sizeof port, "port %d of 127.0.0.1", ntohs(both[0].four.sin_port));
    expect_failure(both, port);
    expect_failure(both, "refuses the connection");
    assert_int_equal(slc_listeners_probe(both, 2, in_ms(10000)), SLUICE_OK);
    assert_int_equal(slc_listeners_probe(both, 0, in_ms(0)), SLUICE_OK);
    close(fd);

    /* The kernel drops what would open a connection to a listener whose queue is full. */
    const int busy = listen_on("127.0.0.1", 0, &full);
    int waiting[MOST];
    for (int i = 0; i < MOST; i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(waiting[i], &full.any, sizeof full.four);
    }
    expect_failure(&full, "lets nothing through");
    for (int i = 0; i < MOST; i++) close(waiting[i]);
    close(busy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_listeners_are_found),
        cmocka_unit_test(what_does_not_answer_is_named),
    };
    alarm(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
