/* On equal stages the simulator must meet the closed forms of schedule.h to the last bit; on drawn ones, a recursion
 * that has no events; and the orders must hold as many micro-batches and versions as the table says. */
#include "sched/pipeline/simulate/pipeline_simulate.h"

#include "tests/support/draw.h"
#include "tests/support/scale.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_PIECES = 32 };

typedef struct {
    double forward_s, input_s, weight_s;
} costs;

/* Multiples of 4, so that a share of four chunks is exact. */
static const costs cost_cases[] = {{4, 4, 4},    {4, 8, 4},   {8, 4, 4},  {4, 4, 12},  {12, 20, 8}, {8, 28, 36},
                                   {40, 52, 28}, {20, 4, 40}, {4, 20, 4}, {16, 12, 8}, {28, 4, 4},  {4, 4, 28}};

static const uint32_t stage_cases[] = {2, 4, 8};

static slc_pipeline_times equal_stages(const slc_pipeline_shape *shape, costs cost, double room[3][MOST_PIECES])
{
    for (uint32_t p = 0; p < slc_pipeline_pieces(shape); p++) {
        room[0][p] = cost.forward_s / shape->chunks;
        room[1][p] = cost.input_s / shape->chunks;
        room[2][p] = cost.weight_s / shape->chunks;
    }
    return (slc_pipeline_times){.forward_s = room[0], .input_s = room[1], .weight_s = room[2]};
}

static const slc_pipeline_schedule *schedule_named(const char *name)
{
    const slc_pipeline_schedule *schedule = slc_pipeline_schedule_find(name);
    assert_non_null(schedule);
    return schedule;
}

static double idle_of(const char *name, const slc_pipeline_shape *shape, costs c)
{
    const double turns = shape->stages - 1.0, whole_s = c.forward_s + c.input_s + c.weight_s;
    if (!strcmp(name, "interleaved")) return turns * whole_s / shape->chunks;
    if (!strcmp(name, "zero_bubble"))
        return turns * fmax(fmax(c.forward_s, c.input_s), c.forward_s + c.input_s - c.weight_s);
    return schedule_named(name)->flushes ? turns * whole_s : 0;
}

static void expect_closed_form(const char *name, const slc_pipeline_shape *shape, costs cost, uint32_t steps)
{
    double room[3][MOST_PIECES];
    slc_pipeline_program program;
    slc_pipeline_forecast forecast;
    const slc_pipeline_times times = equal_stages(shape, cost, room);
    const double compute_s = shape->micro_batches * (cost.forward_s + cost.input_s + cost.weight_s);
    assert_int_equal(slc_pipeline_program_init(schedule_named(name), shape, steps, &program), SLUICE_OK);
    assert_int_equal(slc_pipeline_program_check(&program), SLUICE_OK);
    assert_int_equal(slc_pipeline_simulate(&program, &times, NULL, &forecast), SLUICE_OK);
    const double expected_s = compute_s + idle_of(name, shape, cost);
    if (forecast.step_s != expected_s)
        fail_msg("%s, P %u, v %u, M %u, F %g I %g W %g, %u steps: %g seconds, not %g", name, shape->stages,
                 shape->chunks, shape->micro_batches, cost.forward_s, cost.input_s, cost.weight_s, steps,
                 forecast.step_s, expected_s);
    for (uint32_t s = 0; s < shape->stages; s++) {
        assert_true(forecast.stages[s].compute_s == compute_s);
        assert_true(forecast.stages[s].idle_s == idle_of(name, shape, cost));
    }
    slc_pipeline_forecast_fini(&forecast);
    slc_pipeline_program_fini(&program);
}

/* Calls `expect` for P in 2, 4, 8, M from 2P to 8P, and v in 1, 2, 4 if the schedule has chunks. */
static void each_shape(void (*expect)(const char *name, const slc_pipeline_shape *shape))
{
    const slc_pipeline_schedule *schedule;
    for (size_t n = 0; (schedule = slc_pipeline_schedule_at(n)); n++)
        for (size_t i = 0; i < 3; i++)
            for (uint32_t v = 1; v <= (schedule->chunked ? 4 : 1); v *= 2)
                for (uint32_t m = 2 * stage_cases[i]; m <= 8 * stage_cases[i]; m++) {
                    const slc_pipeline_shape shape = {stage_cases[i], v, m};
                    if (test_brief() && m % 3) continue;
                    if (schedule->chunked && m % stage_cases[i]) continue;
                    expect(schedule->name, &shape);
                }
}

