/* Files for a test, in a folder that only this test uses. */
#ifndef SLC_BASE_FOLDER_TEST_H
#define SLC_BASE_FOLDER_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <sluice/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char test_folder[] = "/tmp/sluice-test-XXXXXX";

static inline const char *path_of(const char *name)
{
    static char paths[4][PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", test_folder, name);
    return path;
}

static inline const char *write_file(const char *name, const void *content, size_t bytes)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* Fails with the error line if `status` is an error. */
static inline void works(sluice_status status)
{
    if (status) fail_msg("%s: %s", sluice_status_name(status), sluice_last_error());
}

static inline void fails(sluice_status status, sluice_status expected, const char *why)
{
    if (status != expected || !strstr(sluice_last_error(), why))
        fail_msg("%s (%s), not %s (%s)", sluice_status_name(status), sluice_last_error(), sluice_status_name(expected),
                 why);
}

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(test_folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -r %s", test_folder);
    return system(command);
}

#endif
