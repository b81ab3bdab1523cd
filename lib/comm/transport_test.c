/* A transport's plugin must be looked for in the right places and in their order, and the first file that exists must
 * be the one: if it cannot be loaded, the error says why, and no other file is taken in its place. A list here stands
 * for the files that exist and those that can be loaded. Tables of version 1, and of version 2 with messages, with
 * collectives, and with both, must be taken. */
#include "lib/comm/transport.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "libsluice_transport_pigeon.so"
#define MISSING_NEED "libloft.so.1: cannot open shared object file: No such file or directory"

enum { PATHS_MAX = 16, FOLDER_BYTES = 4096, PATH_BYTES = FOLDER_BYTES + 256 };

static char own[FOLDER_BYTES];             /* the folder of this program */
static char exists[PATHS_MAX][PATH_BYTES]; /* files that are there; a bare name: dlopen finds it */
static char asked[PATHS_MAX][PATH_BYTES];  /* what was looked for, in order */
static int exist_count, asked_count;
static bool loads; /* what exists can be loaded */
static char loaded[PATH_BYTES], said[2 * PATH_BYTES];
static const sluice_transport_v1 *exported_v1; /* the tables that what is loaded exports; NULL: not that one */
static const sluice_transport_v2 *exported_v2;

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
void *__real_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags);
char *__real_dlerror(void);
char *__wrap_dlerror(void);

static bool there(const char *path)
{
    if (asked_count == PATHS_MAX) fail_msg("%s: too many places", path);
    snprintf(asked[asked_count++], PATH_BYTES, "%s", path);
    for (int i = 0; i < exist_count; i++)
        if (!strcmp(exists[i], path)) return true;
    return false;
}

int __wrap_access(const char *path, int mode)
{
    if (!strstr(path, FILE_NAME)) return __real_access(path, mode);
    errno = ENOENT;
    return there(path) ? 0 : -1;
}

void *__wrap_dlopen(const char *path, int flags)
{
    if (!path || !strstr(path, FILE_NAME)) return __real_dlopen(path, flags);
    if (!strchr(path, '/') && !there(path)) {
        snprintf(said, sizeof said, "%s: cannot open shared object file: No such file or directory", path);
        return NULL;
    }
    if (!loads) {
        snprintf(said, sizeof said, "%s", MISSING_NEED);
        return NULL;
    }
    snprintf(loaded, sizeof loaded, "%s", path);
    return __real_dlopen(NULL, RTLD_NOW); /* which has no table */
}

void *__wrap_dlsym(void *library, const char *name)
{
    if (!strcmp(name, SLUICE_TRANSPORT_V1_SYMBOL)) return (void *)(uintptr_t)exported_v1;
    if (!strcmp(name, SLUICE_TRANSPORT_V2_SYMBOL)) return (void *)(uintptr_t)exported_v2;
    return __real_dlsym(library, name);
}

char *__wrap_dlerror(void)
{
    return *said ? said : __real_dlerror();
}

static void add_file(const char *directory, const char *below)
{
    snprintf(exists[exist_count++], PATH_BYTES, "%s%s%s", directory, below, FILE_NAME);
}

static void look_for_it(void)
{
    slc_transport transport;
    asked_count = 0;
    *loaded = *said = 0;
    assert_int_equal(slc_transport_open(&transport, "pigeon", "", "", 0, 1, NULL, NULL), SLUICE_ERR_UNSUPPORTED);
}

static int begin_with_nothing(void **state)
{
    (void)state;
    exist_count = 0;
    loads = true;
    exported_v1 = NULL;
    exported_v2 = NULL;
    setenv("SLUICE_TRANSPORT_PATH", "/first:/second", 1);
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length <= 0) return -1;
    own[length] = 0;
    *strrchr(own, '/') = 0;
    return 0;
}

/* All places, in order; the installation's comes last. */
static void add_every_file(void)
{
    add_file("/first", "/");
    add_file("/second", "/");
    add_file(own, "/");
    add_file(own, "/sluice/");
    add_file(own, "/" SLUICE_TRANSPORT_FROM_COMMAND "/");
    add_file("", "");
    add_file(SLUICE_TRANSPORT_DIR, "/");
}