static void expect_times(const char *name, const slc_pipeline_shape *shape)
{
    const bool flushes = schedule_named(name)->flushes;
    const uint32_t steady = slc_pipeline_steady_steps(schedule_named(name), shape);
    for (size_t c = 0; c < sizeof cost_cases / sizeof *cost_cases; c++) {
        if (flushes) expect_closed_form(name, shape, cost_cases[c], 1);
        if (!flushes || c % 4 == 0) expect_closed_form(name, shape, cost_cases[c], steady);
    }
}

static void equal_stages_meet_the_closed_forms(void **state)
{
    (void)state;
    each_shape(expect_times);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void expect_held(const char *name, const slc_pipeline_shape *shape)
{
    const slc_pipeline_schedule *schedule = schedule_named(name);
    slc_pipeline_program program;
    const uint32_t p = shape->stages, v = shape->chunks, m = shape->micro_batches;
    assert_int_equal(slc_pipeline_program_init(schedule, shape, 2, &program), SLUICE_OK);
    for (uint32_t s = 0; s < p; s++) {
        uint32_t expected = least(m, p - s);
        if (!strcmp(name, "gpipe")) expected = m;
        if (schedule->chunked) expected = least(v * m, (v - 1) * p + 2 * (p - 1 - s) + 1);
        assert_int_equal(slc_pipeline_held(&program, s, SLC_HELD_UNTIL_SENT), expected);
        const uint32_t done = slc_pipeline_held(&program, s, SLC_HELD_UNTIL_DONE);
        assert_int_equal(done, schedule->splits ? least(m, p) : expected);
        uint32_t chunks = 0;
        for (uint32_t c = 0; c < v; c++) chunks += slc_pipeline_held_of_chunk(&program, s, c, SLC_HELD_UNTIL_SENT);
        assert_true(chunks >= expected && chunks <= v * m);
    }
    slc_pipeline_program_fini(&program);
}

static void stages_hold_as_many_micro_batches_as_the_table_says(void **state)
{
    (void)state;
    each_shape(expect_held);
}

/* Counts the updates that a stage has made before each forward: which values pipedream reads, how many of them are
 * kept, and that 2bw's are there in time. */
static void older_values_are_those_that_the_schedules_promise(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 8; p++)
        for (uint32_t m = p; m <= 3 * p; m++)
            for (uint32_t s = 0; s < p; s++) {
                const slc_pipeline_shape shape = {p, 1, m};
                slc_pipeline_program program;
                assert_int_equal(slc_pipeline_program_init(schedule_named("2bw"), &shape, 6, &program), SLUICE_OK);
                const slc_task *tasks = slc_pipeline_tasks(&program, s);
                uint32_t backwards = 0, most = 0;
                for (uint32_t t = 0; t < program.task_count; t++) {
                    const uint32_t number = tasks[t].micro_batch, behind = p - 1 - s;
                    backwards += tasks[t].kind == SLC_TASK_BACKWARD;
                    if (tasks[t].kind == SLC_TASK_FORWARD) {
                        assert_int_equal(backwards, number > behind ? number - behind : 0);
                        assert_true(number / m < 2 || backwards / m >= number / m - 1);
                        most = number - backwards + 1 > most ? number - backwards + 1 : most;
                    }
                }
                assert_int_equal(most, schedule_named("pipedream")->versions(&shape, s));
                assert_int_equal(schedule_named("2bw")->versions(&shape, s), 2);
                slc_pipeline_program_fini(&program);
            }
}

/* ---- Against a recursion ---- */

typedef struct {
    const slc_pipeline_program *program;
    const slc_pipeline_times *times;
    double *end_s, *sent_s;       /* [stages * tasks] of the task, of its message; below 0: not known yet */
    uint32_t *forward, *backward; /* [pieces * micro_batches] number of the task at its stage */
} recursion;

static double sent_by(recursion *r, uint32_t stage, uint32_t number);

