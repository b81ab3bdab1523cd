/* No wake-up may be lost: threads hand a count to and fro far more often than is needed to hit a window of a few
 * instructions, and sleep in between. A thread that passes a gate sees what was written before the post: the ball is a
 * plain word, which the thread sanitizer watches. A watchdog ends a test that hangs. */
#include "lib/base/gate.h"

#include "lib/base/clock.h"
#include "tests/support/scale.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { WAITERS = 4, HANG_S = 60 };

typedef struct {
    slc_gate ping, pong;
    uint32_t first, rounds;
    uint64_t pause_ns; /* longer than a waiter spins, so that it sleeps */
    uint32_t ball;     /* how often it was hit; belongs to whoever has passed a gate last */
} table_tennis;

static void pause_for(uint64_t ns)
{
    uint64_t end = slc_clock_ns() + ns;
    while (ns && slc_clock_ns() < end) sched_yield();
}

static void *answer(void *context)
{
    table_tennis *game = context;
    for (uint32_t i = 1; i <= game->rounds; i++) {
        if (!slc_gate_wait(&game->ping, game->first + i, UINT64_MAX)) return game;
        if (game->ball++ != 2 * i - 1) return game;
        if (i % 16 == 0) pause_for(game->pause_ns);
        slc_gate_post(&game->pong, game->first + i);
    }
    return NULL;
}

static void play(uint32_t first, uint32_t rounds, uint64_t pause_ns)
{
    table_tennis game = {.first = first, .rounds = rounds, .pause_ns = pause_ns};
    slc_gate_init(&game.ping);
    slc_gate_init(&game.pong);
    atomic_store(&game.ping.value, first);
    atomic_store(&game.pong.value, first);
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, answer, &game), 0);
    for (uint32_t i = 1; i <= rounds; i++) {
        game.ball++;
        slc_gate_post(&game.ping, first + i);
        assert_true(slc_gate_wait(&game.pong, first + i, UINT64_MAX));
        assert_int_equal(game.ball, 2 * i);
        if (i % 16 == 8) pause_for(pause_ns);
    }
    void *failed;
    pthread_join(other, &failed);
    assert_null(failed);
}

static void no_wake_up_is_lost(void **state)
{
    (void)state;
    play(0, test_rounds(20000), 0);
    play(0, test_rounds(20000), 30000);
}

static void counts_wrap_around(void **state)
{
    (void)state;
    play(UINT32_MAX - 500, 1000, 0);
}

typedef struct {
    slc_gate *gate;
    uint32_t until;
} follower;

static void *follow(void *context)
{
    follower *own = context;
    for (uint32_t i = 1; i <= own->until; i++)
        if (!slc_gate_wait(own->gate, i, UINT64_MAX) || !slc_gate_passed(own->gate, i)) return own;
    return NULL;
}

static void one_post_wakes_all_who_wait(void **state)
{
    (void)state;
    slc_gate gate;
    slc_gate_init(&gate);
    uint32_t rounds = test_rounds(2000);
    pthread_t threads[WAITERS];
    follower followers[WAITERS];
    for (int i = 0; i < WAITERS; i++) {
        followers[i] = (follower){&gate, rounds};
        assert_int_equal(pthread_create(&threads[i], NULL, follow, &followers[i]), 0);
    }
    for (uint32_t i = 1; i <= rounds; i++) {
        slc_gate_post(&gate, i);
        if (i % 64 == 0) pause_for(50000);
    }
    for (int i = 0; i < WAITERS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(atomic_load(&gate.waiters), 0);
}

static void a_post_never_lowers(void **state)
{
    (void)state;
    slc_gate gate;
    slc_gate_init(&gate);
    slc_gate_post(&gate, 7);
    slc_gate_post(&gate, 3);
    assert_true(slc_gate_passed(&gate, 7));
    assert_false(slc_gate_passed(&gate, 8));
}

static void waiting_ends_at_its_limit(void **state)
{
    (void)state;
    slc_gate gate;
    slc_gate_init(&gate);
    uint64_t begin = slc_clock_ns();
    assert_false(slc_gate_wait(&gate, 1, 2000000));
    assert_true(slc_clock_ns() - begin >= 2000000);
    assert_false(slc_gate_wait(&gate, 1, 0));
    slc_gate_post(&gate, 1);
    assert_true(slc_gate_wait(&gate, 1, 0));
}

int main(void)
{
    alarm(HANG_S);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_post_never_lowers),         cmocka_unit_test(waiting_ends_at_its_limit),
        cmocka_unit_test(no_wake_up_is_lost),          cmocka_unit_test(counts_wrap_around),
        cmocka_unit_test(one_post_wakes_all_who_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
