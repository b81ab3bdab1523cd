/* The targets that are counted without reading anything are those that the sequences have; a held-out image is taken
 * once, and behind the last nothing is asked; images that are read ahead are those that are asked for. */
#include "bench/train/options/options.h"
#include "tests/support/base/folder.h"

#include "bench/train/data/data.h"

enum { BATCH = 3, LENGTH = 32, IMAGES = 57, HELD_OUT = 5, SIDE = 8, FIRST = 40 };

static const char *write_text(const char *name)
{
    enum { LETTERS = 5000 };
    char text[LETTERS];
    for (int i = 0; i < LETTERS; i++) text[i] = (char)('a' + (i * 7 + i / 13) % 26);
    return write_file(name, text, sizeof text);
}

/* The first sample of every image is its number. */
static const char *write_images(void)
{
    char text[IMAGES * (SIDE * SIDE + 1) * 4], *at = text;
    for (int n = 0; n < IMAGES; n++) {
        for (int i = 0; i < SIDE * SIDE; i++) at += sprintf(at, "%d,", i ? (n * i) % 251 : n);
        at += sprintf(at, "%d\n", n % 2);
    }
    return write_file("images.csv", text, (size_t)(at - text));
}

static sluice_model_config config_of(const char *family, sluice_model_head head)
{
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    works(sluice_model_config_named(family, "nano", &model));
    model.head = head;
    if (!strcmp(family, "beit") && head == SLUICE_HEAD_TOKENS) {
        model.vocabulary = 16;
        model.mask_token = true;
    }
    if (model.image_size) {
        model.image_size = SIDE;
        model.patch_size = 2;
    }
    return model;
}

static slc_training_data *open_watched(const char *family, sluice_model_head head, const char *const *paths,
                                       size_t count, const slc_training_data_watch *watch, uint64_t *targets)
{
    sluice_model_config model = config_of(family, head);
    const uint32_t length = model.image_size ? 0 : LENGTH;
    slc_training_options options;
    slc_training_data *data = NULL;
    slc_training_options_init(&options);
    options.batch = BATCH;
    for (size_t i = 0; i < count; i++) works(slc_training_option_set(&options, "data", paths[i]));
    works(slc_training_data_open(&options, &model, length, watch, &data));
    *targets = BATCH * (uint64_t)sluice_model_targets(&model, length);
    return data;
}

static slc_training_data *open_data(const char *family, sluice_model_head head, const char *const *paths, size_t count,
                                    uint64_t *targets)
{
    return open_watched(family, head, paths, count, NULL, targets);
}

static uint64_t asked(const sluice_batch *batch, uint64_t targets)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < targets; i++) count += batch->targets[i] >= 0;
    return count;
}

static void counts_are_those_of_the_batches(void **state)
{
    (void)state;
    const char *texts[] = {write_text("one"), write_text("two")}, *images[] = {write_images()};
    const struct {
        const char *family;
        sluice_model_head head;
        bool varies;
    } kinds[] = {{"gpt2", SLUICE_HEAD_TOKENS, false},  {"bert", SLUICE_HEAD_TOKENS, true},
                 {"bert", SLUICE_HEAD_CLASSES, false}, {"vit", SLUICE_HEAD_CLASSES, false},
                 {"beit", SLUICE_HEAD_CLASSES, false}, {"beit", SLUICE_HEAD_TOKENS, true}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const bool text = kinds[k].family[0] == 'g' || !strcmp(kinds[k].family, "bert");
        uint64_t targets, least = UINT64_MAX, most = 0;
        slc_training_data *data =
            open_data(kinds[k].family, kinds[k].head, text ? texts : images, text ? 2 : 1, &targets);
        for (uint64_t first = FIRST; first < FIRST + 20 * BATCH; first += BATCH) {
            sluice_batch batch;
            const uint64_t counted = slc_training_data_targets(data, first);
            works(slc_training_data_take(data, SLC_DATA_TRAIN, first, &batch));
            assert_int_equal(asked(&batch, targets), counted);
            slc_training_data_targets(data, first + 1); /* leaves what was taken as it was */
            assert_int_equal(asked(&batch, targets), counted);
            least = counted < least ? counted : least;
            most = counted > most ? counted : most;
        }
        assert_true(kinds[k].varies ? least < most : least == most && most == targets);
        slc_training_data_close(data);
    }
}