static void all_places_are_looked_at_in_order(void **state)
{
    (void)state;
    add_every_file();
    int places = exist_count;
    exist_count = 0;
    look_for_it();
    assert_int_equal(asked_count, places);
    for (int i = 0; i < places; i++) assert_string_equal(asked[i], exists[i]);
    const char *const named[] = {"transport pigeon: there is no " FILE_NAME, "SLUICE_TRANSPORT_PATH", own,
                                 SLUICE_TRANSPORT_FROM_COMMAND, SLUICE_TRANSPORT_DIR};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (!strstr(sluice_last_error(), named[i])) fail_msg("no \"%s\" in \"%s\"", named[i], sluice_last_error());
}

static void the_first_that_exists_is_loaded(void **state)
{
    (void)state;
    add_every_file();
    int places = exist_count;
    for (int first = 0; first < places; first++) {
        look_for_it();
        assert_string_equal(loaded, exists[first]);
        assert_int_equal(asked_count, first + 1);
        assert_non_null(strstr(sluice_last_error(), "the library has no sluice_transport_v2_table and no"));
        snprintf(exists[first], PATH_BYTES, "nowhere");
    }
}

static void one_that_cannot_be_loaded_ends_the_search(void **state)
{
    (void)state;
    add_every_file();
    int places = exist_count;
    loads = false;
    for (int first = 0; first < places; first++) {
        look_for_it();
        assert_non_null(strstr(sluice_last_error(), exists[first]));
        assert_non_null(strstr(sluice_last_error(), "cannot be loaded: " MISSING_NEED));
        assert_int_equal(asked_count, first + 1);
        snprintf(exists[first], PATH_BYTES, "nowhere");
    }
}

/* ---- Tables ---- */

static sluice_status pigeon_open(const sluice_transport_host_v1 *host, void **self)
{
    (void)host;
    *self = NULL;
    return SLUICE_OK;
}

static sluice_status pigeon_address(void *self, const void **blob, size_t *bytes)
{
    (void)self, (void)blob, (void)bytes;
    return SLUICE_OK;
}

static sluice_status pigeon_connect(void *self, int rank, const void *blob, size_t bytes)
{
    (void)self, (void)rank, (void)blob, (void)bytes;
    return SLUICE_OK;
}

static sluice_status pigeon_send(void *self, int rank, const void *data, size_t bytes, uint64_t tag,
                                 sluice_transport_done_v1 done, void *context)
{
    (void)self, (void)rank, (void)data, (void)bytes, (void)tag, (void)done, (void)context;
    return SLUICE_OK;
}

static sluice_status pigeon_recv(void *self, int rank, void *data, size_t bytes, uint64_t tag, size_t *received,
                                 sluice_transport_done_v1 done, void *context)
{
    (void)self, (void)rank, (void)data, (void)bytes, (void)tag, (void)received, (void)done, (void)context;
    return SLUICE_OK;
}

static int pigeon_progress(void *self)
{
    (void)self;
    return 0;
}

static int pigeon_descriptors(void *self, int *fds, int capacity)
{
    (void)self, (void)fds, (void)capacity;
    return 0;
}

static sluice_status pigeon_status(void *self)
{
    (void)self;
    return SLUICE_OK;
}

static void pigeon_close_peer(void *self, int rank)
{
    (void)self, (void)rank;
}

static void pigeon_end(void *self)
{
    (void)self;
}

static void pigeon_close(void *self, uint64_t linger_ns)
{
    (void)self, (void)linger_ns;
}

static sluice_status pigeon_attach(void *self, void *stream)
{
    (void)self, (void)stream;
    return SLUICE_OK;
}

static sluice_status pigeon_collective(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype)
{
    (void)self, (void)send, (void)receive, (void)count, (void)dtype;
    return SLUICE_OK;
}

