/* The shim's records must lie where the settings say, stay as long as they say, and cost the program nothing if there
 * is no room for them. */
#include "tests/nccl/programs/shim/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

/* The record of this process in the folder that is taken if none is given; its path, or "". */
static void standard_record(pid_t pid, char out[512])
{
    char folder[64], number[32];
    snprintf(folder, sizeof folder, "/dev/shm/sluice-%ld", (long)geteuid());
    snprintf(number, sizeof number, "-%ld-", (long)pid);
    out[0] = 0;
    DIR *list = opendir(folder);
    if (!list) return;
    for (struct dirent *item; (item = readdir(list));)
        if (strstr(item->d_name, number)) snprintf(out, 512, "%s/%s", folder, item->d_name);
    closedir(list);
}

static void need_shared_memory(void)
{
    if (!access("/dev/shm", W_OK)) return;
    puts("SKIP: records in /dev/shm: it cannot be written");
    skip();
}

static void records_go_where_all_was_well(void **state)
{
    run *r = *state;
    char path[512];
    need_shared_memory();
    run_with(r, SETTINGS("SLUICE_SHIM_DIR="), PROGRAM(CLIENT, "path", ECHO_PATH));
    expect_well(r);
    standard_record(r->pid, path);
    assert_string_equal(path, "");

    run_with(r, SETTINGS("SLUICE_SHIM_DIR=", "SLUICE_SHIM_KEEP=1"), PROGRAM(CLIENT, "path", ECHO_PATH));
    expect_well(r);
    standard_record(r->pid, path);
    assert_int_equal(unlink(path), 0);

    run_with(r, SETTINGS("SLUICE_SHIM_DIR="), PROGRAM(CLIENT, "fails", ECHO_PATH));
    assert_int_equal(WEXITSTATUS(r->status), 5);
    standard_record(r->pid, path);
    assert_int_equal(unlink(path), 0);

    run_with(r, SETTINGS("SLUICE_SHIM_DIR="), PROGRAM(CLIENT, "everything", ECHO_PATH));
    expect_well(r);
    standard_record(r->pid, path);
    assert_int_equal(unlink(path), 0);
}

/* Makes a record in the standard folder that stays; its path. */
static void leave_record(run *r, const char *way, char out[512])
{
    run_with(r, SETTINGS("SLUICE_SHIM_DIR=", "SLUICE_SHIM_KEEP=1"), PROGRAM(CLIENT, way, ECHO_PATH));
    expect_well(r);
    standard_record(r->pid, out);
    assert_true(*out);
}

static void change_header(const char *path, void (*change)(slc_record_header *header))
{
    slc_record_header header;
    int file = open(path, O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(pread(file, &header, sizeof header, 0), sizeof header);
    change(&header);
    assert_int_equal(pwrite(file, &header, sizeof header, 0), sizeof header);
    close(file);
}

static void put_back_25_hours(slc_record_header *header)
{
    header->realtime_minus_monotonic_ns -= INT64_C(90000) * 1000000000;
}

static void put_back_end_6_minutes(slc_record_header *header)
{
    assert_true(header->left_at_s > 0);
    header->left_at_s -= 360;
}

/* Records of dead processes go if they were last written more than a day ago; a file's own time says little. Another
 * container's processes are not known to be dead. */
static void old_records_go(void **state)
{
    run *r = *state;
    char old[512], young[512], path[512], others[600];
    unsigned long long space;
    need_shared_memory();
    leave_record(r, "path", path);
    const char *rest = strrchr(path, '-'); /* HOST-NAMESPACE-PID-STARTED */
    while (*--rest != '-') continue;
    const char *number = rest;
    while (*--number != '-') continue;
    assert_int_equal(sscanf(number, "-%llu", &space), 1);
    snprintf(others, sizeof others, "%.*s-%llu%s", (int)(number - path), path, space + 1, rest);
    change_header(path, put_back_25_hours);
    assert_int_equal(rename(path, others), 0);
    leave_record(r, "path", old);
    leave_record(r, "path", young);
    change_header(old, put_back_25_hours);
    struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
    assert_int_equal(utimensat(AT_FDCWD, young, long_ago, 0), 0);
    run_with(r, SETTINGS("SLUICE_SHIM_DIR="), PROGRAM(CLIENT, "path", ECHO_PATH));
    expect_well(r);
    standard_record(r->pid, path);
    assert_string_equal(path, "");
    assert_int_equal(access(old, F_OK), -1);
    assert_int_equal(unlink(young), 0);
    assert_int_equal(unlink(others), 0);
}

/* A program that leaves its communicators to its end may have left out calls for which others wait. */
static void records_of_left_communicators_stay_a_while(void **state)
{
    run *r = *state;
    char left[512], path[512];
    need_shared_memory();
    run_with(r, SETTINGS("SLUICE_SHIM_DIR="), PROGRAM(CLIENT, "leaves", ECHO_PATH));
    expect_well(r);
    standard_record(r->pid, left);
    assert_true(*left);
    run_with(r, SETTINGS("SLUICE_SHIM_DIR="), PROGRAM(CLIENT, "path", ECHO_PATH));
    expect_well(r);
    assert_int_equal(access(left, F_OK), 0);
    change_header(left, put_back_end_6_minutes);
    run_with(r, SETTINGS("SLUICE_SHIM_DIR="), PROGRAM(CLIENT, "path", ECHO_PATH));
    assert_int_equal(access(left, F_OK), -1);
    standard_record(r->pid, path);
    assert_string_equal(path, "");
}

static void killed_processes_give_back_what_they_never_used(void **state)
{
    run *r = *state;
    char ready[8], killed[512];
    struct stat before, after;
    need_shared_memory();
    int output =
        run_start(r, SETTINGS("SLUICE_SHIM_DIR=", "SLUICE_SHIM_ENTRIES=65536"), PROGRAM(CLIENT, "threads", ECHO_PATH));
    assert_true(read(output, ready, sizeof ready) > 0);
    kill(r->pid, SIGKILL);
    run_finish(r, output);
    standard_record(r->pid, killed);
    assert_int_equal(stat(killed, &before), 0);
    run_with(r, SETTINGS("SLUICE_SHIM_DIR="), PROGRAM(CLIENT, "path", ECHO_PATH));
    assert_int_equal(stat(killed, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_true(after.st_blocks < before.st_blocks);
    assert_int_equal(unlink(killed), 0);
}

static void expect_unrecorded(run *r, const char *why)
{
    record none;
    expect_well(r);
    if (!strstr(r->printed, "NCCL's calls are not recorded") || !strstr(r->printed, why)) {
        print_message("printed: %s\n", r->printed);
        fail();
    }
    assert_ptr_equal(strstr(strchr(r->printed, '\n') + 1, "sluice"), NULL); /* one line */
    assert_int_equal(map_records(r->folder, &none, 0), 0);
}

static void bad_folders_are_refused(void **state)
{
    run *r = *state;
    assert_int_equal(chmod(r->folder, 0777), 0);
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "path", ECHO_PATH));
    expect_unrecorded(r, "may be written by others");
    assert_int_equal(chmod(r->folder, 0700), 0);
    run_with(r, SETTINGS("SLUICE_SHIM_DIR=/nowhere/at/all"), PROGRAM(CLIENT, "path", ECHO_PATH));
    expect_unrecorded(r, "/nowhere/at/all: No such file");
    run_with(r, SETTINGS("SLUICE_SHIM_DIR=" CLIENT), PROGRAM(CLIENT, "path", ECHO_PATH));
    expect_unrecorded(r, "is no folder");
    if (!geteuid()) {
        assert_int_equal(chown(r->folder, 65534, (gid_t)-1), 0);
        run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "path", ECHO_PATH));
        expect_unrecorded(r, "belongs to another user");
    }
}

