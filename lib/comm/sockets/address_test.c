/* Rank 0 listens at the right address whatever its name resolves to here, and a rank that cannot connect says why. */
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "tests/support/comm/free_port.h"
#include "lib/comm/sockets/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void check_listener(const char *host, const char *where)
{
    int fd;
    char text[300];
    if (slc_address_listen(host, free_port(), &fd)) fail_msg("%s: %s", host, sluice_last_error());
    struct sockaddr_storage own = {0};
    socklen_t bytes = sizeof own;
    char number[64] = "";
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &bytes), 0);
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)&own;
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)&own;
    inet_ntop(own.ss_family, own.ss_family == AF_INET6 ? (const void *)&six->sin6_addr : (const void *)&four->sin_addr,
              number, sizeof number);
    if (!strstr(where, number)) fail_msg("%s: listens on %s, not one of %s", host, number, where);
    slc_address_describe_listener(fd, text, sizeof text);
    assert_true(*text && *text != '?');
    if (!strcmp(number, "127.0.0.1")) assert_string_equal(text, number);
    close(fd);
}

/* A host's own name is often an entry for loopback in /etc/hosts; and rank 0 need not know its name at all. */
static void a_name_listens_everywhere(void **state)
{
    (void)state;
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    check_listener(name, ":: 0.0.0.0");
    check_listener("no-such-host.invalid", ":: 0.0.0.0");
    check_listener("192.0.2.1", ":: 0.0.0.0");
}

static void loopback_listens_on_loopback(void **state)
{
    (void)state;
    check_listener("127.0.0.1", "127.0.0.1");
    check_listener("127.0.1.1", "127.0.1.1");
    check_listener("localhost", "127.0.0.1 ::1");
    check_listener("LOCALHOST", "127.0.0.1 ::1");
}

static void forms_are_told_apart(void **state)
{
    (void)state;
    static const char *const good[] = {"host", "host.domain", "10.0.0.1", "::1", "fe80::1:2", "2001:db8::7"};
    static const struct {
        const char *host, *advice;
    } bad[] = {{"", "names rank 0's host"},
               {"host:29500", "set MASTER_ADDR=host and MASTER_PORT=29500"},
               {"10.0.0.1:29500", "set MASTER_ADDR=10.0.0.1 and MASTER_PORT=29500"},
               {"tcp://host:1", "without tcp://"},
               {"[::1]", "without brackets"},
               {"[2001:db8::7]:29500", "without brackets"}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_int_equal(slc_address_check(good[i]), SLUICE_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(slc_address_check(bad[i].host), SLUICE_ERR_ARGUMENT);
        if (!strstr(sluice_last_error(), bad[i].advice)) fail_msg("%s: %s", bad[i].host, sluice_last_error());
    }
}

static void an_attempt_says_what_was_answered(void **state)
{
    (void)state;
    slc_attempt attempt;
    int fd, port = free_port();
    const uint64_t deadline_ns = slc_clock_ns() + 5000000000u;
    assert_int_equal(slc_address_connect("127.0.0.1", port, deadline_ns, &attempt, &fd), SLUICE_IN_PROGRESS);
    if (!strstr(attempt.why, "nobody listens at 127.0.0.1")) fail_msg("%s", attempt.why);
    assert_int_equal(slc_address_connect("no-such-host.invalid", port, deadline_ns, &attempt, &fd), SLUICE_IN_PROGRESS);
    if (!strstr(attempt.why, "cannot resolve the name no-such-host.invalid")) fail_msg("%s", attempt.why);
    int listener;
    assert_int_equal(slc_address_listen("127.0.0.1", port, &listener), SLUICE_OK);
    assert_int_equal(slc_address_connect("127.0.0.1", port, deadline_ns, &attempt, &fd), SLUICE_OK);
    close(fd);
    close(listener);
}

static _Atomic int lookups_begun, lookups_ended;
static sem_t resolver_goes_on;

int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **list);

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
    const bool slow = !strcmp(host, "slow.invalid") && !(hints->ai_flags & AI_NUMERICHOST);
    if (!slow) return __real_getaddrinfo(host, service, hints, list);
    lookups_begun++;
    sem_wait(&resolver_goes_on);
    const int error = __real_getaddrinfo("127.0.0.1", service, hints, list);
    lookups_ended++;
    return error;
}

/* A resolver whose name server does not answer takes its time, and the limit holds all the same. */
static void a_slow_resolver_is_not_waited_for(void **state)
{
    (void)state;
    slc_attempt attempt;
    int fd;
    assert_int_equal(sem_init(&resolver_goes_on, 0, 0), 0);
    assert_int_equal(slc_address_connect("slow.invalid", free_port(), slc_clock_ns() + 100000000u, &attempt, &fd),
                     SLUICE_IN_PROGRESS);
    assert_int_equal(lookups_begun, 1);
    assert_int_equal(lookups_ended, 0);
    if (!strstr(attempt.why, "no name server answers")) fail_msg("%s", attempt.why);
    assert_int_equal(sem_post(&resolver_goes_on), 0); /* what it finds now is let go */
    while (!lookups_ended) usleep(1000);
    assert_int_equal(sem_post(&resolver_goes_on), 0);
    assert_int_equal(slc_address_connect("slow.invalid", free_port(), slc_clock_ns() + 20000000000u, &attempt, &fd),
                     SLUICE_IN_PROGRESS);
    if (!strstr(attempt.why, "nobody listens at 127.0.0.1")) fail_msg("%s", attempt.why);
    assert_int_equal(lookups_ended, 2);
}

int main(void)
{
    alarm(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_listens_everywhere),
        cmocka_unit_test(loopback_listens_on_loopback),
        cmocka_unit_test(forms_are_told_apart),
        cmocka_unit_test(an_attempt_says_what_was_answered),
        cmocka_unit_test(a_slow_resolver_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
