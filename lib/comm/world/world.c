/* Makes a world: joins, meets the neighbours, opens a transport for the other ranks and starts the thread. Between the
 * steps the ranks exchange what they found; a rank that failed brings its error instead, and all of them end with it.
 */
#include "lib/comm/world/world.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/sized.h"
#include "lib/base/error_line.h"
#include "lib/base/status.h"
#include "lib/comm/control/control.h"
#include "lib/comm/lane/lane.h"
#include "lib/comm/lane/messages.h"
#include "lib/comm/leave.h"
#include "lib/comm/settings.h"
#include "lib/comm/sockets/address.h"
#include "lib/comm/sockets/listeners.h"
#include "lib/comm/world/lines.h"
#include "lib/comm/world/thread.h"
#include "lib/comm/world/worlds.h"

#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The blobs that one exchange brought: pointers into one allocation. */
typedef struct {
    const void **data;
    size_t *sizes;
    void *memory;
} blobs;

/* A rank's card, and the settings that must be equal on all ranks. */
typedef struct {
    slc_neighbour_card card;
    char transport[64], throttle[64];
    uint32_t depth; /* SLUICE_COMM_DEPTH: windows and scratch depend on it */
} introduction;

/* Precedes a transport's address and says where that rank is, for people, and where its transport listens. */
typedef struct {
    char host[64], address[64];
    uint32_t listener_count;
    slc_listener listeners[4];
} whereabouts;

static const char default_transport[] = "ucx";
static const double telling_share = 0.25; /* of the time to join, kept to tell the others why it failed */

static void blobs_free(blobs *all)
{
    free(all->data);
    free(all->sizes);
    free(all->memory);
    *all = (blobs){0};
}

static sluice_status exchange_blobs(sluice_world *world, sluice_status status, const void *blob, size_t bytes,
                                    blobs *out)
{
    *out = (blobs){.data = calloc((size_t)world->config.size, sizeof *out->data),
                   .sizes = calloc((size_t)world->config.size, sizeof *out->sizes)};
    if ((!out->data || !out->sizes) && !status) status = slc_error(SLUICE_ERR_MEMORY, "%d ranks", world->config.size);
    status = slc_rendezvous_exchange(&world->rendezvous, status, blob, bytes, out->data, out->sizes, &out->memory);
    if (status) blobs_free(out);
    return status;
}

static sluice_status check_introductions(const sluice_world *world, const blobs *all)
{
    const introduction *first = all->data[0];
    for (int rank = 0; rank < world->config.size; rank++) {
        const introduction *other = all->data[rank];
        if (all->sizes[rank] != sizeof *other)
            return slc_error(SLUICE_ERR_FORMAT, "rank %d introduced itself badly", rank);
        if (other->depth != first->depth)
            return slc_error(SLUICE_ERR_MISMATCH,
                             "SLUICE_COMM_DEPTH is %u on rank %d and %u on rank 0: set it alike on every rank",
                             other->depth, rank, first->depth);
        if (!strncmp(other->transport, first->transport, sizeof first->transport) &&
            !strncmp(other->throttle, first->throttle, sizeof first->throttle))
            continue;
        return slc_error(SLUICE_ERR_MISMATCH,
                         "rank %d uses transport \"%s\" throttled to \"%s\", rank 0 \"%s\" to \"%s\": set them alike",
                         rank, other->transport, other->throttle, first->transport, first->throttle);
    }
    return SLUICE_OK;
}

