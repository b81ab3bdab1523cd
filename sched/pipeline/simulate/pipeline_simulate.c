/* Goes from event to event: a task, a message or an operation ends, and what waited for it starts. */
#include "sched/pipeline/simulate/pipeline_simulate.h"

#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "sched/pipeline/simulate/events.h"
#include "sched/pipeline/simulate/forecast.h"
#include "sched/pipeline/simulate/stops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NONE = UINT32_MAX };
enum { DELAY_STREAM = 0x50 };
enum { TASK_ENDS, EGRESS_ENDS, THREAD_ENDS, ARRIVES, READY, AGREED, STOPS };
enum { UNASKED, ASKED, BRINGING, BROUGHT };

/* A transfer that waits for an egress or a thread, or is on it. */
typedef struct {
    double takes_s;
    uint32_t reader; /* number of the task that reads the message, at its stage; NONE: its receive is always posted */
    uint32_t next;   /* in the queue */
} pending;

typedef struct {
    uint32_t first, last, now; /* queue and what is being served: transfers; NONE */
} server;

typedef struct {
    uint32_t next;    /* task that comes next */
    bool running;     /* the one before it runs */
    bool stopped;     /* it waits for a gather */
    bool held_inside; /* a forward has begun whose end depends on operations that have not begun */
    double takes_s;   /* the task that runs, without waits */
    double alone_s;   /* when it would end if no operation held it up any more; NaN: it is not in its last part */
    double done_s;    /* of takes_s, where it is or stops next */
    uint32_t stop, last_stop; /* its next stop, and the end of its stops */
    uint32_t first_gather, end_gather;
    uint32_t sending; /* messages of this stage that are not received yet */
    server egress, thread;
    uint32_t first_operation, end_operation;
} stage_state;

/* An operation in one step. */
typedef struct {
    double over_s; /* NaN: it has not begun */
    bool ready, launched, ended;
} operation_state;

typedef struct {
    const slc_pipeline_program *program;
    const slc_pipeline_times *times;
    slc_pipeline_simulation options;
    slc_pipeline_forecast *out;
    uint32_t pieces, micro_batches, rounds; /* rounds: steps, or micro-batches if each is followed by an update */
    slc_pipeline_events events;
    stage_state *stages;
    operation_state *operations; /* [rounds * operation_count] */
    uint32_t *agreed;            /* [rounds] how many stages have come to the agreement */
    uint32_t *rows_back;         /* [rounds] gradients of rows that have arrived */
    uint32_t *head_left;         /* [rounds] operations of the last piece that have not ended */
    uint8_t *gathered;           /* [gathers * micro_batches] UNASKED, ASKED, BRINGING, BROUGHT */
    slc_task_stop *stops;
    uint32_t *first_stop; /* [2 pieces + 1] of each piece's forward, and of its backward */
    uint8_t *arrived[2];  /* [pieces * micro_batches] the activation for a forward, the gradient for a backward */
    uint8_t *rows_there;  /* [micro_batches] */
    uint32_t *rows_after; /* [micro_batches] the backward of the last piece after which rows are sent; NONE: they
                             are sent when the step begins */
    uint32_t *place[2];   /* [pieces * micro_batches] number of the forward, of the backward at its stage */
    pending *pending;     /* [transfers] */
    uint32_t capacity, agreeing;
    double now_s;
    uint64_t draws;
} simulation;

static uint32_t stage_of(const simulation *sim, uint32_t piece)
{
    return piece % sim->program->shape.stages;
}

static size_t at(const simulation *sim, uint32_t piece, uint32_t micro_batch)
{
    return (size_t)piece * sim->micro_batches + micro_batch;
}

static uint8_t *gathered_of(const simulation *sim, uint32_t gather, uint32_t micro_batch)
{
    return &sim->gathered[(size_t)gather * sim->micro_batches + micro_batch];
}

static uint32_t round_length(const simulation *sim)
{
    return sim->micro_batches / sim->rounds;
}

static double draw_delay(simulation *sim)
{
    if (!(sim->options.delay_s > 0)) return 0;
    return sim->options.delay_s * (double)slc_random_below(sim->options.seed, DELAY_STREAM, sim->draws++, 1u << 31) *
           0x1p-31;
}

