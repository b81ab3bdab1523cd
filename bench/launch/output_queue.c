/* A queue has two buffers: one is filled while the thread writes the other.
 * tests/launch/run_test.sh covers this file. */
#include "bench/launch/output_queue.h"

#include "lib/base/status.h"
#include "lib/base/host/thread_limit.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_BYTES = 256 << 10, URGENT_BYTES = 16 << 10, JOIN_ROUNDS = 100, JOIN_NS = 10000000 };
enum { INTERRUPT = SIGURG }; /* ignored by a process without a handler for it */

struct slc_output_queue {
    int to, wake;
    pthread_t thread;
    bool started, lets_go;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    bool closing, dropped;
    int failed;             /* errno of the first write that failed; later bytes are thrown away */
    size_t filled, writing; /* bytes in each buffer */
    uint64_t written;
    char *filling, *taken;
};

/* ---- The thread ---- */

static void raise_wake(const slc_output_queue *queue)
{
    const uint64_t one = 1;
    ssize_t done = write(queue->wake, &one, sizeof one);
    (void)done; /* a full counter wakes the reader too */
}

/* Returns how much to write at once: whole lines, no more than a pipe takes in one piece, so that lines of several
 * writers do not mix. */
static size_t piece_of(const char *bytes, size_t count)
{
    if (count <= PIPE_BUF) return count;
    const char *end = memrchr(bytes, '\n', PIPE_BUF);
    return end ? (size_t)(end - bytes) + 1 : PIPE_BUF;
}

static bool is_closing(slc_output_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool closing = queue->closing;
    pthread_mutex_unlock(&queue->lock);
    return closing;
}

