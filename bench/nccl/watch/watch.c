/* Looks at the records again and again. A fault is told when two looks at different moments show it, since ranks that
 * run are read one after the other. tests/nccl/faults/faults_test.py covers this file. */
#include "bench/nccl/watch/watch.h"

#include "bench/cli/command.h"
#include "bench/cli/output/result_file.h"
#include "bench/nccl/watch/compare.h"
#include "lib/base/array.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_NS UINT64_C(100000000) /* between two looks; more if a look takes long */
enum { LOOK_SHARE = 4 };

/* The facts about a process that earlier looks left. */
typedef struct {
    char *path;
    uint64_t movement; /* a sum that changes with its record */
    int64_t moved_ns;  /* when that was seen to change; CLOCK_MONOTONIC */
    bool was_alive;
} known_process;

typedef struct {
    const char *const *paths;
    size_t path_count;
    double stall_s;
    bool once;
    slc_nccl_records *records;
    known_process *known;
    size_t known_count;
    slc_nccl_findings before, now; /* of the look before this one, and of this one */
} watch;

static bool is_alive(const slc_nccl_process *p)
{
    return !slc_nccl_process_is_dead(p);
}

static uint64_t movement_of(const slc_nccl_process *p)
{
    uint64_t sum = p->header.entries;
    for (uint32_t i = 0; i < p->header.communicators; i++) {
        const slc_record_communicator *row = &p->communicators[i];
        sum += row->calls + row->returned + row->done + row->state;
    }
    return sum;
}

static known_process *known_of(watch *w, const slc_nccl_process *p, int64_t now_ns)
{
    for (size_t i = 0; i < w->known_count; i++)
        if (!strcmp(w->known[i].path, p->path)) return &w->known[i];
    if (!SLC_ROOM_FOR_ONE(w->known, w->known_count)) return NULL;
    known_process *known = &w->known[w->known_count];
    *known = (known_process){.path = strdup(p->path), .movement = movement_of(p), .moved_ns = now_ns};
    if (!known->path) return NULL;
    /* The entries were written by this machine's clock, so the last one says when the process last moved. */
    if (p->state != SLC_NCCL_ELSEWHERE && p->entry_count) known->moved_ns = p->entries[p->entry_count - 1].time_ns;
    if (p->state == SLC_NCCL_ELSEWHERE && w->once) known->moved_ns = INT64_MIN;
    w->known_count++;
    return known;
}

/* Notes what moved since the look before, and writes each process's quiet seconds. */
static sluice_status note_movement(watch *w, double *quiet_s)
{
    int64_t now_ns = (int64_t)slc_clock_ns();
    for (size_t i = 0; i < w->records->count; i++) {
        const slc_nccl_process *p = &w->records->processes[i];
        known_process *known = known_of(w, p, now_ns);
        if (!known) return slc_error(SLUICE_ERR_MEMORY, "watching %s", p->path);
        uint64_t movement = movement_of(p);
        if (movement != known->movement) known->moved_ns = now_ns;
        known->movement = movement;
        known->was_alive = known->was_alive || is_alive(p);
        bool moves = is_alive(p) && known->moved_ns != INT64_MIN;
        quiet_s[i] = moves ? fmax(0, (double)(now_ns - known->moved_ns) * 1e-9) : INFINITY;
    }
    return SLUICE_OK;
}

/* Chooses the processes that are compared: those of programs that run, next to which old records of dead programs may
 * lie; or all of them if nothing runs. */
static size_t select_processes(const watch *w, slc_nccl_process *out, double *quiet_s)
{
    bool some_alive = false;
    for (size_t i = 0; i < w->known_count; i++) some_alive = some_alive || w->known[i].was_alive;
    size_t count = 0;
    for (size_t i = 0; i < w->records->count; i++) {
        const slc_nccl_process *p = &w->records->processes[i];
        bool wanted = !some_alive || w->once;
        for (size_t k = 0; !wanted && k < w->known_count; k++) {
            if (!w->known[k].was_alive) continue;
            for (size_t j = 0; !wanted && j < w->records->count; j++) {
                const slc_nccl_process *live = &w->records->processes[j];
                wanted = !strcmp(live->path, w->known[k].path) && (live == p || slc_nccl_share_communicator(live, p));
            }
        }
        if (!wanted) continue;
        quiet_s[count] = quiet_s[i];
        out[count++] = *p;
    }
    return count;
}

/* Compares the records as they were read last. */
static sluice_status compare_records(watch *w)
{
    size_t most = w->records->count + 1;
    double *quiet_s = calloc(most, sizeof *quiet_s);
    slc_nccl_records selected = {.processes = calloc(most, sizeof *selected.processes)};
    sluice_status status =
        quiet_s && selected.processes ? note_movement(w, quiet_s) : slc_error(SLUICE_ERR_MEMORY, "watching");
    slc_nccl_findings_free(&w->before);
    w->before = w->now;
    w->now = (slc_nccl_findings){0};
    if (!status) {
        selected.count = select_processes(w, selected.processes, quiet_s);
        status = slc_nccl_compare(&selected, quiet_s, w->stall_s, &w->now);
    }
    free(quiet_s);
    free(selected.processes);
    return status;
}

/* Drops the findings that the look before did not show. */
static void keep_confirmed(watch *w)
{
    for (size_t i = 0; i < w->now.count;) {
        bool confirmed = false;
        for (size_t k = 0; k < w->before.count && !confirmed; k++)
            confirmed = slc_nccl_finding_same(&w->now.rows[i], &w->before.rows[k]);
        if (confirmed)
            i++;
        else
            slc_nccl_finding_drop(&w->now, i);
    }
}