static sluice_status pigeon_broadcast(void *self, void *buffer, size_t count, sluice_dtype dtype, int root)
{
    (void)self, (void)buffer, (void)count, (void)dtype, (void)root;
    return SLUICE_OK;
}

static sluice_status pigeon_to(void *self, int rank, const void *data, size_t count, sluice_dtype dtype)
{
    (void)self, (void)rank, (void)data, (void)count, (void)dtype;
    return SLUICE_OK;
}

static sluice_status pigeon_from(void *self, int rank, void *data, size_t count, sluice_dtype dtype)
{
    (void)self, (void)rank, (void)data, (void)count, (void)dtype;
    return SLUICE_OK;
}

static const sluice_transport_v1 whole_base = {.abi = SLUICE_TRANSPORT_ABI_V1,
                                               .size = sizeof whole_base,
                                               .name = "pigeon",
                                               .open = pigeon_open,
                                               .address = pigeon_address,
                                               .connect = pigeon_connect,
                                               .send = pigeon_send,
                                               .recv = pigeon_recv,
                                               .progress = pigeon_progress,
                                               .descriptors = pigeon_descriptors,
                                               .arm = pigeon_status,
                                               .close_peer = pigeon_close_peer,
                                               .cancel = pigeon_end,
                                               .close = pigeon_close};

static const sluice_transport_collectives_v2 whole_collectives = {.attach = pigeon_attach,
                                                                  .group_begin = pigeon_status,
                                                                  .group_end = pigeon_status,
                                                                  .launched = pigeon_status,
                                                                  .reduce_scatter = pigeon_collective,
                                                                  .all_gather = pigeon_collective,
                                                                  .all_reduce = pigeon_collective,
                                                                  .broadcast = pigeon_broadcast,
                                                                  .send = pigeon_to,
                                                                  .receive = pigeon_from,
                                                                  .health = pigeon_status,
                                                                  .abort = pigeon_end};

static sluice_transport_v2 version_2(bool messages, const sluice_transport_collectives_v2 *collectives)
{
    sluice_transport_v2 table = {.abi = SLUICE_TRANSPORT_ABI_V2, .size = sizeof table, .base = whole_base};
    table.collectives = collectives;
    if (!messages) table.base.send = NULL, table.base.recv = NULL;
    return table;
}

/* Opens what is exported; *out stays open. */
static sluice_status open_pigeon(slc_transport *out)
{
    exist_count = 0;
    add_file("/first", "/");
    asked_count = 0;
    return slc_transport_open(out, "pigeon", "", "", 0, 1, NULL, NULL);
}

static void opened(bool messages, bool collectives)
{
    slc_transport transport;
    if (open_pigeon(&transport)) fail_msg("%s", sluice_last_error());
    assert_int_equal(slc_transport_has_messages(&transport), messages);
    assert_int_equal(slc_transport_has_collectives(&transport), collectives);
    assert_string_equal(slc_transport_describe(&transport), "pigeon");
    slc_transport_close(&transport, 0);
    assert_false(slc_transport_has_messages(&transport) || slc_transport_has_collectives(&transport));
}

static void both_versions_are_loaded(void **state)
{
    (void)state;
    sluice_transport_v2 table = version_2(false, &whole_collectives);
    exported_v1 = &whole_base;
    opened(true, false);
    exported_v2 = &table;
    opened(false, true); /* the second version, if both are there */
    exported_v1 = NULL;
    opened(false, true);
    table = version_2(true, &whole_collectives);
    opened(true, true);
    table = version_2(true, NULL);
    opened(true, false);
}

static void refused(const char *words)
{
    slc_transport transport;
    assert_int_equal(open_pigeon(&transport), SLUICE_ERR_UNSUPPORTED);
    if (!strstr(sluice_last_error(), words)) fail_msg("no \"%s\" in \"%s\"", words, sluice_last_error());
}

