/* Where a transport's plugin is looked for, in which order, and that the first file that exists is the one: if it
 * cannot be loaded, the error says why, and no other is taken for it. Which files exist, and which can be loaded, is a
 * list here. */
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

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
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
        assert_non_null(strstr(sluice_last_error(), "the library has no sluice_transport_v1_table"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_places_are_looked_at_in_order, begin_with_nothing),
        cmocka_unit_test_setup(the_first_that_exists_is_loaded, begin_with_nothing),
        cmocka_unit_test_setup(one_that_cannot_be_loaded_ends_the_search, begin_with_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
