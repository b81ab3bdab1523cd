/* The state of a process of this machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sets *state to the letter of a process's state ('R', 'S', 'T', 'Z', ...; proc_pid_stat(5)), and *started to the time
 * at which it began, in clock ticks since the machine's boot. Returns false if there is no such process. Numbers of
 * processes are used again, and the start tells two of one number apart. Allocates nothing. Any thread. */
bool slc_process_stat(int64_t pid, char *state, uint64_t *started);