static double ended_by(recursion *r, uint32_t stage, uint32_t number)
{
    double *end_s = &r->end_s[(size_t)stage * r->program->task_count + number];
    if (*end_s >= 0) return *end_s;
    const slc_task *task = &slc_pipeline_tasks(r->program, stage)[number];
    const uint32_t stages = r->program->shape.stages, pieces = slc_pipeline_pieces(&r->program->shape);
    const size_t cell = (size_t)task->piece * r->program->micro_batches + task->micro_batch;
    double start_s = number ? ended_by(r, stage, number - 1) : 0;
    if (task->kind == SLC_TASK_FORWARD && task->piece)
        start_s = fmax(start_s, sent_by(r, (task->piece - 1) % stages, r->forward[cell - r->program->micro_batches]));
    if ((task->kind == SLC_TASK_BACKWARD || task->kind == SLC_TASK_INPUT) && task->piece + 1 < pieces)
        start_s = fmax(start_s, sent_by(r, (task->piece + 1) % stages, r->backward[cell + r->program->micro_batches]));
    const double f = r->times->forward_s[task->piece], i = r->times->input_s[task->piece],
                 w = r->times->weight_s[task->piece];
    return *end_s = start_s + (task->kind == SLC_TASK_FORWARD  ? f
                               : task->kind == SLC_TASK_INPUT  ? i
                               : task->kind == SLC_TASK_WEIGHT ? w
                                                               : i + w);
}

/* Returns when a task's message has arrived: messages leave a stage one after another, in the order of its tasks. */
static double sent_by(recursion *r, uint32_t stage, uint32_t number)
{
    double left_s = 0;
    for (uint32_t t = 0; t <= number; t++) {
        const slc_task *task = &slc_pipeline_tasks(r->program, stage)[t];
        const bool forward = task->kind == SLC_TASK_FORWARD;
        if (task->kind == SLC_TASK_WEIGHT) continue;
        if (forward ? task->piece + 1 == slc_pipeline_pieces(&r->program->shape) : !task->piece) continue;
        double *sent_s = &r->sent_s[(size_t)stage * r->program->task_count + t];
        if (*sent_s < 0)
            *sent_s = fmax(left_s, ended_by(r, stage, t)) + (forward ? r->times->forward_message_s[task->piece]
                                                                     : r->times->backward_message_s[task->piece - 1]);
        left_s = *sent_s;
    }
    return left_s + r->times->latency_s;
}

static void expect_recursion(const slc_pipeline_program *program, const slc_pipeline_times *times)
{
    const size_t cells = (size_t)program->shape.stages * program->task_count;
    const size_t places = (size_t)slc_pipeline_pieces(&program->shape) * program->micro_batches;
    recursion r = {.program = program,
                   .times = times,
                   .end_s = malloc(cells * sizeof(double)),
                   .sent_s = malloc(cells * sizeof(double)),
                   .forward = calloc(places, sizeof(uint32_t)),
                   .backward = calloc(places, sizeof(uint32_t))};
    assert_true(r.end_s && r.sent_s && r.forward && r.backward);
    for (size_t c = 0; c < cells; c++) r.end_s[c] = r.sent_s[c] = -1;
    for (uint32_t s = 0; s < program->shape.stages; s++)
        for (uint32_t t = 0; t < program->task_count; t++) {
            const slc_task *task = &slc_pipeline_tasks(program, s)[t];
            const size_t cell = (size_t)task->piece * program->micro_batches + task->micro_batch;
            if (task->kind == SLC_TASK_FORWARD) r.forward[cell] = t;
            if (task->kind == SLC_TASK_BACKWARD || task->kind == SLC_TASK_INPUT) r.backward[cell] = t;
        }
    slc_pipeline_forecast forecast;
    const slc_pipeline_simulation all_posted = {.ahead = UINT32_MAX, .sends = UINT32_MAX};
    assert_int_equal(slc_pipeline_simulate(program, times, &all_posted, &forecast), SLUICE_OK);
    for (uint32_t s = 0; s < program->shape.stages; s++)
        for (uint32_t t = 0; t < program->task_count; t++)
            assert_true(fabs(forecast.tasks[(size_t)s * program->task_count + t].end_s - ended_by(&r, s, t)) < 1e-9);
    slc_pipeline_forecast_fini(&forecast);
    free(r.end_s);
    free(r.sent_s);
    free(r.forward);
    free(r.backward);
}

