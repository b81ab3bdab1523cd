/* The table of schedules, with the orders that are a few lines each. sched/pipeline/simulate/pipeline_simulate_test.c
 * covers this file. */
#include "sched/pipeline/program/schedule.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <string.h>

const char *slc_task_kind_name(slc_task_kind kind)
{
    static const char *const names[SLC_TASK_KINDS] = {"forward", "backward", "input gradient", "weight gradient"};
    return names[kind];
}

static void order_gpipe(const slc_pipeline_shape *shape, uint32_t stage, slc_task_list *list)
{
    for (uint32_t m = 0; m < shape->micro_batches; m++) slc_task_append(list, SLC_TASK_FORWARD, stage, m);
    for (uint32_t m = 0; m < shape->micro_batches; m++) slc_task_append(list, SLC_TASK_BACKWARD, stage, m);
}

/* A stage runs as many forwards as there are stages from it on, then a backward and a forward by turns. */
static void order_1f1b(const slc_pipeline_shape *shape, uint32_t stage, slc_task_list *list)
{
    const uint32_t m_end = shape->micro_batches, deep = shape->stages - stage, ahead = deep < m_end ? deep : m_end;
    for (uint32_t m = 0; m < ahead; m++) slc_task_append(list, SLC_TASK_FORWARD, stage, m);
    for (uint32_t m = 0; m < m_end; m++) {
        slc_task_append(list, SLC_TASK_BACKWARD, stage, m);
        if (m + ahead < m_end) slc_task_append(list, SLC_TASK_FORWARD, stage, m + ahead);
    }
}

static void order_interleaved(const slc_pipeline_shape *shape, uint32_t stage, slc_task_list *list)
{
    slc_order_interleaved(shape, stage, false, list);
}

static void order_zero_bubble(const slc_pipeline_shape *shape, uint32_t stage, slc_task_list *list)
{
    slc_order_interleaved(shape, stage, true, list);
}

static uint32_t one_version(const slc_pipeline_shape *shape, uint32_t stage)
{
    (void)shape;
    (void)stage;
    return 1;
}

static uint32_t two_versions(const slc_pipeline_shape *shape, uint32_t stage)
{
    (void)shape;
    (void)stage;
    return 2;
}

static uint32_t version_of_each(const slc_pipeline_shape *shape, uint32_t stage)
{
    return shape->stages - stage;
}

static const slc_pipeline_schedule schedules[] = {
    {.name = "gpipe",
     .doc = "all forwards, then all backwards; keeps every micro-batch",
     .flushes = true,
     .versions = one_version,
     .order = order_gpipe},
    {.name = "1f1b",
     .doc = "a forward and a backward by turns; keeps at most as many micro-batches as there are stages",
     .flushes = true,
     .versions = one_version,
     .order = order_1f1b},
    {.name = "interleaved",
     .doc = "1f1b with several chunks of the layers a stage: less idle time, more messages",
     .chunked = true,
     .flushes = true,
     .versions = one_version,
     .order = order_interleaved},
    {.name = "zero_bubble",
     .doc = "1f1b in which weight gradients fill the idle time",
     .splits = true,
     .flushes = true,
     .versions = one_version,
     .order = order_zero_bubble},
    {.name = "pipedream",
     .doc = "1f1b without a pause between steps and an update after each micro-batch, with older values",
     .updates_each = true,
     .versions = version_of_each,
     .order = order_1f1b},
    {.name = "2bw",
     .doc = "1f1b without a pause between steps; a step computes with the values of the step before the last",
     .versions = two_versions,
     .order = order_1f1b},
};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

const slc_pipeline_schedule *slc_pipeline_schedule_at(size_t index)
{
    return index < SCHEDULES ? &schedules[index] : NULL;
}

const slc_pipeline_schedule *slc_pipeline_schedule_find(const char *name)
{
    for (size_t i = 0; i < SCHEDULES; i++)
        if (!strcmp(schedules[i].name, name)) return &schedules[i];
    return NULL;
}

const char *slc_pipeline_schedule_names(void)
{
    return "gpipe, 1f1b, interleaved, zero_bubble, pipedream, 2bw";
}

bool slc_pipeline_turns_at_once(const slc_pipeline_schedule *schedule, const slc_pipeline_shape *shape)
{
    return shape->chunks == 1 && (schedule->order != order_gpipe || shape->micro_batches == 1);
}

static sluice_status check_interleaved(const slc_pipeline_shape *shape)
{
    const uint32_t p = shape->stages, m = shape->micro_batches;
    if (m < p || m % p == 0) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "%u micro-batches: interleaved runs them in groups of %u, one for each stage; %u and %u work, and "
                     "so does any number with 1f1b",
                     m, p, m / p * p, (m / p + 1) * p);
}

sluice_status slc_pipeline_check(const slc_pipeline_schedule *schedule, const slc_pipeline_shape *shape)
{
    if (!shape->stages || !shape->chunks || !shape->micro_batches)
        return slc_error(SLUICE_ERR_ARGUMENT, "a pipeline has at least 1 stage, 1 chunk a stage and 1 micro-batch");
    if (shape->chunks > SLC_PIPELINE_CHUNKS_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "%u chunks a stage: up to %d work", shape->chunks,
                         SLC_PIPELINE_CHUNKS_MAX);
    if (shape->chunks > 1 && !schedule->chunked)
        return slc_error(SLUICE_ERR_ARGUMENT, "%u chunks a stage: %s has 1; several go with the schedule interleaved",
                         shape->chunks, schedule->name);
    if (schedule->chunked) return check_interleaved(shape);
    if (!schedule->flushes && !schedule->updates_each && shape->micro_batches < shape->stages)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%u micro-batches: with fewer than %u stages %s would need values that are no longer kept; "
                         "%u and more work",
                         shape->micro_batches, shape->stages, schedule->name, shape->stages);
    return SLUICE_OK;
}