static void try_task(simulation *sim, uint32_t stage);

/* ---- Egress and thread ---- */

/* Returns true if the receive of this message is posted, or nobody reads it. */
static bool is_posted(const simulation *sim, uint32_t t)
{
    const uint32_t reader = sim->pending[t].reader, ahead = sim->options.ahead;
    if (reader == NONE) return true;
    return reader < ahead || reader - ahead < sim->stages[sim->out->transfers[t].to].next;
}

static operation_state *operation_of(const simulation *sim, const slc_transfer *transfer)
{
    return &sim->operations[(size_t)transfer->micro_batch * sim->times->operation_count + transfer->piece];
}

static void settle_forward(simulation *sim, uint32_t stage);

/* Serves the first in the queue whose receive is posted: a message that waits holds no other up. */
static void serve(simulation *sim, uint32_t stage, server *lane, uint32_t ends)
{
    uint32_t before = NONE, t = lane->first;
    if (lane->now != NONE) return;
    while (t != NONE && !is_posted(sim, t)) {
        before = t;
        t = sim->pending[t].next;
    }
    if (t == NONE) return;
    if (before == NONE)
        lane->first = sim->pending[t].next;
    else
        sim->pending[before].next = sim->pending[t].next;
    if (lane->last == t) lane->last = before;
    slc_transfer *transfer = &sim->out->transfers[t];
    lane->now = t;
    transfer->start_s = sim->now_s;
    transfer->end_s = sim->now_s + sim->pending[t].takes_s + draw_delay(sim);
    slc_pipeline_events_add(&sim->events, transfer->end_s, ends, stage, t);
    if (transfer->kind == SLC_TRANSFER_OPERATION) {
        operation_of(sim, transfer)->over_s = transfer->end_s;
        settle_forward(sim, stage);
    }
}

static void serve_egress(simulation *sim, uint32_t stage)
{
    serve(sim, stage, &sim->stages[stage].egress, EGRESS_ENDS);
}

static void enqueue(simulation *sim, server *lane, slc_transfer transfer, double takes_s, uint32_t reader)
{
    const uint32_t t = sim->out->transfer_count++;
    transfer.start_s = transfer.end_s = NAN;
    sim->out->transfers[t] = transfer;
    sim->pending[t] = (pending){takes_s, reader, NONE};
    if (lane->last != NONE)
        sim->pending[lane->last].next = t;
    else
        lane->first = t;
    lane->last = t;
}

static void send(simulation *sim, slc_transfer_kind kind, uint32_t from, uint32_t piece, uint32_t micro_batch,
                 double takes_s)
{
    const uint32_t to = stage_of(sim, kind == SLC_TRANSFER_ROW_GRADIENTS ? sim->pieces - 1 : piece);
    const bool reads = kind != SLC_TRANSFER_ROW_GRADIENTS;
    enqueue(sim, &sim->stages[from].egress,
            (slc_transfer){.kind = kind, .from = from, .to = to, .piece = piece, .micro_batch = micro_batch}, takes_s,
            reads ? sim->place[kind == SLC_TRANSFER_BACKWARD][at(sim, piece, micro_batch)] : NONE);
    sim->stages[from].sending += kind != SLC_TRANSFER_ROWS;
    serve_egress(sim, from);
}

/* ---- Operations ---- */

/* An operation starts once it is ready and what it comes after has ended. */
static void launch(simulation *sim, uint32_t number, uint32_t round)
{
    const uint32_t count = sim->times->operation_count;
    const slc_stage_operation *o = &sim->times->operations[number];
    operation_state *state = &sim->operations[(size_t)round * count + number];
    stage_state *stage = &sim->stages[o->stage];
    if (!state->ready || state->launched) return;
    if (o->after != SLC_NO_OPERATION && !sim->operations[(size_t)round * count + o->after].ended) return;
    if (o->after_rows && sim->times->rows_s > 0 && sim->rows_back[round] < round_length(sim)) return;
    state->launched = true;
    if (o->agrees) {
        if (++sim->agreed[round] == sim->agreeing)
            slc_pipeline_events_add(&sim->events, sim->now_s + o->link_s, AGREED, o->stage, round);
        return;
    }
    const bool thread = o->thread_s > 0;
    enqueue(sim, thread ? &stage->thread : &stage->egress,
            (slc_transfer){SLC_TRANSFER_OPERATION, o->stage, o->stage, number, round, NAN, NAN},
            thread ? o->thread_s : o->link_s, NONE);
    if (thread)
        serve(sim, o->stage, &stage->thread, THREAD_ENDS);
    else
        serve_egress(sim, o->stage);
}

