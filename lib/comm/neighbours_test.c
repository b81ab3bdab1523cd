/* Meeting and attaching: a rank must bring the key that went through the rendezvous, and a control page and segments
 * that cannot shrink. Strangers on the local socket are turned away, and the ranks meet all the same. */
#include "lib/base/clock.h"
#include "tests/support/comm/forked_ranks.h"
#include "lib/comm/neighbours.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <cmocka.h>

typedef enum { GOOD, WRONG_KEY, SHORT_PAGE, UNSEALED_PAGE, NO_MEMFD_PAGE, SHORT_SEGMENT, UNSEALED_SEGMENT } fault;

typedef struct {
    slc_neighbours neighbours[2];
    slc_neighbour_card card[2];
    slc_device *device;
    slc_failure failure;
} pair;

static uint64_t in_seconds(double seconds)
{
    return slc_clock_ns() + (uint64_t)(seconds * 1e9);
}

static int file_of(size_t bytes, bool memfd, int seals)
{
    int fd = memfd ? memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING) : open("/tmp", O_TMPFILE | O_RDWR, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    if (seals) assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void open_pair(pair *p)
{
    *p = (pair){0};
    slc_failure_init(&p->failure);
    assert_int_equal(slc_device_open("cpu", &p->device), 0);
    for (int rank = 0; rank < 2; rank++) {
        sluice_world_config config = test_config(rank, 2, 29999);
        assert_int_equal(slc_neighbours_open(&p->neighbours[rank], &config, &p->card[rank]), 0);
    }
}

static void close_pair(pair *p)
{
    for (int rank = 0; rank < 2; rank++) slc_neighbours_close(&p->neighbours[rank]);
    slc_device_close(p->device);
    slc_failure_fini(&p->failure);
}

/* Rank 1 hands its page over, with the fault that the test wants. */
static void connect_pair(pair *p, fault what)
{
    slc_neighbour_card seen = p->card[0];
    if (what == WRONG_KEY) seen.key[1] ^= 1;
    const slc_neighbour_card *cards[2] = {&seen, &p->card[1]}, *own[2] = {&p->card[0], &p->card[1]};
    uint8_t reached[2];
    int *page = &p->neighbours[1].page_fd;
    if (what == SHORT_PAGE || what == UNSEALED_PAGE || what == NO_MEMFD_PAGE) {
        close(*page);
        *page = file_of(what == SHORT_PAGE ? 100 : SLC_PAGE_BYTES, what != NO_MEMFD_PAGE,
                        what == SHORT_PAGE ? F_SEAL_SHRINK : 0);
    }
    assert_int_equal(slc_neighbours_connect(&p->neighbours[0], own, reached), 0);
    assert_int_equal(slc_neighbours_connect(&p->neighbours[1], cards, reached), 0);
    assert_int_equal(reached[0], 1);
}

static sluice_status meet(pair *p, int rank, double seconds)
{
    static const uint8_t none[2] = {0, 0}, zero[2] = {1, 0};
    const uint8_t *const reached[2] = {none, zero};
    return slc_neighbours_meet(&p->neighbours[rank], reached, in_seconds(seconds));
}

static void expect_error(sluice_status status, sluice_status expected, const char *part)
{
    if (status != expected || !strstr(sluice_last_error(), part)) print_error("%s\n", sluice_last_error());
    assert_int_equal(status, expected);
    assert_non_null(strstr(sluice_last_error(), part));
}

static void pages_are_checked(void **state)
{
    (void)state;
    static const struct {
        fault what;
        sluice_status status;
        const char *part;
    } cases[] = {
        {WRONG_KEY, SLUICE_ERR_TIMEOUT, "in time"}, /* it is turned away, and the rank never comes */
        {SHORT_PAGE, SLUICE_ERR_FORMAT, "too short"},
        {UNSEALED_PAGE, SLUICE_ERR_FORMAT, "not sealed"},
        {NO_MEMFD_PAGE, SLUICE_ERR_FORMAT, "not sealed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pair p;
        open_pair(&p);
        connect_pair(&p, cases[i].what);
        expect_error(meet(&p, 0, 1), cases[i].status, cases[i].part);
        close_pair(&p);
    }
}

static void segments_are_checked(void **state)
{
    (void)state;
    enum { BYTES = 1 << 16 };
    for (fault what = SHORT_SEGMENT; what <= UNSEALED_SEGMENT; what++) {
        pair p;
        slc_segment own;
        open_pair(&p);
        connect_pair(&p, GOOD);
        assert_int_equal(meet(&p, 0, 20), 0);
        assert_int_equal(meet(&p, 1, 20), 0);
        assert_int_equal(slc_segment_create(p.device, BYTES, &own), 0);
        slc_segment odd = {
            .base = own.base,
            .bytes = BYTES,
            .fd = file_of(what == SHORT_SEGMENT ? BYTES / 2 : BYTES, true, what == SHORT_SEGMENT ? F_SEAL_SHRINK : 0),
            .device = p.device};
        /* Rank 1 sends its segment, and cannot take rank 0's yet. */
        assert_int_equal(slc_neighbours_attach(&p.neighbours[1], &odd, &p.failure, in_seconds(0.1)),
                         SLUICE_ERR_TIMEOUT);
        expect_error(slc_neighbours_attach(&p.neighbours[0], &own, &p.failure, in_seconds(20)), SLUICE_ERR_ARGUMENT,
                     what == SHORT_SEGMENT ? "bytes, not" : "not sealed");
        close(odd.fd);
        slc_segment_destroy(&own);
        close_pair(&p);
    }
}

static void memory_that_cannot_be_shared_is_refused(void **state)
{
    (void)state;
    pair p;
    open_pair(&p);
    connect_pair(&p, GOOD);
    assert_int_equal(meet(&p, 0, 20), 0);
    assert_int_equal(meet(&p, 1, 20), 0);
    const slc_segment own = {.bytes = 4096, .fd = -1, .device = p.device};
    expect_error(slc_neighbours_attach(&p.neighbours[0], &own, &p.failure, in_seconds(20)), SLUICE_ERR_UNSUPPORTED,
                 "cannot map this device's memory");
    close_pair(&p);
}

/* ---- Strangers ---- */

static int knock(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
                     0);
    return fd;
}

static void strangers_are_turned_away(void **state)
{
    (void)state;
    static const char nonsense[64] = "GET / HTTP/1.1";
    const size_t lengths[] = {1, 16, 32, 64};
    pair p;
    int fds[6], count = 0;
    open_pair(&p);
    for (size_t i = 0; i < 4; i++) {
        fds[count] = knock(p.card[0].name);
        assert_int_equal(send(fds[count++], nonsense, lengths[i], 0), (ssize_t)lengths[i]);
    }
    close(knock(p.card[0].name));
    connect_pair(&p, GOOD);
    fds[count++] = knock(p.card[0].name); /* silent, and next in the queue */
    assert_int_equal(meet(&p, 0, 20), 0);
    assert_int_equal(meet(&p, 1, 20), 0);
    assert_true(slc_is_neighbour(&p.neighbours[0], 1) && slc_is_neighbour(&p.neighbours[1], 0));
    for (int i = 0; i < count; i++) close(fds[i]);
    close_pair(&p);
}

static bool lies; /* this process takes itself for one of the other's user */

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);

uid_t __wrap_geteuid(void)
{
    return lies ? 0 : __real_geteuid();
}

static void another_user_is_turned_away(void **state)
{
    (void)state;
    if (geteuid()) {
        puts("SKIP: another user on the local socket: only root can become one");
        skip();
    }
    pair p;
    open_pair(&p);
    fflush(NULL);
    pid_t child = fork();
    if (!child) { /* it even has the right key */
        const slc_neighbour_card *cards[2] = {&p.card[0], &p.card[1]};
        uint8_t reached[2];
        if (setuid(65534)) _exit(1);
        lies = true;
        (void)slc_neighbours_connect(&p.neighbours[1], cards, reached); /* it may be turned away already */
        alarm(60);
        pause();
    }
    expect_error(meet(&p, 0, 1), SLUICE_ERR_TIMEOUT, "in time");
    int status;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(exit_code(status), 128 + SIGKILL); /* it held its connection until then */
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_checked),
        cmocka_unit_test(segments_are_checked),
        cmocka_unit_test(memory_that_cannot_be_shared_is_refused),
        cmocka_unit_test(strangers_are_turned_away),
        cmocka_unit_test(another_user_is_turned_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