static void without_space_the_program_runs(void **state)
{
    run *r = *state;
    struct rlimit old, small = {1 << 20, RLIM_INFINITY};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "path", ECHO_PATH));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    expect_unrecorded(r, "ulimit -f");

    if (*RUNTIME) return; /* a sanitizer needs more memory than this leaves */
    run_with(r, NO_SETTINGS, PROGRAM(CLIENT, "without_memory", ECHO_PATH));
    expect_unrecorded(r, "Cannot allocate memory");
}

/* Runs the client with its records in a file system of this many MiB; false if this machine gives no right to make
 * one. Prints the record's size after it. */
static bool run_in_small_folder(run *r, int mebibytes, const char *entries)
{
    char command[1024];
    snprintf(
        command, sizeof command,
        "mount -t tmpfs -o size=%dm,mode=0700 none %s || exit 99; %s path %s; s=$?; LD_PRELOAD= find %s -name '*.nccl' "
        "-printf '%%s\n'; exit $s",
        mebibytes, r->folder, CLIENT, ECHO_PATH, r->folder);
    run_with(r, SETTINGS(entries), PROGRAM("/usr/bin/env", "unshare", "-rm", "sh", "-c", command));
    return WEXITSTATUS(r->status) != 127 && WEXITSTATUS(r->status) != 99 && WEXITSTATUS(r->status) != 1;
}

static void little_space_makes_a_small_ring(void **state)
{
    run *r = *state;
    if (!run_in_small_folder(r, 20, "SLUICE_SHIM_ENTRIES=")) {
        puts("SKIP: a folder with little space: no file system can be mounted");
        skip();
    }
    expect_well(r);
    const unsigned long rows = SLC_RECORD_COMMUNICATORS * sizeof(slc_record_communicator),
                        modules = SLC_RECORD_MODULES * sizeof(slc_record_module);
    char *end;
    assert_int_equal(strtoul(r->printed, &end, 10), SLC_RECORD_HEADER_BYTES + rows + modules + 16384 * 64);
    assert_string_equal(end, "\n");
    assert_true(run_in_small_folder(r, 1, "SLUICE_SHIM_ENTRIES="));
    expect_unrecorded(r, "more than a sixteenth of the space that is free");
    assert_true(run_in_small_folder(r, 1, "SLUICE_SHIM_ENTRIES=65536"));
    expect_unrecorded(r, "No space left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(records_go_where_all_was_well),
        IN_FOLDER(old_records_go),
        IN_FOLDER(records_of_left_communicators_stay_a_while),
        IN_FOLDER(killed_processes_give_back_what_they_never_used),
        IN_FOLDER(bad_folders_are_refused),
        IN_FOLDER(without_space_the_program_runs),
        IN_FOLDER(little_space_makes_a_small_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
