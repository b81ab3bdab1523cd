/* Which NCCL the transport takes: there is none, it is no NCCL, it is too old, it lacks something, it is newer than
 * what was known, or it is one of those between. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

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

/* Opens the transport with NCCL from `path`; closes it where that went well. */
static sluice_status open_with(const char *path, char description[64])
{
    void *self = NULL, *plugin = dlopen(TRANSPORT_NCCL, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(plugin);
    const sluice_transport_v2 *table = dlsym(plugin, SLUICE_TRANSPORT_V2_SYMBOL);
    assert_non_null(table);
    const sluice_transport_host_v1 host = {.abi = SLUICE_TRANSPORT_ABI_V1,
                                           .size = sizeof host,
                                           .world_size = 1,
                                           .log = host_log,
                                           .error = host_error,
                                           .setting = host_setting};
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
    /* What this test's loader finds is a text (CMakeLists.txt). */
    refused("", "no NCCL is here (", "2.18.3 or newer");
    refused(NULL, "libnccl.so.2: ", "SLUICE_COMM_NCCL");
}

static void taken(const char *version, const char *shown, int level)
{
    char description[64];
    setenv("OTHER_VERSION", version, 1);
    if (open_with(OTHER_VERSION, description)) fail_msg("%s: %s", version, told);
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
    setenv("OTHER_VERSION", "21801", 1);
    refused(OTHER_VERSION, "is NCCL 2.18.1, but 2.18.3 or newer is needed", "SLUICE_COMM_NCCL");
    setenv("OTHER_VERSION", "2708", 1); /* as NCCL counted before 2.9 */
    refused(OTHER_VERSION, "is NCCL ", "or newer is needed");
    setenv("OTHER_VERSION", "22809", 1);
    refused(PARTIAL_NCCL, "has no ncclCommGetAsyncError", PARTIAL_NCCL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_nccl_is_refused),
        cmocka_unit_test(versions_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
