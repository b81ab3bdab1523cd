/* A list under one lock, which fork holds too, so that the child finds the list whole.
 * device_test.c covers this file. */
#include "lib/device/host_segments.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct entry entry;
struct entry {
    entry *next;
    void *base;
    size_t bytes;
    int fd; /* -1: inherited */
    bool own;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static entry *entries;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* Runs in a forked child. The addresses stay taken until the child destroys the segment, which unmaps them. */
static void in_child(void)
{
    for (entry *e = entries; e; e = e->next) {
        if (e->fd < 0) continue;
        int anonymous = e->own ? 0 : MAP_ANONYMOUS;
        void *mapped = mmap(e->base, e->bytes, e->own ? PROT_READ | PROT_WRITE : PROT_NONE,
                            MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE | anonymous, e->own ? e->fd : -1, 0);
        if (mapped == MAP_FAILED) munmap(e->base, e->bytes); /* rather a fault than a peer's data */
        close(e->fd);
        e->fd = -1;
    }
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

bool slc_host_segments_add(void *base, size_t bytes, int fd, bool own)
{
    entry *e = malloc(sizeof *e);
    if (!e) return false;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    *e = (entry){.next = entries, .base = base, .bytes = bytes, .fd = fd, .own = own};
    entries = e;
    pthread_mutex_unlock(&lock);
    return true;
}

int slc_host_segments_remove(void *base)
{
    int fd = -1;
    pthread_mutex_lock(&lock);
    for (entry **at = &entries; *at; at = &(*at)->next) {
        entry *e = *at;
        if (e->base != base) continue;
        fd = e->fd;
        *at = e->next;
        free(e);
        break;
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

bool slc_host_segments_inherited(void *base)
{
    bool inherited = false;
    pthread_mutex_lock(&lock);
    for (const entry *e = entries; e; e = e->next) inherited |= e->base == base && e->fd < 0;
    pthread_mutex_unlock(&lock);
    return inherited;
}
