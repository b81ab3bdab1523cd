/* Messages over UCX: one worker and tag matching; the thread sleeps after ucp_worker_arm. The settings are those that
 * filled a link at small depth when it was measured: always eager (rendezvous is half-duplex at low depth), large
 * receive segments, a short keepalive. Variables that the user has set stay as they are. UCX 1.13 calls every closed
 * connection an "Endpoint timeout". lib/comm/world/faults_test.c covers this file. */
#include <sluice/plugin/transport_v1.h>
#include <ucp/api/ucp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct ucx ucx;
typedef struct request request;

typedef struct {
    ucx *self;
    int rank;
    ucp_ep_h endpoint; /* NULL: not connected, or lost */
    int lost;
} peer;

/* The header in front of UCX's address. UCX does not say how long its address is, so that an address that was cut short
 * would be read past its end. */
typedef struct {
    uint64_t magic, bytes, sum; /* bytes and sum: of the address that follows */
} address_header;
static const uint64_t address_magic = 0x31584355434c53;

/* A send or receive that UCX holds. Requests are kept in lists, so that a steady state allocates nothing. */
struct request {
    request *previous, *next; /* in the ring of pending ones, or the list of unused ones */
    ucx *self;
    int rank, cancelled;
    void *handle; /* UCX's request; NULL until the call that made it has returned */
    int called;   /* the callback came before that return */
    ucs_status_t status;
    size_t bytes;
    sluice_transport_done_v1 done;
    void *context;
};

struct ucx {
    const sluice_transport_host_v1 *host;
    ucp_context_h context;
    ucp_worker_h worker;
    void *address; /* a header and UCX's address */
    size_t address_bytes;
    peer *peers;              /* [world_size] */
    request pending, *unused; /* pending: the head of a ring */
    int events;               /* callbacks in the current progress */
};

static sluice_status fail(const ucx *self, sluice_status status, const char *what, ucs_status_t why)
{
    char line[300];
    snprintf(line, sizeof line, "ucx: %s: %s", what, ucs_status_string(why));
    return self->host->error(self->host->context, status, line);
}

/* ---- Requests ---- */

static request *take_request(ucx *self, int rank, sluice_transport_done_v1 done, void *context)
{
    request *one = self->unused;
    if (one)
        self->unused = one->next;
    else
        one = malloc(sizeof *one);
    if (!one) return NULL;
    *one = (request){.self = self, .rank = rank, .done = done, .context = context};
    one->previous = &self->pending;
    one->next = self->pending.next;
    one->next->previous = one;
    self->pending.next = one;
    return one;
}

static void give_back(request *one)
{
    one->previous->next = one->next;
    one->next->previous = one->previous;
    one->next = one->self->unused;
    one->self->unused = one;
}

static sluice_status translate(ucs_status_t status)
{
    switch (status) {
    case UCS_OK: return SLUICE_OK;
    case UCS_ERR_CANCELED: return SLUICE_ERR_INTERRUPTED;
    case UCS_ERR_MESSAGE_TRUNCATED: return SLUICE_ERR_MISMATCH;
    case UCS_ERR_NO_MEMORY: return SLUICE_ERR_MEMORY;
    default: return SLUICE_ERR_PEER; /* reset, timed out, not connected, unreachable */
    }
}

static void finish(request *one, ucs_status_t status, size_t bytes)
{
    ucx *self = one->self;
    sluice_transport_done_v1 done = one->done;
    void *context = one->context;
    sluice_status result = translate(status);
    if (result == SLUICE_ERR_INTERRUPTED && self->peers[one->rank].lost) result = SLUICE_ERR_PEER;
    self->events++;
    give_back(one);
    done(context, result, bytes);
}

static void on_sent(void *handle, ucs_status_t status, void *argument)
{
    finish(argument, status, 0);
    ucp_request_free(handle);
}

static void on_received(void *handle, ucs_status_t status, const ucp_tag_recv_info_t *info, void *argument)
{
    request *one = argument;
    size_t bytes = status == UCS_OK ? info->length : 0;
    if (one->handle) {
        finish(one, status, bytes);
    } else { /* the message was here already, and ucx_recv is still on the stack */
        one->called = 1;
        one->status = status;
        one->bytes = bytes;
    }
    ucp_request_free(handle);
}

/* ---- Opening ---- */

/* ucp_config_modify takes only settings that UCP itself reads; those of its TCP part must be in the environment. */
static const struct {
    const char *name, *value;
    int environment;
} defaults[] = {
    {"TLS", "tcp,self", 0},
    {"RNDV_THRESH", "inf", 0},
    {"KEEPALIVE_INTERVAL", "1s", 0},
    {"TCP_RX_SEG_SIZE", "512K", 1},
};