static void tables_of_another_kind_are_refused(void **state)
{
    (void)state;
    sluice_transport_v1 base = whole_base;
    sluice_transport_v2 table = version_2(true, &whole_collectives);
    exported_v1 = &base;
    base.abi = 2;
    refused("ABI 2 of");
    base = whole_base;
    base.size--;
    refused("ABI 1 of");
    exported_v1 = &whole_base;
    exported_v2 = &table;
    table.abi = 3;
    refused("ABI 3 of");
    table = version_2(true, &whole_collectives);
    table.size--;
    refused("ABI 2 of");
    table = version_2(true, &whole_collectives);
    table.base.abi = 2;
    refused("ABI 2 of");
}

/* A group is whole or left out, and one of the two is there. */
static void empty_slots_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t place;
    } slots[] = {{"attach", offsetof(sluice_transport_collectives_v2, attach)},
                 {"group_begin", offsetof(sluice_transport_collectives_v2, group_begin)},
                 {"group_end", offsetof(sluice_transport_collectives_v2, group_end)},
                 {"launched", offsetof(sluice_transport_collectives_v2, launched)},
                 {"reduce_scatter", offsetof(sluice_transport_collectives_v2, reduce_scatter)},
                 {"all_gather", offsetof(sluice_transport_collectives_v2, all_gather)},
                 {"all_reduce", offsetof(sluice_transport_collectives_v2, all_reduce)},
                 {"broadcast", offsetof(sluice_transport_collectives_v2, broadcast)},
                 {"collectives->send", offsetof(sluice_transport_collectives_v2, send)},
                 {"receive", offsetof(sluice_transport_collectives_v2, receive)},
                 {"health", offsetof(sluice_transport_collectives_v2, health)},
                 {"abort", offsetof(sluice_transport_collectives_v2, abort)}};
    assert_int_equal(sizeof slots / sizeof *slots * sizeof(void (*)(void)), sizeof whole_collectives);
    sluice_transport_collectives_v2 collectives;
    sluice_transport_v2 table = version_2(false, &collectives);
    exported_v2 = &table;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        char words[64];
        collectives = whole_collectives;
        memset((char *)&collectives + slots[i].place, 0, sizeof(void (*)(void)));
        snprintf(words, sizeof words, "its slot \"%s\" is empty", slots[i].name);
        refused(words);
    }
    table = version_2(true, NULL);
    table.base.send = NULL;
    refused("its slot \"send\" is empty");
    table = version_2(true, &whole_collectives);
    table.base.recv = NULL;
    refused("its slot \"recv\" is empty");
    table = version_2(false, NULL);
    refused("its slot \"send\" is empty");
    table = version_2(false, &whole_collectives);
    table.base.connect = NULL;
    refused("its slot \"connect\" is empty");
}

static sluice_transport_v2 wrapped;

/* Wraps `wrapped`, as a throttle does. */
static sluice_status wrapper_open(const sluice_transport_host_v1 *host, void **self)
{
    const sluice_transport_v1 *inner = NULL;
    *self = NULL;
    exported_v2 = &wrapped;
    sluice_status status = host->load(host->context, "pigeon", &inner);
    if (!status) assert_ptr_equal(inner, &wrapped.base);
    return status;
}

static void only_messages_can_be_wrapped(void **state)
{
    (void)state;
    sluice_transport_v1 wrapper = whole_base;
    wrapper.open = wrapper_open;
    exported_v1 = &wrapper;
    wrapped = version_2(true, &whole_collectives);
    opened(true, false);
    exported_v2 = NULL;
    wrapped = version_2(false, &whole_collectives);
    refused("it carries no messages that another transport could wrap");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_places_are_looked_at_in_order, begin_with_nothing),
        cmocka_unit_test_setup(the_first_that_exists_is_loaded, begin_with_nothing),
        cmocka_unit_test_setup(one_that_cannot_be_loaded_ends_the_search, begin_with_nothing),
        cmocka_unit_test_setup(both_versions_are_loaded, begin_with_nothing),
        cmocka_unit_test_setup(tables_of_another_kind_are_refused, begin_with_nothing),
        cmocka_unit_test_setup(empty_slots_are_named, begin_with_nothing),
        cmocka_unit_test_setup(only_messages_can_be_wrapped, begin_with_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
