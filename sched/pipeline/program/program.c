/* Programs of stages: made by a schedule, counted and checked. sched/pipeline/simulate/pipeline_simulate_test.c covers
 * this file. */
#include "sched/pipeline/program/program.h"

#include "lib/base/status.h"

#include <stdlib.h>

static uint32_t tasks_of_step(const slc_pipeline_schedule *schedule, const slc_pipeline_shape *shape)
{
    return shape->micro_batches * shape->chunks * (schedule->splits ? 3 : 2);
}

/* Writes a stage's tasks for all steps. A schedule that flushes runs the same tasks in each step; any other runs one
 * long order. */
static void write_stage(const slc_pipeline_program *program, uint32_t stage, slc_task *tasks)
{
    const slc_pipeline_schedule *schedule = program->schedule;
    slc_pipeline_shape shape = program->shape;
    if (!schedule->flushes) {
        shape.micro_batches = program->micro_batches;
        schedule->order(&shape, stage, &(slc_task_list){.tasks = tasks});
        return;
    }
    for (uint32_t k = 0; k < program->steps; k++) {
        slc_task_list list = {.tasks = tasks + (size_t)k * tasks_of_step(schedule, &shape)};
        schedule->order(&shape, stage, &list);
        for (uint32_t t = 0; t < list.count; t++) list.tasks[t].micro_batch += k * shape.micro_batches;
    }
}

sluice_status slc_pipeline_program_init(const slc_pipeline_schedule *schedule, const slc_pipeline_shape *shape,
                                        uint32_t steps, slc_pipeline_program *out)
{
    sluice_status status = slc_pipeline_check(schedule, shape);
    if (status) return status;
    *out = (slc_pipeline_program){.schedule = schedule,
                                  .shape = *shape,
                                  .steps = steps,
                                  .micro_batches = steps * shape->micro_batches,
                                  .task_count = steps * tasks_of_step(schedule, shape)};
    out->tasks = calloc((size_t)shape->stages * out->task_count + 1, sizeof *out->tasks);
    if (!out->tasks) return slc_error(SLUICE_ERR_MEMORY, "programs of %u stages", shape->stages);
    for (uint32_t s = 0; s < shape->stages; s++) write_stage(out, s, out->tasks + (size_t)s * out->task_count);
    return SLUICE_OK;
}

void slc_pipeline_program_fini(slc_pipeline_program *program)
{
    free(program->tasks);
    *program = (slc_pipeline_program){0};
}

/* ---- Counting ---- */

static bool ends_hold(const slc_pipeline_program *program, slc_task_kind kind, slc_held_until until)
{
    if (!program->schedule->splits) return kind == SLC_TASK_BACKWARD;
    return kind == (until == SLC_HELD_UNTIL_SENT ? SLC_TASK_INPUT : SLC_TASK_WEIGHT);
}

/* `chunk` UINT32_MAX: all chunks. */
static uint32_t most_held(const slc_pipeline_program *program, uint32_t stage, uint32_t chunk, slc_held_until until)
{
    const slc_task *tasks = slc_pipeline_tasks(program, stage);
    uint32_t held = 0, most = 0;
    for (uint32_t t = 0; t < program->task_count; t++) {
        if (chunk != UINT32_MAX && tasks[t].piece / program->shape.stages != chunk) continue;
        if (tasks[t].kind == SLC_TASK_FORWARD && ++held > most) most = held;
        if (ends_hold(program, tasks[t].kind, until)) held--;
    }
    return most;
}

uint32_t slc_pipeline_held_of_chunk(const slc_pipeline_program *program, uint32_t stage, uint32_t chunk,
                                    slc_held_until until)
{
    return most_held(program, stage, chunk, until);
}

uint32_t slc_pipeline_held(const slc_pipeline_program *program, uint32_t stage, slc_held_until until)
{
    return most_held(program, stage, UINT32_MAX, until);
}

/* ---- Checking ---- */

static sluice_status task_error(const slc_task *task, uint32_t stage, const char *what)
{
    return slc_error(SLUICE_ERR_FORMAT, "stage %u: %s of piece %u, micro-batch %u: %s", stage,
                     slc_task_kind_name(task->kind), task->piece, task->micro_batch, what);
}

/* `done` has a bit for each kind of each piece and micro-batch; `next` is the next micro-batch of each piece and kind.
 */
typedef struct {
    const slc_pipeline_program *program;
    uint8_t *done;
    uint32_t *next;
} checking;

static const char *fault_of(const checking *c, uint32_t stage, const slc_task *task)
{
    const slc_pipeline_program *program = c->program;
    const bool splits = program->schedule->splits, forward = task->kind == SLC_TASK_FORWARD;
    if (task->piece >= slc_pipeline_pieces(&program->shape) || task->piece % program->shape.stages != stage)
        return "the piece is not of this stage";
    if (task->micro_batch >= program->micro_batches) return "there is no such micro-batch";
    if (!forward && splits == (task->kind == SLC_TASK_BACKWARD)) return "the schedule has no such task";
    const uint8_t done = c->done[(size_t)task->piece * program->micro_batches + task->micro_batch];
    if (done >> task->kind & 1) return "it has run already";
    if (!forward && !(done >> SLC_TASK_FORWARD & 1)) return "it comes before its forward";
    if (task->kind == SLC_TASK_WEIGHT && !(done >> SLC_TASK_INPUT & 1)) return "it comes before its input gradient";
    if (task->micro_batch != c->next[(size_t)task->piece * SLC_TASK_KINDS + task->kind])
        return "micro-batches are out of order";
    return NULL;
}

/* Checks that every task runs once and in its turn. If each piece takes micro-batches in ascending order in each
 * direction, both ends of a channel agree. */
static sluice_status check_all(checking *c)
{
    const slc_pipeline_program *program = c->program;
    const uint32_t kinds = program->schedule->splits ? 3 : 2;
    for (uint32_t s = 0; s < program->shape.stages; s++) {
        const slc_task *tasks = slc_pipeline_tasks(program, s);
        for (uint32_t t = 0; t < program->task_count; t++) {
            const char *fault = fault_of(c, s, &tasks[t]);
            if (fault) return task_error(&tasks[t], s, fault);
            c->done[(size_t)tasks[t].piece * program->micro_batches + tasks[t].micro_batch] |=
                (uint8_t)(1u << tasks[t].kind);
            c->next[(size_t)tasks[t].piece * SLC_TASK_KINDS + tasks[t].kind]++;
        }
    }
    for (uint32_t p = 0; p < slc_pipeline_pieces(&program->shape); p++)
        for (uint32_t m = 0; m < program->micro_batches; m++)
            if ((uint32_t)__builtin_popcount(c->done[(size_t)p * program->micro_batches + m]) != kinds)
                return slc_error(SLUICE_ERR_FORMAT, "stage %u: a task of piece %u, micro-batch %u is missing",
                                 p % program->shape.stages, p, m);
    return SLUICE_OK;
}

sluice_status slc_pipeline_program_check(const slc_pipeline_program *program)
{
    const size_t pieces = slc_pipeline_pieces(&program->shape);
    checking c = {.program = program};
    c.done = calloc(pieces * program->micro_batches + 1, sizeof *c.done);
    c.next = calloc(pieces * SLC_TASK_KINDS + 1, sizeof *c.next);
    sluice_status status = c.done && c.next ? check_all(&c) : slc_error(SLUICE_ERR_MEMORY, "programs of stages");
    free(c.next);
    free(c.done);
    return status;
}
