/* Runs of 0/1 Adam: replicas in long runs, resumed runs, hard inputs. */
#include "tests/support/optim/zero_one_job.h"
#include "lib/optim/onebit/zero_one_adam.h"

/* ---- Long runs ---- */

/* Draws gradients towards a point that differs on every rank, with noise, so that only the average of all gradients
 * gets there. */
static void pull_gradients(job *j, uint64_t step, bool averaged)
{
    for (uint32_t r = 0; r < j->mode.ranks; r++)
        for (uint32_t t = 0; t < TENSORS; t++) {
            uint64_t seed = 1000 * step + 10 * r + t;
            float *g = j->gradient[r][t] = test_floats(j->shapes[t].count);
            for (uint64_t i = 0; i < j->shapes[t].count; i++) {
                float apart = (r % 2 ? 0.3f : -0.3f) * (float)(i % 3);
                g[i] = j->value[r][t][i] - 0.2f + apart + test_uniform(&seed, -0.1f, 0.1f);
                if (i % 11 == 10) g[i] = 0;
            }
        }
    if (averaged) average_gradients(j);
}

static bool replicas_are_equal(const job *j)
{
    bool equal = true;
    for (uint32_t r = 1; r < j->mode.ranks; r++)
        for (uint32_t t = 0; t < TENSORS; t++) {
            const uint64_t bytes = j->shapes[t].count * sizeof(float);
            equal = equal && !memcmp(j->value[r][t], j->value[0][t], bytes) &&
                    !memcmp(j->state[r][0][t], j->state[0][0][t], bytes) &&
                    !memcmp(j->state[r][1][t], j->state[0][1][t], bytes) &&
                    !memcmp(j->rounded[r][t], j->rounded[0][t], bytes / 2);
        }
    return equal;
}

static slc_step_mode pulled_step(job *j, uint64_t step, bool now)
{
    slc_step_mode how = begin_step(j, step, now);
    pull_gradients(j, step, how == SLC_STEP_AVERAGE);
    assert_int_equal(finish_step(j, step, how), UINT32_MAX);
    free_gradients(j);
    return how;
}

static double distance(const job *j)
{
    double squares = 0;
    for (uint64_t i = 0; i < j->mode.count; i++) {
        double apart = (double)j->value[0][0][i] - 0.2;
        if (i % 11 != 10) squares += apart * apart;
    }
    return sqrt(squares / (double)j->mode.count);
}

static void replicas_are_equal_after_every_exchange(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++) {
        const mode c = {.ranks = ranks,
                        .count = 517,
                        .onebit = true,
                        .weight_decay = 1e-3,
                        .freeze = 300,
                        .scaler = 40,
                        .local_scaler = 150,
                        .clipper = 16};
        job j;
        zero_one_job_init(&j, &c);
        double at_first = distance(&j);
        uint64_t steps[3] = {0};
        for (uint64_t step = 1; step <= 1000; step++) {
            slc_step_mode how = pulled_step(&j, step, step % 101 == 0 || step == 1000);
            assert_int_equal(replicas_are_equal(&j), how != SLC_STEP_LOCAL);
            steps[how]++;
        }
        assert_true(steps[SLC_STEP_AVERAGE] > 100 && steps[SLC_STEP_EXCHANGE] > 300 && steps[SLC_STEP_LOCAL] > 300);
        assert_true(distance(&j) < 0.5 * at_first);
        zero_one_job_fini(&j);
    }
}

/* ---- Resumed ---- */

static void save_and_load(job *j)
{
    double saved[SLC_PROGRESS_MAX] = {0}, again[SLC_PROGRESS_MAX] = {0};
    assert_int_equal(j->optimizer.progress_count, 9);
    j->optimizer.progress_save(j->optimizer.context, UINT32_MAX, saved);
    j->optimizer.destroy(j->optimizer.context);
    zero_one_job_optimizer(j);
    assert_int_equal(j->optimizer.progress_load(j->optimizer.context, UINT32_MAX, saved), SLUICE_OK);
    j->optimizer.progress_save(j->optimizer.context, UINT32_MAX, again);
    assert_memory_equal(saved, again, sizeof saved);
    for (int i = 0; i < 9; i++) {
        assert_non_null(j->optimizer.progress_name[i]);
        double bad[SLC_PROGRESS_MAX];
        memcpy(bad, saved, sizeof bad);
        bad[i] = i % 2 ? NAN : -1;
        assert_int_equal(j->optimizer.progress_load(j->optimizer.context, UINT32_MAX, bad), SLUICE_ERR_ARGUMENT);
    }
}

