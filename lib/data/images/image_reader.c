/* The reader has two batches, one of which the caller has. All threads take images one by one, in order: first those of
 * a batch for which the caller waits, then, if the thread may read ahead, those of the next batch. The lock is held
 * while a thread chooses an image, and not while it reads one. */
#include "lib/data/images/image_reader.h"

#include "lib/base/numbers/floats.h"
#include "lib/base/status.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    slc_image_request of; /* images NULL: none */
    uint32_t begun, done; /* images */
    uint32_t failed;      /* the first image that cannot be read; UINT32_MAX: none */
    sluice_status status;
    char why[2048];
    float *pixels;
    int32_t *labels;
} batch;

typedef struct {
    slc_image_reader *reader;
    pthread_t thread;
    bool may_read_ahead;
} helper;

struct slc_image_reader {
    slc_image_reader_how how;
    size_t image; /* elements */
    pthread_mutex_t lock;
    pthread_cond_t work, progress; /* there is an image to begin, or the end; one is done */
    batch batches[2];
    batch *now, *next;
    bool started, ends;
    uint32_t helper_count;
    helper *helpers;
};

/* ---- Images: the lock is held ---- */

static bool has_more(const batch *b)
{
    return b->of.images && b->failed == UINT32_MAX && b->begun < b->of.count;
}

static bool is_finished(const batch *b)
{
    return !has_more(b) && b->done == b->begun;
}

static void request(batch *b, const slc_image_request *of)
{
    b->of = *of;
    b->begun = b->done = 0;
    b->failed = UINT32_MAX;
    b->status = SLUICE_OK;
}

static bool is_same(const slc_image_request *a, const slc_image_request *b)
{
    return a->images == b->images && a->range.first == b->range.first && a->range.count == b->range.count &&
           a->seed == b->seed && a->first == b->first && a->count == b->count;
}

static sluice_status read_image(const slc_image_reader *r, const batch *b, uint32_t i)
{
    const slc_image_request *of = &b->of;
    float *pixels = b->pixels + i * r->image;
    if (!of->range.count) return slc_images_read(of->images, &r->how.shape, of->first + i, pixels, &b->labels[i]);
    return slc_images_batch(of->images, &r->how.shape, of->range, of->seed, of->first + i, 1, pixels, &b->labels[i]);
}

/* Reads the first image that nobody has begun. The lock is not held meanwhile. */
static void read_one(slc_image_reader *r, batch *b)
{
    const uint32_t i = b->begun++;
    pthread_mutex_unlock(&r->lock);
    const sluice_status status = read_image(r, b, i);
    pthread_mutex_lock(&r->lock);
    if (status && i < b->failed) {
        b->failed = i;
        b->status = status;
        snprintf(b->why, sizeof b->why, "%s", sluice_last_error());
    }
    b->done++;
    pthread_cond_signal(&r->progress);
}

static void wait_for(slc_image_reader *r, const batch *b)
{
    while (!is_finished(b)) pthread_cond_wait(&r->progress, &r->lock);
}

/* ---- Threads ---- */

