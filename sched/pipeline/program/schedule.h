/* Pipelines on paper: the tasks of each stage, in the order in which it runs them. P stages hold v chunks each of the
 * layers: piece c P + s is chunk c of stage s. M micro-batches a step go through all pieces forward and come back.
 * F, I and W are the forward, input-gradient and weight-gradient time of a stage's share of a micro-batch, B = I + W.
 *
 * schedule      idle time a step               micro-batches held at s                     versions of values
 * gpipe         (P-1)(F+B)                     M                                           1
 * 1f1b          (P-1)(F+B)                     min(M, P-s)                                 1
 * interleaved   (P-1)(F+B)/v                   ((v-1)P + 2(P-1-s) + 1)/v                   1
 * zero_bubble   (P-1) max(F, I, F+I-W)         min(M, P-s) until I                         1
 * pipedream     0 in the steady state          P-s                                         P-s
 * 2bw           0 in the steady state          P-s                                         2
 *
 * These hold for equal stages whose messages take no time. Sources: GPipe (Huang et al. 2019); PipeDream and its flush,
 * 1F1B (Narayanan et al. 2019); 2BW (Narayanan et al. 2021, "Memory-efficient pipeline-parallel DNN training");
 * interleaved (Narayanan et al. 2021, "Efficient large-scale language model training on GPU clusters"); ZB1P, the
 * zero-bubble schedule of as much memory as 1F1B (Qi et al. 2023), with the weight gradients s micro-batches late as
 * torch.distributed.pipelining has them. In all of them a piece's backwards run in the order of micro-batches, and so
 * do its weight gradients, so that sums over micro-batches have one order. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    SLC_TASK_FORWARD,
    SLC_TASK_BACKWARD, /* INPUT and WEIGHT in one */
    SLC_TASK_INPUT,    /* the gradient of a piece's input, which the piece before it waits for */
    SLC_TASK_WEIGHT,   /* the gradients of its parameters, which no other piece waits for */
    SLC_TASK_KINDS
} slc_task_kind;

const char *slc_task_kind_name(slc_task_kind kind); /* "forward", "backward", "input gradient", "weight gradient" */

static inline bool slc_makes_input_gradient(slc_task_kind kind)
{
    return kind == SLC_TASK_BACKWARD || kind == SLC_TASK_INPUT;
}

static inline bool slc_makes_weight_gradients(slc_task_kind kind)
{
    return kind == SLC_TASK_BACKWARD || kind == SLC_TASK_WEIGHT;
}

typedef struct {
    slc_task_kind kind;
    uint32_t piece, micro_batch;
} slc_task;

typedef struct {
    uint32_t stages;        /* P */
    uint32_t chunks;        /* v */
    uint32_t micro_batches; /* M, a replica and step */
} slc_pipeline_shape;

enum { SLC_PIPELINE_CHUNKS_MAX = 8 }; /* each has four ends of channels, of which a stage's plan has room for 34 */

static inline uint32_t slc_pipeline_pieces(const slc_pipeline_shape *shape)
{
    return shape->stages * shape->chunks;
}

/* Tasks under construction; there is room for all that a schedule writes. */
typedef struct {
    slc_task *tasks;
    uint32_t count;
} slc_task_list;

typedef struct {
    const char *name;  /* as the user writes it */
    const char *doc;   /* one clause for help and messages */
    bool chunked;      /* a stage may hold several chunks */
    bool splits;       /* a backward is an INPUT and a WEIGHT */
    bool flushes;      /* no micro-batch is under way between two steps. False: a step runs into the next one, and
                          forwards read older values */
    bool updates_each; /* every micro-batch is followed by an update, else every step */
    uint32_t (*versions)(const slc_pipeline_shape *shape, uint32_t stage); /* of values that a stage keeps */
    void (*order)(const slc_pipeline_shape *shape, uint32_t stage, slc_task_list *list);
} slc_pipeline_schedule;

const slc_pipeline_schedule *slc_pipeline_schedule_find(const char *name); /* NULL: there is none of that name */
const slc_pipeline_schedule *slc_pipeline_schedule_at(size_t index);       /* all in turn; NULL after the last */
const char *slc_pipeline_schedule_names(void);                             /* "gpipe, 1f1b, ..."; static memory */

/* Returns how many tasks ahead of the one that reads it a receive must be posted, so that no stages wait for each other
 * even if a send blocks until it is received: 1; with several chunks, where a message goes from the last stage to the
 * first, 2. */
static inline uint32_t slc_pipeline_ahead(const slc_pipeline_shape *shape)
{
    return shape->chunks > 1 ? 2 : 1;
}

/* Returns true if the last stage runs each micro-batch's backward right after its forward. */
bool slc_pipeline_turns_at_once(const slc_pipeline_schedule *schedule, const slc_pipeline_shape *shape);

/* Checks that a pipeline of this shape may run in this schedule. Errors: ARGUMENT (the error names values that work).
 */
sluice_status slc_pipeline_check(const slc_pipeline_schedule *schedule, const slc_pipeline_shape *shape);

/* The order of interleaved stages (interleaved.c), which zero_bubble shares: with `splits` a backward is an INPUT,
 * whose WEIGHT comes `stage` INPUTs later, and there are half as many forwards before the first backward. */
void slc_order_interleaved(const slc_pipeline_shape *shape, uint32_t stage, bool splits, slc_task_list *list);

static inline void slc_task_append(slc_task_list *list, slc_task_kind kind, uint32_t piece, uint32_t micro_batch)
{
    list->tasks[list->count++] = (slc_task){kind, piece, micro_batch};
}
