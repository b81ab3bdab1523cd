/* The control connections after joining form a star around rank 0. They carry heartbeats, deaths, leaves and small
 * collectives. All calls come from the communication thread, the only reader and writer of these sockets. */
#ifndef SLC_COMM_CONTROL_H
#define SLC_COMM_CONTROL_H

#include "lib/comm/failure.h"
#include "lib/comm/join/rendezvous.h"
#include "lib/comm/control/watch.h"
#include "lib/comm/sockets/wire.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    char *data;
    size_t used, capacity;
} slc_bytes;

enum { SLC_HISTORY = 4096 }; /* operations that are skipped let a rank run far ahead */

/* The operations that the rank has begun: digests[i % SLC_HISTORY] sums up the communicating operations 0 to i. Beats
 * carry the newest digest, and ranks compare them, because ranks that submitted different operations would wait for
 * each other for ever. */
typedef struct {
    uint32_t count;
    uint32_t digests[SLC_HISTORY];
} slc_history;

typedef struct {
    int fd, rank; /* fd -1: closed */
    slc_bytes in, out;
    size_t out_at; /* bytes of `out` that are written already */
    uint64_t heard_ns;
    bool stalled, deaf;               /* deaf: there is no memory to read into, and the world has failed */
    bool left;                        /* rank 0: it said goodbye, and may still listen to what others say */
    uint32_t said_count, said_digest; /* the history in its last beat */
    slc_doing doing;                  /* rank 0: what its last beat said */
    bool has_part;                    /* rank 0: its part of the collective in course is here */
    slc_frame part;
    slc_bytes part_data;
} slc_socket;

/* How far a rank that left had come. Operations and collectives that it completed can still be used. */
typedef struct {
    bool left;
    uint32_t operations, collectives;
    char *words; /* its last error; NULL: none */
    int code;    /* the number that it left with (slc_world_leave); 0: none */
} slc_departure;

enum { SLC_WORDS = 1024 }; /* the most bytes of an error line that is passed on */

/* The most bytes of a part of a small collective, or of its result; a larger message is nonsense. */
#define SLC_COLLECT_BYTES_MAX ((size_t)1 << 30)

typedef enum {
    SLC_COLLECT_BARRIER,
    SLC_COLLECT_BROADCAST,
    SLC_COLLECT_GATHER,
    SLC_COLLECT_SUM,
    SLC_COLLECT_MEET /* a barrier of ranks that bring the same text */
} slc_collect_kind;

/* A small collective for which a caller waits. For SUM `dst` and `src` are the same doubles; for MEET `src` is a text
 * of `bytes` bytes. */
typedef struct {
    slc_collect_kind kind;
    const void *src;
    void *dst;
    size_t bytes;
    int root;
} slc_collect;

struct slc_control {
    int rank, size, link_count;
    slc_socket *links;         /* rank 0: links[r - 1] leads to rank r; others: links[0] to rank 0 */
    slc_departure *departures; /* [size] */
    slc_failure *failure;
    uint64_t beat_ns, step_ns; /* when the last beat was sent, when the last step was made */
    slc_history history;       /* the lane writes it */
    slc_collect *collect;      /* the one in course; NULL: none */
    bool collect_done;
    uint32_t collects; /* how many are complete */
    slc_bytes scratch; /* results of collectives */
    bool told;         /* the failure has been sent */
    bool leaving;      /* only last words are still heard */
    bool listens;      /* when it leaves, it waits for what rank 0 says */
    bool hears;        /* before it leaves, it waits until the reporter has left */
    int reporter;      /* the rank whose own trouble the failure is, in its words; -1: none said so */
    slc_watch watch;
    slc_doing doing; /* this rank's, for its next beat */
};

/* Takes the rendezvous's sockets over. `timeout_s` is that of slc_watch_init. Errors: MEMORY. */
sluice_status slc_control_init(slc_control *control, slc_rendezvous *rendezvous, slc_failure *failure,
                               double timeout_s);
void slc_control_fini(slc_control *control);

int slc_control_polls(const slc_control *control, struct pollfd *polls); /* fills up to link_count entries */
uint64_t slc_control_due(const slc_control *control);                    /* when step is to be called at the latest */

/* Whether the next step sends a beat; if so, control->doing must be noted before. */
bool slc_control_beats(const slc_control *control, uint64_t now_ns);

/* Reads, writes, sends beats and watches for silence. Never blocks. True if anything was received. */
bool slc_control_step(slc_control *control, uint64_t now_ns);

/* Sends the world's failure to the other ranks, once, if they are to be told. */
void slc_control_tell(slc_control *control);

/* Goes on with steps until the reporter has left or cannot be heard any more, but no longer than `patience_ns`. */
void slc_control_hear_reporter(slc_control *control, uint64_t patience_ns);

/* Says goodbye with this rank's last error and the number `code`, before anything else of this rank is closed. After a
 * failure a rank without a code only writes what is still to be written. */
void slc_control_goodbye(slc_control *control, uint32_t operations, const char *last_words, int code);
/* Fails the world: "rank R left while WHILE_WHAT", with the rank's last error if it had one. */
void slc_control_fail_left(slc_control *control, int rank, const char *while_what);
/* Waits until rank 0 (on rank 0: every rank) has heard the goodbye and closed too, but no longer than `patience_ns`,
 * and notes the last words of others. */
void slc_control_leave(slc_control *control, uint64_t patience_ns);

/* Begins the caller's collective, which is complete when collect_done is set. */
void slc_control_collect(slc_control *control, slc_collect *collect);

/* collect.c */
const char *slc_collect_name(slc_collect_kind kind);
void slc_collect_begin(slc_control *control, slc_collect *collect);
/* A rank's part has come to rank 0; the result has come from rank 0. */
void slc_collect_part(slc_control *control, slc_socket *link, const slc_frame *frame, const char *data);
void slc_collect_result(slc_control *control, const slc_frame *frame, const char *data);

/* socket.c */
/* Queues a frame and frame.bytes of data on a link, and writes as much as the network takes. */
void slc_socket_send(slc_control *control, slc_socket *link, slc_frame frame, const void *data);
void slc_socket_flush(slc_control *control, slc_socket *link);
void slc_socket_close(slc_socket *link);
/* Closes a connection that has ended, with errno's `error` or 0; without a goodbye before, that fails the world. */
void slc_socket_lose(slc_control *control, slc_socket *link, int error);
bool slc_bytes_add(slc_bytes *bytes, const void *data, size_t count); /* false: no memory */
bool slc_bytes_reserve(slc_bytes *bytes, size_t capacity);            /* likewise */

#endif
