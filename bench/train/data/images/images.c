/* Images for vit and beit: with their classes, or (beit, tokens) with masked patches whose visual tokens are to be
 * guessed. bench/train/data/data_test.c covers this file. */
#include "bench/train/data/data_parts.h"
#include "bench/train/data/images/codebook_file.h"
#include "bench/train/data/images/image_files.h"
#include "bench/train/data/images/image_parts.h"
#include "bench/train/data/images/visual_tokens.h"
#include "lib/base/hash/fnv.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/data/images/image_reader.h"
#include "lib/data/images/images.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 1,797 handwritten digits of 8 x 8 pixels (scikit-learn), which come with the packages that tests need. */
static const char digits[] = "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz";

typedef struct {
    slc_training_data base;
    slc_images *images, *evaluation; /* evaluation: NULL if a part of `images` is held out */
    slc_image_shape shape;
    slc_image_range train, held_out;
    slc_image_reader *reader;
    uint64_t ranks;  /* that take a step's images together */
    float *pixels;   /* of the batch that was taken, the reader's */
    int32_t *labels; /* likewise */
    int32_t *targets;
    uint32_t across; /* patches a row, of masked images */
    bool labelled;   /* the model answers with classes */
    sluice_model_family family;
    uint8_t *masked; /* of a batch, and of one image more, whose masked patches are counted */
    slc_visual_tokens visual;
} image_data;

slc_training_data *slc_training_images_create(void)
{
    return calloc(1, sizeof(image_data));
}

static void close_images(slc_training_data *base)
{
    image_data *d = (image_data *)base;
    slc_image_reader_close(d->reader); /* its threads read the images */
    slc_images_close(d->images);
    slc_images_close(d->evaluation);
    slc_visual_tokens_free(&d->visual);
    free(d->targets);
    free(d->masked);
}

static sluice_status hash_images(const slc_training_data *base, uint64_t *hash)
{
    const image_data *d = (const image_data *)base;
    uint64_t other;
    sluice_status status = slc_images_content(d->images, hash);
    if (!status && d->evaluation) status = slc_images_content(d->evaluation, &other);
    if (!status && d->evaluation) *hash = slc_fnv(*hash, &other, sizeof other);
    return status;
}

static double passes_of_images(const slc_training_data *base, uint64_t images)
{
    return (double)images / (double)((const image_data *)base)->train.count;
}

/* ---- Micro-batches ---- */

static size_t image_elements(const image_data *d)
{
    return (size_t)d->shape.channels * d->shape.side * d->shape.side;
}

static uint32_t count_there(const slc_training_data *base, uint64_t first, uint64_t images)
{
    return (uint32_t)slc_least(base->batch, first < images ? images - first : 0);
}

/* Images behind the last are grey and have no class. */
static sluice_status take_batch(image_data *d, const slc_image_request *wanted, const slc_image_request *next,
                                sluice_batch *out)
{
    const uint32_t there = wanted->count, missing = d->base.batch - there;
    sluice_status status = slc_image_reader_take(d->reader, wanted, next, &d->pixels, &d->labels);
    for (uint32_t b = there; b < d->base.batch; b++) d->labels[b] = -1;
    memset(d->pixels + there * image_elements(d), 0, missing * image_elements(d) * sizeof *d->pixels);
    *out = SLUICE_INIT(sluice_batch, .pixels = d->pixels, .targets = d->labels);
    return status;
}

/* Training goes through its images again and again, and the micro-batch that a rank takes next lies behind those of all
 * ranks. An evaluation takes no image twice; what is read ahead for training stays meanwhile. */
static sluice_status take_classes(slc_training_data *base, bool held_out, uint64_t first, sluice_batch *out)
{
    image_data *d = (image_data *)base;
    const slc_image_request wanted = {.images = held_out && d->evaluation ? d->evaluation : d->images,
                                      .range = held_out ? d->held_out : d->train,
                                      .seed = base->seed,
                                      .first = first,
                                      .count = held_out ? count_there(base, first, base->facts.held_out) : base->batch};
    slc_image_request next = wanted;
    next.first += d->ranks * base->batch;
    return take_batch(d, &wanted, held_out ? NULL : &next, out);
}

static uint64_t count_masked(const slc_training_data *base, uint64_t sequence)
{
    const image_data *d = (const image_data *)base;
    return slc_mask_blocks(base->seed, false, sequence, d->across,
                           d->masked + (size_t)base->batch * d->across * d->across);
}

/* Masks image b of the batch, whose number among all of its part is `sequence`, and finds its targets. Images that are
 * not there have none. */
static void mask_image(image_data *d, uint32_t b, bool held_out, uint64_t sequence, const slc_images *set,
                       uint64_t place)
{
    const uint32_t patches = d->across * d->across;
    uint8_t *masked = d->masked + (size_t)b * patches;
    int32_t *targets = d->targets + (size_t)b * patches;
    slc_mask_blocks(d->base.seed, held_out, sequence, d->across, masked);
    if (d->labels[b] >= 0)
        slc_visual_tokens_take(&d->visual, set != d->images, slc_images_number(set, place),
                               d->pixels + b * image_elements(d), masked, targets);
    for (uint32_t i = 0; d->labels[b] < 0 && i < patches; i++) targets[i] = -1;
}

