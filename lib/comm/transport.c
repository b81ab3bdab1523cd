/* Loads plugins of both versions. A library that is loaded stays mapped, because UCX leaves handlers that must not be
 * unloaded. */
#include "lib/comm/transport.h"

#include "lib/base/log.h"
#include "lib/base/text/parse_quantity.h"
#include "lib/base/status.h"
#include "lib/comm/settings.h"
#include "lib/comm/sockets/watched.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The build says where plugins are installed: SLUICE_TRANSPORT_DIR, an absolute path, and
 * SLUICE_TRANSPORT_FROM_COMMAND, the way there from the folder of the command. */
enum { PATH_BYTES = 4096 };

static void host_log(void *context, int level, const char *line)
{
    (void)context;
    slc_log(level < 0 ? SLC_LOG_ERROR : level > 3 ? SLC_LOG_DEBUG : (slc_log_level)level, "%s", line);
}

static sluice_status host_error(void *context, sluice_status status, const char *line)
{
    (void)context;
    return slc_error(status, "%s", line);
}

static const char *host_setting(void *context, const char *name)
{
    const slc_transport *transport = context;
    if (!strcmp(name, "throttle.bytes_per_s")) return transport->bytes_per_s;
    if (!strcmp(name, "throttle.latency_s")) return transport->latency_s;
    if (!strcmp(name, "throttle.inner")) return transport->inner;
    if (!strcmp(name, "interfaces")) return transport->interfaces;
    if (!strcmp(name, "nccl.library")) return slc_setting_text(&slc_comm_settings, "SLUICE_COMM_NCCL");
    return NULL;
}

static void host_peer_lost(void *context, int rank, const char *why)
{
    const slc_transport *transport = context;
    transport->peer_lost(transport->context, rank, why);
}

/* The directory of the file that holds this function: the library, or the program that links it. */
static void own_directory(char *path, size_t bytes)
{
    Dl_info info;
    path[0] = '\0';
    if (!dladdr((const void *)(uintptr_t)&host_log, &info) || !info.dli_fname) return;
    char *real = realpath(info.dli_fname, NULL);
    char *slash = real ? strrchr(real, '/') : NULL;
    if (slash) snprintf(path, bytes, "%.*s", (int)(slash - real), real);
    free(real);
}

/* A search for a plugin's file. It ends at the first one that exists: what keeps that one from being loaded is said,
 * and no other, which may belong to another installation, is taken for it. */
typedef struct {
    char file[256];        /* the bare name */
    char path[PATH_BYTES]; /* where it is */
    void *library;
    const char *why; /* `library` is NULL: what dlerror says */
} plugin_search;

static void load_found(plugin_search *search)
{
    search->library = dlopen(search->path, RTLD_NOW | RTLD_LOCAL);
    search->why = search->library ? NULL : dlerror();
}

/* If the file is in DIRECTORY/BELOW, it is loaded, and the search is over. */
static bool found_in(plugin_search *search, const char *directory, size_t length, const char *below)
{
    if (!length || snprintf(search->path, sizeof search->path, "%.*s%s/%s", (int)length, directory, below,
                            search->file) >= (int)sizeof search->path)
        return false;
    if (access(search->path, F_OK) && (errno == ENOENT || errno == ENOTDIR)) return false;
    load_found(search);
    return true;
}

static bool found_by_setting(plugin_search *search)
{
    for (const char *path = getenv("SLUICE_TRANSPORT_PATH"); path && *path;) {
        size_t length = strcspn(path, ":");
        if (found_in(search, path, length, "")) return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static bool found_by_loader(plugin_search *search)
{
    size_t length = strlen(search->file);
    memcpy(search->path, search->file, length + 1);
    load_found(search);
    /* If dlopen has found no file, its line begins with the name that it was given; if it found one that it could not
     * load, with a path. */
    return search->library || !search->why || strncmp(search->why, search->file, length) || search->why[length] != ':';
}

static bool find_plugin(plugin_search *search, const char *own)
{
    static const char *const below[] = {"", "/sluice", ("/" SLUICE_TRANSPORT_FROM_COMMAND)};
    if (found_by_setting(search)) return true;
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        if (found_in(search, own, strlen(own), below[i])) return true;
    return found_by_loader(search) || found_in(search, SLUICE_TRANSPORT_DIR, strlen(SLUICE_TRANSPORT_DIR), "");
}

static sluice_status load_library(const char *name, void **out)
{
    plugin_search search = {.library = NULL};
    char own[PATH_BYTES];
    snprintf(search.file, sizeof search.file, "libsluice_transport_%s.so", name);
    own_directory(own, sizeof own);
    if (!find_plugin(&search, own))
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "transport %s: there is no %s in SLUICE_TRANSPORT_PATH, in %s, in its folders sluice and %s, "
                         "where the loader looks, or in %s",
                         name, search.file, own, SLUICE_TRANSPORT_FROM_COMMAND, SLUICE_TRANSPORT_DIR);
    if (!search.library)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "transport %s: %s cannot be loaded: %s", name, search.path,
                         search.why ? search.why : "the loader does not say why");
    *out = search.library;
    return SLUICE_OK;
}