/* Finds the ranks that can be reached through memory. */
static sluice_status meet_neighbours(sluice_world *world)
{
    int size = world->config.size;
    introduction own = {0};
    snprintf(own.transport, sizeof own.transport, "%s", world->config.transport);
    snprintf(own.throttle, sizeof own.throttle, "%s", world->config.throttle);
    uint8_t *reached = calloc((size_t)size, 1);
    const slc_neighbour_card **cards = calloc((size_t)size, sizeof *cards);
    blobs all = {0}, matrix = {0};

    sluice_status status = slc_neighbours_open(&world->neighbours, &world->config, &own.card);
    if (!status) status = slc_setting_count(&slc_comm_settings, "SLUICE_COMM_DEPTH", &own.depth);
    if (!status && (!reached || !cards)) status = slc_error(SLUICE_ERR_MEMORY, "%d ranks", size);
    status = exchange_blobs(world, status, &own, sizeof own, &all);
    if (!status) status = check_introductions(world, &all); /* all ranks reach the same verdict */
    if (status) goto done;
    for (int rank = 0; rank < size; rank++) cards[rank] = &((const introduction *)all.data[rank])->card;

    status = slc_neighbours_connect(&world->neighbours, cards, reached);
    status = exchange_blobs(world, status, reached, (size_t)size, &matrix);
    if (status) goto done;
    const uint8_t *const *rows = (const uint8_t *const *)matrix.data;
    for (int rank = 1; rank < size; rank++)
        for (int other = 0; other < rank; other++) world->any_messages |= !rows[rank][other];
    status = slc_neighbours_meet(&world->neighbours, rows, world->rendezvous.deadline_ns);

done:
    blobs_free(&matrix);
    blobs_free(&all);
    free(cards);
    free(reached);
    return status;
}

static void on_peer_lost(void *context, int rank, const char *why)
{
    sluice_world *world = context;
    slc_messages_suspect(&world->comm, rank, why);
}

/* Finds this host's name and the address of the control connection's end here, which lies in the other ranks' network
 * as a rule. */
static void find_whereabouts(const sluice_world *world, whereabouts *out)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    *out = (whereabouts){0};
    if (gethostname(out->host, sizeof out->host - 1)) snprintf(out->host, sizeof out->host, "?");
    snprintf(out->address, sizeof out->address, "?");
    for (int rank = 0; rank < world->config.size; rank++) {
        int fd = world->rendezvous.fds[rank];
        if (fd < 0 || getsockname(fd, (struct sockaddr *)&address, &bytes)) continue;
        if (getnameinfo((struct sockaddr *)&address, bytes, out->address, sizeof out->address, NULL, 0, NI_NUMERICHOST))
            snprintf(out->address, sizeof out->address, "?");
        if (!strncmp(out->address, "::ffff:", 7)) /* IPv4 that came to a socket of IPv6 */
            memmove(out->address, out->address + 7, strlen(out->address + 7) + 1);
        return;
    }
}

static bool is_listed(const char *names, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = names; *at;) {
        const size_t here = strcspn(at, ",");
        if (here == length && !strncmp(at, name, length)) return true;
        at += here + (at[here] == ',');
    }
    return false;
}

/* Lists the interfaces of the control connections, since an address of another one, as that of a bridge for containers,
 * may be one that every host has. */
static void find_interfaces(const sluice_world *world, char *names, size_t bytes)
{
    char name[IF_NAMESIZE];
    size_t used = 0;
    names[0] = '\0';
    for (int rank = 0; rank < world->config.size; rank++) {
        if (world->rendezvous.fds[rank] < 0) continue;
        slc_address_interface(world->rendezvous.fds[rank], name, sizeof name);
        if (!*name || is_listed(names, name)) continue;
        int more = snprintf(names + used, bytes - used, "%s%s", used ? "," : "", name);
        if (more < 0 || used + (size_t)more >= bytes) {
            names[used] = '\0';
            return;
        }
        used += (size_t)more;
    }
}

static sluice_status try_peer(const slc_transport *transport, int rank, const whereabouts *where, const void *address,
                              size_t bytes, uint64_t deadline_ns)
{
    const size_t most = sizeof where->listeners / sizeof *where->listeners;
    const size_t count = where->listener_count < most ? where->listener_count : most;
    sluice_status status = slc_listeners_probe(where->listeners, count, deadline_ns);
    return status ? status : transport->table->connect(transport->self, rank, address, bytes);
}

