/* Imitates a network that is slower than the real one. It wraps another transport and keeps two clocks for each rank.
 * When its turn comes, a message occupies the sender's egress for bytes / bandwidth, and the receiver's ingress as
 * long; its completion is reported one latency after the clock's time. Nothing is polled: the next moment is given as a
 * timer.
 * lib/comm/lane/collectives_test.c covers this file. */
#include <sluice/plugin/transport_v1.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct message message;
typedef struct throttle throttle;

typedef struct {
    message *first, *last;
} queue;

struct message {
    message *next;
    throttle *self;
    int rank, inner_done;
    const void *data;
    size_t bytes;
    uint64_t tag, start_ns, due_ns; /* a send's turn, and when it has left; due_ns: when a receive may be shown */
    sluice_status status;
    sluice_transport_done_v1 done;
    void *context;
};

struct throttle {
    const sluice_transport_host_v1 *host;
    const sluice_transport_v1 *inner;
    void *below;
    double ns_per_byte;
    uint64_t latency_ns, egress_ns, ingress_ns; /* the clocks are busy until these times */
    queue waiting, leaving, arrived;            /* sends not begun yet, sends begun, receives that are held back */
    message *unused;
    char name[64];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Occupies a clock for `bytes`, from now or from the time when it is free. Returns the begin. */
static uint64_t occupy(const throttle *self, uint64_t *clock_ns, uint64_t bytes)
{
    uint64_t begin = later(*clock_ns, now_ns());
    *clock_ns = begin + (uint64_t)((double)bytes * self->ns_per_byte);
    return begin;
}

static void append(queue *to, message *one)
{
    one->next = NULL;
    if (to->last)
        to->last->next = one;
    else
        to->first = one;
    to->last = one;
}

/* Takes `one` out of a queue, if it follows `before` (NULL: it is the first). */
static void take_out(queue *from, message *before, message *one)
{
    if (before)
        before->next = one->next;
    else
        from->first = one->next;
    if (from->last == one) from->last = before;
}

static message *new_message(throttle *self)
{
    message *one = self->unused;
    if (!one) return malloc(sizeof *one);
    self->unused = one->next;
    return one;
}

static void complete_message(message *one)
{
    throttle *self = one->self;
    sluice_transport_done_v1 done = one->done;
    void *context = one->context;
    sluice_status status = one->status;
    size_t bytes = one->bytes;
    one->next = self->unused;
    self->unused = one;
    done(context, status, bytes);
}

static sluice_status no_memory(const throttle *self)
{
    return self->host->error(self->host->context, SLUICE_ERR_MEMORY, "throttle: no memory for a message");
}

/* ---- Opening ---- */

static sluice_status throttle_open(const sluice_transport_host_v1 *host, void **out)
{
    const char *name = host->setting(host->context, "throttle.inner");
    const char *bandwidth = host->setting(host->context, "throttle.bytes_per_s");
    const char *latency = host->setting(host->context, "throttle.latency_s");
    if (!name || !bandwidth || !latency)
        return host->error(host->context, SLUICE_ERR_ARGUMENT,
                           "throttle: give BANDWIDTH[,LATENCY], as SLUICE_COMM_THROTTLE=1gbit,50us");
    throttle *self = calloc(1, sizeof *self);
    if (!self) return host->error(host->context, SLUICE_ERR_MEMORY, "throttle: no memory");
    self->host = host;
    self->ns_per_byte = 1e9 / strtod(bandwidth, NULL);
    self->latency_ns = (uint64_t)(strtod(latency, NULL) * 1e9);
    snprintf(self->name, sizeof self->name, "throttle(%s)", name);
    sluice_status status = host->load(host->context, name, &self->inner);
    if (!status) status = self->inner->open(host, &self->below);
    if (status) {
        free(self);
        return status;
    }
    *out = self;
    return SLUICE_OK;
}

static const char *throttle_describe(void *argument)
{
    const throttle *self = argument;
    return self->name;
}

static sluice_status throttle_address(void *argument, const void **blob, size_t *bytes)
{
    const throttle *self = argument;
    return self->inner->address(self->below, blob, bytes);
}

static sluice_status throttle_connect(void *argument, int rank, const void *blob, size_t bytes)
{
    const throttle *self = argument;
    return self->inner->connect(self->below, rank, blob, bytes);
}

/* ---- Sends ---- */

static void on_sent(void *context, sluice_status status, size_t bytes)
{
    message *one = context;
    (void)bytes;
    one->inner_done = 1;
    one->status = status;
}

/* Gives a message whose turn has come to the inner transport. */
static void depart(throttle *self, message *one)
{
    one->inner_done = 0;
    append(&self->leaving, one);
    sluice_status status = self->inner->send(self->below, one->rank, one->data, one->bytes, one->tag, on_sent, one);
    one->bytes = 0; /* the callback of a send reports no bytes */
    if (status != SLUICE_IN_PROGRESS) on_sent(one, status, 0);
}

static sluice_status throttle_send(void *argument, int rank, const void *data, size_t bytes, uint64_t tag,
                                   sluice_transport_done_v1 done, void *context)
{
    throttle *self = argument;
    message *one = new_message(self);
    if (!one) return no_memory(self);
    *one = (message){
        .self = self, .rank = rank, .data = data, .bytes = bytes, .tag = tag, .done = done, .context = context};
    one->start_ns = occupy(self, &self->egress_ns, bytes);
    one->due_ns = self->egress_ns;
    if (!self->waiting.first && one->start_ns <= now_ns())
        depart(self, one);
    else
        append(&self->waiting, one);
    return SLUICE_IN_PROGRESS;
}

/* ---- Receives ---- */

static void hold_back(message *one)
{
    throttle *self = one->self;
    if (one->status == SLUICE_OK) {
        occupy(self, &self->ingress_ns, one->bytes);
        one->due_ns = self->ingress_ns + self->latency_ns;
    } else
        one->due_ns = 0;
    append(&self->arrived, one);
}

static void on_received(void *context, sluice_status status, size_t bytes)
{
    message *one = context;
    one->status = status;
    one->bytes = bytes;
    hold_back(one);
}

static sluice_status throttle_recv(void *argument, int rank, void *data, size_t bytes, uint64_t tag, size_t *received,
                                   sluice_transport_done_v1 done, void *context)
{
    throttle *self = argument;
    message *one = new_message(self);
    if (!one) return no_memory(self);
    *one = (message){.self = self, .rank = rank, .done = done, .context = context};
    sluice_status status = self->inner->recv(self->below, rank, data, bytes, tag, received, on_received, one);
    if (status < 0) {
        one->next = self->unused;
        self->unused = one;
        return status;
    }
    if (status == SLUICE_OK) on_received(one, SLUICE_OK, *received);
    return SLUICE_IN_PROGRESS;
}

/* ---- Progress ---- */

static int let_depart(throttle *self)
{
    int count = 0;
    for (message *one; (one = self->waiting.first) && one->start_ns <= now_ns(); count++) {
        take_out(&self->waiting, NULL, one);
        depart(self, one);
    }
    return count;
}

/* Completes the messages that are due; one that the inner transport has not completed yet waits for it. */
static int complete_due(queue *from, int sends)
{
    int count = 0;
    for (message *one = from->first, *before = NULL; one;) {
        int due = (!sends || one->inner_done) && (one->due_ns <= now_ns() || one->status);
        if (!due) {
            before = one;
            one = one->next;
            continue;
        }
        take_out(from, before, one);
        complete_message(one);
        count++;
        one = from->first; /* the callback may have changed the list */
        before = NULL;
    }
    return count;
}

static int throttle_progress(void *argument)
{
    throttle *self = argument;
    int moved = self->inner->progress(self->below);
    moved += let_depart(self);
    moved += complete_due(&self->leaving, 1);
    moved += complete_due(&self->arrived, 0);
    return moved;
}

static int throttle_descriptors(void *argument, int *fds, int capacity)
{
    const throttle *self = argument;
    return self->inner->descriptors(self->below, fds, capacity);
}

static uint64_t throttle_timer(void *argument)
{
    const throttle *self = argument;
    uint64_t due = self->inner->timer ? self->inner->timer(self->below) : UINT64_MAX;
    if (self->waiting.first) due = earlier(due, self->waiting.first->start_ns);
    for (const message *one = self->leaving.first; one; one = one->next)
        if (one->inner_done) due = earlier(due, one->status ? 0 : one->due_ns);
    for (const message *one = self->arrived.first; one; one = one->next) due = earlier(due, one->due_ns);
    return due;
}

static sluice_status throttle_arm(void *argument)
{
    const throttle *self = argument;
    if (throttle_timer(argument) <= now_ns()) return SLUICE_IN_PROGRESS;
    return self->inner->arm(self->below);
}

static uint64_t throttle_charge(void *argument, uint64_t sent, uint64_t received, uint32_t latencies)
{
    throttle *self = argument;
    occupy(self, &self->egress_ns, sent);
    occupy(self, &self->ingress_ns, received);
    /* Bytes that go one way do not wait for the other way's clock. */
    const uint64_t clock_ns = sent && !received   ? self->egress_ns
                              : received && !sent ? self->ingress_ns
                                                  : later(self->egress_ns, self->ingress_ns);
    return clock_ns + latencies * self->latency_ns;
}

/* ---- Ending ---- */

static void drop_waiting(throttle *self, int rank, sluice_status status)
{
    for (message *one = self->waiting.first, *before = NULL; one;) {
        if (rank >= 0 && one->rank != rank) {
            before = one;
            one = one->next;
            continue;
        }
        take_out(&self->waiting, before, one);
        one->status = status;
        one->bytes = 0;
        complete_message(one);
        one = self->waiting.first;
        before = NULL;
    }
}

static void throttle_close_peer(void *argument, int rank)
{
    throttle *self = argument;
    drop_waiting(self, rank, SLUICE_ERR_PEER);
    self->inner->close_peer(self->below, rank);
}

static void throttle_cancel(void *argument)
{
    throttle *self = argument;
    drop_waiting(self, -1, SLUICE_ERR_INTERRUPTED);
    for (message *one = self->arrived.first; one; one = one->next) one->due_ns = 0;
    for (message *one = self->leaving.first; one; one = one->next) one->due_ns = 0;
    self->inner->cancel(self->below);
}

static void throttle_close(void *argument, uint64_t linger_ns)
{
    throttle *self = argument;
    self->inner->close(self->below, linger_ns);
    while (self->unused) {
        message *one = self->unused;
        self->unused = one->next;
        free(one);
    }
    free(self);
}

extern const sluice_transport_v1 sluice_transport_v1_table;
__attribute__((visibility("default"))) const sluice_transport_v1 sluice_transport_v1_table = {
    .abi = SLUICE_TRANSPORT_ABI_V1,
    .size = sizeof(sluice_transport_v1),
    .name = "throttle",
    .version = "1",
    .open = throttle_open,
    .describe = throttle_describe,
    .address = throttle_address,
    .connect = throttle_connect,
    .send = throttle_send,
    .recv = throttle_recv,
    .progress = throttle_progress,
    .descriptors = throttle_descriptors,
    .arm = throttle_arm,
    .timer = throttle_timer,
    .charge = throttle_charge,
    .close_peer = throttle_close_peer,
    .cancel = throttle_cancel,
    .close = throttle_close,
};