static void held_out_images_are_taken_once(void **state)
{
    (void)state;
    const char *images[] = {write_images()};
    for (int masked = 0; masked < 2; masked++) {
        const sluice_model_head head = masked ? SLUICE_HEAD_TOKENS : SLUICE_HEAD_CLASSES;
        uint64_t targets, there = 0;
        float seen[HELD_OUT];
        slc_training_data *data = open_data("beit", head, images, 1, &targets);
        assert_int_equal(slc_training_data_get_facts(data)->held_out, HELD_OUT);
        for (uint64_t first = 0; first < 4 * BATCH; first += BATCH) {
            sluice_batch batch;
            works(slc_training_data_take(data, SLC_DATA_HELD_OUT, first, &batch));
            for (uint64_t b = 0; b < BATCH; b++) {
                const uint64_t each = targets / BATCH;
                const sluice_batch image = {.targets = batch.targets + b * each};
                assert_int_equal(asked(&image, each) > 0, first + b < HELD_OUT);
                if (first + b >= HELD_OUT) continue;
                const float number = batch.pixels[b * SIDE * SIDE];
                for (uint64_t i = 0; i < there; i++) assert_true(seen[i] != number);
                seen[there++] = number;
            }
        }
        assert_int_equal(there, HELD_OUT);
        slc_training_data_close(data);
    }
}

/* Ranks take every RANKS-th batch; after some of them an evaluation takes others. */
static void what_is_read_ahead_is_what_is_asked_for(void **state)
{
    (void)state;
    enum { RANKS = 3, ROUNDS = 12 };
    const char *images[] = {write_images()};
    const slc_training_data_watch watch = {.ranks = RANKS, .idle_cores = 2};
    for (int masked = 0; masked < 2; masked++) {
        const sluice_model_head head = masked ? SLUICE_HEAD_TOKENS : SLUICE_HEAD_CLASSES;
        uint64_t targets;
        slc_training_data *ahead = open_watched("beit", head, images, 1, &watch, &targets);
        slc_training_data *alone = open_data("beit", head, images, 1, &targets);
        for (uint64_t i = 0; i < ROUNDS * BATCH; i += BATCH) {
            const bool held_out = i % 4 == 3;
            const slc_training_data_part part = held_out ? SLC_DATA_HELD_OUT : SLC_DATA_TRAIN;
            sluice_batch own, expected;
            works(slc_training_data_take(ahead, part, held_out ? i : RANKS * i, &own));
            works(slc_training_data_take(alone, part, held_out ? i : RANKS * i, &expected));
            assert_memory_equal(own.pixels, expected.pixels, BATCH * SIDE * SIDE * sizeof *own.pixels);
            assert_memory_equal(own.targets, expected.targets, targets * sizeof *own.targets);
        }
        assert_true(slc_training_data_get_facts(ahead)->bytes == slc_training_data_get_facts(alone)->bytes);
        slc_training_data_close(ahead);
        slc_training_data_close(alone);
    }
}

static void windows_have_no_end(void **state)
{
    (void)state;
    const char *texts[] = {write_text("one")};
    uint64_t targets;
    sluice_batch batch;
    slc_training_data *data = open_data("gpt2", SLUICE_HEAD_TOKENS, texts, 1, &targets);
    assert_true(slc_training_data_get_facts(data)->held_out == UINT64_MAX);
    works(slc_training_data_take(data, SLC_DATA_HELD_OUT, 1000, &batch));
    assert_int_equal(asked(&batch, targets), targets);
    slc_training_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_the_batches),
        cmocka_unit_test(held_out_images_are_taken_once),
        cmocka_unit_test(what_is_read_ahead_is_what_is_asked_for),
        cmocka_unit_test(windows_have_no_end),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