static void launch_waiting(simulation *sim, uint32_t stage, uint32_t round)
{
    for (uint32_t o = sim->stages[stage].first_operation; o < sim->stages[stage].end_operation; o++)
        launch(sim, o, round);
}

/* ---- Gathers ---- */

/* Brings a gather that has been asked for once the values are there that it reads. */
static void bring(simulation *sim, uint32_t gather, uint32_t micro_batch)
{
    const slc_stage_gather *g = &sim->times->gathers[gather];
    const uint32_t round = micro_batch / round_length(sim), stage = stage_of(sim, g->piece);
    if (*gathered_of(sim, gather, micro_batch) != ASKED) return;
    if (g->after != SLC_NO_OPERATION && round &&
        !sim->operations[(size_t)(round - 1) * sim->times->operation_count + g->after].ended)
        return;
    *gathered_of(sim, gather, micro_batch) = BRINGING;
    enqueue(sim, &sim->stages[stage].egress,
            (slc_transfer){SLC_TRANSFER_GATHER, stage, stage, gather, micro_batch, NAN, NAN}, g->link_s, NONE);
    serve_egress(sim, stage);
}

static void ask(simulation *sim, uint32_t gather, uint32_t micro_batch)
{
    if (*gathered_of(sim, gather, micro_batch) != UNASKED) return;
    *gathered_of(sim, gather, micro_batch) = ASKED;
    bring(sim, gather, micro_batch);
}

/* Asks for what a stage's next task needs in its first slot. */
static void ask_for_next(simulation *sim, uint32_t stage)
{
    const stage_state *state = &sim->stages[stage];
    if (state->next == sim->program->task_count) return;
    const slc_task *task = slc_pipeline_tasks(sim->program, stage) + state->next;
    for (uint32_t g = state->first_gather; g < state->end_gather; g++)
        if (sim->times->gathers[g].piece == task->piece && sim->times->gathers[g].ahead_s < 0 &&
            sim->times->gathers[g].backward == slc_makes_input_gradient(task->kind) && task->kind != SLC_TASK_WEIGHT)
            ask(sim, g, task->micro_batch);
}

static void send_first_rows(simulation *sim, uint32_t round);

static void end_operation(simulation *sim, uint32_t number, uint32_t round)
{
    const slc_stage_operation *o = &sim->times->operations[number];
    operation_state *state = &sim->operations[(size_t)round * sim->times->operation_count + number];
    state->over_s = sim->now_s;
    state->ended = true;
    launch_waiting(sim, o->stage, round);
    const stage_state *stage = &sim->stages[o->stage];
    for (uint32_t g = stage->first_gather; g < stage->end_gather && round + 1 < sim->rounds; g++)
        for (uint32_t m = 0; sim->times->gathers[g].after == number && m < round_length(sim); m++)
            bring(sim, g, (round + 1) * round_length(sim) + m);
    settle_forward(sim, o->stage);
    if (o->piece + 1 == sim->pieces && !--sim->head_left[round]) send_first_rows(sim, round + 1);
}

/* ---- Rows ---- */

static void send_rows(simulation *sim, uint32_t micro_batch)
{
    send(sim, SLC_TRANSFER_ROWS, stage_of(sim, sim->pieces - 1), 0, micro_batch, sim->times->rows_s);
}

/* Sends once the rows of a round that wait only for the round before to end. Where steps run into each other, the rows
 * do not wait for that either, because they are read from older values. */
