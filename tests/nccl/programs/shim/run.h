/* Runs a program with the shim and maps the records that it left; for the shim's tests. Errors fail the test. */
#pragma once

#include "plugins/nccl/record/record.h"

#include <stddef.h>
#include <sys/types.h>

/* Given by the build: RUNTIME (a sanitizer's, or ""), SHIM_PRELOAD, ECHO_FOLDER, CLIENT, LINKED, MODULE, CONSTRUCTOR,
 * OTHER_DLSYM, and REAL_NCCL if it was found. */
#define ECHO_PATH ECHO_FOLDER "/libnccl.so.2"

typedef struct {
    char folder[64]; /* for records */
    char printed[16384];
    pid_t pid;
    int status;
} run;

/* A test's setup and teardown: *state is a run with a folder of its own. */
int run_create(void **state);
int run_destroy(void **state);
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, run_create, run_destroy)

/* Empties the folder. */
void run_clear(const run *r);

/* Starts a program with the shim; `settings` are NAME=VALUE, the last one NULL. Its output comes through the pipe whose
 * end is returned. */
int run_start(run *r, const char *const *settings, const char *const *arguments);

/* Reads the output to its end and waits for the program. */
void run_finish(run *r, int output);

#define NO_SETTINGS ((const char *const[]){NULL})
#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define PROGRAM(...) ((const char *const[]){__VA_ARGS__, NULL})

void run_with(run *r, const char *const *settings, const char *const *arguments);

/* The program's exit status is 0. */
void expect_well(const run *r);

typedef struct {
    void *map;
    size_t bytes;
    const slc_record_header *header;
    const slc_record_communicator *rows;
    const slc_record_module *modules;
    const slc_record_entry *entries;
} record;

/* Maps the records of a folder, at most so many; returns how many. */
int map_records(const char *folder, record *out, int most);
void unmap(const record *it);
