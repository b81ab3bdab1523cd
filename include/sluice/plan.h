/* The plan that a runtime runs: what it was made from, what it predicts, and the texts that keep it.
 * sluice_layer_strategy_name and sluice_layer_recomputes say what the plan decided for a layer. */
#ifndef SLUICE_PLAN_H
#define SLUICE_PLAN_H

#include <sluice/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A step's time in parts, in seconds: step_s is compute_s + waiting_s + outside_s. */
typedef struct {
    double step_s;
    double compute_s;  /* slots, with what they recompute, and updates on the compute threads */
    double waiting_s;  /* compute waited for communication */
    double outside_s;  /* outside of slots: data, logging, what else the program does; the calls themselves */
    double transfer_s; /* the link carried operations, at the same time as the parts above */
} sluice_step_parts;

/* The seconds by which each part made a step longer than predicted; negative: shorter. */
typedef struct {
    double compute_s, transfer_s, waiting_s, outside_s;
} sluice_step_miss;

/* The prediction of the plan that runs, and what came of it. */
typedef struct {
    size_t struct_size;          /* of this struct; SLUICE_INIT sets it */
    sluice_step_parts predicted; /* before the plan's first step, from measured times; all 0: nothing was predicted */
    sluice_step_parts measured;  /* a usual one of the last 32 steps under it, on the rank that computed longest; all 0:
                                    no step counts yet */
    uint64_t steps;              /* that count; those next to an evaluation or a save do not */
    /* Adds up to measured.step_s - predicted.step_s; all 0 if one of them is not known. transfer_s is the part of
     * the waiting that transfers explain, which took longer than predicted; waiting_s is the rest of it: ranks came to
     * operations at different times, or operations were late for another reason. */
    sluice_step_miss miss;
    double anew_s; /* the step as predicted from what the plan's own steps have measured, which is no prediction; 0: not
                      known */
} sluice_prediction;

/* The plan that a runtime runs, as the runtime knows it. */
typedef struct {
    size_t struct_size;   /* of this struct; SLUICE_INIT sets it */
    uint32_t number;      /* 1 is commit's, each re-plan counts one up, as in sluice_step_report */
    bool measured;        /* it was made from times that this run has measured; else from sizes and estimated times */
    bool provisional;     /* it serves to measure: a re-plan will follow by itself */
    const char *schedule; /* the name of the order in which it communicates; valid until a re-plan, as the next two */
    const char *chosen;   /* what found it, if the schedule searches ("ilp, searched"); else "" */
    const char *note;     /* what planning met and survived; else "" */
    uint64_t budget_bytes, planned_bytes; /* the budget, 0: none; what the plan takes, reserved bytes included */
    uint64_t dp_bytes;                    /* what dp with the serial schedule needs */
    /* The step as predicted from the times that the plan was made from: its length, its compute, the time in which
     * compute waits for communication, and how long the link is busy. */
    double step_s, compute_s, exposed_s, communication_s;
    double bound_s; /* lower bound of the step of any plan within the budget; 0: not known */
    /* The parts of step_s - bound_s in seconds (docs/what-a-plan-says.md, "The distance to the bound"). unproven_s: the
     * model's best answer is above its bound. choices_s: strategies and recomputation are not that answer's. blocks_s:
     * whole runs of blocks move instead of fractions. order_s: the order is another than the model's. latency_s: an
     * operation's runs after its first pay a latency each. packing_s: operations wait for memory that others use. None
     * is negative. */
    bool distance_known; /* false: these are 0 */
    double unproven_s, choices_s, blocks_s, order_s, latency_s, packing_s;
    double searched_s; /* how long the planner searched for the plan; 0: it did not */
    bool out_of_time;  /* its search ended because its effort was spent or its time was up, not because it had nothing
                          left to try, or because more would not have paid */
    double effort_s;   /* the planner's work at nominal prices, in seconds of one core; 0: not known */
    const char *ended; /* why the planner ended: "done", "trivial", "pays_no_more", "effort", "time_limit"
                          (docs/what-a-plan-says.md); static memory */
    double outside_s;  /* predicted: the part of step_s outside of slots */
    double distance_outside_s; /* a further part of step_s - bound_s: what the bound leaves out, time outside of slots
                                  and ranks that come late to operations */
} sluice_plan_report;