static void send_first_rows(simulation *sim, uint32_t round)
{
    if (round) sim->head_left[round - 1] = NONE;
    const bool flushes = sim->program->schedule->flushes;
    if (!(sim->times->rows_s > 0) || round >= sim->rounds || (round && !flushes)) return;
    const uint32_t end = flushes ? (round + 1) * round_length(sim) : sim->micro_batches;
    for (uint32_t m = round * round_length(sim); m < end; m++)
        if (sim->rows_after[m] == NONE) send_rows(sim, m);
}

static void send_rows_after(simulation *sim, uint32_t micro_batch)
{
    for (uint32_t m = 0; m < sim->micro_batches; m++)
        if (sim->rows_after[m] == micro_batch) send_rows(sim, m);
}

/* Rows are sent as early as the first stage can have room for them: after the backward that it runs last before the
 * forward which reads them. */
static void plan_rows(simulation *sim)
{
    const slc_task *tasks = slc_pipeline_tasks(sim->program, 0);
    uint32_t last = NONE;
    for (uint32_t t = 0; t < sim->program->task_count; t++) {
        if (tasks[t].piece) continue;
        if (tasks[t].kind != SLC_TASK_FORWARD) {
            last = tasks[t].micro_batch;
            continue;
        }
        const uint32_t m = tasks[t].micro_batch, round = sim->program->schedule->flushes ? round_length(sim) : NONE;
        sim->rows_after[m] = last != NONE && last / round == m / round ? last : NONE;
    }
}

/* ---- Tasks ---- */

static const slc_task *task_at(const simulation *sim, uint32_t stage, uint32_t number)
{
    return slc_pipeline_tasks(sim->program, stage) + number;
}

static slc_task_time *time_of(const simulation *sim, uint32_t stage, uint32_t number)
{
    return &sim->out->tasks[(size_t)stage * sim->program->task_count + number];
}

static bool can_start(const simulation *sim, const slc_task *task)
{
    const size_t place = at(sim, task->piece, task->micro_batch);
    const bool rows = !(sim->times->rows_s > 0) || task->piece || sim->rows_there[task->micro_batch];
    if (task->kind == SLC_TASK_FORWARD) return rows && (!task->piece || sim->arrived[0][place]);
    return task->kind == SLC_TASK_WEIGHT || task->piece + 1 == sim->pieces || sim->arrived[1][place];
}

/* Returns how many rounds before its own a forward's values were updated last. */
static uint32_t delay_of(const simulation *sim, uint32_t stage)
{
    const slc_pipeline_schedule *schedule = sim->program->schedule;
    return schedule->flushes ? 1 : schedule->versions(&sim->program->shape, stage);
}

/* Returns when a task ends that would end at `end_s` alone: a forward may wait inside for operations. NaN: not known
 * yet. */
static double forward_end(const simulation *sim, uint32_t stage, const slc_task *task, double end_s, double takes_s)
{
    const uint32_t length = round_length(sim), delay = delay_of(sim, stage), round = task->micro_batch / length;
    if (task->kind != SLC_TASK_FORWARD || task->micro_batch % length || round < delay) return end_s;
    for (uint32_t n = sim->stages[stage].first_operation; n < sim->stages[stage].end_operation; n++) {
        const slc_stage_operation *o = &sim->times->operations[n];
        if (o->piece != task->piece || o->within_s < 0) continue;
        const double over_s = sim->operations[(size_t)(round - delay) * sim->times->operation_count + n].over_s;
        if (isnan(over_s)) return NAN;
        end_s = fmax(end_s, over_s + takes_s - o->within_s);
    }
    return end_s;
}

/* Plans the operations that become ready while the task runs on without a stop, from `from_s` to `to_s` of its time. At
 * the task's end that includes all operations that are ready only then. */
