/* The settings of a runtime (sluice/runtime.h), with their defaults. sluice_runtime_create copies them, strings too.
 * Sizes are bytes if a name ends in _bytes; times are seconds.
 *
 * Numerics are settings of the job: with equal world size, batch split, threads, precision, `accumulate` and `tied`,
 * weights are equal to the bit for every strategy, schedule, block size and budget. */
#ifndef SLUICE_CONFIG_H
#define SLUICE_CONFIG_H

#include <sluice/dtype.h>
#include <sluice/optimizer.h>
#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The answer to a gradient that is not finite: the step's end returns an error, or the step updates nothing. */
typedef enum { SLUICE_NAN_STOP = 0, SLUICE_NAN_SKIP = 1 } sluice_nan_policy;
/* The time at which gradients of several micro-batches are reduced: once, after the last micro-batch, or after each. */
typedef enum { SLUICE_ACCUMULATE_LAST = 0, SLUICE_ACCUMULATE_EACH = 1 } sluice_accumulate;
/* The way in which gradients are added over ranks on a GPU: in rank order, so that the bits depend on neither strategy
 * nor plan, or by NCCL's own collectives, whose order follows the sizes of messages but is the same in every run of a
 * plan. */
typedef enum { SLUICE_SUMS_ORDERED = 0, SLUICE_SUMS_NCCL = 1 } sluice_sums;
/* The gradients of a tied parameter: its uses share one, or the looked-up rows have their own. */
typedef enum { SLUICE_TIED_JOINT = 0, SLUICE_TIED_SPLIT = 1 } sluice_tied;
/* The layers that run their forward again, of those that can: the ones that the planner chooses, none, or all. */
typedef enum { SLUICE_RECOMPUTE_AUTO = 0, SLUICE_RECOMPUTE_NONE = 1, SLUICE_RECOMPUTE_ALL = 2 } sluice_recompute;
/* The threads that run the optimizer. */
typedef enum {
    SLUICE_UPDATES_BY_SETTING = 0,    /* as SLUICE_PLAN_UPDATES says, whose default is auto */
    SLUICE_UPDATES_AUTO = 1,          /* with the schedules "ilp" and "portfolio" whichever makes the step shorter, else
                                         the communication thread */
    SLUICE_UPDATES_COMMUNICATION = 2, /* the communication thread */
    SLUICE_UPDATES_COMPUTE = 3,       /* the compute threads, all together between slots */
    SLUICE_UPDATES_BOTH = 4           /* half of the elements on either, so that a profile knows both */
} sluice_updates;

