/* Drawn pipelines must come to their end even if a send blocks its stage until it is received, however long anything
 * takes; and programs that are damaged must be refused. */
#include "sched/pipeline/simulate/pipeline_simulate.h"

#include "lib/base/status.h"
#include "tests/support/draw.h"
#include "tests/support/scale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_PIECES = 32, PIPELINES = 10000 };

static void draw_program(uint64_t *seed, slc_pipeline_program *program)
{
    const slc_pipeline_schedule *schedule = slc_pipeline_schedule_at((size_t)draw(seed, 6));
    slc_pipeline_shape shape = {1 + (uint32_t)draw(seed, 8), 1, 1 + (uint32_t)draw(seed, 24)};
    if (schedule->chunked) shape.chunks = 1 + (uint32_t)draw(seed, 4);
    if (schedule->chunked && shape.micro_batches > shape.stages)
        shape.micro_batches = shape.micro_batches / shape.stages * shape.stages;
    if (!strcmp(schedule->name, "2bw") && shape.micro_batches < shape.stages) shape.micro_batches = shape.stages;
    assert_int_equal(slc_pipeline_program_init(schedule, &shape, 1 + (uint32_t)draw(seed, 3), program), SLUICE_OK);
}

static void drawn_pipelines_end_where_sends_block(void **state)
{
    (void)state;
    const uint32_t rounds = test_rounds(test_brief() ? PIPELINES / 20 : PIPELINES);
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t seed = 90000 + round;
        double room[5][MOST_PIECES];
        slc_pipeline_program program;
        slc_pipeline_forecast forecast;
        draw_program(&seed, &program);
        const uint64_t most = draw(&seed, 4) ? 100 : 1;
        for (uint32_t p = 0; p < slc_pipeline_pieces(&program.shape); p++)
            for (int k = 0; k < 5; k++) room[k][p] = (double)draw(&seed, most);
        slc_stage_operation operations[8];
        uint32_t count = 0;
        for (uint32_t k = 0; k < program.shape.stages; k++) {
            const bool after_rows = k + 1 == program.shape.stages && program.shape.stages > 1;
            operations[count++] = (slc_stage_operation){.stage = k,
                                                        .piece = k + (program.shape.chunks - 1) * program.shape.stages,
                                                        .before_end_s = (double)draw(&seed, 20),
                                                        .link_s = (double)draw(&seed, 20),
                                                        .thread_s = (double)draw(&seed, 2),
                                                        .within_s = (double)draw(&seed, 3) - 1,
                                                        .after = SLC_NO_OPERATION,
                                                        .after_rows = after_rows && draw(&seed, 2)};
        }
        const slc_pipeline_times times = {.operations = operations,
                                          .operation_count = draw(&seed, 2) ? count : 0,
                                          .forward_s = room[0],
                                          .input_s = room[1],
                                          .weight_s = room[2],
                                          .forward_message_s = room[3],
                                          .backward_message_s = room[4],
                                          .latency_s = (double)draw(&seed, 3),
                                          .rows_s = program.shape.stages > 1 ? (double)draw(&seed, 3) : 0};
        const slc_pipeline_simulation options = {
            .ahead = draw(&seed, 2) ? 0 : 3, .blocking = true, .delay_s = (double)draw(&seed, 100), .seed = round};
        assert_int_equal(slc_pipeline_program_check(&program), SLUICE_OK);
        const sluice_status status = slc_pipeline_simulate(&program, &times, &options, &forecast);
        if (status)
            fail_msg("pipeline %u: %s, P %u, v %u, M %u, %u steps: %s", (unsigned)round, program.schedule->name,
                     program.shape.stages, program.shape.chunks, program.shape.micro_batches, program.steps,
                     sluice_last_error());
        slc_pipeline_forecast_fini(&forecast);
        slc_pipeline_program_fini(&program);
    }
}

/* Both ends of a channel must list its messages in one order. */
static void both_ends_of_a_channel_agree(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 200; round++) {
        uint64_t seed = 500 + round;
        slc_pipeline_program program;
        draw_program(&seed, &program);
        const uint32_t stages = program.shape.stages, pieces = slc_pipeline_pieces(&program.shape);
        for (uint32_t p = 0; p + 1 < pieces; p++)
            for (int back = 0; back < 2; back++) {
                const slc_task *from = slc_pipeline_tasks(&program, (p + (uint32_t)back) % stages);
                const slc_task *to = slc_pipeline_tasks(&program, (p + 1 - (uint32_t)back) % stages);
                for (uint32_t f = 0, t = 0;; f++, t++) {
                    while (f < program.task_count &&
                           !((from[f].kind == SLC_TASK_FORWARD) == !back && from[f].kind != SLC_TASK_WEIGHT &&
                             from[f].piece == p + (uint32_t)back))
                        f++;
                    while (t < program.task_count &&
                           !((to[t].kind == SLC_TASK_FORWARD) == !back && to[t].kind != SLC_TASK_WEIGHT &&
                             to[t].piece == p + 1 - (uint32_t)back))
                        t++;
                    assert_int_equal(f == program.task_count, t == program.task_count);
                    if (f == program.task_count) break;
                    assert_int_equal(from[f].micro_batch, to[t].micro_batch);
                }
            }
        slc_pipeline_program_fini(&program);
    }
}

