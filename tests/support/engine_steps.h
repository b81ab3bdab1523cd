/* Runs the drawn model of a trial on one rank: values seen inside slots and read between steps must be equal to the
 * oracle's to the bit, the norm within rounding, and the peak of memory what was planned. */
#pragma once

/* A rank_function; `context` is a trial. */
int engine_steps_run(int rank, int size, void *context);