static void drawn_stages_take_as_long_as_a_recursion_says(void **state)
{
    (void)state;
    const uint32_t rounds = test_rounds(test_brief() ? 30 : 300);
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t seed = 7000 + round;
        double room[5][MOST_PIECES];
        const slc_pipeline_schedule *schedule = slc_pipeline_schedule_at((size_t)draw(&seed, 6));
        slc_pipeline_shape shape = {2 + (uint32_t)draw(&seed, 5), 1, 0};
        if (schedule->chunked) shape.chunks = 1 + (uint32_t)draw(&seed, 4);
        shape.micro_batches = shape.stages * (1 + (uint32_t)draw(&seed, 4));
        for (uint32_t p = 0; p < slc_pipeline_pieces(&shape); p++)
            for (int k = 0; k < 5; k++) room[k][p] = (double)draw(&seed, 1000) / (k < 3 ? 100 : 500);
        const slc_pipeline_times times = {room[0], room[1], room[2], room[3], room[4], .latency_s = 0.125};
        slc_pipeline_program program;
        assert_int_equal(slc_pipeline_program_init(schedule, &shape, 1 + (uint32_t)draw(&seed, 2), &program),
                         SLUICE_OK);
        expect_recursion(&program, &times);
        slc_pipeline_program_fini(&program);
    }
}

/* ---- By hand ---- */

/* Two stages of one micro-batch a step. */
static slc_pipeline_forecast simulate_times(const slc_pipeline_times *times, uint32_t steps,
                                            const slc_pipeline_simulation *options)
{
    const slc_pipeline_shape shape = {2, 1, 1};
    slc_pipeline_program program;
    slc_pipeline_forecast forecast;
    assert_int_equal(slc_pipeline_program_init(schedule_named("1f1b"), &shape, steps, &program), SLUICE_OK);
    assert_int_equal(slc_pipeline_simulate(&program, times, options, &forecast), SLUICE_OK);
    slc_pipeline_program_fini(&program);
    return forecast;
}

/* Returns a forecast's step, and frees the forecast. */
static double step_of(slc_pipeline_forecast forecast)
{
    const double step_s = forecast.step_s;
    slc_pipeline_forecast_fini(&forecast);
    return step_s;
}

/* Two stages, one micro-batch a step, forward 1, backward 2: the stage's own operations must hide in idle time, hold
 * the next forward up, and share the egress with messages. */
static slc_pipeline_forecast simulate_two(const slc_stage_operation *operations, uint32_t count, double message_s,
                                          double rows_s, uint32_t steps, const slc_pipeline_simulation *options)
{
    static const double one[2] = {1, 1};
    const double messages[1] = {message_s};
    const slc_pipeline_times times = {
        one, one, one, messages, messages, .rows_s = rows_s, .operations = operations, .operation_count = count};
    return simulate_times(&times, steps, options);
}

static double step_of_two(const slc_stage_operation *operations, uint32_t count, double message_s, double rows_s,
                          uint32_t steps)
{
    return step_of(simulate_two(operations, count, message_s, rows_s, steps, NULL));
}

static void operations_hide_in_idle_time_or_hold_the_next_step_up(void **state)
{
    (void)state;
    const uint32_t none = SLC_NO_OPERATION;
    assert_true(step_of_two(NULL, 0, 0, 0, 1) == 6);
    assert_true(step_of_two(NULL, 0, 0, 0, 4) == 6);
    /* The last stage is idle for 3 seconds after its backward: an operation of 3 hides there, one of 4 does not. */
    slc_stage_operation last[] = {{.stage = 1, .piece = 1, .link_s = 3, .after = none}};
    assert_true(step_of_two(last, 1, 0, 0, 4) == 6);
    last[0].link_s = 4;
    assert_true(step_of_two(last, 1, 0, 0, 4) == 7);
    last[0].within_s = 1; /* needed only where the forward ends */
    assert_true(step_of_two(last, 1, 0, 0, 4) == 6);
    last[0].within_s = -1;
    assert_true(step_of_two(last, 1, 0, 0, 4) == 6);
    assert_true(step_of_two(last, 1, 0, 0, 1) == 8);
    /* The first stage has no idle time after its backward; half of its operation is ready before that ends. */
    slc_stage_operation first[] = {{.stage = 0, .piece = 0, .before_end_s = 1, .link_s = 2, .after = none},
                                   {.stage = 0, .piece = 0, .thread_s = 1, .after = 0}};
    assert_true(step_of_two(first, 2, 0, 0, 1) == 8);
    assert_true(step_of_two(first, 2, 0, 0, 4) == 8);
    /* The gradient waits at the egress for the stage's own operation. */
    slc_stage_operation busy[] = {
        {.stage = 1, .piece = 1, .before_end_s = 1, .link_s = 3, .after = none, .within_s = -1}};
    assert_true(step_of_two(busy, 1, 0.5, 0, 1) == 1 + 0.5 + 1 + 1 + 3 + 0.5 + 2);
}

