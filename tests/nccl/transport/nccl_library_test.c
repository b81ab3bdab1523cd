/* The transport refuses a library that is absent, that is no NCCL, that is too old or lacks a function, and takes newer
 * ones and those between. Errors of NCCL become the transport's, as a script in NCCL's place shows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "plugins/nccl/nccl_abi.h"
#include "tests/nccl/transport/scripted_nccl.h"

#include <dlfcn.h>
#include <sluice/plugin/transport_v2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char told[2048], logged[2048];
static int logged_level;
static const char *library;

static void host_log(void *context, int level, const char *line)
{
    (void)context;
    logged_level = level;
    snprintf(logged, sizeof logged, "%s", line);
}

static sluice_status host_error(void *context, sluice_status status, const char *line)
{
    (void)context;
    snprintf(told, sizeof told, "%s", line);
    return status;
}

static const char *host_setting(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "nccl.library") == 0 ? library : NULL;
}

/* ---- Versions ---- */

static const sluice_transport_v2 *plugin_table(void)
{
    void *plugin = dlopen(TRANSPORT_NCCL, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(plugin);
    const sluice_transport_v2 *table = dlsym(plugin, SLUICE_TRANSPORT_V2_SYMBOL);
    assert_non_null(table);
    return table;
}

static const sluice_transport_host_v1 host = {.abi = SLUICE_TRANSPORT_ABI_V1,
                                              .size = sizeof host,
                                              .world_size = 1,
                                              .log = host_log,
                                              .error = host_error,
                                              .setting = host_setting};

/* Opens the transport with NCCL from `path`; closes it if that went well. */
static sluice_status open_with(const char *path, char description[64])
{
    void *self = NULL;
    const sluice_transport_v2 *table = plugin_table();
    library = path;
    *told = *logged = 0;
    sluice_status status = table->base.open(&host, &self);
    if (status) return status;
    snprintf(description, 64, "%s", table->base.describe(self));
    table->base.close(self, 0);
    return status;
}

static void refused(const char *path, const char *words, const char *more)
{
    char description[64];
    assert_int_equal(open_with(path, description), SLUICE_ERR_UNSUPPORTED);
    if (!strstr(told, words) || !strstr(told, more)) fail_msg("no \"%s\" or no \"%s\" in \"%s\"", words, more, told);
}

static void what_is_no_nccl_is_refused(void **state)
{
    (void)state;
    refused("/nowhere/libnccl.so.2", "SLUICE_COMM_NCCL=/nowhere/libnccl.so.2 cannot be loaded", "No such file");
    refused("libm.so.6", "libm.so.6 does not say which NCCL it is", "SLUICE_COMM_NCCL");
    /* The loader's path of this test has a text of that name (CMakeLists.txt). */
    refused("", "no NCCL is here (", "2.18.3 or newer");
    refused(NULL, "libnccl.so.2: ", "SLUICE_COMM_NCCL");
}

static void taken(const char *version, const char *shown, int level)
{
    char description[64];
    setenv("SCRIPT_VERSION", version, 1);
    if (open_with(SCRIPTED_NCCL, description)) fail_msg("%s: %s", version, told);
    assert_string_equal(description, shown);
    assert_int_equal(logged_level, level);
}

static void versions_are_looked_at(void **state)
{
    (void)state;
    taken("21803", "nccl 2.18.3", 3);
    taken("22809", "nccl 2.28.9", 3);
    taken("23007", "nccl 2.30.7", 3);
    taken("23100", "nccl 2.31.0", 1);
    assert_non_null(strstr(logged, "newer than"));
    setenv("SCRIPT_VERSION", "21801", 1);
    refused(SCRIPTED_NCCL, "is NCCL 2.18.1, but 2.18.3 or newer is needed", "SLUICE_COMM_NCCL");
    setenv("SCRIPT_VERSION", "2708", 1); /* as NCCL counted before 2.9 */
    refused(SCRIPTED_NCCL, "is NCCL ", "or newer is needed");
    setenv("SCRIPT_VERSION", "22809", 1);
    refused(PARTIAL_NCCL, "has no ncclCommGetAsyncError", PARTIAL_NCCL);
}

/* ---- Errors ---- */

/* The script's counts, which begin anew with each world. */
static script_counts *counted;

typedef struct {
    const sluice_transport_collectives_v2 *calls;
    const sluice_transport_v1 *base;
    void *self;
} world;

static void say(const char *variable, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(variable, text, 1);
}

static world open_world(void)
{
    const sluice_transport_v2 *table = plugin_table();
    world w = {.calls = table->collectives, .base = &table->base};
    const void *blob;
    size_t bytes;
    void *script = dlopen(SCRIPTED_NCCL, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(script);
    counted = dlsym(script, "script_counted");
    assert_non_null(counted);
    *counted = (script_counts){.blocking = 7};
    library = SCRIPTED_NCCL;
    say("SCRIPT_VERSION", 22809);
    say("SCRIPT_INIT", ncclInProgress);
    say("SCRIPT_CALL", ncclSuccess);
    say("SCRIPT_GROUP_END", ncclInProgress);
    say("SCRIPT_STATE", ncclSuccess);
    setenv("SCRIPT_WORDS", "its words", 1);
    assert_int_equal(w.base->open(&host, &w.self), SLUICE_OK);
    assert_int_equal(w.base->address(w.self, &blob, &bytes), SLUICE_OK);
    *told = 0;
    return w;
}

static world attached_world(void)
{
    world w = open_world();
    assert_int_equal(w.calls->attach(w.self, &w), SLUICE_OK);
    assert_int_equal(counted->blocking, 0);
    return w;
}

static void told_as(sluice_status status, sluice_status wanted, const char *words)
{
    assert_int_equal(status, wanted);
    if (!strstr(told, words)) fail_msg("no \"%s\" in \"%s\"", words, told);
}

/* Begins and ends a group of one call. */
static sluice_status one_call(world *w)
{
    float number = 0;
    assert_int_equal(w->calls->group_begin(w->self), SLUICE_OK);
    assert_int_equal(w->calls->all_reduce(w->self, &number, &number, 1, SLUICE_FP32), SLUICE_OK);
    return w->calls->group_end(w->self);
}

static void making_fails(ncclResult_t init, ncclResult_t state, const char *said, sluice_status wanted,
                         const char *words)
{
    world w = open_world();
    say("SCRIPT_INIT", init);
    say("SCRIPT_STATE", state);
    setenv("SCRIPT_WORDS", said, 1);
    told_as(w.calls->attach(w.self, &w), wanted, words);
    assert_int_equal(counted->aborted, 1); /* what was half made is given up */
    told_as(w.calls->group_begin(w.self), SLUICE_ERR_ORDER, "attach a stream first");
    w.base->close(w.self, 1000000);
    assert_int_equal(counted->aborted, 1);
}

static void a_world_that_cannot_be_made_is_told(void **state)
{
    (void)state;
#define TWICE "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000"
    making_fails(ncclInProgress, ncclUnhandledCudaError, "Cuda failure 'no memory'", SLUICE_ERR_SYSTEM,
                 "nccl: making a communicator: what the script says; NCCL's last error: Cuda failure 'no memory'");
    making_fails(ncclSystemError, ncclSystemError, "", SLUICE_ERR_SYSTEM, "NCCL's last error: none");
    making_fails(ncclInProgress, ncclRemoteError, "gone", SLUICE_ERR_PEER, "NCCL's last error: gone");
    setenv("SLURM_LOCALID", "3", 1);
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    making_fails(ncclInProgress, ncclInvalidUsage, TWICE, SLUICE_ERR_UNSUPPORTED,
                 "two ranks use one GPU, which NCCL refuses (" TWICE
                 "; here SLURM_LOCALID=3, CUDA_VISIBLE_DEVICES=0): start at most");
    unsetenv("SLURM_LOCALID");
    unsetenv("CUDA_VISIBLE_DEVICES");
    making_fails(ncclInProgress, ncclInvalidUsage, TWICE, SLUICE_ERR_UNSUPPORTED,
                 "here no launcher's local rank is set): ");
}

/* The file nccl.conf, which NCCL reads, may make communicators block: such a one is refused. */
static void a_communicator_that_blocks_is_refused(void **state)
{
    (void)state;
    setenv("SCRIPT_CONF", "1", 1);
    making_fails(ncclSuccess, ncclSuccess, "", SLUICE_ERR_ARGUMENT, "NCCL_COMM_BLOCKING=1: ");
    unsetenv("NCCL_COMM_BLOCKING");
    setenv("SCRIPT_CONF", "0", 1);
    world w = attached_world();
    w.base->close(w.self, 0);
    unsetenv("NCCL_COMM_BLOCKING");
    unsetenv("SCRIPT_CONF");
}

static void what_goes_wrong_later_is_told(void **state)
{
    (void)state;
    world w = attached_world();
    say("SCRIPT_STATE", ncclInProgress);
    assert_int_equal(w.calls->health(w.self), SLUICE_OK); /* a launch is no illness */
    say("SCRIPT_STATE", ncclRemoteError);
    told_as(w.calls->health(w.self), SLUICE_ERR_PEER, "what the script says; NCCL's last error: its words");
    say("SCRIPT_STATE", ncclInternalError);
    told_as(w.calls->health(w.self), SLUICE_ERR_SYSTEM, "asking after the communicator");
    assert_int_equal(counted->aborted, 0); /* the caller decides */
    w.calls->abort(w.self);
    assert_int_equal(counted->aborted, 1);
    told_as(w.calls->health(w.self), SLUICE_ERR_INTERRUPTED, "were aborted");
    assert_int_equal(w.calls->attach(w.self, NULL), SLUICE_OK);
    told_as(w.calls->attach(w.self, &w), SLUICE_ERR_INTERRUPTED, "attach: the collectives were aborted");
    w.calls->abort(w.self);
    w.base->close(w.self, 1000000);
    assert_int_equal(counted->aborted, 1);
}

/* A group is launched when NCCL says so, and not before. */
static void launches_are_asked_for(void **state)
{
    (void)state;
    world w = attached_world();
    say("SCRIPT_GROUP_END", ncclSuccess); /* NCCL before 2.23, where the ranks have met */
    assert_int_equal(one_call(&w), SLUICE_OK);
    assert_true(w.base->timer(w.self) == UINT64_MAX);
    say("SCRIPT_GROUP_END", ncclInProgress);
    assert_int_equal(one_call(&w), SLUICE_IN_PROGRESS);
    say("SCRIPT_STATE", ncclInProgress);
    for (int i = 0; i < 3; i++) assert_int_equal(w.calls->launched(w.self), SLUICE_IN_PROGRESS);
    assert_true(w.base->timer(w.self) != UINT64_MAX);
    told_as(w.calls->group_begin(w.self), SLUICE_ERR_ORDER, "the group before is not launched yet");
    told_as(w.calls->attach(w.self, &w), SLUICE_ERR_ORDER, "a group is not launched yet");
    say("SCRIPT_STATE", ncclSuccess);
    assert_int_equal(w.calls->launched(w.self), SLUICE_OK);
    assert_int_equal(one_call(&w), SLUICE_IN_PROGRESS);
    say("SCRIPT_STATE", ncclRemoteError);
    told_as(w.calls->launched(w.self), SLUICE_ERR_PEER, "launching a group: what the script says");
    w.base->close(w.self, 1000000);
    assert_int_equal(counted->aborted, 1);
    assert_int_equal(counted->calls, 3);
}

/* A group that has begun is ended, whatever a call in it said. */
static void failed_groups_are_told(void **state)
{
    (void)state;
    world w = attached_world();
    say("SCRIPT_CALL", ncclInvalidArgument);
    told_as(one_call(&w), SLUICE_ERR_SYSTEM, "nccl: all_reduce: what the script says");
    assert_int_equal(counted->groups_begun, counted->groups_ended);
    say("SCRIPT_CALL", ncclSuccess);
    say("SCRIPT_GROUP_END", ncclUnhandledCudaError);
    told_as(one_call(&w), SLUICE_ERR_SYSTEM, "nccl: ncclGroupEnd: what the script says");
    assert_int_equal(w.calls->launched(w.self), SLUICE_OK); /* nothing is under way */
    w.base->close(w.self, 0);
    assert_int_equal(counted->groups_ended, 2);
}

/* Closing ends the communicator in order if that takes no longer than it may; else, and after a failure, by an abort.
 */
static void closing_ends_the_communicator_once(void **state)
{
    (void)state;
    world w = attached_world();
    w.base->close(w.self, 1000000000);
    assert_true(counted->finalized == 1 && counted->destroyed == 1 && !counted->aborted);
    w = attached_world();
    w.base->close(w.self, 0);
    assert_true(!counted->finalized && !counted->destroyed && counted->aborted == 1);
    w = attached_world();
    say("SCRIPT_STATE", ncclInProgress);
    w.base->close(w.self, 3000000);
    assert_true(!counted->destroyed && counted->aborted == 1);
    w = open_world(); /* never attached */
    w.base->close(w.self, 1000000000);
    assert_true(!counted->finalized && !counted->destroyed && !counted->aborted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_nccl_is_refused),
        cmocka_unit_test(versions_are_looked_at),
        cmocka_unit_test(a_world_that_cannot_be_made_is_told),
        cmocka_unit_test(a_communicator_that_blocks_is_refused),
        cmocka_unit_test(what_goes_wrong_later_is_told),
        cmocka_unit_test(launches_are_asked_for),
        cmocka_unit_test(failed_groups_are_told),
        cmocka_unit_test(closing_ends_the_communicator_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
