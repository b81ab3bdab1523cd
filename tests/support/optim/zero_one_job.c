#include "tests/support/optim/zero_one_job.h"

#include "lib/optim/onebit/zero_one_adam.h"

/* ---- The optimizer's run ---- */

void zero_one_job_optimizer(job *j)
{
    const mode *c = &j->mode;
    const slc_compressed_settings settings = {
        .adamw = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = c->weight_decay},
        .onebit.var_freeze_step = c->freeze,
        .onebit.var_update_scaler = c->scaler,
        .onebit.local_step_scaler = c->local_scaler,
        .onebit.local_step_clipper = c->clipper,
        .onebit.compat = c->compat,
        .onebit.compat_mask = c->mask};
    const slc_compressed_parameter parameters[TENSORS] = {{.count = c->count}, {.count = 0}, {.count = 1}};
    assert_int_equal(slc_zero_one_adam_create(&settings, &j->stream, &j->optimizer), SLUICE_OK);
    assert_int_equal(j->optimizer.commit(j->optimizer.context, c->ranks, TENSORS, parameters), SLUICE_OK);
}

void zero_one_job_init(job *j, const mode *c)
{
    *j = (job){.mode = *c, .stream = test_stream(1)};
    zero_one_job_optimizer(j);
    for (uint32_t i = 0; i < TENSORS; i++)
        j->shapes[i] = (slc_compress_shape){.count = i == 0 ? c->count : i / 2, .ranks = c->ranks};
    test_exchange_init(&j->exchange, TENSORS, j->shapes);
    for (uint32_t r = 0; r < c->ranks; r++)
        for (uint32_t i = 0; i < TENSORS; i++) {
            uint64_t count = j->shapes[i].count;
            j->value[r][i] = test_uniform_floats(count, -1, 1, 7 + i);
            j->rounded[r][i] = test_zeros(count * 2);
            for (int a = 0; a < 2; a++) {
                j->state[r][a][i] = test_zeros(count * sizeof(float));
                j->local[r][a][i] = test_floats(count); /* its first content must not matter */
                memset(j->local[r][a][i], 0xff, count * sizeof(float));
            }
        }
}

void zero_one_job_fini(job *j)
{
    for (uint32_t r = 0; r < j->mode.ranks; r++)
        for (uint32_t i = 0; i < TENSORS; i++) {
            test_release(j->value[r][i]), test_release(j->rounded[r][i]);
            for (int a = 0; a < 2; a++) test_release(j->state[r][a][i]), test_release(j->local[r][a][i]);
        }
    test_exchange_fini(&j->exchange);
    j->optimizer.destroy(j->optimizer.context);
    slc_stream_destroy(&j->stream);
}

double rate_at(uint64_t step)
{
    return step % 37 == 0 ? 0 : 1e-3 * (1 + 0.5 * sin((double)step));
}

void unit_of_rank_init(unit_of_rank *u, job *j, uint64_t step, uint32_t rank)
{
    for (uint32_t i = 0; i < TENSORS; i++) {
        u->gradients[i] = test_typed(j->mode.gradient_dtype, j->shapes[i].count, j->gradient[rank][i]);
        u->tensors[i] = (sluice_update){.value = j->value[rank][i],
                                        .gradient = u->gradients[i],
                                        .gradient_dtype = j->mode.gradient_dtype,
                                        .rounded = j->rounded[rank][i],
                                        .state = {j->state[rank][0][i], j->state[rank][1][i]},
                                        .count = j->shapes[i].count,
                                        .step = step,
                                        .learning_rate = rate_at(step),
                                        .gradient_factor = 1,
                                        .no_decay = i == 2,
                                        .parameter = i};
    }
    u->unit = (slc_onebit_unit){.tensor_count = TENSORS,
                                .tensors = u->tensors,
                                .local = {j->local[rank][0], j->local[rank][1]},
                                .group = &j->exchange.group,
                                .workers = j->exchange.worker[rank],
                                .packets = j->exchange.packets[rank],
                                .results = j->exchange.results};
}

void unit_of_rank_fini(unit_of_rank *u)
{
    for (uint32_t i = 0; i < TENSORS; i++) test_release(u->gradients[i]);
}

void each_rank(job *j, uint64_t step, sluice_status (*run)(void *, const slc_onebit_unit *, uint32_t *), uint32_t *bad)
{
    uint32_t *found = test_bytes(sizeof *found);
    *found = *bad;
    for (uint32_t r = 0; r < j->mode.ranks; r++) {
        unit_of_rank u;
        unit_of_rank_init(&u, j, step, r);
        assert_int_equal(run(j->optimizer.context, &u.unit, found), SLUICE_OK);
        unit_of_rank_fini(&u);
    }
    *bad = *found;
    test_release(found);
}

static void update_all(job *j, uint64_t step)
{
    for (uint32_t r = 0; r < j->mode.ranks; r++) {
        unit_of_rank u;
        unit_of_rank_init(&u, j, step, r);
        for (uint32_t i = 0; i < TENSORS; i++)
            assert_int_equal(j->optimizer.optimizer.update(&u.tensors[i], j->optimizer.optimizer.context), SLUICE_OK);
        unit_of_rank_fini(&u);
    }
}

void end_step(job *j, uint64_t step)
{
    const double *const norms[SLUICE_OPTIMIZER_STATES_MAX] = {0};
    assert_int_equal(j->optimizer.wants_norms(j->optimizer.context, step), 0);
    j->resets = j->optimizer.end_step(j->optimizer.context, step, NULL, norms) & SLC_RESET_ERRORS;
}

slc_step_mode begin_step(job *j, uint64_t step, bool now)
{
    for (uint32_t r = 0; j->resets && r < j->mode.ranks; r++) {
        memset(j->exchange.worker_memory[r], 0, slc_compress_group_worker_bytes(&j->exchange.group));
        memset(j->exchange.server_memory[r], 0, slc_compress_group_server_bytes(&j->exchange.group));
    }
    j->resets = false;
    return j->optimizer.begin_step(j->optimizer.context, step, rate_at(step), now, NULL);
}

uint32_t finish_step(job *j, uint64_t step, slc_step_mode how)
{
    uint32_t bad = UINT32_MAX;
    if (!j->mode.onebit || how == SLC_STEP_AVERAGE) {
        update_all(j, step);
    } else if (how == SLC_STEP_LOCAL) {
        each_rank(j, step, j->optimizer.local, &bad);
    } else {
        each_rank(j, step, j->optimizer.compress, &bad);
        if (bad != UINT32_MAX) return bad;
        test_exchange_run(&j->exchange, &j->stream);
        each_rank(j, step, j->optimizer.apply, &bad);
    }
    if (bad == UINT32_MAX) end_step(j, step);
    return bad;
}

/* ---- Gradients ---- */

void average_gradients(job *j)
{
    for (uint32_t t = 0; t < TENSORS; t++)
        for (uint64_t i = 0; i < j->shapes[t].count; i++) {
            float sum = 0;
            for (uint32_t r = 0; r < j->mode.ranks; r++) sum += j->gradient[r][t][i];
            for (uint32_t r = 0; r < j->mode.ranks; r++) j->gradient[r][t][i] = sum / (float)j->mode.ranks;
        }
}

void free_gradients(job *j)
{
    for (uint32_t r = 0; r < j->mode.ranks; r++)
        for (uint32_t t = 0; t < TENSORS; t++) test_release(j->gradient[r][t]);
}