static bool any_confirmed(const watch *w)
{
    for (size_t i = 0; i < w->now.count; i++)
        for (size_t k = 0; k < w->before.count; k++)
            if (slc_nccl_finding_same(&w->now.rows[i], &w->before.rows[k])) return true;
    return false;
}

static bool any_alive(const watch *w)
{
    for (size_t i = 0; i < w->records->count; i++)
        if (is_alive(&w->records->processes[i])) return true;
    return false;
}

/* True if there is a program to watch. The record of a process that ended in order does not count: it stays for a while
 * because others may still wait for the process. */
static bool any_program(const watch *w)
{
    for (size_t i = 0; i < w->records->count; i++)
        if (is_alive(&w->records->processes[i]) || !w->records->processes[i].header.left_at_s) return true;
    return false;
}

static void pause_for(uint64_t ns)
{
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

/* True if a process may still change its record, so that looking once is not enough. Files of another machine are taken
 * as they are. */
static bool may_change(const watch *w)
{
    for (size_t i = 0; i < w->records->count; i++) {
        slc_nccl_process_state state = w->records->processes[i].state;
        if (state == SLC_NCCL_RUNNING || state == SLC_NCCL_STOPPED) return true;
    }
    return false;
}

static sluice_status look_once(watch *w)
{
    sluice_status status = compare_records(w);
    if (status || !w->now.count || !may_change(w)) return status;
    pause_for(LOOK_NS);
    status = slc_nccl_records_again(w->paths, w->path_count, w->records);
    if (!status) status = compare_records(w);
    if (!status) keep_confirmed(w);
    return status;
}

/* Looks until a fault is confirmed or nothing is alive. */
static sluice_status look_on(watch *w)
{
    bool seen = false, said = false;
    size_t refused_told = 0;
    for (;;) {
        uint64_t begin = slc_clock_ns();
        sluice_status status = slc_nccl_records_again(w->paths, w->path_count, w->records);
        refused_told = slc_nccl_records_tell_refused(w->records, refused_told);
        if (!status) status = compare_records(w);
        if (status) return status;
        seen = seen || any_program(w);
        if (!seen && !said) fprintf(stderr, "sluice nccl: waiting for a program to record in %s\n", w->paths[0]);
        said = true;
        if (seen && !any_alive(w)) return SLUICE_OK; /* this look is final */
        if (any_confirmed(w)) {
            keep_confirmed(w);
            return SLUICE_OK;
        }
        uint64_t took = slc_clock_ns() - begin;
        pause_for(LOOK_SHARE * took > LOOK_NS ? LOOK_SHARE * took : LOOK_NS);
    }
}

static void print_findings(const watch *w, FILE *out)
{
    for (size_t i = 0; i < w->now.count; i++) {
        const slc_nccl_finding *f = &w->now.rows[i];
        fprintf(out, "%s\n", f->text);
        if (f->hint) fprintf(out, "  %s\n", f->hint);
    }
    if (w->once || w->now.count) return;
    size_t gone = 0;
    for (size_t i = 0; i < w->records->count; i++) gone += w->records->processes[i].state == SLC_NCCL_GONE;
    fputs("no fault found: all processes have ended, and no rank waited for another one", out);
    if (gone) fprintf(out, " (%zu without an orderly end)", gone);
    fputc('\n', out);
}

static json_t *processes_json(const watch *w)
{
    json_t *all = json_array();
    for (size_t i = 0; all && i < w->records->count; i++) {
        const slc_nccl_process *p = &w->records->processes[i];
        if (json_array_append_new(all, json_pack("{s:s, s:I, s:s, s:s}", "host", p->header.host, "pid",
                                                 (json_int_t)p->header.pid, "state", slc_nccl_state_name(p->state),
                                                 "command", p->header.command))) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

static sluice_status write_json(const watch *w, const char *path)
{
    if (!path) return SLUICE_OK;
    return slc_result_file_write_json(path, json_pack("{s:i, s:o, s:o}", "version", 1, "findings",
                                                      slc_nccl_findings_json(&w->now), "processes", processes_json(w)));
}

static int end_watch(watch *w, sluice_status status, FILE *out, const char *json)
{
    if (!status) {
        print_findings(w, out);
        status = write_json(w, json);
    }
    int code = status ? slc_fail("sluice nccl") : w->now.count ? 1 : 0;
    slc_nccl_findings_free(&w->before);
    slc_nccl_findings_free(&w->now);
    for (size_t i = 0; i < w->known_count; i++) free(w->known[i].path);
    free(w->known);
    return code;
}

int slc_nccl_watch(const char *const *paths, size_t count, double stall_s, const char *json)
{
    slc_nccl_records records = {0};
    watch w = {.paths = paths, .path_count = count, .stall_s = stall_s, .records = &records};
    const sluice_status status = look_on(&w);
    const int code = end_watch(&w, status, slc_is_standard_output(json) ? stderr : stdout, json);
    slc_nccl_records_free(&records);
    return code;
}

int slc_nccl_judge(slc_nccl_records *records, const char *const *paths, size_t count, double stall_s)
{
    watch w = {.paths = paths, .path_count = count, .stall_s = stall_s, .once = true, .records = records};
    const sluice_status status = look_once(&w);
    return end_watch(&w, status, stderr, NULL);
}