/* The forward of the last stage's second step waits inside for an operation that takes long, and then runs on for its
 * time and what was drawn for it. */
static void a_forward_that_waits_keeps_its_delay(void **state)
{
    (void)state;
    const slc_stage_operation late[] = {{.stage = 1, .piece = 1, .link_s = 20, .after = SLC_NO_OPERATION}};
    for (uint64_t seed = 1; seed < 20; seed++) {
        const slc_pipeline_simulation delayed = {.delay_s = 0.5, .seed = seed};
        slc_pipeline_forecast f = simulate_two(late, 1, 0, 0, 2, &delayed);
        double over_s = 0;
        for (uint32_t t = f.transfer_count; t-- > 0;)
            if (f.transfers[t].kind == SLC_TRANSFER_OPERATION) over_s = f.transfers[t].end_s; /* of the first step */
        const slc_task_time *second = &f.tasks[4 + 2];
        assert_true(second->start_s < over_s);
        assert_true(second->end_s > over_s + 1 && second->end_s < over_s + 1.5);
        slc_pipeline_forecast_fini(&f);
    }
}

static void an_agreement_waits_for_all_stages(void **state)
{
    (void)state;
    const slc_stage_operation operations[] = {
        {.stage = 0, .piece = 0, .link_s = 0.25, .after = SLC_NO_OPERATION, .agrees = true},
        {.stage = 0, .piece = 0, .thread_s = 0.5, .after = 0},
        {.stage = 1, .piece = 1, .link_s = 0.25, .after = SLC_NO_OPERATION, .agrees = true},
        {.stage = 1, .piece = 1, .thread_s = 4, .after = 2, .within_s = 0}};
    assert_true(step_of_two(operations, 4, 0, 0, 1) == 6.25 + 4);
    assert_true(step_of_two(operations, 2, 0, 0, 4) == 6.75);
    assert_true(step_of_two(operations, 4, 0, 0, 4) == 6.25 + 4 + 1 + 2 + 2 - 6);
}

static void rows_go_to_the_first_stage_and_their_gradients_come_back(void **state)
{
    (void)state;
    /* The table's update waits for the gradients, the next step's rows for the update. */
    const slc_stage_operation update[] = {
        {.stage = 1, .piece = 1, .thread_s = 2, .after = SLC_NO_OPERATION, .after_rows = true}};
    assert_true(step_of_two(NULL, 0, 0, 0.5, 1) == 0.5 + 6 + 0.5);
    assert_true(step_of_two(update, 1, 0, 0.5, 1) == 0.5 + 6 + 0.5 + 2);
    assert_true(step_of_two(update, 1, 0, 0.5, 4) == 0.5 + 6 + 0.5 + 2);
}

/* Two stages of one micro-batch a step, whose gathers are of half a second each at least. */
static slc_pipeline_forecast simulate_gathers(const slc_stage_gather *gathers, uint32_t count,
                                              const slc_stage_operation *operations, uint32_t operation_count,
                                              uint32_t steps)
{
    static const double one[2] = {1, 1}, last[2] = {0.5, 1};
    const slc_pipeline_times times = {.forward_s = one,
                                      .input_s = one,
                                      .weight_s = one,
                                      .operations = operations,
                                      .operation_count = operation_count,
                                      .gathers = gathers,
                                      .gather_count = count,
                                      .forward_last_s = last,
                                      .backward_last_s = last};
    return simulate_times(&times, steps, NULL);
}

static double step_with_gathers(const slc_stage_gather *gathers, uint32_t count)
{
    return step_of(simulate_gathers(gathers, count, NULL, 0, 1));
}