/* Connects to a peer, and tries again until it is late: a network can come up a little later than the processes. */
static sluice_status connect_peer(sluice_world *world, int rank, const char *blob, size_t bytes)
{
    const slc_transport *transport = &world->transport;
    whereabouts where;
    long pause_ns = 5000000;
    const uint64_t telling_ns = (uint64_t)(telling_share * 1e9 * world->config.join_timeout_s);
    if (bytes < sizeof where) return slc_error(SLUICE_ERR_FORMAT, "rank %d sent no address", rank);
    memcpy(&where, blob, sizeof where);
    for (;;) {
        sluice_status status = try_peer(transport, rank, &where, blob + sizeof where, bytes - sizeof where,
                                        world->rendezvous.deadline_ns - telling_ns);
        bool late = slc_clock_ns() + telling_ns >= world->rendezvous.deadline_ns;
        if (status && (status != SLUICE_ERR_PEER || late))
            return slc_error_context(status, "connecting to rank %d at %.63s (%.63s)", rank, where.host, where.address);
        if (!status) return SLUICE_OK;
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        if (pause_ns < 100000000) pause_ns *= 2;
    }
}

static sluice_status connect_peers(sluice_world *world, const blobs *addresses)
{
    sluice_status status = SLUICE_OK;
    const bool all = slc_transport_has_collectives(&world->transport);
    for (int rank = 0; !status && world->transport.table && rank < world->config.size; rank++)
        if (rank != world->config.rank && (all || !slc_is_neighbour(&world->neighbours, rank)))
            status = connect_peer(world, rank, addresses->data[rank], addresses->sizes[rank]);
    return status;
}

/* Notes the listeners that are there since `known` were found. */
static void find_listeners(const slc_listener *known, size_t known_count, whereabouts *where)
{
    slc_listener fresh[SLC_LISTENERS_MOST];
    const size_t most = sizeof where->listeners / sizeof *where->listeners;
    const size_t count = slc_listeners_find(known, known_count, fresh);
    where->listener_count = (uint32_t)(count < most ? count : most);
    memcpy(where->listeners, fresh, where->listener_count * sizeof *fresh);
}

/* Opens the transport, allocates *out, and writes to it where this rank is and the transport's address. */
static sluice_status open_at_address(sluice_world *world, char **out, size_t *bytes)
{
    const void *address;
    whereabouts where;
    slc_listener before[SLC_LISTENERS_MOST];
    find_interfaces(world, world->interfaces, sizeof world->interfaces);
    const size_t before_count = slc_listeners_find(NULL, 0, before);
    sluice_status opened =
        slc_transport_open(&world->transport, world->config.transport, world->config.throttle, world->interfaces,
                           world->config.rank, world->config.size, on_peer_lost, world);
    if (opened) return opened;
    sluice_status status = world->transport.table->address(world->transport.self, &address, bytes);
    if (status) return status;
    *out = malloc(sizeof where + *bytes);
    if (!*out) return slc_error(SLUICE_ERR_MEMORY, "transport's address of %zu bytes", *bytes);
    find_whereabouts(world, &where);
    find_listeners(before, before_count, &where);
    memcpy(*out, &where, sizeof where);
    memcpy(*out + sizeof where, address, *bytes);
    *bytes += sizeof where;
    return SLUICE_OK;
}

/* Opens the transport if the world needs one. A world whose ranks all share memory does not, unless a network is
 * imitated or memory of GPUs is to be moved, which a transport other than the default one may be for. */
static sluice_status open_if_needed(sluice_world *world, char **address, size_t *bytes)
{
    const bool direct = !world->any_messages && !*world->config.throttle;
    if (world->config.size == 1 || (direct && !strcmp(world->config.transport, default_transport))) return SLUICE_OK;
    sluice_status status = open_at_address(world, address, bytes);
    if (status || !direct || slc_transport_has_collectives(&world->transport)) return status;
    slc_transport_close(&world->transport, 0);
    free(*address);
    *address = NULL;
    *bytes = 0;
    return SLUICE_OK;
}

