/* The bytes that TCP connections carry are counted at both ends, through the sets that watch them, and nothing else is.
 */
#include "lib/comm/sockets/traffic.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

enum { BYTES = 5000 };

static void watch(int set, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
}

static void carried_bytes_are_counted(void **state)
{
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), sender = socket(AF_INET, SOCK_STREAM, 0), local[2];
    int outer = epoll_create1(0), inner = epoll_create1(0);
    char data[BYTES] = {0};
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(connect(sender, (struct sockaddr *)&address, length), 0);
    int receiver = accept(listener, NULL, NULL);
    assert_true(receiver >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, local), 0);
    assert_int_equal(slc_traffic_read(&outer, 1).connections, 0);
    watch(outer, inner);
    watch(inner, receiver);
    watch(inner, local[0]);
    watch(inner, listener);

    const slc_traffic before = slc_traffic_read(&outer, 1);
    assert_int_equal(before.connections, 1);
    assert_int_equal(send(local[1], data, sizeof data, 0), sizeof data);
    assert_int_equal(slc_traffic_read(&outer, 1).bytes, before.bytes);
    assert_int_equal(send(sender, data, sizeof data, 0), sizeof data);
    assert_int_equal(recv(receiver, data, sizeof data, MSG_WAITALL), sizeof data);
    assert_int_equal(slc_traffic_read(&outer, 1).bytes, before.bytes + sizeof data);
    watch(outer, sender);
    slc_traffic both = slc_traffic_read(&outer, 1);
    assert_int_equal(both.connections, 2);
    while (both.bytes < before.bytes + 2 * sizeof data) { /* an acknowledgement may be delayed */
        usleep(1000);
        both = slc_traffic_read(&outer, 1);
    }
    const int fds[] = {outer, inner, receiver, sender, listener, local[0], local[1]};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) close(fds[i]);
}

int main(void)
{
    alarm(60);
    const struct CMUnitTest tests[] = {cmocka_unit_test(carried_bytes_are_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