static void a_resumed_run_is_the_same(void **state)
{
    (void)state;
    float *first = NULL;
    for (uint64_t every = 0; every < 4; every++) { /* never, after each step, each second, each third */
        const mode c = {.ranks = 3,
                        .count = 299,
                        .onebit = true,
                        .weight_decay = 0.01,
                        .freeze = 14,
                        .scaler = 3,
                        .local_scaler = 5,
                        .clipper = 4};
        job j;
        zero_one_job_init(&j, &c);
        for (uint64_t step = 1; step <= 50; step++) {
            pulled_step(&j, step, false);
            if (every && step % every == 0) save_and_load(&j);
        }
        test_same_bits("value", c.count, j.value[2][0], &first);
        zero_one_job_fini(&j);
    }
    test_release(first);
}

/* ---- Hard inputs ---- */

static bool all_finite(const job *j)
{
    for (uint32_t r = 0; r < j->mode.ranks; r++)
        for (uint32_t t = 0; t < TENSORS; t++)
            for (uint64_t i = 0; i < j->shapes[t].count; i++)
                if (!isfinite(j->value[r][t][i]) || !isfinite(j->state[r][0][t][i]) || !isfinite(j->state[r][1][t][i]))
                    return false;
    return true;
}

/* A bad step on one rank must be reported with its tensor and change no replica, except in local steps; it is then
 * repeated. */
static void what_is_not_finite_is_skipped(void **state)
{
    (void)state;
    const float values[] = {INFINITY, -INFINITY, NAN};
    for (int compat = 0; compat < 2; compat++) {
        const mode c = {.ranks = 3,
                        .count = 299,
                        .onebit = true,
                        .compat = compat,
                        .mask = true,
                        .weight_decay = 0.01,
                        .freeze = 14,
                        .scaler = 3,
                        .local_scaler = 5,
                        .clipper = 4};
        job j;
        zero_one_job_init(&j, &c);
        for (uint64_t step = 1; step <= 50; step++) {
            slc_step_mode how = begin_step(&j, step, false);
            if (how != SLC_STEP_AVERAGE) {
                pull_gradients(&j, step, false);
                const uint32_t tensor = step % 2 ? 2 : 0;
                j.gradient[1][tensor][0] = values[step % 3];
                assert_int_equal(finish_step(&j, step, how), tensor);
                free_gradients(&j);
                assert_true(all_finite(&j));
                if (how == SLC_STEP_LOCAL) { /* as in a run that stops: the other moves of a local step stay */
                    end_step(&j, step);
                    continue;
                }
            }
            how = pulled_step(&j, step, false);
            assert_true(all_finite(&j));
            if (how != SLC_STEP_LOCAL && !compat) assert_true(replicas_are_equal(&j));
        }
        zero_one_job_fini(&j);
    }
}

/* One rank's packets say that it failed; the results must say so to all ranks, whose tensors must stay as they are. */
static void a_failed_exchange_changes_nothing(void **state)
{
    (void)state;
    const mode c = {
        .ranks = 2, .count = 100, .onebit = true, .freeze = 5, .scaler = 2, .local_scaler = 3, .clipper = 2};
    job j;
    zero_one_job_init(&j, &c);
    for (uint64_t step = 1; step <= 12; step++) {
        slc_step_mode how = begin_step(&j, step, false);
        if (how == SLC_STEP_EXCHANGE) {
            uint32_t bad = UINT32_MAX;
            float *value = test_copy(c.count, j.value[1][0]), *momentum = test_copy(c.count, j.state[1][0][0]);
            pull_gradients(&j, step, false);
            j.gradient[0][0][99] = INFINITY;
            each_rank(&j, step, j.optimizer.compress, &bad);
            assert_int_equal(bad, 0);
            test_exchange_run(&j.exchange, &j.stream);
            bad = UINT32_MAX;
            unit_of_rank u;
            unit_of_rank_init(&u, &j, step, 1);
            assert_int_equal(j.optimizer.apply(j.optimizer.context, &u.unit, &bad), SLUICE_OK);
            assert_int_equal(bad, 0);
            assert_memory_equal(value, j.value[1][0], c.count * sizeof(float));
            assert_memory_equal(momentum, j.state[1][0][0], c.count * sizeof(float));
            unit_of_rank_fini(&u), free_gradients(&j), test_release(value), test_release(momentum);
            break;
        }
        pulled_step(&j, step, false);
    }
    zero_one_job_fini(&j);
}