/* Opens the transport, unless `status`, that of the step before, is a failure, and connects to all peers. A failure of
 * one rank is every rank's. */
static sluice_status open_transport(sluice_world *world, sluice_status status)
{
    char *address = NULL;
    size_t bytes = 0;
    blobs all = {0}, nothing = {0};
    if (!status) status = open_if_needed(world, &address, &bytes);
    status = exchange_blobs(world, status, address, bytes, &all);
    free(address);
    if (status) return status;
    status = connect_peers(world, &all);
    blobs_free(&all);
    if (!status) slc_transport_close_on_exec(&world->transport);
    status = exchange_blobs(world, status, NULL, 0, &nothing); /* no rank goes on before all are ready */
    blobs_free(&nothing);
    return status;
}

const char *slc_world_path_name(int size, bool any_messages, bool any_neighbours)
{
    if (size == 1) return "alone";
    if (!any_messages) return "direct";
    return any_neighbours ? "mixed" : "messages";
}

static sluice_status check_config(const sluice_world_config *config)
{
    if (config->size < 1 || config->size > SLUICE_RANKS_MOST || config->rank < 0 || config->rank >= config->size)
        return slc_error(SLUICE_ERR_ARGUMENT, "rank %d of %d ranks: at most %d, ranks from 0", config->rank,
                         config->size, SLUICE_RANKS_MOST);
    if (config->size > 1 && (!config->master_addr || config->master_port < 1 || config->master_port > SLUICE_PORT_LAST))
        return slc_error(SLUICE_ERR_ARGUMENT, "rank 0's address and port are needed: set MASTER_ADDR and MASTER_PORT");
    if (!(config->join_timeout_s > 0) || !(config->timeout_s >= 0))
        return slc_error(SLUICE_ERR_ARGUMENT, "time limits must be more than 0 s (timeout_s: 0 for the defaults)");
    return SLUICE_OK;
}

static sluice_status copy_config(sluice_world *world, const sluice_world_config *config)
{
    world->config = *config;
    world->transport_name = strdup(config->transport ? config->transport : default_transport);
    world->throttle = strdup(config->throttle ? config->throttle : "");
    world->job_token = strdup(config->job_token ? config->job_token : "");
    if (!world->transport_name || !world->throttle || !world->job_token) return slc_error(SLUICE_ERR_MEMORY, "world");
    world->config.transport = world->transport_name;
    world->config.throttle = world->throttle;
    world->config.job_token = world->job_token;
    if (config->size > 1 && !*world->job_token && config->rank == 0)
        slc_log(SLC_LOG_WARN, "no job token: any process that reaches port %d may join; set SLUICE_JOB_TOKEN",
                config->master_port);
    return SLUICE_OK;
}

static sluice_status choose_idling(sluice_world *world)
{
    unsigned spin_us = 0, pace_us = 0;
    sluice_status status = slc_setting_count(&slc_comm_settings, "SLUICE_COMM_SPIN_US", &spin_us);
    if (!status) status = slc_setting_count(&slc_comm_settings, "SLUICE_COMM_PACE_US", &pace_us);
    world->spin_ns = (uint64_t)spin_us * 1000;
    world->pace_ns = (uint64_t)pace_us * 1000;
    world->yield = world->neighbours.count + 1 > sysconf(_SC_NPROCESSORS_ONLN);
    return status;
}

/* Takes all steps in which ranks wait for each other: an error of one is every rank's. Even after an error
 * sluice_world_destroy closes what was opened. */
static sluice_status assemble(sluice_world *world)
{
    sluice_status status = meet_neighbours(world);
    if (!status)
        status = slc_lane_init(&world->comm, world->config.rank, world->config.size, &world->failure,
                               &world->neighbours, &world->transport, &world->control.history);
    if (!status) status = choose_idling(world);
    world->comm.any_messages = world->any_messages;
    return open_transport(world, status);
}

