/* The communicator does not block (ncclConfig_t's `blocking` is 0), for three reasons. The communication thread answers
 * heartbeats and watches the other ranks, so no call may hold it while a peer is late; a blocking ncclGroupEnd waits
 * for the peer where two ranks meet for the first time. An abort by another thread frees a blocking communicator while
 * a call is still using it; on a non-blocking one it first joins the thread in which NCCL launches. And a communicator
 * that is being made can be given up.
 *
 * The price is that NCCL launches a group in a thread of its own, after ncclGroupEnd has returned ncclInProgress
 * (before 2.23 only where ranks meet for the first time). Until ncclCommGetAsyncError says ncclSuccess, nothing of the
 * group need be in the stream, so an event that is recorded there marks nothing, and no call but that one may be made.
 * nccl_launched asks for it, and group_begin refuses to go on before. tests/nccl/transport/nccl_transport_test.c covers
 * this file. */
#include "communicator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- The lock, and aborts ---- */

/* Aborts the communicator. The caller holds the lock. */
static void abort_now(nccl_transport *self)
{
    ncclComm_t comm = atomic_exchange(&self->comm, NULL);
    atomic_store(&self->launching, false);
    if (comm) self->library.CommAbort(comm);
}

static bool is_to_end(nccl_transport *self)
{
    return atomic_load(&self->aborted) && atomic_load(&self->comm);
}

void nccl_enter(nccl_transport *self)
{
    pthread_mutex_lock(&self->lock);
}

void nccl_leave(nccl_transport *self)
{
    do {
        if (is_to_end(self)) abort_now(self);
        pthread_mutex_unlock(&self->lock);
        /* An abort may have come after the look and before the unlock, when it could not get the lock. */
    } while (is_to_end(self) && !pthread_mutex_trylock(&self->lock));
}

void nccl_abort(void *argument)
{
    nccl_transport *self = argument;
    atomic_store(&self->aborted, true);
    if (!pthread_mutex_trylock(&self->lock)) nccl_leave(self);
}

sluice_status nccl_usable(const nccl_transport *self, const char *slot)
{
    if (atomic_load(&self->aborted))
        return nccl_refuse(self, SLUICE_ERR_INTERRUPTED, "%s: the collectives were aborted", slot);
    if (!atomic_load(&self->stream) || !atomic_load(&self->comm))
        return nccl_refuse(self, SLUICE_ERR_ORDER, "%s: attach a stream first", slot);
    return SLUICE_OK;
}

