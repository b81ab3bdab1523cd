/* Programs are started as a shell would with LD_PRELOAD set. */
#include "tests/nccl/programs/shim/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

/* ---- Programs ---- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

int run_create(void **state)
{
    run *r = calloc(1, sizeof *r);
    strcpy(r->folder, "/tmp/sluice-shim-XXXXXX");
    *state = r;
    return mkdtemp(r->folder) ? 0 : -1;
}

void run_clear(const run *r)
{
    nftw(r->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(mkdir(r->folder, 0700), 0);
}

int run_destroy(void **state)
{
    run *r = *state;
    nftw(r->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(r);
    return 0;
}

int run_start(run *r, const char *const *settings, const char *const *arguments)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    r->pid = fork();
    if (!r->pid) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        setenv("SLUICE_SHIM_DIR", r->folder, 1);
        setenv("LD_LIBRARY_PATH", ECHO_FOLDER, 1);
        setenv("LD_PRELOAD", SHIM_PRELOAD, 1);
        for (; *settings; settings++) {
            const char *value = strchr(*settings, '=') + 1;
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)(value - *settings - 1), *settings);
            *value ? setenv(name, value, 1) : unsetenv(name);
        }
        execv(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(ends[1]);
    return ends[0];
}

void run_finish(run *r, int output)
{
    size_t used = 0;
    for (ssize_t got; used + 1 < sizeof r->printed; used += (size_t)got)
        if ((got = read(output, r->printed + used, sizeof r->printed - 1 - used)) <= 0) break;
    r->printed[used] = 0;
    close(output);
    waitpid(r->pid, &r->status, 0);
}

void run_with(run *r, const char *const *settings, const char *const *arguments)
{
    run_finish(r, run_start(r, settings, arguments));
}

void expect_well(const run *r)
{
    if (WIFEXITED(r->status) && !WEXITSTATUS(r->status)) return;
    print_message("status %x, printed: %s\n", (unsigned)r->status, r->printed);
    fail();
}

/* ---- Records ---- */

static record map_record(const char *folder, const char *name)
{
    char path[512];
    struct stat info;
    record it;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDONLY);
    assert_true(file >= 0);
    assert_int_equal(fstat(file, &info), 0);
    it.bytes = (size_t)info.st_size;
    it.map = mmap(NULL, it.bytes, PROT_READ, MAP_PRIVATE, file, 0);
    assert_true(it.map != MAP_FAILED);
    close(file);
    const char *base = it.map;
    it.header = it.map;
    assert_memory_equal(it.header->magic, SLC_RECORD_MAGIC, 8);
    assert_int_equal(it.header->version, SLC_RECORD_VERSION);
    assert_int_equal(it.header->file_bytes, it.bytes);
    it.rows = (const slc_record_communicator *)(base + it.header->communicators_at);
    it.modules = (const slc_record_module *)(base + it.header->modules_at);
    it.entries = (const slc_record_entry *)(base + it.header->entries_at);
    return it;
}

int map_records(const char *folder, record *out, int most)
{
    int count = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *item; (item = readdir(list));) {
        if (item->d_name[0] == '.') continue;
        assert_true(count < most);
        out[count++] = map_record(folder, item->d_name);
    }
    closedir(list);
    return count;
}

void unmap(const record *it)
{
    munmap(it->map, it->bytes);
}