static sluice_status begin_work(sluice_world *world)
{
    world->path = slc_world_path_name(world->config.size, world->any_messages, world->neighbours.count > 0);
    sluice_status status =
        slc_control_init(&world->control, &world->rendezvous, &world->failure, world->config.timeout_s);
    if (status) return status;
    status = slc_worlds_add(world);
    return status ? status : slc_thread_start(world);
}

void slc_world_init(sluice_world *world)
{
    slc_failure_init(&world->failure);
    slc_lines_init(&world->lines);
    pthread_mutex_init(&world->collect_lock, NULL);
    slc_gate_init(&world->collects_done);
    slc_gate_init(&world->told);
    world->neighbours = (slc_neighbours){.page_fd = -1, .doorbell = -1, .listener = -1};
    world->path = "alone";
}

static _Thread_local bool rank_0_knows; /* of this thread's last sluice_world_create */

bool slc_world_create_known_to_first(void)
{
    return rank_0_knows;
}

sluice_status sluice_world_create(const sluice_world_config *given, sluice_world **out)
{
    sluice_world_config full = {0}, *config = &full;
    if (!out) return slc_error(SLUICE_ERR_ARGUMENT, "world_create: no place for the result");
    sluice_status status =
        given ? slc_sized_read("sluice_world_config", "sluice_world_config_init", given, sizeof full, &full)
              : sluice_world_config_init(&full);
    if (!status) status = check_config(config);
    rank_0_knows = false;
    if (status) return status;

    sluice_world *world = calloc(1, sizeof *world);
    if (!world) return slc_error(SLUICE_ERR_MEMORY, "world");
    slc_world_init(world);
    slc_log_rank(config->size > 1 ? config->rank : -1);

    status = copy_config(world, config);
    if (!status) status = slc_rendezvous_join(&world->config, &world->rendezvous);
    const bool joined = !status;
    if (!status) status = assemble(world);
    rank_0_knows = joined && config->rank > 0 && status != SLUICE_ERR_PEER && status != SLUICE_ERR_TIMEOUT;
    if (!status) {
        rank_0_knows = false;
        status = begin_work(world);
    }
    if (status) {
        sluice_world_destroy(world);
        return status;
    }
    *out = world;
    return SLUICE_OK;
}

static void free_world(sluice_world *world)
{
    if (!slc_worlds_remove(world)) return; /* a forked child leaves everything as it is */
    slc_thread_stop(world);
    slc_transport_close(&world->transport, 0); /* in case the thread never ran */
    slc_control_fini(&world->control);
    slc_lines_fini(&world->lines);
    if (world->comm.queue.ops) slc_lane_fini(&world->comm);
    if (world->neighbours.peers) slc_neighbours_close(&world->neighbours);
    slc_rendezvous_leave(&world->rendezvous);
    pthread_mutex_destroy(&world->collect_lock);
    slc_failure_fini(&world->failure);
    free(world->polls);
    free(world->transport_name);
    free(world->throttle);
    free(world->job_token);
    free(world);
}

void sluice_world_destroy(sluice_world *world)
{
    if (!world) return;
    if (!world->holders) {
        free_world(world);
    } else if (!world->unwanted) {
        world->unwanted = true;
        slc_log(
            SLC_LOG_WARN,
            "sluice_world_destroy was called before sluice_runtime_destroy of %u runtime%s; the world is freed with "
            "the last of them: destroy runtimes first",
            world->holders, world->holders == 1 ? "" : "s");
    }
}

void slc_world_hold(sluice_world *world)
{
    world->holders++;
}

void slc_world_release(sluice_world *world)
{
    if (!--world->holders && world->unwanted) free_world(world);
}