static void plan_operations(simulation *sim, uint32_t stage, const slc_task *task, double from_s, double to_s)
{
    const stage_state *state = &sim->stages[stage];
    const uint32_t length = round_length(sim);
    for (uint32_t n = state->first_operation; slc_makes_weight_gradients(task->kind) && n < state->end_operation; n++) {
        const slc_stage_operation *o = &sim->times->operations[n];
        const double ready_s = fmax(0, state->takes_s - o->before_end_s);
        if ((task->micro_batch + 1 + o->earlier) % length || o->piece != task->piece) continue;
        if (ready_s >= from_s && (to_s >= state->takes_s || ready_s < to_s))
            slc_pipeline_events_add(&sim->events, sim->now_s + (ready_s - from_s), READY, n,
                                    task->micro_batch / length);
    }
}

/* Plans the end of the running forward, once it is known when the operations end that it waits for inside. */
static void settle_forward(simulation *sim, uint32_t stage)
{
    stage_state *state = &sim->stages[stage];
    if (!state->held_inside) return;
    const slc_task *task = task_at(sim, stage, state->next - 1);
    slc_task_time *time = time_of(sim, stage, state->next - 1);
    const double end_s = forward_end(sim, stage, task, state->alone_s, state->takes_s);
    if (isnan(end_s)) return;
    state->held_inside = false;
    time->end_s = fmax(end_s, sim->now_s);
    slc_pipeline_events_add(&sim->events, time->end_s, TASK_ENDS, stage, state->next - 1);
}

/* Finds the stops of a task. One that makes weight gradients alone reads no values, so what the next one needs may come
 * meanwhile. */
static void find_stops(simulation *sim, uint32_t stage, const slc_task *task)
{
    stage_state *state = &sim->stages[stage];
    const uint32_t list = 2 * task->piece + (task->kind != SLC_TASK_FORWARD);
    if (task->kind == SLC_TASK_WEIGHT) {
        state->stop = state->last_stop = 0;
        ask_for_next(sim, stage);
        return;
    }
    state->stop = sim->first_stop[list];
    state->last_stop = sim->first_stop[list + 1];
}

/* Lets the task that runs go on from where it is, to its next stop or to its end. */
static void go_on(simulation *sim, uint32_t stage)
{
    stage_state *state = &sim->stages[stage];
    const slc_task *task = task_at(sim, stage, state->next - 1);
    slc_task_time *time = time_of(sim, stage, state->next - 1);
    const double from_s = state->done_s;
    state->stopped = false;
    for (; state->stop < state->last_stop; state->stop++) {
        const slc_task_stop *s = &sim->stops[state->stop];
        if (s->at_s > from_s) {
            state->done_s = fmin(s->at_s, state->takes_s);
            plan_operations(sim, stage, task, from_s, state->done_s);
            slc_pipeline_events_add(&sim->events, sim->now_s + (state->done_s - from_s), STOPS, stage, 0);
            return;
        }
        if (s->gather == SLC_NEXT_GATHERS)
            ask_for_next(sim, stage);
        else
            ask(sim, s->gather, task->micro_batch);
        state->stopped = s->needs && *gathered_of(sim, s->gather, task->micro_batch) != BROUGHT;
        if (state->stopped) return;
    }
    state->alone_s = sim->now_s + (state->takes_s - from_s);
    time->end_s = forward_end(sim, stage, task, state->alone_s, state->takes_s);
    state->held_inside = isnan(time->end_s);
    if (!state->held_inside) slc_pipeline_events_add(&sim->events, time->end_s, TASK_ENDS, stage, state->next - 1);
    plan_operations(sim, stage, task, from_s, state->takes_s);
}

/* Ends a gather: the task goes on if it waits for it. */
static void end_gather(simulation *sim, uint32_t stage, uint32_t gather, uint32_t micro_batch)
{
    const stage_state *state = &sim->stages[stage];
    *gathered_of(sim, gather, micro_batch) = BROUGHT;
    if (state->stopped && sim->stops[state->stop].gather == gather &&
        task_at(sim, stage, state->next - 1)->micro_batch == micro_batch)
        go_on(sim, stage);
}

