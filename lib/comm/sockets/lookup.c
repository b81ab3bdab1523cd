/* The thread and its caller share the request, and whoever is the last to leave it frees it.
 * address_test.c covers this file. */
#include "lib/comm/sockets/lookup.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool answered, abandoned;
    int error, system_error;
    struct addrinfo *list;
    char host[256], service[16];
} request;

static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};

static void destroy(request *one)
{
    pthread_cond_destroy(&one->changed);
    pthread_mutex_destroy(&one->lock);
    free(one);
}

static void *answer(void *argument)
{
    request *one = argument;
    struct addrinfo *list = NULL;
    const int error = getaddrinfo(one->host, one->service, &hints, &list), system_error = errno;
    pthread_mutex_lock(&one->lock);
    one->error = error;
    one->system_error = system_error;
    one->list = list;
    one->answered = true;
    const bool abandoned = one->abandoned;
    pthread_cond_signal(&one->changed);
    pthread_mutex_unlock(&one->lock);
    if (!abandoned) return NULL;
    if (!error) freeaddrinfo(list);
    destroy(one);
    return NULL;
}

/* Signals belong to the program's own threads. */
static int start_thread(request *one)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int error = pthread_create(&thread, NULL, answer, one);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error) pthread_detach(thread);
    return error;
}

static int wait_for_answer(request *one, uint64_t deadline_ns, struct addrinfo **out)
{
    const struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                                      .tv_nsec = (long)(deadline_ns % 1000000000u)};
    pthread_mutex_lock(&one->lock);
    while (!one->answered && !pthread_cond_timedwait(&one->changed, &one->lock, &deadline)) continue;
    const bool answered = one->answered;
    one->abandoned = !answered;
    const int error = answered ? one->error : EAI_INPROGRESS, system_error = one->system_error;
    if (!error) *out = one->list;
    pthread_mutex_unlock(&one->lock);
    if (answered) destroy(one);
    errno = system_error;
    return error;
}

int slc_lookup(const char *host, int port, uint64_t deadline_ns, struct addrinfo **out)
{
    char service[16];
    struct addrinfo number = hints;
    snprintf(service, sizeof service, "%d", port);
    number.ai_flags |= AI_NUMERICHOST;
    if (!getaddrinfo(host, service, &number, out)) return 0;
    if (strlen(host) >= sizeof(((request *)0)->host)) return EAI_NONAME; /* no name is that long */

    request *one = calloc(1, sizeof *one);
    if (!one) return EAI_MEMORY;
    pthread_condattr_t monotonic;
    pthread_mutex_init(&one->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&one->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    snprintf(one->host, sizeof one->host, "%s", host);
    memcpy(one->service, service, sizeof service);
    const int error = start_thread(one);
    if (!error) return wait_for_answer(one, deadline_ns, out);
    destroy(one);
    errno = error;
    return EAI_SYSTEM;
}