/* Gives rank 0 the time to pass on what ranks say that leave at about the same time. */
static void pass_last_words_on(const sluice_world *world)
{
    if (world->config.rank == 0 && world->config.size > 2) nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

/* Returns true if a lower rank has left with the same words as this one. */
static bool lower_rank_says_so(const sluice_world *world)
{
    for (int rank = 0; world->control.departures && rank < world->config.rank; rank++) {
        const char *words = world->control.departures[rank].words;
        if (words && !strcmp(words, world->last_words)) return true;
    }
    return false;
}

bool slc_world_leave(sluice_world *world, int code, int *told_code)
{
    const slc_failure *failure = &world->failure;
    const char *line = sluice_last_error();
    const bool told = slc_failed(failure) && failure->tell != SLC_TELL_OWN && strstr(line, failure->line);
    const bool for_all = told && (atomic_load(&failure->status) == SLUICE_ERR_PEER ||
                                  atomic_load(&failure->status) == SLUICE_ERR_TIMEOUT);
    const int reporter = told ? world->control.reporter : -1;
    const bool reported = reporter >= 0 && reporter < world->config.size && reporter != world->config.rank;
    world->code = code;
    world->control.listens = world->config.rank > 0 && !for_all;
    world->control.hears = reported;
    if (told && !reported) pass_last_words_on(world);
    slc_thread_stop(world);
    *told_code = reported ? world->control.departures[reporter].code : 0;
    const bool speaks = !reported && (for_all || !lower_rank_says_so(world));
    free_world(world);
    return speaks;
}

int sluice_world_rank(const sluice_world *world)
{
    return world ? world->config.rank : -1;
}

int sluice_world_size(const sluice_world *world)
{
    return world ? world->config.size : 0;
}

int sluice_world_local_rank(const sluice_world *world)
{
    int lower = 0;
    if (!world) return -1;
    for (int i = 0; i < world->neighbours.count; i++) lower += world->neighbours.list[i] < world->config.rank;
    return lower;
}

int sluice_world_local_size(const sluice_world *world)
{
    return world ? world->neighbours.count + 1 : 0;
}

const char *sluice_world_path(const sluice_world *world)
{
    return world ? world->path : "none";
}

const char *sluice_world_transport(const sluice_world *world)
{
    return world ? slc_transport_describe(&world->transport) : "none";
}

static sluice_status no_world(const char *call)
{
    return slc_error(SLUICE_ERR_ARGUMENT, "%s: no world given", call);
}

sluice_status sluice_world_check(sluice_world *world)
{
    if (!world) return no_world("check");
    return slc_failure_get(&world->failure);
}

slc_comm *slc_world_comm(sluice_world *world)
{
    return &world->comm;
}

/* The world has nobody to wait for: the other ranks are imagined, or there are none. */
static bool is_alone(const sluice_world *world)
{
    return world->config.size == 1 || world->imagined;
}

/* A part or a result travels in one message of a control connection. */
static sluice_status check_size(const char *call, const void *memory, size_t count, size_t each)
{
    if (!memory && count && each)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: %zu x %zu bytes, but no memory given", call, count, each);
    if (!each || count <= SLC_COLLECT_BYTES_MAX / each) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "%s: %zu x %zu bytes; small collectives carry at most %zu bytes at a time: send more in pieces",
                     call, count, each, (size_t)SLC_COLLECT_BYTES_MAX);
}

/* Hands a small collective to the thread and waits. After a failure the thread has let go of the caller's memory. */
static sluice_status run_collective(sluice_world *world, slc_collect collect)
{
    pthread_mutex_lock(&world->collect_lock);
    sluice_status status = slc_failure_get(&world->failure);
    if (!status) {
        world->collect = collect;
        atomic_store(&world->collector, slc_thread_number());
        uint32_t number = atomic_fetch_add_explicit(&world->collects_asked, 1, memory_order_release) + 1;
        slc_comm_notify(&world->comm);
        slc_gate_wait(&world->collects_done, number, UINT64_MAX);
        uint32_t complete = atomic_load_explicit(&world->collects_complete, memory_order_acquire);
        if ((int32_t)(complete - number) < 0) status = slc_failure_get(&world->failure);
    }
    pthread_mutex_unlock(&world->collect_lock);
    return status;
}

sluice_status sluice_world_barrier(sluice_world *world)
{
    if (!world) return no_world("barrier");
    if (is_alone(world)) return sluice_world_check(world);
    return run_collective(world, (slc_collect){.kind = SLC_COLLECT_BARRIER});
}