static void try_task(simulation *sim, uint32_t stage)
{
    stage_state *state = &sim->stages[stage];
    const uint32_t stages = sim->program->shape.stages;
    if (state->running || state->sending > sim->options.sends || state->next == sim->program->task_count) return;
    const slc_task *task = task_at(sim, stage, state->next);
    if (!can_start(sim, task)) return;
    slc_task_time *time = time_of(sim, stage, state->next);
    state->running = true;
    time->start_s = sim->now_s;
    state->takes_s = slc_task_duration(sim->times, task) + draw_delay(sim);
    state->done_s = 0;
    state->alone_s = NAN;
    state->next++;
    if (sim->times->gather_count) find_stops(sim, stage, task);
    go_on(sim, stage);
    serve_egress(sim, (stage + stages - 1) % stages);
    serve_egress(sim, (stage + 1) % stages);
}

static void pass_on(simulation *sim, uint32_t stage, bool backward, uint32_t piece, uint32_t micro_batch)
{
    const double *takes_s = backward ? sim->times->backward_message_s : sim->times->forward_message_s;
    if (stage_of(sim, piece) == stage)
        sim->arrived[backward][at(sim, piece, micro_batch)] = 1;
    else
        send(sim, backward ? SLC_TRANSFER_BACKWARD : SLC_TRANSFER_FORWARD, stage, piece, micro_batch,
             takes_s ? takes_s[backward ? piece : piece - 1] : 0);
}

static void end_task(simulation *sim, uint32_t stage, uint32_t number)
{
    const slc_task *task = task_at(sim, stage, number);
    const uint32_t m = task->micro_batch, length = round_length(sim);
    const bool input = slc_makes_input_gradient(task->kind), weights = slc_makes_weight_gradients(task->kind);
    const bool head = task->piece + 1 == sim->pieces;
    sim->stages[stage].running = false;
    if (task->kind == SLC_TASK_FORWARD && !head) pass_on(sim, stage, false, task->piece + 1, m);
    if (input && task->piece) pass_on(sim, stage, true, task->piece - 1, m);
    if (sim->times->rows_s > 0) {
        if (weights && !task->piece) send(sim, SLC_TRANSFER_ROW_GRADIENTS, stage, 0, m, sim->times->rows_s);
        if (input && head) send_rows_after(sim, m);
        if (weights && head && (m + 1) % length == 0 && !sim->head_left[m / length])
            send_first_rows(sim, m / length + 1);
    }
    try_task(sim, stage);
}

/* ---- Events ---- */

static void arrive(simulation *sim, uint32_t t)
{
    const slc_transfer *transfer = &sim->out->transfers[t];
    const size_t place = at(sim, transfer->piece, transfer->micro_batch);
    if (transfer->kind == SLC_TRANSFER_FORWARD) sim->arrived[0][place] = 1;
    if (transfer->kind == SLC_TRANSFER_BACKWARD) sim->arrived[1][place] = 1;
    if (transfer->kind == SLC_TRANSFER_ROWS) sim->rows_there[transfer->micro_batch] = 1;
    if (transfer->kind == SLC_TRANSFER_ROW_GRADIENTS) {
        const uint32_t round = transfer->micro_batch / round_length(sim);
        sim->rows_back[round]++;
        launch_waiting(sim, transfer->to, round);
    }
    sim->stages[transfer->from].sending -= transfer->kind != SLC_TRANSFER_ROWS;
    try_task(sim, transfer->from);
    try_task(sim, transfer->to);
}

static void end_transfer(simulation *sim, uint32_t stage, uint32_t t, bool on_thread)
{
    const slc_transfer *transfer = &sim->out->transfers[t];
    server *lane = on_thread ? &sim->stages[stage].thread : &sim->stages[stage].egress;
    lane->now = NONE;
    if (transfer->kind == SLC_TRANSFER_OPERATION)
        end_operation(sim, transfer->piece, transfer->micro_batch);
    else if (transfer->kind == SLC_TRANSFER_GATHER)
        end_gather(sim, stage, transfer->piece, transfer->micro_batch);
    else
        slc_pipeline_events_add(&sim->events, sim->now_s + sim->times->latency_s, ARRIVES, stage, t);
    serve(sim, stage, lane, on_thread ? THREAD_ENDS : EGRESS_ENDS);
}

static void agree(simulation *sim, uint32_t round)
{
    for (uint32_t n = 0; n < sim->times->operation_count; n++)
        if (sim->times->operations[n].agrees) end_operation(sim, n, round);
}