/* Environments that were published. They stay as long as the process, each reachable from the next. */
struct published {
    struct published *before;
    char *entries[];
};
static struct published *newest;

/* Works as setenv without overwriting does, except that it never frees or changes an array that other threads of the
 * program may be reading. They go on with the old array, or find the new one. */
static ucs_status_t add_to_environment(const char *variable, const char *value)
{
    size_t count = 0, length = strlen(variable) + strlen(value) + 2;
    if (getenv(variable)) return UCS_OK;
    while (environ && environ[count]) count++;
    struct published *more = malloc(sizeof *more + (count + 2) * sizeof *more->entries);
    char *entry = malloc(length);
    if (!more || !entry) {
        free(more);
        free(entry);
        return UCS_ERR_NO_MEMORY;
    }
    snprintf(entry, length, "%s=%s", variable, value);
    if (count) memcpy(more->entries, environ, count * sizeof *more->entries);
    more->entries[count] = entry;
    more->entries[count + 1] = NULL;
    more->before = newest;
    newest = more;
    __atomic_store_n(&environ, more->entries, __ATOMIC_RELEASE);
    return UCS_OK;
}

/* Left to itself, UCX takes any interface that is up, such as a bridge for containers, whose address each host has. A
 * user who chooses transports or devices has chosen interfaces too. */
static ucs_status_t bind_to_interfaces(const ucx *self, ucp_config_t *config)
{
    const char *names = self->host->setting(self->host->context, "interfaces");
    if (!names || !*names || getenv("UCX_NET_DEVICES") || getenv("UCX_TLS")) return UCS_OK;
    return ucp_config_modify(config, "NET_DEVICES", names);
}

static ucs_status_t configure(const ucx *self, ucp_config_t **config)
{
    char variable[64];
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        snprintf(variable, sizeof variable, "UCX_%s", defaults[i].name);
        ucs_status_t added = defaults[i].environment ? add_to_environment(variable, defaults[i].value) : UCS_OK;
        if (added != UCS_OK) return added;
    }
    ucs_status_t status = ucp_config_read(NULL, NULL, config);
    for (size_t i = 0; status == UCS_OK && i < sizeof defaults / sizeof *defaults; i++) {
        snprintf(variable, sizeof variable, "UCX_%s", defaults[i].name);
        if (!defaults[i].environment && !getenv(variable))
            status = ucp_config_modify(*config, defaults[i].name, defaults[i].value);
    }
    if (status == UCS_OK) status = bind_to_interfaces(self, *config);
    return status;
}

static uint64_t sum_bytes(const void *data, size_t bytes)
{
    uint64_t sum = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return sum;
}

static ucs_status_t write_address(ucx *self)
{
    ucp_address_t *address;
    size_t bytes;
    ucs_status_t status = ucp_worker_get_address(self->worker, &address, &bytes);
    if (status != UCS_OK) return status;
    address_header header = {address_magic, bytes, sum_bytes(address, bytes)};
    self->address_bytes = sizeof header + bytes;
    self->address = malloc(self->address_bytes);
    if (self->address) {
        memcpy(self->address, &header, sizeof header);
        memcpy((char *)self->address + sizeof header, address, bytes);
    }
    ucp_worker_release_address(self->worker, address);
    return self->address ? UCS_OK : UCS_ERR_NO_MEMORY;
}

static ucs_status_t open_worker(ucx *self)
{
    ucp_config_t *config = NULL;
    ucs_status_t status = configure(self, &config);
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                                 .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
                                 .estimated_num_eps = (size_t)self->host->world_size};
    if (status == UCS_OK) status = ucp_init(&params, config, &self->context);
    if (config) ucp_config_release(config);
    /* One thread at a time uses the worker, but not always the same: the thread that makes the world makes it. */
    const ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    if (status == UCS_OK) status = ucp_worker_create(self->context, &worker, &self->worker);
    if (status == UCS_OK) status = write_address(self);
    return status;
}

static void release(ucx *self)
{
    free(self->address);
    if (self->worker) ucp_worker_destroy(self->worker);
    if (self->context) ucp_cleanup(self->context);
    while (self->unused) {
        request *one = self->unused;
        self->unused = one->next;
        free(one);
    }
    free(self->peers);
    free(self);
}

