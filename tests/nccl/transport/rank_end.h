/* Private to tests/nccl/transport: a rank's end of the transport nccl, held as lib/comm holds it, for ranks that are
 * threads with a device each, or processes. */
#pragma once

#include <cuda_runtime_api.h>
#include <sluice/plugin/transport_v2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS_MOST = 4, ERROR_BYTES = 2048 };

/* The line that the calling thread's last refused call told the host. */
const char *last_error(void);

/* Ends the process if it does not hold; cmocka's assertions would leave the wrong thread. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s does not hold; the last error: %s\n", __FILE__, __LINE__, #condition,           \
                    last_error());                                                                                     \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef struct {
    sluice_transport_host_v1 host;
    const sluice_transport_v1 *base;
    const sluice_transport_collectives_v2 *collectives;
    void *self;
    int rank, size;
    const char *library; /* the setting nccl.library; NULL: none */
    cudaStream_t stream;
    const void *argument;
} rank_end;

typedef void rank_body(rank_end *end);

/* Loads the plugin and opens it. `library` NULL: the NCCL that the loader finds. The host is told last_error. */
sluice_status end_open(rank_end *end, int rank, int size, const char *library);

/* Opens `size` ends and gives each the others' addresses. A body that closes its end itself sets `self` to NULL. */
void ends_open(rank_end *ends, int size);
void ends_close(rank_end *ends, int size);

/* end_attach makes a stream on the calling thread's device and attaches it; end_detach lets go of it and ends it. */
void end_attach(rank_end *end);
void end_detach(rank_end *end);

/* Asks `launched` until it says something else than SLUICE_IN_PROGRESS, and returns that; at once SLUICE_OK if
 * group_end said it. */
sluice_status end_await(rank_end *end, sluice_status group_end);

/* Ends the group, awaits its launch and waits until the stream has passed it. */
void end_group(rank_end *end);

/* Runs the body once for each of `size` ranks, each attached, in a thread of its own with the device of the rank's
 * number; the stream is attached by another thread, as lib/comm does it. */
void ends_run(int size, rank_body *body, const void *argument);

/* Ranks as processes: this one is rank 0, and the others are this program, started again. ends_start starts the others
 * and opens this rank's end; ends_enter runs the body, and ends the process, if ends_start started it. `bodies` ends
 * with NULL. */
void ends_start(rank_end *own, int size, rank_body *body, int pids[RANKS_MOST]);
void ends_enter(int argc, char **argv, rank_body *const *bodies);

/* Memory of the current device with a copy of `bytes` bytes; back to the host's; from device to device. All are done
 * when they return. */
void *device_copy(const void *from, size_t bytes);
void device_read(void *to, const void *from, size_t bytes);
void device_move(void *to, const void *from, size_t bytes);

void sleep_ms(int ms);
double clock_ms(void);
