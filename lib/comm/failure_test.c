/* The first of many failures is kept whole: any thread that sees a failure finds its line and its status, however many
 * threads fail at once. */
#include "lib/comm/failure.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { SETTERS = 3, READERS = 2, ROUNDS = 30 };

typedef struct {
    slc_failure failure;
    pthread_barrier_t begin;
    _Atomic int first; /* how many setters were the first */
    _Atomic int wrong; /* how many readers saw something else than one whole failure */
} setting;

typedef struct {
    setting *all;
    int number;
} setter;

static void *set(void *context)
{
    const setter *own = context;
    pthread_barrier_wait(&own->all->begin);
    own->all->first +=
        slc_failure_set(&own->all->failure, SLUICE_ERR_SYSTEM, SLC_TELL_OWN, "setter %d has failed", own->number);
    return NULL;
}

static void *await(void *context)
{
    setting *all = context;
    pthread_barrier_wait(&all->begin);
    while (!slc_failed(&all->failure)) sched_yield();
    const sluice_status status = slc_failure_get(&all->failure);
    const char *line = sluice_last_error();
    int number = -1, end = 0;
    sscanf(line, "setter %d has failed%n", &number, &end);
    all->wrong += status != SLUICE_ERR_SYSTEM || number < 0 || number >= SETTERS || (size_t)end != strlen(line) ||
                  all->failure.tell != SLC_TELL_OWN;
    return NULL;
}

static void the_first_failure_is_kept_whole(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        setting all = {0};
        setter setters[SETTERS];
        pthread_t threads[SETTERS + READERS];
        slc_failure_init(&all.failure);
        pthread_barrier_init(&all.begin, NULL, SETTERS + READERS);
        for (int i = 0; i < SETTERS + READERS; i++) {
            if (i < SETTERS) setters[i] = (setter){&all, i};
            assert_int_equal(i < SETTERS ? pthread_create(&threads[i], NULL, set, &setters[i])
                                         : pthread_create(&threads[i], NULL, await, &all),
                             0);
        }
        for (int i = 0; i < SETTERS + READERS; i++) pthread_join(threads[i], NULL);
        assert_int_equal(all.first, 1);
        assert_int_equal(all.wrong, 0);
        pthread_barrier_destroy(&all.begin);
        slc_failure_fini(&all.failure);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_failure_is_kept_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