static sluice_status take_masked(slc_training_data *base, bool held_out, uint64_t first, sluice_batch *out)
{
    image_data *d = (image_data *)base;
    const slc_images *set = held_out && d->evaluation ? d->evaluation : d->images;
    const slc_image_range range = held_out ? d->held_out : d->train;
    sluice_status status = take_classes(base, held_out, first, out);
    for (uint32_t b = 0; b < base->batch && !status; b++)
        mask_image(d, b, held_out, first + b, set, slc_image_range_place(range, base->seed, first + b));
    out->masked_patches = d->masked;
    out->targets = d->targets;
    return status;
}

/* ---- All images, in order ---- */

static sluice_status take_in_order(slc_training_data *base, uint64_t first, sluice_batch *out)
{
    const uint64_t images = base->facts.sequences;
    image_data *d = (image_data *)base;
    const slc_image_request wanted = {.images = d->images, .first = first, .count = count_there(base, first, images)};
    slc_image_request next = wanted;
    next.first += base->batch;
    next.count = count_there(base, next.first, images);
    return take_batch(d, &wanted, next.count ? &next : NULL, out);
}

static sluice_status take_masked_in_order(slc_training_data *base, uint64_t first, sluice_batch *out)
{
    image_data *d = (image_data *)base;
    sluice_status status = take_in_order(base, first, out);
    for (uint32_t b = 0; b < base->batch && !status; b++) mask_image(d, b, true, first + b, d->images, first + b);
    out->masked_patches = d->masked;
    out->targets = d->targets;
    return status;
}

static sluice_status open_in_order(image_data *d, const sluice_model_config *model)
{
    const uint32_t classes = slc_images_get_facts(d->images).classes;
    d->base.facts.sequences = slc_images_get_facts(d->images).count;
    d->base.take_in_order = take_in_order;
    if (model->head != SLUICE_HEAD_CLASSES) {
        d->base.take_in_order = take_masked_in_order;
        return SLUICE_OK;
    }
    if (classes <= model->classes) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--data: images of %u classes, and the model answers with %u; give the images of its classes",
                     classes, model->classes);
}

static sluice_status add_image_files(const slc_training_data *base, json_t *beside)
{
    const image_data *d = (const image_data *)base;
    sluice_status status = slc_image_files_add(beside, d->family, &d->shape, d->labelled ? d->images : NULL);
    return !status && d->visual.codebook.codes ? slc_codebook_add(beside, &d->visual.codebook) : status;
}

/* ---- Opening ---- */

static sluice_status open_evaluation(image_data *d, const char *path)
{
    sluice_status status = slc_images_open(path, &d->evaluation);
    if (status) return slc_error_context(status, "--eval-data");
    d->train = (slc_image_range){0, slc_images_get_facts(d->images).count};
    d->held_out = (slc_image_range){0, slc_images_get_facts(d->evaluation).count};
    return SLUICE_OK;
}

/* Images that are evaluated on have the classes of those that are trained on. */
static sluice_status number_evaluation(image_data *d)
{
    const slc_images_facts trained = slc_images_get_facts(d->images), own = slc_images_get_facts(d->evaluation);
    char(*room)[SLC_CLASS_NAME_ROOM] = calloc(trained.classes, sizeof *room);
    const char **names = calloc(trained.classes, sizeof *names);
    bool done = !own.named && own.classes <= trained.classes;
    sluice_status status = room && names ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "names of classes");
    for (uint32_t i = 0; !status && i < trained.classes; i++) {
        slc_images_class_name(d->images, i, room[i]);
        names[i] = room[i];
    }
    if (!status && own.named) status = slc_images_number_classes(d->evaluation, names, trained.classes, &done);
    free(names);
    free(room);
    if (status || done) return status;
    return slc_error(SLUICE_ERR_ARGUMENT, "--eval-data: has images of classes that --data does not have; give a folder "
                                          "of the same name for each class");
}

static sluice_status open_file(const slc_training_options *o, image_data *d)
{
    if (o->data_count > 1)
        return slc_error(SLUICE_ERR_ARGUMENT, "--data: give one file or folder of images, not %zu", o->data_count);
    if (!o->data_count && access(digits, R_OK))
        return slc_error(SLUICE_ERR_PATH,
                         "%s is not there; install python3-sklearn, or give --data a folder with a folder of "
                         "images for each class, an IDX or a CSV file",
                         digits);
    const char *path = o->data_count ? o->data[0] : digits, *other = o->eval_data_count ? o->eval_data[0] : NULL;
    slc_image_parts parts;
    if (o->data_count && slc_image_parts_find(path, &parts)) {
        path = d->base.whole ? parts.held_out : parts.train;
        if (!other) other = parts.held_out;
    }
    sluice_status status = slc_images_open(path, &d->images);
    if (!status && !d->base.whole && other) status = open_evaluation(d, other);
    if (!status && !d->base.whole && !other) status = slc_images_split(d->images, &d->train, &d->held_out);
    d->base.facts.held_out = d->held_out.count;
    d->base.facts.about = (slc_training_data_about){
        .own_path = digits, .what = "images", .train = d->train.count, .held_out = d->held_out.count};
    return status;
}

