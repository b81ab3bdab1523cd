/* A throttle belongs to a world, and so does a number of ranks: the command starts itself again for each part. If ranks
 * end before their part is done, the cell that was run has failed, and new ranks go on after it.
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/as_launcher.h"

#include "bench/cli/command.h"
#include "bench/launch/self_launch.h"
#include "bench/sweep/conclude.h"
#include "bench/sweep/folder/under_way.h"
#include "bench/sweep/opening.h"
#include "bench/sweep/figures/table.h"
#include "lib/base/log.h"

#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t stops;
static const char command[] = "sluice bench";

static void count_stop(int signal)
{
    (void)signal;
    stops++;
}

/* Used only if nothing is computed: see bench/launch/stop_signals.h. */
static void handle_signals(void)
{
    struct sigaction action = {.sa_handler = count_stop};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* results are written to files even if nobody reads the table */
}

typedef struct {
    slc_bench_options *options;
    char **argv;
    slc_bench_results results;
    slc_under_way *way;
    int way_fd;
    uint64_t count, next; /* runs of a part; the number of the run to go on with, over all parts */
    int code;             /* not 0: the sweep ends */
} launcher;

/* ---- The ranks ---- */

/* The number of ranks that the next part of the sweep runs on. */
static int ranks_of(const launcher *l)
{
    const uint64_t ranks = slc_bench_part_ranks(l->options, l->next / l->count);
    return ranks ? (int)ranks : 1;
}

static sluice_status start_ranks(const launcher *l, slc_launch_end *end, int *code)
{
    char part[16], done[24], overall[24], ranks[24];
    const slc_bench_options *o = l->options;
    snprintf(part, sizeof part, "%d", l->way_fd);
    snprintf(done, sizeof done, "%" PRIu64, l->next);
    snprintf(overall, sizeof overall, "%" PRIu64, slc_bench_part_count(o) * l->count);
    snprintf(ranks, sizeof ranks, "%d", ranks_of(l));
    char *const more[] = {(char *)"--throttle",
                          (char *)slc_bench_part_throttle(o, l->next / l->count),
                          (char *)"--ranks",
                          ranks,
                          (char *)"--output",
                          (char *)o->output,
                          (char *)"--part",
                          part,
                          (char *)"--done",
                          done,
                          (char *)"--overall",
                          overall,
                          NULL};
    const slc_launch_options how = {
        .ranks = ranks_of(l), .limit_at_ns = o->cell_timeout_s > 0 ? &l->way->limit_at_ns : NULL, .end = end};
    atomic_store(&l->way->next, l->next);
    atomic_store(&l->way->running, false);
    atomic_store(&l->way->limit_at_ns, 0);
    return slc_launch_self_as(&how, "bench", l->argv + 1, more, code);
}

/* Reads the results that the ranks left in the folder, which count however the ranks ended. */
static sluice_status read_results(launcher *l)
{
    slc_bench_results_free(&l->results);
    sluice_status status = slc_bench_reopen(l->options, &l->results);
    const slc_bench_ends ends = slc_bench_results_ends(&l->results);
    if (!status && ends.least && slc_bench_budgets_are_found(l->options))
        status = slc_bench_budgets_set(l->options, &ends);
    return status;
}

/* ---- Where they ended ---- */

/* Adds a row for the cell that the ranks did not survive. A full disk does not end the sweep. */
static sluice_status note_failure(launcher *l, const char *why)
{
    slc_bench_case one;
    slc_bench_case_at(l->options, l->next / l->count, l->next % l->count, &one);
    sluice_status status = slc_bench_results_add_failure(&l->results, &one, why);
    if (status) return status;
    slc_bench_table_failure(slc_bench_people(l->options), &l->results);
    l->next++;
    status = slc_bench_save(&l->results, l->options);
    if (status != SLUICE_ERR_IO) return status;
    slc_log(SLC_LOG_WARN, "%s; the sweep goes on", sluice_last_error());
    return SLUICE_OK;
}

/* Called when the ranks ended with an error. If it happened in a cell, it is noted there, and new ranks can go on after
 * the cell; otherwise the sweep ends with the ranks' exit code. */
static sluice_status go_on_after(launcher *l, const slc_launch_end *end, int code)
{
    char late[64];
    const uint64_t reached = atomic_load(&l->way->next);
    bool moved = reached > l->next;
    l->next = reached;
    snprintf(late, sizeof late, "it took longer than --cell-timeout %g", l->options->cell_timeout_s);
    if (atomic_load(&l->way->running)) {
        /* If the limit that was over has been moved on since, it was that of the cell before. */
        if (end->limit_ns && end->limit_ns != atomic_load(&l->way->limit_at_ns)) return SLUICE_OK;
        return note_failure(l, end->limit_ns ? late : end->failures);
    }
    if (!moved) l->code = code; /* they failed outside of any cell */
    return SLUICE_OK;
}

static sluice_status run_part(launcher *l)
{
    slc_launch_end end = {0};
    int code = 0;
    const uint64_t part = l->next / l->count;
    sluice_status status = start_ranks(l, &end, &code);
    if (!status) status = read_results(l);
    if (status) return status;
    if (end.told_to_stop)
        l->code = code ? code : EXIT_INTERRUPTED;
    else if (code)
        status = go_on_after(l, &end, code);
    else
        l->next = (part + 1) * l->count;
    if (!status && (l->code || l->next / l->count > part))
        slc_bench_table_rest(slc_bench_people(l->options), &l->results, l->options, part);
    return status;
}

/* ---- The whole ---- */

int slc_bench_as_launcher(slc_bench_options *options, char **argv)
{
    launcher l = {.options = options, .argv = argv, .way_fd = -1, .count = slc_bench_case_count(options)};
    const uint64_t all = slc_bench_part_count(options) * l.count;
    int code;
    sluice_status status = slc_bench_open(options, ranks_of(&l), true, &l.results);
    const bool opened = !status;
    if (opened) slc_bench_table_continued(slc_bench_people(options), options->output, &l.results);
    if (!status) status = slc_under_way_create(&l.way, &l.way_fd);
    handle_signals();
    while (!status && !l.code && !stops && l.next < all) status = run_part(&l);
    if (stops && !l.code) l.code = EXIT_INTERRUPTED;
    code = status ? slc_fail(command) : l.code;
    if (opened && (!code || json_array_size(l.results.runs) || json_array_size(l.results.failures))) {
        int concluded = slc_bench_conclude(&l.results, options);
        if (!code) code = concluded;
    }
    slc_bench_results_free(&l.results);
    slc_under_way_detach(l.way);
    if (l.way_fd >= 0) close(l.way_fd);
    return code;
}