static sluice_status ucx_open(const sluice_transport_host_v1 *host, void **out)
{
    ucx *self = calloc(1, sizeof *self);
    if (!self) return host->error(host->context, SLUICE_ERR_MEMORY, "ucx: no memory");
    self->host = host;
    self->pending.previous = self->pending.next = &self->pending;
    self->peers = calloc((size_t)host->world_size, sizeof *self->peers);
    if (!self->peers) {
        free(self);
        return host->error(host->context, SLUICE_ERR_MEMORY, "ucx: no memory");
    }
    ucs_status_t status = open_worker(self);
    if (status != UCS_OK) {
        sluice_status failed =
            fail(self, SLUICE_ERR_UNSUPPORTED, "cannot open a worker; are UCX_TLS and UCX_NET_DEVICES right?", status);
        release(self);
        return failed;
    }
    *out = self;
    return SLUICE_OK;
}

static sluice_status ucx_address(void *argument, const void **blob, size_t *bytes)
{
    const ucx *self = argument;
    *blob = self->address;
    *bytes = self->address_bytes;
    return SLUICE_OK;
}

/* ---- Peers ---- */

/* Begins to close a peer's endpoint. Without force, messages on their way arrive first. *handle is set if closing takes
 * a while. */
static void close_endpoint(peer *who, int force, void **handle)
{
    if (!who->endpoint) return;
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0};
    void *closing = ucp_ep_close_nbx(who->endpoint, &param);
    who->endpoint = NULL;
    *handle = UCS_PTR_IS_PTR(closing) ? closing : NULL;
}

static void wait_for(ucx *self, void *handle, const struct timespec *start, uint64_t linger_ns)
{
    while (handle && ucp_request_check_status(handle) == UCS_INPROGRESS) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t elapsed = (now.tv_sec - start->tv_sec) * 1000000000LL + now.tv_nsec - start->tv_nsec;
        if (elapsed > (int64_t)linger_ns) break;
        ucp_worker_progress(self->worker);
    }
    if (handle) ucp_request_free(handle);
}

static void cancel_requests(ucx *self, int rank)
{
    /* A cancelled receive may call back at once and change the list, so begin again after each. */
    for (request *one = self->pending.next; one != &self->pending;) {
        if (one->cancelled || !one->handle || (rank >= 0 && one->rank != rank)) {
            one = one->next;
            continue;
        }
        one->cancelled = 1;
        ucp_request_cancel(self->worker, one->handle);
        one = self->pending.next;
    }
}

static void ucx_close_peer(void *argument, int rank)
{
    ucx *self = argument;
    peer *who = &self->peers[rank];
    void *handle = NULL;
    who->lost = 1;
    /* Only a forced close ends a receive that has begun to arrive. */
    close_endpoint(who, 1, &handle);
    if (handle) ucp_request_free(handle);
    cancel_requests(self, rank);
}

static void on_error(void *argument, ucp_ep_h endpoint, ucs_status_t status)
{
    peer *who = argument;
    (void)endpoint;
    if (who->lost) return;
    who->lost = 1; /* the endpoint is closed later, not inside its own callback */
    who->self->events++;
    who->self->host->peer_lost(who->self->host->context, who->rank, ucs_status_string(status));
}

static sluice_status ucx_connect(void *argument, int rank, const void *blob, size_t bytes)
{
    ucx *self = argument;
    peer *who = &self->peers[rank];
    address_header header = {0};
    if (bytes >= sizeof header) memcpy(&header, blob, sizeof header);
    const char *address = (const char *)blob + sizeof header;
    if (header.magic != address_magic || header.bytes != bytes - sizeof header ||
        header.sum != sum_bytes(address, header.bytes))
        return self->host->error(self->host->context, SLUICE_ERR_FORMAT,
                                 "ucx: a peer's address is damaged: install one version of sluice everywhere");
    *who = (peer){.self = self, .rank = rank};
    const ucp_ep_params_t params = {
        .field_mask =
            UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *)address,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_error, .arg = who},
    };
    ucs_status_t status = ucp_ep_create(self->worker, &params, &who->endpoint);
    if (status == UCS_OK) return SLUICE_OK;
    who->endpoint = NULL;
    return fail(self, SLUICE_ERR_PEER, "cannot reach it; does UCX_NET_DEVICES name the network that leads there?",
                status);
}

/* ---- Messages ---- */

static sluice_status lost_peer(const ucx *self, int rank)
{
    char line[100];
    snprintf(line, sizeof line, "ucx: rank %d is not connected", rank);
    return self->host->error(self->host->context, SLUICE_ERR_PEER, line);
}