/* The settings of a runtime; sluice_config_init fills in the defaults. */
typedef struct {
    size_t struct_size;    /* of this struct; sluice_config_init sets it */
    uint64_t budget_bytes; /* 0: as much as the plan needs. Ranks with different budgets use the least. */
    double budget_of_dp;   /* > 0: instead, this fraction of what dp with the serial schedule needs (0.6 = 60 %) */
    const char *strategy;  /* "dp", "oss", "sdp", "fsdp"; "mixed": sdp for as many layers as the budget holds, the
                              rest fsdp; "auto": with the schedules "ilp" and "portfolio" what is fastest for each unit,
                              else "mixed"; "random:SEED"; the path of a JSON file (docs/formats.md); or with a
                              compressed optimizer "onebit": dp, and in the compressed phase one bit an element. That
                              optimizer is consent: auto and random:SEED may choose onebit too. */
    const char *schedule;  /* "serial", "one_ahead", "bucketed", "priority", "greedy", "random", "ilp" (only in a build
                              with GLPK), "portfolio" (the same without an integer program) */
    const sluice_optimizer *optimizer; /* NULL: the bundled one that is named. Must outlive the runtime. */
    const char *optimizer_name; /* "adamw", "lamb", "sgd", "onebit_adam", "onebit_lamb", "zero_one_adam", with the
                                   fields below; the compressed ones not with accumulate each */
    sluice_adamw adamw;         /* "adamw", and the compressed optimizers but 1-bit LAMB */
    sluice_lamb lamb;           /* "lamb", "onebit_lamb" */
    sluice_onebit onebit;       /* the compressed optimizers */
    sluice_dtype precision;     /* of parameters' values and gradients, if sluice_layer_precision says nothing else. Of
                                   values in bf16 the runtime keeps an fp32 master, next to the optimizer's fp32 state;
                                   updates change the master and round it. */
    sluice_dtype wire;     /* of gradients of parameters in bf16, in memory and between ranks: bf16 halves them; fp32
                              rounds them less. Sums are made in fp32 either way. With micro-batches that are added
                              before they are reduced (accumulate last) gradients are fp32 whatever this says, and so
                              are those of parameters in fp32. Values travel in their own type. */
    double clip;           /* > 0: the global norm of the gradient is clipped to this; adds a barrier. Gradients are
                              multiplied by min(1, clip / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does. */
    sluice_nan_policy nan; /* SLUICE_NAN_SKIP adds a barrier */
    sluice_accumulate accumulate; /* a setting of the job: weights differ by rounding */
    sluice_tied tied; /* of tied parameters whose adding layer only looks rows up (sluice_param_desc.row_elements):
                         joint: both uses add to one gradient, reduced when the look-up's is there too, so the
                         step begins and ends with all of it exposed. split: the look-up gets a table of the rows
                         it touches, whose gradients are reduced by themselves and added after the other uses';
                         a setting of the job: weights differ from joint's by rounding */
    uint32_t micro_batches;     /* a step, at most; the plan is made for this many */
    sluice_recompute recompute; /* changes memory and time, no bit of the weights */
    uint64_t block_bytes;       /* base block of fp32, 64 bytes to 4 GiB: fixes who owns what. It is the full size, so a
                                   message is block / N. A block of a bf16 parameter has as many elements, so half the
                                   bytes. 0: 1 MiB on the host; on a GPU 64 MiB for a single rank; on several GPUs that
                                   of plan_file, else 16 MiB with a budget, and without one what the link needs, from
                                   16 to 64 MiB, which commit measures if a layer is longer than 16 MiB. */
    const char *fuse;       /* which small units of neighbouring layers become one, with one strategy and one operation:
                               "auto": if that pays by the cost model, at commit with estimated times and at each
                               re-plan with measured ones; "off": none; a size as 64KiB: up to so many bytes of values.
                               Never more than a base block. NULL: as SLUICE_PLAN_FUSE says (auto) */
    sluice_updates updates; /* an optimizer that is not `concurrent` always runs on the communication thread */
    uint32_t threads;       /* compute threads of this rank; 0: one */
    const char *device;     /* "cpu"; in a build that has it "cuda", for one rank, or for a world with the transport
                               "nccl" and a GPU for each rank */
    const char *plan_file;  /* the file of a plan (sluice/plan.h, docs/formats.md) that is run instead of making one;
                               rank 0 reads it and sends it to the others, which give any text. `strategy`, `schedule`
                               and `fuse` then say nothing, and no re-plan follows. NULL: a plan is made. Not with a
                               compressed optimizer */
    uint64_t steps; /* steps of the whole run, counted as sluice_runtime_step does: planning ends when those that
                       are left cannot win back what more of it costs. 0: not known; planning counts on 1000
                       more. Rank 0's counts */
    double plan_time_limit_s; /* > 0: planning takes the best plan that it has after so many seconds, which then depends
                                 on the machine and how busy it is. Without, equal input gives the equal plan anywhere.
                                 Rank 0's counts */
    sluice_sgd sgd;           /* "sgd" */
    uint32_t replan_trials;   /* after the re-plan from measured times: so many other plans at most, that the simulator
                                 puts within 10 % of it, run a few steps each by turns, and the one whose steps were the
                                 shortest stays (sluice_runtime_trial); a strategy that `strategy` names is not left.
                                 Weights stay equal to the bit. It takes 2 % of the time of the steps that are left, at
                                 most; if they cannot pay for it, nothing is tried. 0: none. Never with a compressed
                                 optimizer or one rank. Rank 0's counts */
    sluice_sums sums;         /* on device "cuda", of a world's ranks; a setting of the job: weights differ by rounding.
                                 Either kind moves as many bytes */
    bool measure_norm;        /* the norm of the gradient is measured without clipping too, for the step's report; it
                                 adds no barrier and changes no bit */
    uint32_t pipeline;        /* stages of a pipeline, each of R = world / stages replicas: rank s * R + r holds the
                                 layers of stage s, and every rank registers all. 0 and 1: none. What a cut sends
                                 follows from the lives of activations. `strategy` is that of a stage's units over its
                                 replicas; `schedule` then says nothing */
    uint32_t pipeline_chunks; /* pieces of the model that a stage holds; 0: 2 with "interleaved", else 1 */
    const char *pipeline_schedule; /* "gpipe", "1f1b", "interleaved"; NULL: "1f1b" */
    const char *pipeline_cuts;     /* the first layer of each piece but the first, with commas; piece c * stages + s is
                                      chunk c of stage s. NULL and "auto": by the times of
                                      sluice_runtime_layer_times_set, estimated ones without them */
} sluice_config;

