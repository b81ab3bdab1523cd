/* The time of an operation of a step. Private to bench/nccl. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The time of an operation in one of the steps, on the clock of its rank's host. Both ends are 0 if the shim could not
 * take them. */
typedef struct {
    int64_t begin_ns, end_ns;
    bool follows; /* it began within 50 us of the end of the operation before it on its stream: its data may have been
                     there for long */
} slc_step_time;