/* Says what plan runs, after commit, at any time, also when the runtime has failed. Local; the same on every rank.
 * Errors: ORDER (before commit). */
SLUICE_API sluice_status sluice_runtime_plan(const sluice_runtime *rt, sluice_plan_report *report);

/* A plan that the play-off has tried (sluice_config.replan_trials). */
typedef struct {
    size_t struct_size;     /* of this struct; SLUICE_INIT sets it */
    const char *name;       /* "the planner's", "uniform fsdp", ...; static memory */
    double step_s;          /* predicted, from measured times */
    double measured_step_s; /* median of its steps, each the slowest rank's */
    bool stays;             /* it is the one that ran on */
} sluice_plan_trial;

/* Returns how many plans the last play-off has tried, the planner's own among them; 0: none, or it has not ended. */
SLUICE_API uint32_t sluice_runtime_trial_count(const sluice_runtime *rt);
/* Says how plan number `index` of that play-off did; the planner's own has number 0. Local; the same on every rank.
 * Errors: ARGUMENT (there is no such plan). */
SLUICE_API sluice_status sluice_runtime_trial(const sluice_runtime *rt, uint32_t index, sluice_plan_trial *trial);

/* Compares the plan's prediction with its steps. Collective, between steps; the same on every rank. Errors: ORDER
 * (before commit, in a step), ARGUMENT. */
SLUICE_API sluice_status sluice_runtime_prediction(sluice_runtime *rt, sluice_prediction *prediction);

/* Gives the plan that runs, and the profile that it was made from, as JSON (docs/formats.md), which the caller frees:
 * what `sluice sim`, `check`, `trace` and `train --plan` read. `model` is free text, the profile's name. Local, after
 * commit, at any time, also when the runtime has failed. Errors: ORDER (before commit); ARGUMENT (no model or no
 * result; a name that is not UTF-8). */
SLUICE_API sluice_status sluice_runtime_plan_json(sluice_runtime *rt, const char *model, char **plan, char **profile);

/* ---- A stage of a pipeline ---- */

enum {
    SLUICE_STAGE_CHANNELS_MAX = 34 /* ends of channels that a stage has, at most */
};

/* One end of a channel between two stages. A step sends a message on it for each micro-batch. */
typedef struct {
    const char *what;    /* "activations", "gradients", "rows", "gradients of rows"; static memory */
    uint32_t piece;      /* of the model that lies behind the cut which the channel crosses; 0: rows of a table */
    uint32_t stage;      /* where the other end is */
    bool receives;       /* else this rank sends */
    uint64_t step_bytes; /* of the last step's messages */
    double waited_s;     /* compute waited so long for them in that step; one that sends is waited for where its bytes
                            are in the way of the next ones */
} sluice_stage_channel;

/* A rank's stage, and the last step on it. slots_s + idle_s + exposed_s is less than the step by what the rank does
 * between slots: updates on its own thread, and the program. sluice_step_report.exposed_s is idle_s + exposed_s. */
