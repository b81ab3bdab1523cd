/* Prints what a call of NCCL costs more with the shim: the same program, linked to an NCCL that does nothing, runs with
 * and without it by turns, and each call is timed. */
#include "bench/cli/command.h"
#include "bench/cli/output/result_file.h"
#include "lib/base/clock.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"
#include "plugins/nccl/nccl_abi.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 200000, KINDS = 3, MOST_TURNS = 101 };

static const char *const kinds[KINDS] = {"ncclAllReduce", "ncclSend", "ncclGroupStart + ncclGroupEnd"};

typedef struct {
    double median, p99;
} cost; /* nanoseconds a call */

/* ---- The measured program ---- */

static ncclResult_t call(int kind, ncclComm_t comm, char *memory)
{
    if (kind == 0) return ncclAllReduce(memory, memory, 512, ncclFloat32, ncclSum, comm, NULL);
    if (kind == 1) return ncclSend(memory, 512, ncclFloat32, 0, comm, NULL);
    ncclResult_t result = ncclGroupStart();
    return result ? result : ncclGroupEnd();
}

static int measure(void)
{
    static double ns[CALLS];
    static char memory[64];
    ncclComm_t comm;
    ncclUniqueId id = {{1}};
    if (ncclCommInitRank(&comm, 1, id, 0)) return 1;
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < CALLS; i++) {
            uint64_t begin = slc_clock_ns();
            if (call(kind, comm, memory)) return 1;
            ns[i] = (double)(slc_clock_ns() - begin);
        }
        slc_sort(ns, CALLS);
        printf("%g %g\n", ns[CALLS / 2], ns[CALLS / 100 * 99]);
    }
    return ncclCommDestroy(comm);
}

/* ---- The turns ---- */

static sluice_status turn(const char *self, const char *shim, const char *folder, cost out[KINDS])
{
    char command[4096];
    const char *preload = shim ? shim : "";
    snprintf(command, sizeof command, "SLUICE_SHIM_DIR='%s' LD_PRELOAD='%s' '%s' --measure", folder, preload, self);
    FILE *output = popen(command, "r");
    if (!output) return slc_error(SLUICE_ERR_SYSTEM, "%s: %s", self, strerror(errno));
    int got = 0;
    while (got < KINDS && fscanf(output, "%lf %lf", &out[got].median, &out[got].p99) == 2) got++;
    int status = pclose(output);
    if (got < KINDS || status)
        return slc_error(SLUICE_ERR_SYSTEM, "the measured program ended with status %d after %d kinds of calls", status,
                         got);
    return SLUICE_OK;
}

static cost middle_of(cost turns[][KINDS], int count, int kind)
{
    double medians[MOST_TURNS], p99s[MOST_TURNS];
    for (int i = 0; i < count; i++) {
        medians[i] = turns[i][kind].median;
        p99s[i] = turns[i][kind].p99;
    }
    return (cost){slc_median(medians, (uint64_t)count), slc_median(p99s, (uint64_t)count)};
}

static sluice_status report(cost bare[][KINDS], cost shim[][KINDS], int turns, const char *path)
{
    json_t *rows = json_array();
    printf("nanoseconds a call, medians of %d turns of %d calls\n", turns, CALLS);
    printf("%-30s %8s %8s %8s %8s %8s %8s\n", "", "bare", "p99", "shim", "p99", "more", "p99");
    for (int kind = 0; kind < KINDS; kind++) {
        cost b = middle_of(bare, turns, kind), s = middle_of(shim, turns, kind);
        printf("%-30s %8.0f %8.0f %8.0f %8.0f %8.0f %8.0f\n", kinds[kind], b.median, b.p99, s.median, s.p99,
               s.median - b.median, s.p99 - b.p99);
        json_array_append_new(rows, json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "call", kinds[kind], "bare_ns",
                                              b.median, "bare_p99_ns", b.p99, "shim_ns", s.median, "shim_p99_ns", s.p99,
                                              "more_ns", s.median - b.median, "more_p99_ns", s.p99 - b.p99));
    }
    json_t *all = json_pack("{s:i, s:i, s:o}", "turns", turns, "calls", CALLS, "costs", rows);
    sluice_status status = all ? slc_result_file_write_json(path, all) : slc_error(SLUICE_ERR_MEMORY, "the results");
    json_decref(all);
    return status;
}

static sluice_status compare(const char *shim, int turns, const char *json)
{
    static cost bare[MOST_TURNS][KINDS], with[MOST_TURNS][KINDS];
    char self[4096], folder[] = "/dev/shm/sluice-overhead-XXXXXX", command[128];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) return slc_error(SLUICE_ERR_SYSTEM, "/proc/self/exe: %s", strerror(errno));
    self[length] = 0;
    if (access(shim, R_OK)) return slc_error(SLUICE_ERR_IO, "%s: %s", shim, strerror(errno));
    if (!mkdtemp(folder)) return slc_error(SLUICE_ERR_IO, "%s: %s", folder, strerror(errno));
    sluice_status status = SLUICE_OK;
    for (int i = 0; !status && i < turns; i++) {
        status = turn(self, NULL, folder, bare[i]);
        if (!status) status = turn(self, shim, folder, with[i]);
    }
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    if (system(command) && !status) status = slc_error(SLUICE_ERR_IO, "%s: not removed", folder);
    return status ? status : report(bare, with, turns, json);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"measure", no_argument, NULL, 'm'},
                                            {"shim", required_argument, NULL, 's'},
                                            {"turns", required_argument, NULL, 't'},
                                            {"json", required_argument, NULL, 'j'},
                                            {NULL, 0, NULL, 0}};
    const char *shim = SHIM, *json = NULL;
    int turns = 7;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'm') return measure();
        if (option == 's') shim = optarg;
        if (option == 'j') json = optarg;
        if (option == 't') turns = atoi(optarg);
        if (option == '?' || turns < 1 || turns > MOST_TURNS) {
            fprintf(stderr, "usage: nccl_overhead [--shim libsluice_nccl.so] [--turns 1-%d] [--json FILE]\n",
                    MOST_TURNS);
            return EXIT_USAGE;
        }
    }
    return compare(shim, turns, json) ? slc_fail("nccl_overhead") : 0;
}