static void *help(void *argument)
{
    SLC_HOLD_FLOATS;
    const helper *h = argument;
    slc_image_reader *r = h->reader;
    pthread_mutex_lock(&r->lock);
    while (!r->ends) {
        if (has_more(r->now))
            read_one(r, r->now);
        else if (h->may_read_ahead && has_more(r->next))
            read_one(r, r->next);
        else
            pthread_cond_wait(&r->work, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static uint32_t count_wanted_helpers(const slc_image_reader_how *how)
{
    const uint32_t beside_caller = how->threads - 1;
    return how->ahead > beside_caller ? how->ahead : beside_caller;
}

/* Starts the threads with all signals blocked, so that signals go to the program's own threads. */
static void start_helpers(slc_image_reader *r)
{
    const uint32_t wanted = count_wanted_helpers(&r->how);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; r->helper_count < wanted; r->helper_count++) {
        helper *h = &r->helpers[r->helper_count];
        *h = (helper){.reader = r, .may_read_ahead = r->helper_count < r->how.ahead};
        if (pthread_create(&h->thread, NULL, help, h)) break;
        pthread_setname_np(h->thread, "sluice-images");
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    r->started = true;
}

static void end_helpers(slc_image_reader *r)
{
    pthread_mutex_lock(&r->lock);
    r->ends = true;
    pthread_cond_broadcast(&r->work);
    pthread_mutex_unlock(&r->lock);
    for (uint32_t i = 0; i < r->helper_count; i++) pthread_join(r->helpers[i].thread, NULL);
}

/* ---- The reader ---- */

static size_t count_elements(const slc_image_shape *shape)
{
    return (size_t)shape->channels * shape->side * shape->side;
}

uint64_t slc_image_reader_bytes(const slc_image_shape *shape, uint32_t batch_images)
{
    return 2 * (uint64_t)batch_images * (count_elements(shape) * sizeof(float) + sizeof(int32_t));
}

sluice_status slc_image_reader_open(const slc_image_reader_how *how, slc_image_reader **out)
{
    slc_image_reader *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r) return slc_error(SLUICE_ERR_MEMORY, "a batch of %u images", how->batch);
    r->how = *how;
    r->image = count_elements(&how->shape);
    r->now = &r->batches[0];
    r->next = &r->batches[1];
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->work, NULL);
    pthread_cond_init(&r->progress, NULL);
    bool whole = (r->helpers = calloc(count_wanted_helpers(how) + 1, sizeof *r->helpers));
    for (int i = 0; i < 2; i++) {
        batch *b = &r->batches[i];
        b->pixels = malloc(how->batch * r->image * sizeof *b->pixels);
        b->labels = malloc(how->batch * sizeof *b->labels);
        whole &= b->pixels && b->labels;
    }
    if (!whole) {
        slc_image_reader_close(r);
        return slc_error(SLUICE_ERR_MEMORY, "a batch of %u images", how->batch);
    }
    *out = r;
    return SLUICE_OK;
}

void slc_image_reader_close(slc_image_reader *r)
{
    if (!r) return;
    end_helpers(r);
    for (int i = 0; i < 2; i++) {
        free(r->batches[i].pixels);
        free(r->batches[i].labels);
    }
    free(r->helpers);
    pthread_cond_destroy(&r->progress);
    pthread_cond_destroy(&r->work);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* Makes `wanted` the batch that is read first: the one that was read ahead, if it has this request, else a new one. */
static void turn_to(slc_image_reader *r, const slc_image_request *wanted)
{
    batch *const before = r->now;
    if (r->next->of.images && is_same(&r->next->of, wanted)) {
        r->now = r->next;
        r->next = before;
        before->of.images = NULL;
    } else {
        request(before, wanted);
    }
}

/* Begins to read `next` ahead. What was read ahead before ends first, unless it is the same request. */
static void read_ahead(slc_image_reader *r, const slc_image_request *next)
{
    batch *const b = r->next;
    if (!r->how.ahead || !r->helper_count || (b->of.images && is_same(&b->of, next))) return;
    b->of.count = b->begun;
    wait_for(r, b);
    request(b, next);
    pthread_cond_broadcast(&r->work);
}

sluice_status slc_image_reader_take(slc_image_reader *r, const slc_image_request *wanted, const slc_image_request *next,
                                    float **pixels, int32_t **labels)
{
    if (!r->started) start_helpers(r);
    pthread_mutex_lock(&r->lock);
    turn_to(r, wanted);
    if (has_more(r->now)) pthread_cond_broadcast(&r->work);
    while (has_more(r->now)) read_one(r, r->now);
    wait_for(r, r->now);
    batch *const b = r->now;
    const sluice_status status = b->status;
    if (status) slc_error(status, "%s", b->why);
    if (!status && next) read_ahead(r, next);
    pthread_mutex_unlock(&r->lock);
    *pixels = b->pixels;
    *labels = b->labels;
    return status;
}