static sluice_status ucx_send(void *argument, int rank, const void *data, size_t bytes, uint64_t tag,
                              sluice_transport_done_v1 done, void *context)
{
    ucx *self = argument;
    if (self->peers[rank].lost || !self->peers[rank].endpoint) return lost_peer(self, rank);
    request *one = take_request(self, rank, done, context);
    if (!one) return self->host->error(self->host->context, SLUICE_ERR_MEMORY, "ucx: no memory for a send");
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA, .cb.send = on_sent, .user_data = one};
    void *handle = ucp_tag_send_nbx(self->peers[rank].endpoint, data, bytes, tag, &param);
    if (UCS_PTR_IS_PTR(handle)) {
        one->handle = handle;
        return SLUICE_IN_PROGRESS;
    }
    give_back(one);
    if (!handle) return SLUICE_OK;
    return fail(self, translate(UCS_PTR_STATUS(handle)), "send", UCS_PTR_STATUS(handle));
}

static sluice_status ucx_recv(void *argument, int rank, void *data, size_t bytes, uint64_t tag, size_t *received,
                              sluice_transport_done_v1 done, void *context)
{
    ucx *self = argument;
    request *one = take_request(self, rank, done, context);
    if (!one) return self->host->error(self->host->context, SLUICE_ERR_MEMORY, "ucx: no memory for a receive");
    /* Immediate completion is off, because version 1.13 does not say then how long the message was. */
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                       UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                       .cb.recv = on_received,
                                       .user_data = one};
    void *handle = ucp_tag_recv_nbx(self->worker, data, bytes, tag, UINT64_MAX, &param);
    if (UCS_PTR_IS_PTR(handle) && !one->called) {
        one->handle = handle;
        return SLUICE_IN_PROGRESS;
    }
    ucs_status_t status = one->called ? one->status : UCS_PTR_STATUS(handle);
    *received = one->bytes;
    give_back(one);
    return status == UCS_OK ? SLUICE_OK : fail(self, translate(status), "receive", status);
}

static int ucx_progress(void *argument)
{
    ucx *self = argument;
    self->events = 0;
    unsigned moved = ucp_worker_progress(self->worker);
    return moved || self->events;
}

static int ucx_descriptors(void *argument, int *fds, int capacity)
{
    const ucx *self = argument;
    int fd;
    if (ucp_worker_get_efd(self->worker, &fd) != UCS_OK) return 0;
    if (capacity > 0) fds[0] = fd;
    return 1;
}

static sluice_status ucx_arm(void *argument)
{
    const ucx *self = argument;
    return ucp_worker_arm(self->worker) == UCS_OK ? SLUICE_OK : SLUICE_IN_PROGRESS;
}

static void ucx_cancel(void *argument)
{
    cancel_requests(argument, -1);
}

/* Takes and drops messages that nobody will take after a failure, or from a peer that went on alone. UCX would warn of
 * each. */
static void discard_unexpected(ucx *self)
{
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message;
    const ucp_request_param_t param = {.op_attr_mask = 0};
    while ((message = ucp_tag_probe_nb(self->worker, 0, 0, 1, &info))) {
        void *handle = ucp_tag_msg_recv_nbx(self->worker, NULL, 0, message, &param);
        if (UCS_PTR_IS_PTR(handle)) ucp_request_free(handle);
    }
}

static void ucx_close(void *argument, uint64_t linger_ns)
{
    ucx *self = argument;
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    /* Begin all closes at once, then wait for each, because peers do the same at the same time. */
    void **closing = calloc((size_t)self->host->world_size, sizeof *closing);
    for (int rank = 0; rank < self->host->world_size; rank++) {
        void *handle = NULL;
        close_endpoint(&self->peers[rank], !linger_ns || !closing || self->peers[rank].lost, &handle);
        if (closing)
            closing[rank] = handle;
        else if (handle)
            ucp_request_free(handle);
    }
    for (int rank = 0; closing && rank < self->host->world_size; rank++)
        wait_for(self, closing[rank], &start, linger_ns);
    free(closing);
    discard_unexpected(self);
    release(self);
}

extern const sluice_transport_v1 sluice_transport_v1_table;
__attribute__((visibility("default"))) const sluice_transport_v1 sluice_transport_v1_table = {
    .abi = SLUICE_TRANSPORT_ABI_V1,
    .size = sizeof(sluice_transport_v1),
    .name = "ucx",
    .version = "1",
    .open = ucx_open,
    .address = ucx_address,
    .connect = ucx_connect,
    .send = ucx_send,
    .recv = ucx_recv,
    .progress = ucx_progress,
    .descriptors = ucx_descriptors,
    .arm = ucx_arm,
    .close_peer = ucx_close_peer,
    .cancel = ucx_cancel,
    .close = ucx_close,
};