/* Returns 0 or an errno. Waits also if somebody else has made the descriptor non-blocking. */
static int write_piece(slc_output_queue *queue, const char *bytes, size_t count)
{
    while (count) {
        if (is_closing(queue)) return ECANCELED;
        ssize_t done = write(queue->to, bytes, count);
        if (done > 0) {
            bytes += done;
            count -= (size_t)done;
        } else if (done == 0) {
            return EIO;
        } else if (errno == EAGAIN) {
            struct pollfd fd = {.fd = queue->to, .events = POLLOUT};
            poll(&fd, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

static void note_piece(slc_output_queue *queue, size_t count, int why)
{
    pthread_mutex_lock(&queue->lock);
    if (!why) queue->written += count;
    if (!queue->failed) queue->failed = why;
    pthread_mutex_unlock(&queue->lock);
}

/* Returns whether there is something to write; not if the queue closes. */
static bool wait_for_bytes(slc_output_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->writing = 0;
    if (!queue->filled && !queue->closing) raise_wake(queue);
    while (!queue->filled && !queue->closing) pthread_cond_wait(&queue->changed, &queue->lock);
    bool some = !queue->closing;
    if (some) {
        char *full = queue->filling;
        queue->filling = queue->taken;
        queue->taken = full;
        queue->writing = queue->filled;
        queue->filled = 0;
        raise_wake(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    return some;
}

static void *write_all(void *context)
{
    slc_output_queue *queue = context;
    int why = 0;
    while (wait_for_bytes(queue))
        for (size_t at = 0; at < queue->writing && !why;) {
            size_t count = piece_of(queue->taken + at, queue->writing - at);
            why = write_piece(queue, queue->taken + at, count);
            note_piece(queue, count, why);
            at += count;
        }
    return NULL;
}

/* ---- The caller ---- */

sluice_status slc_output_queue_create(int to, int wake, slc_output_queue **out)
{
    slc_output_queue *queue = calloc(1, sizeof *queue);
    *out = NULL;
    if (!queue) return slc_error(SLUICE_ERR_MEMORY, "a queue of output");
    queue->to = to;
    queue->wake = wake;
    queue->filling = malloc(QUEUE_BYTES + URGENT_BYTES);
    queue->taken = malloc(QUEUE_BYTES + URGENT_BYTES);
    if (!queue->filling || !queue->taken) {
        free(queue->filling);
        free(queue->taken);
        free(queue);
        return slc_error(SLUICE_ERR_MEMORY, "a queue of output");
    }
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    *out = queue;
    return SLUICE_OK;
}

/* The thread blocks most signals: SIGPIPE would end the process, while EPIPE only informs it. It takes SIGTTOU, which
 * stops a job in the background as its user wants, and INTERRUPT, which ends a write. */
sluice_status slc_output_queue_start(slc_output_queue *queue)
{
    sigset_t most, before;
    sigfillset(&most);
    sigdelset(&most, SIGTTOU);
    sigdelset(&most, INTERRUPT);
    pthread_sigmask(SIG_BLOCK, &most, &before);
    int why = pthread_create(&queue->thread, NULL, write_all, queue);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    queue->started = !why;
    if (!why) return SLUICE_OK;
    queue->failed = why;
    return slc_thread_limit_error(why, "no thread to write the ranks' output");
}

static void interrupt(int signal)
{
    (void)signal;
}

/* The signal is sent again, because it may come just before the write that it is to end. A write to a disk that hangs
 * does not end even then. */
static bool interrupt_until_joined(pthread_t thread)
{
    struct timespec until;
    for (int i = 0; i < JOIN_ROUNDS; i++) {
        pthread_kill(thread, INTERRUPT);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += JOIN_NS;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        if (!pthread_timedjoin_np(thread, NULL, &until)) return true;
    }
    return false;
}

/* Returns whether the thread has ended. If not, it goes on using its memory, which must stay. */
static bool end_thread(slc_output_queue *queue)
{
    const struct sigaction nothing = {.sa_handler = interrupt};
    struct sigaction before;
    if (!queue->started) return true;
    pthread_mutex_lock(&queue->lock);
    queue->closing = true;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    sigaction(INTERRUPT, &nothing, &before);
    bool ended = interrupt_until_joined(queue->thread);
    sigaction(INTERRUPT, &before, NULL);
    if (!ended) pthread_detach(queue->thread);
    return ended;
}

void slc_output_queue_destroy(slc_output_queue *queue)
{
    if (!queue || !end_thread(queue)) return;
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue->filling);
    free(queue->taken);
    free(queue);
}

size_t slc_output_queue_room(slc_output_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool thrown_away = queue->lets_go || queue->failed;
    size_t room = thrown_away ? SIZE_MAX : queue->filled < QUEUE_BYTES ? QUEUE_BYTES - queue->filled : 0;
    pthread_mutex_unlock(&queue->lock);
    return room;
}

static void append(slc_output_queue *queue, const char *bytes, size_t count)
{
    memcpy(queue->filling + queue->filled, bytes, count);
    queue->filled += count;
}

static void put_up_to(slc_output_queue *queue, const char *prefix, const char *text, size_t length, size_t most)
{
    size_t before = strlen(prefix);
    pthread_mutex_lock(&queue->lock);
    if (queue->failed || queue->filled + before + length + 1 > most) {
        queue->dropped = true;
    } else {
        append(queue, prefix, before);
        append(queue, text, length);
        append(queue, "\n", 1);
        pthread_cond_signal(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
}

void slc_output_queue_put_line(slc_output_queue *queue, const char *prefix, const char *text, size_t length)
{
    put_up_to(queue, prefix, text, length, QUEUE_BYTES);
}

void slc_output_queue_put_urgent_line(slc_output_queue *queue, const char *prefix, const char *text, size_t length)
{
    put_up_to(queue, prefix, text, length, QUEUE_BYTES + URGENT_BYTES);
}

void slc_output_queue_let_go(slc_output_queue *queue)
{
    queue->lets_go = true;
}

bool slc_output_queue_is_empty(slc_output_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool empty = (!queue->filled && !queue->writing) || queue->failed;
    pthread_mutex_unlock(&queue->lock);
    return empty;
}

uint64_t slc_output_queue_written(slc_output_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t written = queue->written;
    pthread_mutex_unlock(&queue->lock);
    return written;
}

int slc_output_queue_lost(slc_output_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    int lost = queue->failed ? queue->failed : queue->dropped ? ETIMEDOUT : 0;
    pthread_mutex_unlock(&queue->lock);
    return lost;
}
