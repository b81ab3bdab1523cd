/* `sluice-lab pictures`: how many pictures a second are decoded and resized, as training and evaluation have it done,
 * without a model. tests/command/data/train_images_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/options/command_line.h"
#include "lib/base/clock.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"
#include "lib/data/images/image_reader.h"

#include <stdbool.h>
#include <stdio.h>

enum { ROUNDS_MOST = 1000 };

typedef struct {
    uint32_t side, batch, threads, rounds;
    bool draft;
    const char *path;
} pictures_options;

#define FIELD(name) SLC_OPTION_FIELD(pictures_options, name)
static const slc_option option_rows[] = {
    {"side", "N", 0, SLC_OPTION_COUNT, FIELD(side), "224", 0, "Pixels of a side of what a model sees", 1, 4096},
    {"batch", "N", 0, SLC_OPTION_COUNT, FIELD(batch), "8", 0, "Pictures at a time", 1, 65536, .letter = 'b'},
    {"threads", "N", 0, SLC_OPTION_COUNT, FIELD(threads), "1", 0, "Threads that decode", 1, 1024, .letter = 't'},
    {"rounds", "N", 0, SLC_OPTION_COUNT, FIELD(rounds), "5", 0, "Readings of all pictures, after one that is not timed",
     1, ROUNDS_MOST, .letter = 'r'},
    {"image-draft", NULL, 0, SLC_OPTION_FLAG, FIELD(draft), NULL, 0, "As --image-draft of sluice train"},
    {0},
};

static const char doc[] =
    "Decodes and resizes all pictures of a folder several times, in one order, and prints the median of pictures a "
    "second. No step runs beside it, and nothing is read ahead.\v"
    "DATA is what --data of `sluice train --model vit` takes.\n"
    "Example:\n"
    "  sluice-lab pictures --threads 2 --batch 32 photos/";

static sluice_status read_all(slc_image_reader *reader, const slc_images *images, uint32_t batch)
{
    const uint64_t count = slc_images_get_facts(images).count;
    sluice_status status = SLUICE_OK;
    for (uint64_t first = 0; !status && first < count; first += batch) {
        const slc_image_request wanted = {
            .images = images, .first = first, .count = count - first < batch ? (uint32_t)(count - first) : batch};
        float *pixels;
        int32_t *labels;
        status = slc_image_reader_take(reader, &wanted, NULL, &pixels, &labels);
    }
    return status;
}

static sluice_status measure(const pictures_options *o, const slc_images *images, slc_image_reader *reader)
{
    static double times_s[ROUNDS_MOST];
    const double count = (double)slc_images_get_facts(images).count;
    sluice_status status = read_all(reader, images, o->batch);
    for (uint32_t i = 0; !status && i < o->rounds; i++) {
        const uint64_t begin_ns = slc_clock_ns();
        status = read_all(reader, images, o->batch);
        times_s[i] = slc_seconds(slc_clock_ns() - begin_ns);
    }
    if (status) return status;
    const double median_s = slc_median(times_s, o->rounds);
    printf("%s: %.0f pictures to %u x %u by %u thread%s: %.1f a second, %.3f ms each\n", o->path, count, o->side,
           o->side, o->threads, o->threads == 1 ? "" : "s", count / median_s, 1e3 * median_s / count);
    return SLUICE_OK;
}

static int run_pictures(int argc, char **argv)
{
    const slc_command_line line = {
        .rows = option_rows, .arguments = "DATA", .argument = offsetof(pictures_options, path), .doc = doc};
    pictures_options o = {0};
    slc_images *images = NULL;
    slc_image_reader *reader = NULL;
    slc_command_line_parse(&line, argc, argv, &o);
    const slc_image_reader_how how = {.shape = {.channels = 3,
                                                .side = o.side,
                                                .mean = {.5f, .5f, .5f},
                                                .deviation = {.5f, .5f, .5f},
                                                .filter = SLC_FILTER_BILINEAR,
                                                .draft = o.draft},
                                      .batch = o.batch,
                                      .threads = o.threads};
    sluice_status status = slc_images_open(o.path, &images);
    if (!status) status = slc_image_reader_open(&how, &reader);
    if (!status) status = measure(&o, images, reader);
    slc_image_reader_close(reader);
    slc_images_close(images);
    return status ? slc_fail("sluice-lab pictures") : 0;
}

const sluice_command slc_command_pictures = {"pictures", "measures how fast pictures become pixels", run_pictures};
