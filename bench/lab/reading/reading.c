/* `sluice-lab reading`: measures the cost of comparing files among ranks, for which each rank computes a fingerprint of
 * what it reads. A file is read by turns without and with the fingerprint, as loading and opening do it.
 * tests/command/output_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/options/command_line.h"
#include "lib/base/clock.h"
#include "lib/base/file/file.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"
#include "lib/base/text/ending.h"
#include "lib/data/text.h"
#include "lib/weights/safetensors/safetensors.h"
#include "lib/weights/tensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS_MOST = 1000, PIECE = 1 << 20 };

typedef struct {
    unsigned rounds;
    bool cached;
    const char *path;
} reading_options;

/* Times of the rounds: [0] without the fingerprint that ranks compare, [1] with it. */
typedef struct {
    double elapsed_s[2][ROUNDS_MOST], processor_s[2][ROUNDS_MOST];
} reading_times;

static const slc_option option_rows[] = {
    {"rounds", "N", 0, SLC_OPTION_COUNT, SLC_OPTION_FIELD(reading_options, rounds), "9", 0, "Readings of each kind", 1,
     ROUNDS_MOST, .letter = 'r'},
    {"cached", NULL, 0, SLC_OPTION_FLAG, SLC_OPTION_FIELD(reading_options, cached), NULL, 0,
     "Read what the system holds in memory; else the file comes from the disk each time", .letter = 'c'},
    {0},
};

static const char doc[] =
    "Reads a file with and without what ranks compare of it before they train (a fingerprint of all values of weights, "
    "or of pieces of a text), by turns, and prints the medians.\v"
    "FILE is a model.safetensors, which is read once from its beginning to its end as before loading, or a text.\n"
    "Examples:\n"
    "  sluice-lab reading gpt2/model.safetensors\n"
    "  sluice-lab reading --cached --rounds 21 book.txt";

static sluice_status read_weights(const char *path, bool compared)
{
    slc_tensors *tensors = NULL;
    slc_fingerprint fingerprint = {0};
    sluice_status status = slc_safetensors_open(path, &tensors);
    for (size_t i = 0; !status && i < slc_tensors_count(tensors); i++)
        status = slc_tensors_check_finite(tensors, slc_tensors_at(tensors, i), compared ? &fingerprint : NULL);
    slc_tensors_close(tensors);
    return status;
}

static sluice_status read_text(const slc_file *file, const char *path, bool compared)
{
    static unsigned char piece[PIECE];
    slc_text *text = NULL;
    sluice_status status = compared ? slc_text_open(&path, 1, &text) : SLUICE_OK; /* which takes the fingerprint */
    slc_text_close(text);
    for (uint64_t at = 0; !status && at < file->bytes; at += PIECE)
        status = slc_file_read(file, at, file->bytes - at < PIECE ? (size_t)(file->bytes - at) : PIECE, piece);
    return status;
}

static sluice_status read_rounds(const reading_options *o, const slc_file *file, reading_times *times)
{
    sluice_status status = SLUICE_OK;
    for (unsigned i = 0; !status && i < 2 * o->rounds; i++) {
        const bool compared = i % 2;
        if (!o->cached) posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
        const uint64_t processor_ns = slc_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID), begin_ns = slc_clock_ns();
        status = slc_ends_with(o->path, ".safetensors") ? read_weights(o->path, compared)
                                                        : read_text(file, o->path, compared);
        times->elapsed_s[compared][i / 2] = slc_seconds(slc_clock_ns() - begin_ns);
        times->processor_s[compared][i / 2] = slc_seconds(slc_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - processor_ns);
    }
    return status;
}

static void print_times(const reading_options *o, const slc_file *file, reading_times *times)
{
    double elapsed_s[2], processor_s[2];
    for (int compared = 0; compared < 2; compared++) {
        elapsed_s[compared] = slc_median(times->elapsed_s[compared], o->rounds);
        processor_s[compared] = slc_median(times->processor_s[compared], o->rounds);
    }
    printf("%s: %.1f MB, %s, medians of %u\n", o->path, (double)file->bytes / 1e6,
           o->cached ? "from memory" : "from the disk", o->rounds);
    printf("%-14s %12s %12s\n", "", "elapsed", "processor");
    for (int compared = 0; compared < 2; compared++)
        printf("%-14s %10.2f ms %9.2f ms\n", compared ? "compared" : "not compared", 1e3 * elapsed_s[compared],
               1e3 * processor_s[compared]);
    printf("%-14s %10.1f %%  %9.1f %%\n", "costs", 100 * (elapsed_s[1] / elapsed_s[0] - 1),
           100 * (processor_s[1] / processor_s[0] - 1));
}

static int run_reading(int argc, char **argv)
{
    const slc_command_line line = {
        .rows = option_rows, .arguments = "FILE", .argument = offsetof(reading_options, path), .doc = doc};
    static reading_times times;
    reading_options o = {0};
    slc_file file;
    slc_command_line_parse(&line, argc, argv, &o);
    sluice_status status = slc_file_open(o.path, &file);
    if (!status && fsync(file.fd)) status = slc_error(SLUICE_ERR_IO, "%s: %s", o.path, strerror(errno));
    if (!status) status = read_rounds(&o, &file, &times);
    if (!status) print_times(&o, &file, &times);
    slc_file_close(&file);
    return status ? slc_fail("sluice-lab reading") : 0;
}

const sluice_command slc_command_reading = {"reading", "measures what comparing files over the ranks costs",
                                            run_reading};