/* The tables of slots that a library exports: version 1's, or version 2's two groups. */
typedef struct {
    const sluice_transport_v1 *base;
    const sluice_transport_collectives_v2 *collectives; /* NULL: none */
} plugin_tables;

/* The first slot that is empty and must not be, NULL: none. Messages are both there or, if collectives are, both
 * left out. */
static const char *missing_slot(const plugin_tables *tables)
{
    const sluice_transport_v1 *table = tables->base;
    const bool messages = !tables->collectives || table->send || table->recv;
    if (!table->name) return "name";
    if (!table->open) return "open";
    if (!table->address) return "address";
    if (!table->connect) return "connect";
    if (messages && !table->send) return "send";
    if (messages && !table->recv) return "recv";
    if (!table->progress) return "progress";
    if (!table->descriptors) return "descriptors";
    if (!table->arm) return "arm";
    if (!table->close_peer) return "close_peer";
    if (!table->cancel) return "cancel";
    if (!table->close) return "close";
    return NULL;
}

static const char *missing_collective(const sluice_transport_collectives_v2 *collectives)
{
    if (!collectives) return NULL;
    if (!collectives->attach) return "attach";
    if (!collectives->group_begin) return "group_begin";
    if (!collectives->group_end) return "group_end";
    if (!collectives->launched) return "launched";
    if (!collectives->reduce_scatter) return "reduce_scatter";
    if (!collectives->all_gather) return "all_gather";
    if (!collectives->all_reduce) return "all_reduce";
    if (!collectives->broadcast) return "broadcast";
    if (!collectives->send) return "collectives->send";
    if (!collectives->receive) return "receive";
    if (!collectives->health) return "health";
    if (!collectives->abort) return "abort";
    return NULL;
}

static sluice_status check_abi(const char *name, uint32_t abi, uint32_t size, uint32_t known_abi, size_t known_size)
{
    if (abi == known_abi && size >= known_size) return SLUICE_OK;
    return slc_error(SLUICE_ERR_UNSUPPORTED, "transport %s: ABI %u of %u bytes, this library needs %u of %zu", name,
                     abi, size, known_abi, known_size);
}

/* Takes what the library exports, the newest version first, and checks that it is whole. */
static sluice_status find_tables(const char *name, void *library, plugin_tables *out)
{
    const sluice_transport_v2 *second = dlsym(library, SLUICE_TRANSPORT_V2_SYMBOL);
    const sluice_transport_v1 *first = second ? NULL : dlsym(library, SLUICE_TRANSPORT_V1_SYMBOL);
    if (!second && !first)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "transport %s: the library has no %s and no %s", name,
                         SLUICE_TRANSPORT_V2_SYMBOL, SLUICE_TRANSPORT_V1_SYMBOL);
    sluice_status status = SLUICE_OK;
    if (second) {
        status = check_abi(name, second->abi, second->size, SLUICE_TRANSPORT_ABI_V2, sizeof *second);
        if (status) return status;
        *out = (plugin_tables){.base = &second->base, .collectives = second->collectives};
    } else
        *out = (plugin_tables){.base = first};
    status = check_abi(name, out->base->abi, out->base->size, SLUICE_TRANSPORT_ABI_V1, sizeof *out->base);
    if (status) return status;
    const char *slot = missing_slot(out);
    if (!slot) slot = missing_collective(out->collectives);
    return slot ? slc_error(SLUICE_ERR_UNSUPPORTED, "transport %s: its slot \"%s\" is empty", name, slot) : SLUICE_OK;
}