static void handle(simulation *sim, const slc_pipeline_event *event)
{
    switch (event->kind) {
    case TASK_ENDS: end_task(sim, event->stage, event->index); break;
    case EGRESS_ENDS: end_transfer(sim, event->stage, event->index, false); break;
    case THREAD_ENDS: end_transfer(sim, event->stage, event->index, true); break;
    case ARRIVES: arrive(sim, event->index); break;
    case READY:
        sim->operations[(size_t)event->index * sim->times->operation_count + event->stage].ready = true;
        launch(sim, event->stage, event->index);
        break;
    case STOPS: go_on(sim, event->stage); break;
    default: agree(sim, event->index); break;
    }
}

/* ---- The whole ---- */

static sluice_status stuck(const simulation *sim)
{
    char text[200] = "";
    size_t used = 0;
    for (uint32_t s = 0; s < sim->program->shape.stages && used + 60 < sizeof text; s++) {
        if (sim->stages[s].next == sim->program->task_count) continue;
        const slc_task *task = task_at(sim, s, sim->stages[s].next);
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%sstage %u %s %s of micro-batch %u", used ? ", " : "", s,
                             sim->stages[s].sending > sim->options.sends ? "sends before" : "waits at",
                             slc_task_kind_name(task->kind), task->micro_batch);
    }
    return slc_error(SLUICE_ERR_FORMAT, "a pipeline of %u stages stands still: %s", sim->program->shape.stages, text);
}

static sluice_status go(simulation *sim)
{
    const slc_pipeline_shape *shape = &sim->program->shape;
    slc_pipeline_event event;
    send_first_rows(sim, 0);
    for (uint32_t s = 0; s < shape->stages; s++) ask_for_next(sim, s);
    for (uint32_t s = 0; s < shape->stages; s++) try_task(sim, s);
    while (slc_pipeline_events_next(&sim->events, &event)) {
        sim->now_s = event.at_s;
        handle(sim, &event);
    }
    if (sim->events.failed) return slc_error(SLUICE_ERR_MEMORY, "events of a simulation");
    for (uint32_t s = 0; s < shape->stages; s++)
        if (sim->stages[s].next < sim->program->task_count || sim->stages[s].running) return stuck(sim);
    return SLUICE_OK;
}

static void note_gathers(simulation *sim)
{
    for (uint32_t g = 0; g < sim->times->gather_count; g++) {
        stage_state *stage = &sim->stages[stage_of(sim, sim->times->gathers[g].piece)];
        if (!stage->end_gather) stage->first_gather = g;
        if (g < stage->first_gather) stage->first_gather = g;
        stage->end_gather = g + 1;
    }
    slc_pipeline_list_stops(sim->program, sim->times, sim->stops, sim->first_stop);
}

static void note_places(simulation *sim)
{
    const slc_pipeline_program *program = sim->program;
    for (uint32_t s = 0; s < program->shape.stages; s++)
        for (uint32_t t = 0; t < program->task_count; t++) {
            const slc_task *task = task_at(sim, s, t);
            const bool back = slc_makes_input_gradient(task->kind);
            if (back || task->kind == SLC_TASK_FORWARD) sim->place[back][at(sim, task->piece, task->micro_batch)] = t;
            *time_of(sim, s, t) = (slc_task_time){NAN, NAN};
        }
    for (uint32_t s = 0; s < program->shape.stages; s++)
        sim->stages[s].egress = sim->stages[s].thread = (server){NONE, NONE, NONE};
    for (uint32_t n = 0; n < sim->times->operation_count; n++) {
        const slc_stage_operation *o = &sim->times->operations[n];
        stage_state *stage = &sim->stages[o->stage];
        if (!stage->end_operation) stage->first_operation = n;
        stage->end_operation = n + 1;
        sim->agreeing += o->agrees;
        for (uint32_t k = 0; k < sim->rounds; k++) {
            sim->operations[(size_t)k * sim->times->operation_count + n].over_s = NAN;
            sim->head_left[k] += o->piece + 1 == sim->pieces;
        }
    }
}

