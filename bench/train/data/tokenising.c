/* tests/command/weights/finetune_test.sh covers this file. */
#include "bench/train/data/tokenising.h"

#include "lib/base/clock.h"

#include <stdio.h>
#include <unistd.h>

static const uint64_t PATIENCE_NS = 2000000000, TERMINAL_NS = 100000000, PLAIN_NS = 5000000000;

static void show_share(const char *what, slc_training_tokenising *progress, uint64_t done, uint64_t bytes)
{
    uint64_t now = slc_clock_ns();
    bool terminal = isatty(STDERR_FILENO);
    if (!progress->start_ns) progress->start_ns = now;
    uint64_t since = now - (progress->shown_ns ? progress->shown_ns : progress->start_ns);
    uint64_t every = !progress->shown_ns ? PATIENCE_NS : terminal ? TERMINAL_NS : PLAIN_NS;
    bool last = done == bytes && progress->shown_ns;
    if (!last && since < every) return;
    progress->shown_ns = now;
    fprintf(stderr, "%s%s: %.1f of %.1f MB, %.0f %%%s", terminal ? "\r" : "", what, (double)done / 1e6,
            (double)bytes / 1e6, 100 * (double)done / (double)bytes, terminal && !last ? "\x1b[K" : "\n");
    fflush(stderr);
}

void slc_training_tokenising_show(slc_training_tokenising *progress, uint64_t done, uint64_t bytes)
{
    show_share("tokens of the text", progress, done, bytes);
}

void slc_training_indexing_show(slc_training_tokenising *progress, uint64_t done, uint64_t bytes)
{
    show_share("looking for records", progress, done, bytes);
}