sluice_status slc_comm_meet(slc_comm *comm, const char *call, const char *object)
{
    sluice_world *world = slc_comm_world(comm);
    char text[200];
    if (is_alone(world)) return sluice_world_check(world);
    snprintf(text, sizeof text, "%s%s%s%s", call, object ? " of \"" : "", object ? object : "", object ? "\"" : "");
    return run_collective(world, (slc_collect){.kind = SLC_COLLECT_MEET, .src = text, .bytes = strlen(text)});
}

sluice_status sluice_world_broadcast(sluice_world *world, void *data, size_t bytes, int root)
{
    if (!world) return no_world("broadcast");
    if (root < 0 || root >= world->config.size)
        return slc_error(SLUICE_ERR_ARGUMENT, "broadcast: root %d of %d ranks", root, world->config.size);
    sluice_status status = check_size("broadcast", data, 1, bytes);
    if (status || is_alone(world)) return status ? status : sluice_world_check(world);
    return run_collective(
        world, (slc_collect){.kind = SLC_COLLECT_BROADCAST, .src = data, .dst = data, .bytes = bytes, .root = root});
}

sluice_status sluice_world_share(sluice_world *world, sluice_status status, void *data, size_t bytes, int root)
{
    struct {
        sluice_status status;
        char line[SLC_ERROR_BYTES];
    } said = {0};
    if (!world) return no_world("share");
    sluice_status mine = check_size("share", data, 1, bytes);
    if (mine) return mine;
    if (status < 0 && world->config.rank == root) {
        said.status = status;
        snprintf(said.line, sizeof said.line, "%s", sluice_last_error());
    }
    mine = sluice_world_broadcast(world, &said, sizeof said, root);
    if (!mine && said.status) return slc_error(said.status, "%s", said.line);
    return mine || !bytes ? mine : sluice_world_broadcast(world, data, bytes, root);
}

sluice_status sluice_world_all_gather(sluice_world *world, const void *src, size_t bytes, void *dst)
{
    if (!world) return no_world("all_gather");
    sluice_status status = check_size("all_gather", src && dst ? dst : NULL, (size_t)world->config.size, bytes);
    if (status) return status;
    if (!is_alone(world))
        return run_collective(world, (slc_collect){.kind = SLC_COLLECT_GATHER, .src = src, .dst = dst, .bytes = bytes});
    for (size_t rank = 0; bytes && rank < (size_t)world->config.size; rank++)
        if (src != (char *)dst + rank * bytes) memmove((char *)dst + rank * bytes, src, bytes);
    return sluice_world_check(world);
}

sluice_status sluice_world_same(sluice_world *world, const char *what, uint64_t fingerprint)
{
    if (!world) return no_world("same");
    if (!what) return slc_error(SLUICE_ERR_ARGUMENT, "same: what is compared has no name");
    const size_t size = (size_t)world->config.size;
    uint64_t *all = malloc(size * sizeof *all);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "fingerprints of %zu ranks", size);
    sluice_status status = sluice_world_all_gather(world, &fingerprint, sizeof fingerprint, all);
    for (size_t rank = 1; !status && rank < size; rank++)
        if (all[rank] != all[0])
            status = slc_error(SLUICE_ERR_MISMATCH, "rank %zu has another %s than rank 0; give every rank the same",
                               rank, what);
    free(all);
    return status;
}

sluice_status sluice_world_all_reduce(sluice_world *world, double *values, size_t count)
{
    if (!world) return no_world("all_reduce");
    sluice_status status = check_size("all_reduce", values, count, sizeof *values);
    for (size_t i = 0; !status && world->imagined && i < count; i++) values[i] *= world->config.size;
    if (status || is_alone(world)) return status ? status : sluice_world_check(world);
    return run_collective(
        world, (slc_collect){.kind = SLC_COLLECT_SUM, .src = values, .dst = values, .bytes = count * sizeof *values});
}
