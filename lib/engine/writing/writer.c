/* tests/checkpoint/save_behind_test.c covers this file. */
#include "lib/engine/writing/writer.h"

#include "lib/base/bisect.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/plan/plan.h"

#include <signal.h>
#include <stdio.h>

static const uint64_t SECOND_NS = 1000000000;

static void *run_job(void *argument)
{
    slc_writer *w = argument;
    const uint64_t began_ns = slc_clock_ns();
    w->status = w->job(w->context);
    if (w->status) snprintf(w->line, sizeof w->line, "%s", sluice_last_error());
    w->took_ns = slc_clock_ns() - began_ns;
    slc_gate_post(&w->written, w->ranges);
    slc_gate_post(&w->ended, 1);
    return NULL;
}

/* Starts the writer's thread, which takes no signals: they are for the thread that waits for them. The thread may ask
 * at once whether it runs. */
static void start_thread(slc_writer *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->has_thread = true;
    if (pthread_create(&w->thread, NULL, run_job, w)) w->has_thread = false;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void slc_writer_begin(slc_writer *w, sluice_status (*job)(void *context), void *context, const uint32_t *last_slots,
                      uint32_t ranges, bool behind)
{
    *w = (slc_writer){.job = job, .context = context, .last_slots = last_slots, .ranges = ranges, .at_work = true};
    slc_gate_init(&w->written);
    slc_gate_init(&w->ended);
    if (behind) start_thread(w);
    if (!w->has_thread) run_job(w);
}

bool slc_writer_runs_behind(const slc_writer *w)
{
    return w->has_thread;
}

void slc_writer_wrote(slc_writer *w, uint32_t ranges)
{
    slc_gate_post(&w->written, ranges);
}

/* Waits for a gate. While ranges go on being written, the other ranks hear that this one is at work, not absent. */
static void wait_for(slc_writer *w, slc_gate *gate, uint32_t count, slc_comm *comm)
{
    if (slc_gate_passed(gate, count)) return;
    uint32_t seen = atomic_load(&w->written.value);
    slc_comm_work(comm, "writing");
    while (!slc_gate_wait(gate, count, SECOND_NS)) {
        const uint32_t now = atomic_load(&w->written.value);
        if (now != seen) slc_comm_work(comm, "writing");
        seen = now;
    }
    slc_comm_work(comm, NULL);
}

void slc_writer_wait(slc_writer *w, uint32_t slot, slc_comm *comm)
{
    const uint64_t began_ns = slc_clock_ns();
    if (!w->at_work) return;
    SLC_BISECT(uint32_t, needed, 0, w->ranges, slot == SLC_NONE || w->last_slots[needed] <= slot)
    wait_for(w, &w->written, needed, comm);
    w->held_ns += slc_clock_ns() - began_ns;
}

bool slc_writer_has_ended(const slc_writer *w)
{
    return !w->at_work || slc_gate_passed(&w->ended, 1);
}

sluice_status slc_writer_end(slc_writer *w, slc_comm *comm)
{
    if (!w->at_work) return SLUICE_OK;
    wait_for(w, &w->ended, 1, comm);
    if (w->has_thread) pthread_join(w->thread, NULL);
    w->has_thread = w->at_work = false;
    w->ranges = 0;
    return w->status ? slc_error(w->status, "%s", w->line) : SLUICE_OK;
}