/* Does what sluice_config_init does, for a struct of `struct_size` bytes, for callers in other languages. Writes
 * nothing if `config` is NULL or the struct cannot have this size; fields of a newer struct that this library does not
 * know become 0. */
SLUICE_API void sluice_config_init_sized(sluice_config *config, size_t struct_size);

/* Fills in the defaults; a config that it has not filled is refused. They are:
 *   struct_size = sizeof(sluice_config)
 *   budget_bytes = 0                       (no budget)
 *   budget_of_dp = 0
 *   strategy = "auto"
 *   schedule = "ilp"                       ("portfolio" in a build without GLPK)
 *   optimizer = NULL
 *   optimizer_name = "adamw"
 *   adamw.beta1 = 0.9
 *   adamw.beta2 = 0.999
 *   adamw.epsilon = 1e-8
 *   adamw.weight_decay = 0.01              (of all parameters but those with no_decay)
 *   lamb.beta1 = 0.9
 *   lamb.beta2 = 0.999
 *   lamb.epsilon = 1e-6
 *   lamb.weight_decay = 0.01
 *   lamb.norm_min = 0
 *   lamb.norm_max = INFINITY
 *   onebit.freeze_step = 0                 (when the variance's norm changes by less than freeze_change)
 *   onebit.freeze_change = 0.04
 *   onebit.compat = false
 *   onebit.compat_mask = false
 *   onebit.coefficient_beta = 0.9          (this and what follows: as their authors' code)
 *   onebit.trust_min = 0.01
 *   onebit.trust_max = 10
 *   onebit.factor_min = 0.5
 *   onebit.factor_max = 4
 *   onebit.factor_threshold = 0.1
 *   onebit.var_freeze_step = 100000
 *   onebit.var_update_scaler = 16
 *   onebit.local_step_scaler = 32678
 *   onebit.local_step_clipper = 16
 *   precision = SLUICE_FP32
 *   wire = SLUICE_BF16                     (of layers in bf16)
 *   clip = 0                               (none)
 *   nan = SLUICE_NAN_STOP
 *   accumulate = SLUICE_ACCUMULATE_LAST
 *   tied = SLUICE_TIED_JOINT
 *   sums = SLUICE_SUMS_ORDERED
 *   micro_batches = 1
 *   recompute = SLUICE_RECOMPUTE_AUTO
 *   block_bytes = 0                        (by the device)
 *   fuse = NULL
 *   updates = SLUICE_UPDATES_BY_SETTING
 *   threads = 1
 *   device = "cpu"
 *   plan_file = NULL
 *   steps = 0                              (not known)
 *   plan_time_limit_s = 0                  (none)
 *   sgd.momentum = 0.9                     (PyTorch's default is 0, which keeps no state)
 *   sgd.dampening = 0
 *   sgd.weight_decay = 0                   (as PyTorch; of all parameters but those with no_decay)
 *   sgd.nesterov = false
 *   replan_trials = 0                      (none; `sluice train` has 3)
 *   measure_norm = false
 *   pipeline = 0                           (none)
 *   pipeline_chunks = 0
 *   pipeline_schedule = NULL
 *   pipeline_cuts = NULL */
static inline void sluice_config_init(sluice_config *config)
{
    sluice_config_init_sized(config, sizeof *config);
}

#ifdef __cplusplus
}
#endif
#endif