/* ---- Making it ---- */

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Names, for people, the variable that decided which GPU this rank has. */
static void tell_choice(char *text, size_t bytes)
{
    static const char *const names[] = {"SLUICE_CUDA_DEVICE", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MPI_LOCALRANKID", "SLURM_LOCALID"};
    const char *visible = environment("CUDA_VISIBLE_DEVICES"), *name = NULL;
    for (size_t i = 0; !name && i < sizeof names / sizeof *names; i++)
        if (environment(names[i])) name = names[i];
    snprintf(text, bytes, "%s%s%s%s%s", name ? name : "no launcher's local rank is set", name ? "=" : "",
             name ? environment(name) : "", visible ? ", CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "");
}

/* Says why the ranks' GPUs cannot be used together. */
static sluice_status refuse_making(const nccl_transport *self, ncclResult_t result)
{
    const char *said = self->library.GetLastError(NULL);
    char choice[200];
    if (!said || !strstr(said, "Duplicate GPU detected")) return nccl_failed(self, "making a communicator", result);
    tell_choice(choice, sizeof choice);
    return nccl_refuse(
        self, SLUICE_ERR_UNSUPPORTED,
        "two ranks use one GPU, which NCCL refuses (%s; here %s): start at most as many ranks on a host as "
        "it has GPUs, or give each rank its own by CUDA_VISIBLE_DEVICES or SLUICE_CUDA_DEVICE",
        said, choice);
}

/* Takes the communicator's state; ncclInternalError if it is over. */
static ncclResult_t ask_state(nccl_transport *self)
{
    ncclResult_t state = ncclInternalError;
    ncclComm_t comm = atomic_load(&self->comm);
    if (!comm) return ncclInternalError;
    ncclResult_t result = self->library.CommGetAsyncError(comm, &state);
    return result ? result : state;
}

/* Begins to make the communicator. Returns ncclInProgress as a rule. */
static ncclResult_t begin_making(nccl_transport *self)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL;
    config.blocking = 0;
    ncclResult_t result =
        self->library.CommInitRankConfig(&comm, self->host->world_size, self->id, self->host->rank, &config);
    atomic_store(&self->comm, comm);
    return result;
}

/* Refuses NCCL_COMM_BLOCKING=1, which overrules what a program asks for. NCCL's file nccl.conf may have it too; then it
 * is in the environment after NCCL's first call. */
static sluice_status refuse_blocking(const nccl_transport *self)
{
    const char *blocking = getenv("NCCL_COMM_BLOCKING");
    if (!blocking || strcmp(blocking, "1") != 0) return SLUICE_OK;
    return nccl_refuse(self, SLUICE_ERR_ARGUMENT,
                       "NCCL_COMM_BLOCKING=1: a rank could not notice that another one is gone; take it out of the "
                       "environment, and out of nccl.conf");
}

/* Waits for the other ranks. An abort from another thread ends that. */
static sluice_status make_communicator(nccl_transport *self)
{
    sluice_status status = SLUICE_OK;
    nccl_enter(self);
    ncclResult_t state = begin_making(self);
    for (int round = 0; state == ncclInProgress; round++) {
        nccl_leave(self);
        if (round) sleep_us(round < 50 ? 100 : 1000);
        nccl_enter(self);
        if (atomic_load(&self->aborted)) break;
        state = ask_state(self);
    }
    if (!atomic_load(&self->aborted)) status = state ? refuse_making(self, state) : refuse_blocking(self);
    if (status) abort_now(self);
    nccl_leave(self);
    return status;
}

sluice_status nccl_attach(void *argument, void *stream)
{
    nccl_transport *self = argument;
    if (stream && atomic_load(&self->launching))
        return nccl_refuse(self, SLUICE_ERR_ORDER, "attach: a group is not launched yet");
    atomic_store(&self->stream, NULL);
    if (!stream) return SLUICE_OK;
    if (!self->id_known) return nccl_refuse(self, SLUICE_ERR_ORDER, "attach: connect rank 0 first");
    sluice_status status = refuse_blocking(self);
    if (!status && !atomic_load(&self->comm) && !atomic_load(&self->aborted)) status = make_communicator(self);
    if (status) return status;
    atomic_store(&self->stream, stream);
    status = nccl_usable(self, "attach");
    if (status) atomic_store(&self->stream, NULL);
    return status;
}

/* ---- Asking after it ---- */

sluice_status nccl_launched(void *argument)
{
    nccl_transport *self = argument;
    sluice_status status = nccl_usable(self, "launched");
    if (status || !atomic_load(&self->launching)) return status;
    nccl_enter(self);
    ncclResult_t state = ask_state(self);
    if (state == ncclSuccess) atomic_store(&self->launching, false);
    nccl_leave(self);
    if (state == ncclInProgress) return SLUICE_IN_PROGRESS;
    if (!state) return SLUICE_OK;
    status = nccl_usable(self, "launched"); /* an abort is no failure of NCCL's */
    return status ? status : nccl_failed(self, "launching a group", state);
}

sluice_status nccl_health(void *argument)
{
    nccl_transport *self = argument;
    if (atomic_load(&self->aborted))
        return nccl_refuse(self, SLUICE_ERR_INTERRUPTED, "health: the collectives were aborted");
    /* If another thread makes the communicator or holds the lock, that thread finds out itself. */
    if (!atomic_load(&self->stream) || pthread_mutex_trylock(&self->lock)) return SLUICE_OK;
    ncclResult_t state = atomic_load(&self->comm) ? ask_state(self) : ncclSuccess;
    nccl_leave(self);
    return !state || state == ncclInProgress ? SLUICE_OK : nccl_failed(self, "asking after the communicator", state);
}

/* ---- Ending it ---- */

static bool time_left(const nccl_transport *self, uint64_t begin_ns, uint64_t linger_ns)
{
    return now_ns() - begin_ns < linger_ns && !atomic_load(&self->aborted);
}

/* True if all calls end within linger_ns, so that the communicator may be destroyed without waiting for anybody. */
static bool finalize_in_time(nccl_transport *self, uint64_t linger_ns)
{
    uint64_t begin = now_ns();
    ncclResult_t state = ask_state(self);
    while (state == ncclInProgress && time_left(self, begin, linger_ns)) {
        sleep_us(200);
        state = ask_state(self);
    }
    if (state) return false;
    state = self->library.CommFinalize(atomic_load(&self->comm));
    if (state && state != ncclInProgress) return false;
    while ((state = ask_state(self)) == ncclInProgress && time_left(self, begin, linger_ns)) sleep_us(200);
    return state == ncclSuccess;
}

void nccl_communicator_end(nccl_transport *self, uint64_t linger_ns)
{
    nccl_enter(self);
    if (atomic_load(&self->comm) && linger_ns && !atomic_load(&self->aborted) && finalize_in_time(self, linger_ns))
        self->library.CommDestroy(atomic_exchange(&self->comm, NULL));
    else
        abort_now(self);
    nccl_leave(self);
}