static void gathers_come_a_slot_ahead_or_hold_the_task_up(void **state)
{
    (void)state;
    const uint32_t none = SLC_NO_OPERATION;
    /* Without gathers a step takes 1 + 1 + 2 + 2. The second slot of the first forward begins at 0.5: its gather runs
     * beside the first slot, and is there in time if it takes no longer than that. */
    slc_stage_gather second[] = {{.piece = 0, .at_s = 0.5, .ahead_s = 0, .link_s = 0.5, .after = none}};
    assert_true(step_with_gathers(second, 1) == 6);
    second[0].link_s = 0.75;
    assert_true(step_with_gathers(second, 1) == 6.25);
    /* The first slot's gather has nothing beside it at the begin; in the last stage it is asked for at once and comes
     * while that stage waits for the first. */
    const slc_stage_gather first[] = {{.piece = 0, .at_s = 0, .ahead_s = -1, .link_s = 0.75, .after = none}};
    assert_true(step_with_gathers(first, 1) == 6.75);
    const slc_stage_gather other[] = {{.piece = 1, .at_s = 0, .ahead_s = -1, .link_s = 0.75, .after = none}};
    assert_true(step_with_gathers(other, 1) == 6);
    /* A backward's first slot is asked for when the forward's last one begins, half a second before its end; the stage
     * is idle for longer than that. In the last stage, whose forward is one slot of the whole second, 1.5 are 0.5 late.
     */
    slc_stage_gather back[] = {{.piece = 0, .backward = true, .at_s = 0, .ahead_s = -1, .link_s = 0.5, .after = none}};
    assert_true(step_with_gathers(back, 1) == 6);
    back[0].link_s = 0.75; /* then the activation waits for the egress */
    assert_true(step_with_gathers(back, 1) == 6.25);
    const slc_stage_gather turn[] = {
        {.piece = 1, .backward = true, .at_s = 0, .ahead_s = -1, .link_s = 1.5, .after = none}};
    assert_true(step_with_gathers(turn, 1) == 6.5);
    /* Two gathers of one slot share the egress. */
    const slc_stage_gather both[] = {{.piece = 0, .at_s = 0.5, .ahead_s = 0, .link_s = 0.5, .after = none},
                                     {.piece = 0, .at_s = 0.5, .ahead_s = 0, .link_s = 0.5, .after = none}};
    assert_true(step_with_gathers(both, 2) == 6.5);
}

/* A step gathers what has been updated at the end of the one before; and reductions become ready inside of a task that
 * stops for gathers. */
static void gathers_follow_updates(void **state)
{
    (void)state;
    const slc_stage_operation update[] = {
        {.stage = 0, .piece = 0, .thread_s = 2, .within_s = -1, .after = SLC_NO_OPERATION}};
    const slc_stage_gather gather[] = {{.piece = 0, .at_s = 0, .ahead_s = -1, .link_s = 0.5, .after = 0}};
    slc_pipeline_forecast f = simulate_gathers(gather, 1, update, 1, 4);
    assert_true(f.step_s == 6 + 2 + 0.5);
    assert_true(f.stages[0].exposed_s == 2.5);
    slc_pipeline_forecast_fini(&f);
    const slc_stage_operation early[] = {
        {.stage = 0, .piece = 0, .before_end_s = 1.5, .link_s = 0.25, .within_s = -1, .after = SLC_NO_OPERATION}};
    const slc_stage_gather stop[] = {
        {.piece = 0, .backward = true, .at_s = 1, .ahead_s = 0, .link_s = 1.5, .after = SLC_NO_OPERATION}};
    f = simulate_gathers(stop, 1, early, 1, 1);
    assert_true(f.step_s == 6.5);
    for (uint32_t t = 0; t < f.transfer_count; t++)
        if (f.transfers[t].kind == SLC_TRANSFER_OPERATION)
            assert_true(f.transfers[t].start_s == 5.5); /* ready at 4.5, when the gather has the egress */
    slc_pipeline_forecast_fini(&f);
}

static void schedules_are_found_by_name(void **state)
{
    (void)state;
    assert_null(slc_pipeline_schedule_find("2f2b"));
    for (size_t n = 0; slc_pipeline_schedule_at(n); n++) {
        const char *name = slc_pipeline_schedule_at(n)->name;
        assert_ptr_equal(slc_pipeline_schedule_find(name), slc_pipeline_schedule_at(n));
        assert_non_null(strstr(slc_pipeline_schedule_names(), name));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_are_found_by_name),
        cmocka_unit_test(equal_stages_meet_the_closed_forms),
        cmocka_unit_test(stages_hold_as_many_micro_batches_as_the_table_says),
        cmocka_unit_test(older_values_are_those_that_the_schedules_promise),
        cmocka_unit_test(drawn_stages_take_as_long_as_a_recursion_says),
        cmocka_unit_test(operations_hide_in_idle_time_or_hold_the_next_step_up),
        cmocka_unit_test(a_forward_that_waits_keeps_its_delay),
        cmocka_unit_test(an_agreement_waits_for_all_stages),
        cmocka_unit_test(gathers_come_a_slot_ahead_or_hold_the_task_up),
        cmocka_unit_test(gathers_follow_updates),
        cmocka_unit_test(rows_go_to_the_first_stage_and_their_gradients_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