typedef struct {
    size_t struct_size;     /* of this struct; SLUICE_INIT sets it */
    uint32_t stages;        /* 0: there is no pipeline, and all that follows is 0 */
    uint32_t replicas;      /* ranks that hold this stage */
    uint32_t stage;         /* this rank's, from 0 */
    uint32_t chunks;        /* pieces of the model that a stage holds: piece c * stages + stage is its chunk c */
    const char *schedule;   /* valid as long as the runtime */
    double slots_s;         /* its forwards, recomputations and backwards took so long */
    double idle_s;          /* no slot ran, because messages of other stages were to come, or the step's end */
    double exposed_s;       /* a slot waited for the stage's own updates and gathers */
    double end_s;           /* the part of idle_s at the step's end, when all stages agree */
    uint32_t layer_count;   /* of the whole model */
    uint32_t channel_count; /* of `channels` */
    sluice_stage_channel channels[SLUICE_STAGE_CHANNELS_MAX]; /* in no order that means something */
    /* Predicted before the first step, by a simulation of all stages with measured times: the step, and this stage's
     * slots_s, idle_s and exposed_s in it. All 0: the program gave no times, so nothing was predicted. */
    double predicted_step_s, predicted_slots_s, predicted_idle_s, predicted_exposed_s;
} sluice_stage_report;

/* Says which stage of a pipeline this rank is, what the stages hold, and how the last step that ended went here. After
 * commit, at any time, also when the runtime has failed. Local. Errors: ORDER (before commit). */
SLUICE_API sluice_status sluice_runtime_stage(const sluice_runtime *rt, sluice_stage_report *report);
/* Gives the name of layer number `layer` of the whole model, valid as long as the runtime, and the piece that it is in.
 * Local; the same on every rank. Errors: ORDER (before commit), ARGUMENT (there is no such layer, or no pipeline). */
SLUICE_API sluice_status sluice_runtime_piece(const sluice_runtime *rt, uint32_t layer, const char **name,
                                              uint32_t *piece);

/* Gives the seconds that a micro-batch's forward and backward of layer number `layer` of the whole model take on this
 * rank, without waiting and recomputing: medians of the latest ones under the plan that runs. Both are 0 where this
 * rank does not hold the layer, or has not run it. After commit, at any time, also when the runtime has failed. Local.
 * Errors: ORDER (before commit), ARGUMENT (there is no such layer). */
SLUICE_API sluice_status sluice_runtime_layer_times(const sluice_runtime *rt, uint32_t layer, double *forward_s,
                                                    double *backward_s);
/* Says how long a micro-batch's forward and backward of a layer that has been added take, as another runtime has
 * measured them. If every layer has such times, a pipeline with cuts "auto" is cut by them and not by what sizes
 * suggest; it changes no bit of the training. Rank 0's count. Local, before commit. Errors: ORDER (after commit),
 * ARGUMENT (there is no such layer; a time that is not above 0). */
SLUICE_API sluice_status sluice_runtime_layer_times_set(sluice_runtime *rt, uint32_t layer, double forward_s,
                                                        double backward_s);

/* Times of a pipeline besides those of its layers. Those that are 0 are not known. */
typedef struct {
    size_t struct_size; /* of this struct; SLUICE_INIT sets it */
    double update_s;    /* an element's update, on the rank that takes longest */
    /* A message of B bytes from one stage to the next takes message_latency_s + B / message_bytes_per_s, over the
     * slowest cut. */
    double message_latency_s, message_bytes_per_s;
} sluice_stage_times;

/* Measures these times: updates as the latest steps took them; messages by some that are sent over one cut after the
 * other, in memory that nothing needs between steps. All are 0 where there is no pipeline. Collective, between steps;
 * the same on every rank. Errors: those of syncing. */
SLUICE_API sluice_status sluice_runtime_stage_times(sluice_runtime *rt, sluice_stage_times *times);
/* Gives the runtime times that another runtime has measured. They are used if every layer has times too
 * (sluice_runtime_layer_times_set): cuts and the prediction of steps follow from them; no bit of the training changes.
 * Those of rank 0 count. Local, before commit. Errors: ORDER (after commit), ARGUMENT (a time below 0, or that is not
 * finite). */
SLUICE_API sluice_status sluice_runtime_stage_times_set(sluice_runtime *rt, const sluice_stage_times *times);

#ifdef __cplusplus
}
#endif
#endif