/* Damages one task: a message is lost, doubled, or in another order. False: this draw changes nothing. */
static bool damage(slc_pipeline_program *program, uint64_t *seed)
{
    const size_t stage = draw(seed, program->shape.stages) * (size_t)program->task_count;
    slc_task *a = &program->tasks[stage + draw(seed, program->task_count)];
    slc_task *b = &program->tasks[stage + draw(seed, program->task_count)];
    const slc_task kept = *a;
    if (!memcmp(a, b, sizeof *a)) return false;
    switch (draw(seed, 4)) {
    case 0: *a = *b; return true; /* one is lost, another comes twice */
    case 1: a->micro_batch += 1 + (uint32_t)draw(seed, 3); return true;
    case 2: a->piece++; return true;
    default:
        if (a->kind != b->kind || a->piece != b->piece) return false;
        *a = *b;
        *b = kept;
        return true;
    }
}

static void damaged_programs_are_refused(void **state)
{
    (void)state;
    uint32_t damaged = 0;
    for (uint64_t round = 0; damaged < 500; round++) {
        uint64_t seed = 1700 + round;
        slc_pipeline_program program;
        draw_program(&seed, &program);
        if (damage(&program, &seed)) {
            damaged++;
            assert_int_equal(slc_pipeline_program_check(&program), SLUICE_ERR_FORMAT);
        }
        slc_pipeline_program_fini(&program);
    }
}

/* Stages that wait for each other are found by the simulator. */
static void pipelines_that_stand_still_are_told(void **state)
{
    (void)state;
    static const double one[2] = {1, 1};
    const slc_pipeline_shape shape = {2, 1, 2};
    const slc_pipeline_times times = {.forward_s = one, .input_s = one, .weight_s = one};
    slc_pipeline_program program;
    slc_pipeline_forecast forecast;
    assert_int_equal(slc_pipeline_program_init(slc_pipeline_schedule_find("1f1b"), &shape, 1, &program), SLUICE_OK);
    /* The last stage wants both forwards first and the first stage one backward before its second forward. */
    const slc_task first[4] = {
        {SLC_TASK_FORWARD, 0, 0}, {SLC_TASK_BACKWARD, 0, 0}, {SLC_TASK_FORWARD, 0, 1}, {SLC_TASK_BACKWARD, 0, 1}};
    const slc_task last[4] = {
        {SLC_TASK_FORWARD, 1, 0}, {SLC_TASK_FORWARD, 1, 1}, {SLC_TASK_BACKWARD, 1, 0}, {SLC_TASK_BACKWARD, 1, 1}};
    memcpy(program.tasks, first, sizeof first);
    memcpy(program.tasks + 4, last, sizeof last);
    assert_int_equal(slc_pipeline_program_check(&program), SLUICE_OK);
    assert_int_equal(slc_pipeline_simulate(&program, &times, NULL, &forecast), SLUICE_ERR_FORMAT);
    assert_non_null(strstr(sluice_last_error(), "stage 0 waits at backward of micro-batch 0, "
                                                "stage 1 waits at forward of micro-batch 1"));
    slc_pipeline_forecast_fini(&forecast);
    slc_pipeline_program_fini(&program);
}

static void expect_refused(const char *schedule, slc_pipeline_shape shape, const char *words)
{
    assert_int_equal(slc_pipeline_check(slc_pipeline_schedule_find(schedule), &shape), SLUICE_ERR_ARGUMENT);
    if (!strstr(sluice_last_error(), words)) fail_msg("%s", sluice_last_error());
}

static void shapes_that_no_schedule_has_are_refused_with_those_that_work(void **state)
{
    (void)state;
    expect_refused("interleaved", (slc_pipeline_shape){4, 2, 10}, "8 and 12 work");
    expect_refused("1f1b", (slc_pipeline_shape){4, 2, 8}, "interleaved");
    expect_refused("2bw", (slc_pipeline_shape){4, 1, 3}, "4 and more work");
    expect_refused("gpipe", (slc_pipeline_shape){4, 1, 0}, "at least 1");
    assert_int_equal(slc_pipeline_check(slc_pipeline_schedule_find("1f1b"), &(slc_pipeline_shape){4, 1, 1}), SLUICE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_pipelines_end_where_sends_block),
        cmocka_unit_test(both_ends_of_a_channel_agree),
        cmocka_unit_test(damaged_programs_are_refused),
        cmocka_unit_test(pipelines_that_stand_still_are_told),
        cmocka_unit_test(shapes_that_no_schedule_has_are_refused_with_those_that_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