static sluice_status simulation_init(simulation *sim)
{
    const size_t stages = sim->program->shape.stages, cells = (size_t)sim->pieces * sim->micro_batches;
    const size_t operations = (size_t)sim->rounds * sim->times->operation_count;
    const size_t gathers = (size_t)sim->times->gather_count * sim->micro_batches;
    const size_t transfers = 2 * cells + 2 * (size_t)sim->micro_batches + operations + gathers;
    slc_pipeline_forecast *out = sim->out;
    bool all = (sim->stages = calloc(stages, sizeof *sim->stages)) != NULL;
    all &= (sim->operations = calloc(operations + 1, sizeof *sim->operations)) != NULL;
    all &= (sim->agreed = calloc((size_t)sim->rounds + 1, sizeof *sim->agreed)) != NULL;
    all &= (sim->rows_back = calloc((size_t)sim->rounds + 1, sizeof *sim->rows_back)) != NULL;
    all &= (sim->head_left = calloc((size_t)sim->rounds + 1, sizeof *sim->head_left)) != NULL;
    all &= (sim->rows_there = calloc((size_t)sim->micro_batches + 1, 1)) != NULL;
    all &= (sim->rows_after = calloc((size_t)sim->micro_batches + 1, sizeof *sim->rows_after)) != NULL;
    all &= (sim->gathered = calloc(gathers + 1, sizeof *sim->gathered)) != NULL;
    all &= (sim->stops = calloc(slc_pipeline_most_stops(sim->program, sim->times) + 1, sizeof *sim->stops)) != NULL;
    all &= (sim->first_stop = calloc(2 * (size_t)sim->pieces + 1, sizeof *sim->first_stop)) != NULL;
    for (int d = 0; d < 2; d++) {
        all &= (sim->arrived[d] = calloc(cells + 1, 1)) != NULL;
        all &= (sim->place[d] = calloc(cells + 1, sizeof *sim->place[d])) != NULL;
    }
    all &= (sim->pending = calloc(transfers + 1, sizeof *sim->pending)) != NULL;
    all &= (out->stages = calloc(stages, sizeof *out->stages)) != NULL;
    all &= (out->tasks = calloc(stages * sim->program->task_count + 1, sizeof *out->tasks)) != NULL;
    all &= (out->transfers = calloc(transfers + 1, sizeof *out->transfers)) != NULL;
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "simulation of %zu stages", stages);
    note_places(sim);
    note_gathers(sim);
    if (sim->times->rows_s > 0) plan_rows(sim);
    return SLUICE_OK;
}

static void simulation_fini(simulation *sim)
{
    free(sim->pending);
    free(sim->first_stop);
    free(sim->stops);
    free(sim->gathered);
    for (int d = 0; d < 2; d++) {
        free(sim->place[d]);
        free(sim->arrived[d]);
    }
    free(sim->rows_after);
    free(sim->rows_there);
    free(sim->head_left);
    free(sim->rows_back);
    free(sim->agreed);
    free(sim->operations);
    free(sim->stages);
    slc_pipeline_events_fini(&sim->events);
}

sluice_status slc_pipeline_simulate(const slc_pipeline_program *program, const slc_pipeline_times *times,
                                    const slc_pipeline_simulation *options, slc_pipeline_forecast *out)
{
    simulation sim = {.program = program,
                      .times = times,
                      .options = options ? *options : (slc_pipeline_simulation){0},
                      .out = out,
                      .pieces = slc_pipeline_pieces(&program->shape),
                      .micro_batches = program->micro_batches,
                      .rounds = program->schedule->updates_each ? program->micro_batches : program->steps};
    *out = (slc_pipeline_forecast){0};
    if (!sim.options.ahead) sim.options.ahead = slc_pipeline_ahead(&program->shape);
    if (!sim.options.sends) sim.options.sends = 1;
    if (sim.options.blocking) sim.options.sends = 0;
    sluice_status status = simulation_init(&sim);
    if (!status) status = go(&sim);
    if (!status) slc_pipeline_conclude(program, times, sim.now_s, out);
    simulation_fini(&sim);
    return status;
}
