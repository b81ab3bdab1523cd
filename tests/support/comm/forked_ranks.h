/* Tests of several ranks, each of which is a forked child on loopback. A test forks before it starts any thread; a
 * child that hangs ends by its alarm, and the parent ends all children when one fails. */
#pragma once

#include "lib/base/status.h"
#include "lib/comm/comm.h"
#include "tests/support/comm/free_port.h"

#include <sluice/world.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

enum { RANKS_MAX = 8 };

/* The path on which ranks reach each other; MIXED imitates two hosts. */
typedef enum { DIRECT, MESSAGES, MIXED } test_path;

/* Returns the next number below `below` of the sequence that *chance is in. */
uint64_t pick(uint64_t *chance, uint64_t below);

/* Ends a child whose condition does not hold, and says what failed. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, sluice_last_error());                  \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

typedef struct {
    pid_t pids[RANKS_MAX];
    int size;
} ranks;

sluice_world_config test_config(int rank, int size, int port);

sluice_world_config path_config(int rank, int size, int port, test_path path);

/* Closes, in a child, what a rank with attached memory has opened. */
void close_rank(sluice_world *world, slc_segment *segment, slc_device *device);

/* Runs body(rank, argument) in `size` children; the child's exit status is what it returns. */
void ranks_start(ranks *all, int size, int (*body)(int rank, void *argument), void *argument);

/* The exit code of what waitpid tells, or 128 and the signal. */
int exit_code(int status);

/* Waits for all children and returns 0, or ends the others and returns the code of the first that did not end with 0.
 */
int ranks_wait(ranks *all);

/* Waits for one rank and returns its exit code. */
int rank_wait(ranks *all, int rank);

/* Waits for all ranks but the victim, each of which must end with 0; the victim stays a zombie meanwhile. Then ends the
 * victim if it is stopped; its exit code must be `code`. */
void ranks_outlive(ranks *all, int victim, bool stopped, int code);

/* Starts ranks and waits for them. */
int run_ranks(int size, int (*body)(int rank, void *argument), void *argument);
