/* Interleaved 1F1B and, with one chunk and split backwards, ZB1P: the orders of Megatron-LM's schedules.py and of
 * torch.distributed.pipelining. Forward number k of a stage, and backward number k, are of a chunk and a micro-batch
 * that k decides: groups of P micro-batches go through chunk after chunk.
 * sched/pipeline/simulate/pipeline_simulate_test.c covers this file. */
#include "sched/pipeline/program/schedule.h"

/* Returns how many micro-batches go through a chunk before the next chunk has its turn. */
static uint32_t group_of(const slc_pipeline_shape *shape)
{
    return shape->micro_batches < shape->stages ? shape->micro_batches : shape->stages;
}

/* Number `k` among all forwards of a stage; the micro-batches are whole groups (slc_pipeline_check), or there is one
 * chunk, for which it does not matter. */
static void turn(const slc_pipeline_shape *shape, uint32_t k, uint32_t *chunk, uint32_t *micro_batch)
{
    const uint32_t group = group_of(shape), round = k / (group * shape->chunks);
    const uint32_t within = k % (group * shape->chunks);
    *chunk = within / group;
    *micro_batch = round * group + within % group;
}

static void append_backward(const slc_pipeline_shape *shape, uint32_t stage, uint32_t k, slc_task_kind kind,
                            slc_task_list *list)
{
    uint32_t chunk, micro_batch;
    turn(shape, k, &chunk, &micro_batch);
    slc_task_append(list, kind, (shape->chunks - 1 - chunk) * shape->stages + stage, micro_batch);
}

static void append_forward(const slc_pipeline_shape *shape, uint32_t stage, uint32_t k, slc_task_list *list)
{
    uint32_t chunk, micro_batch;
    turn(shape, k, &chunk, &micro_batch);
    slc_task_append(list, SLC_TASK_FORWARD, chunk * shape->stages + stage, micro_batch);
}

void slc_order_interleaved(const slc_pipeline_shape *shape, uint32_t stage, bool splits, slc_task_list *list)
{
    const uint32_t total = shape->chunks * shape->micro_batches;
    const uint32_t behind = shape->stages - 1 - stage;
    const uint32_t deep = (shape->chunks - 1) * group_of(shape) + (splits ? 1 : 2) * behind;
    const uint32_t ahead = deep < total ? deep : total;
    uint32_t weights = 0;
    for (uint32_t k = 0; k < ahead; k++) append_forward(shape, stage, k, list);
    for (uint32_t k = 0; k < total; k++) {
        if (k + ahead < total) append_forward(shape, stage, k + ahead, list);
        append_backward(shape, stage, k, splits ? SLC_TASK_INPUT : SLC_TASK_BACKWARD, list);
        if (splits && k >= stage) append_backward(shape, stage, weights++, SLC_TASK_WEIGHT, list);
    }
    while (splits && weights < total) append_backward(shape, stage, weights++, SLC_TASK_WEIGHT, list);
}