/* A model that was trained before has an order of its classes, which the data takes over if they are the same. In
 * training others become the classes of a new head; an evaluation has no use for them. Images of one class teach
 * nothing, but can be evaluated. */
static sluice_status number_classes(const slc_training_options *o, const sluice_model_config *model, image_data *d)
{
    d->labelled = true;
    sluice_status status = slc_image_classes_check(d->images);
    if (!status && !d->base.whole && !slc_images_have_two_classes(d->images))
        status =
            slc_error(SLUICE_ERR_ARGUMENT,
                      "--data: all %llu images are of one class, so there is nothing to tell apart; give images of "
                      "at least two classes",
                      (unsigned long long)slc_images_get_facts(d->images).count);
    if (!status && o->weights) status = slc_image_classes_read(o->weights, d->images, model->classes, d->base.whole);
    return status || !d->evaluation ? status : number_evaluation(d);
}

/* While a step runs, the next batch is read on cores that it leaves idle, so that it takes none from the step. */
static sluice_status open_reader(image_data *d, const slc_training_options *o, const slc_training_data_watch *watch)
{
    const uint32_t threads = (uint32_t)slc_least(o->threads ? o->threads : 1, d->base.batch);
    const slc_image_reader_how how = {.shape = d->shape,
                                      .batch = d->base.batch,
                                      .threads = threads,
                                      .ahead = (uint32_t)slc_least(threads, watch ? watch->idle_cores : 0)};
    d->ranks = watch && watch->ranks ? watch->ranks : 1;
    return slc_image_reader_open(&how, &d->reader);
}

static sluice_status make_room(image_data *d)
{
    const uint32_t batch = d->base.batch;
    const uint64_t image = (uint64_t)d->across * d->across, patches = batch * image;
    d->targets = malloc((patches + 1) * sizeof *d->targets);
    d->masked = malloc(patches + image + 1);
    d->base.facts.bytes = slc_image_reader_bytes(&d->shape, batch) + patches * (1 + sizeof *d->targets) + image +
                          slc_images_get_facts(d->images).bytes;
    if (d->targets && d->masked) return SLUICE_OK;
    return slc_error(SLUICE_ERR_MEMORY, "a batch of %u images", batch);
}

static sluice_status open_visual_tokens(const slc_training_options *o, const sluice_model_config *model, image_data *d)
{
    const slc_visual_tokens_source source = {.file = o->visual_tokens,
                                             .weights = o->weights,
                                             .images = d->images,
                                             .evaluation = d->evaluation,
                                             .shape = &d->shape,
                                             .train = d->train,
                                             .patch = model->patch_size,
                                             .vocabulary = model->vocabulary};
    sluice_status status = slc_visual_tokens_open(&source, &d->visual);
    d->base.facts.bytes += slc_visual_tokens_bytes(&d->visual, &source);
    return status;
}

sluice_status slc_training_images_open(const slc_training_options *o, const slc_training_data_watch *watch,
                                       sluice_model_config *model, slc_training_data *base)
{
    image_data *d = (image_data *)base;
    bool classes = model->head == SLUICE_HEAD_CLASSES;
    base->close = close_images;
    base->content = hash_images;
    base->take = classes ? take_classes : take_masked;
    base->beside = add_image_files;
    base->passes = passes_of_images;
    if (!classes) base->targets = count_masked;
    d->family = model->family;
    if (!classes) d->across = model->image_size / model->patch_size;
    sluice_status status = slc_image_shape_read(o->weights, model, &d->shape);
    d->shape.draft = o->image_draft;
    if (!status) status = open_file(o, d);
    if (!status && classes) status = number_classes(o, model, d);
    if (!status) status = make_room(d);
    if (!status) status = open_reader(d, o, watch);
    if (!status && base->whole) status = open_in_order(d, model);
    if (!status && !classes) status = open_visual_tokens(o, model, d);
    if (!status && classes && o->visual_tokens)
        status =
            slc_error(SLUICE_ERR_ARGUMENT, "--visual-tokens: only a beit with --head tokens guesses visual tokens; "
                                           "leave it out");
    if (status) return status;
    if (classes && !base->whole) model->classes = slc_images_get_facts(d->images).classes;
    base->facts.fingerprint = slc_images_get_facts(d->images).fingerprint;
    if (d->evaluation) {
        const uint64_t other = slc_images_get_facts(d->evaluation).fingerprint;
        base->facts.fingerprint = slc_fnv(base->facts.fingerprint, &other, sizeof other);
    }
    base->facts.reading = slc_image_reading(&d->shape, classes ? d->images : NULL);
    if (d->visual.reading) base->facts.reading = slc_fnv(base->facts.reading, &d->visual.reading, sizeof(uint64_t)) | 1;
    const char *passed_over = slc_images_get_facts(d->images).passed_over;
    return passed_over ? slc_training_data_add_note(base, "--data: %s", passed_over) : SLUICE_OK;
}