static sluice_status load_tables(slc_transport *transport, const char *name, plugin_tables *out)
{
    if (transport->library_count == SLC_LOADED_MAX)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "transport %s: more than %d wrap each other", name, SLC_LOADED_MAX);
    if (!*name || strchr(name, '/')) return slc_error(SLUICE_ERR_ARGUMENT, "transport \"%s\": not a name", name);
    void *library = NULL;
    sluice_status status = load_library(name, &library);
    if (status) return status;
    transport->libraries[transport->library_count++] = library;
    return find_tables(name, library, out);
}

/* Loads a transport for another one that wraps it. The wrapping one knows version 1's table, and wraps the messages. */
static sluice_status host_load(void *context, const char *name, const sluice_transport_v1 **table)
{
    plugin_tables tables;
    sluice_status status = load_tables(context, name, &tables);
    if (status) return status;
    if (!tables.base->send)
        return slc_error(
            SLUICE_ERR_UNSUPPORTED,
            "transport %s: it carries no messages that another transport could wrap; leave the throttle out", name);
    *table = tables.base;
    return SLUICE_OK;
}

/* Turns "BANDWIDTH[,LATENCY]" into the numbers that the plugin asks for as settings. */
static sluice_status parse_throttle(slc_transport *transport, const char *throttle)
{
    char bandwidth[64];
    double bytes_per_s = 0, latency_s = 0;
    const char *comma = strchr(throttle, ',');
    snprintf(bandwidth, sizeof bandwidth, "%.*s", (int)strcspn(throttle, ","), throttle);
    sluice_status status = slc_parse_bandwidth(bandwidth, &bytes_per_s);
    if (!status && comma) status = slc_parse_seconds(comma + 1, &latency_s);
    if (status) return slc_error_context(status, "throttle \"%s\"", throttle);
    snprintf(transport->bytes_per_s, sizeof transport->bytes_per_s, "%.17g", bytes_per_s);
    snprintf(transport->latency_s, sizeof transport->latency_s, "%.17g", latency_s);
    return SLUICE_OK;
}

sluice_status slc_transport_open(slc_transport *out, const char *name, const char *throttle, const char *interfaces,
                                 int rank, int size, slc_peer_lost peer_lost, void *context)
{
    *out = (slc_transport){.peer_lost = peer_lost, .context = context, .inner = name, .interfaces = interfaces};
    out->host = (sluice_transport_host_v1){.abi = SLUICE_TRANSPORT_ABI_V1,
                                           .size = sizeof out->host,
                                           .context = out,
                                           .rank = rank,
                                           .world_size = size,
                                           .log = host_log,
                                           .error = host_error,
                                           .setting = host_setting,
                                           .load = host_load,
                                           .peer_lost = host_peer_lost};
    plugin_tables tables;
    sluice_status status = *throttle ? parse_throttle(out, throttle) : SLUICE_OK;
    if (!status) status = load_tables(out, *throttle ? "throttle" : name, &tables);
    if (status) return status;
    const uint64_t before = slc_errors_set();
    status = slc_error_bare(tables.base->open(&out->host, &out->self), before);
    if (status) return status;
    out->table = tables.base;
    out->collectives = tables.collectives;
    out->fd_count = out->table->descriptors(out->self, out->fds, SLC_TRANSPORT_DESCRIPTORS);
    return SLUICE_OK;
}

static void mark_close_on_exec(void *context, int fd)
{
    (void)context;
    int flags = fcntl(fd, F_GETFD);
    if (flags >= 0) fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

void slc_transport_close_on_exec(const slc_transport *transport)
{
    for (int i = 0; transport->table && i < transport->fd_count; i++)
        slc_watched_visit(transport->fds[i], mark_close_on_exec, NULL);
}

static void close_descriptor(void *context, int fd)
{
    (void)context;
    close(fd);
}

void slc_transport_give_up(slc_transport *transport)
{
    for (int i = 0; transport->table && i < transport->fd_count; i++)
        slc_watched_visit(transport->fds[i], close_descriptor, NULL);
    transport->table = NULL;
}

void slc_transport_close(slc_transport *transport, uint64_t linger_ns)
{
    if (transport->table) transport->table->close(transport->self, linger_ns);
    transport->table = NULL;
}

const char *slc_transport_describe(const slc_transport *transport)
{
    if (!transport->table) return "none";
    return transport->table->describe ? transport->table->describe(transport->self) : transport->table->name;
}