static void nothing_comes_of_nothing(void **state)
{
    (void)state;
    const mode c = {.ranks = 2, .count = 77, .onebit = true, .freeze = 6, .scaler = 2, .local_scaler = 3, .clipper = 4};
    job j;
    zero_one_job_init(&j, &c);
    float *value = test_copy(c.count, j.value[0][0]);
    for (uint64_t step = 1; step <= 30; step++) {
        slc_step_mode how = begin_step(&j, step, false);
        for (uint32_t r = 0; r < c.ranks; r++)
            for (uint32_t t = 0; t < TENSORS; t++) j.gradient[r][t] = test_zeros(j.shapes[t].count * sizeof(float));
        assert_int_equal(finish_step(&j, step, how), UINT32_MAX);
        free_gradients(&j);
        for (uint32_t r = 0; r < c.ranks; r++) assert_memory_equal(value, j.value[r][0], c.count * sizeof(float));
    }
    test_release(value);
    zero_one_job_fini(&j);
}

static void refuses_what_cannot_be(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    slc_compressed out;
    const slc_compressed_settings good = {
        .adamw = {0.9, 0.999, 1e-8, 0},
        .onebit = {.var_freeze_step = 5, .var_update_scaler = 2, .local_step_scaler = 2, .local_step_clipper = 2}};
    slc_compressed_settings bad[] = {good, good, good, good, good};
    bad[0].onebit.var_freeze_step = bad[1].onebit.var_update_scaler = bad[2].onebit.local_step_scaler =
        bad[3].onebit.local_step_clipper = 0;
    bad[4].adamw.beta1 = 1;
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++)
        assert_int_equal(slc_zero_one_adam_create(&bad[i], &stream, &out), SLUICE_ERR_ARGUMENT);
    slc_stream_destroy(&stream);

    const mode c = {.ranks = 2, .count = 77, .onebit = true, .freeze = 6, .scaler = 2, .local_scaler = 3, .clipper = 4};
    job j;
    zero_one_job_init(&j, &c);
    for (uint64_t step = 1; step <= 12; step++) {
        slc_step_mode how = begin_step(&j, step, false);
        uint32_t not_finite = UINT32_MAX;
        unit_of_rank u;
        pull_gradients(&j, step, false);
        unit_of_rank_init(&u, &j, step, 0);
        void *context = j.optimizer.context;
        if (how != SLC_STEP_EXCHANGE) {
            assert_int_equal(j.optimizer.compress(context, &u.unit, &not_finite), SLUICE_ERR_ORDER);
            assert_int_equal(j.optimizer.apply(context, &u.unit, &not_finite), SLUICE_ERR_ORDER);
        } else {
            u.tensors[0].count--;
            assert_int_equal(j.optimizer.compress(context, &u.unit, &not_finite), SLUICE_ERR_ARGUMENT);
            assert_int_equal(j.optimizer.apply(context, &u.unit, &not_finite), SLUICE_ERR_ARGUMENT);
        }
        if (how != SLC_STEP_LOCAL) assert_int_equal(j.optimizer.local(context, &u.unit, &not_finite), SLUICE_ERR_ORDER);
        unit_of_rank_fini(&u), free_gradients(&j);
        pulled_step(&j, step, false);
    }
    zero_one_job_fini(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_are_equal_after_every_exchange),
        cmocka_unit_test(a_resumed_run_is_the_same),
        cmocka_unit_test(what_is_not_finite_is_skipped),
        cmocka_unit_test(a_failed_exchange_changes_nothing),
        cmocka_unit_test(nothing_comes_of_nothing),
        cmocka_unit_test(refuses_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
