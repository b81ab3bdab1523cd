/* Labelled data have at least two classes, in every form; what is left out of them is said and not counted. */
#include "tests/support/base/folder.h"

#include "bench/train/data/data.h"
#include "bench/train/options/options.h"

#include <sys/stat.h>
#include <unistd.h>

enum { CONTEXT = 4, CLASS_BYTES = 10 * CONTEXT };

static sluice_status open_data(sluice_model_family family, const char *path, bool whole, sluice_model_config *model,
                               slc_training_data **out)
{
    slc_training_options o;
    slc_training_options_init(&o);
    o.data[0] = path;
    o.data_count = 1;
    o.batch = 2;
    *model = SLUICE_INIT(sluice_model_config, .family = family, .head = SLUICE_HEAD_CLASSES, .classes = 9,
                         .vocabulary = 257, .context = CONTEXT, .image_size = 4, .image_channels = 1, .patch_size = 2);
    *out = NULL;
    const uint32_t length = family == SLUICE_BERT ? CONTEXT : 0;
    return whole ? slc_training_data_open_whole(&o, model, length, 0, NULL, out)
                 : slc_training_data_open(&o, model, length, NULL, out);
}

static const char *write_texts(const char *folder, const size_t *sizes, uint32_t count)
{
    char letters[2 * CLASS_BYTES];
    memset(letters, 'a', sizeof letters);
    mkdir(path_of(folder), 0700);
    for (uint32_t i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%04u", folder, i);
        write_file(name, letters, sizes[i]);
    }
    return path_of(folder);
}

static void short_texts_are_left_out_aloud(void **state)
{
    (void)state;
    const size_t sizes[] = {2 * CLASS_BYTES, CLASS_BYTES - 1, CLASS_BYTES, 3};
    sluice_model_config model;
    slc_training_data *data;
    works(open_data(SLUICE_BERT, write_texts("texts", sizes, 4), false, &model, &data));
    assert_int_equal(model.classes, 2);
    assert_non_null(slc_training_data_note(data, 0));
    assert_non_null(strstr(slc_training_data_note(data, 0), "2 of 4 files have fewer than the 40 tokens"));
    assert_non_null(strstr(slc_training_data_note(data, 0), "the first is"));
    assert_non_null(strstr(slc_training_data_note(data, 0), "texts/0001"));
    assert_null(slc_training_data_note(data, 1));
    const slc_training_data_about *about = &slc_training_data_get_facts(data)->about;
    assert_int_equal(about->files, 2);
    assert_int_equal(about->train, 3 * CLASS_BYTES * 9 / 10);
    assert_int_equal(about->held_out, 3 * CLASS_BYTES / 10);
    slc_training_data_close(data);

    works(open_data(SLUICE_BERT, write_texts("two", (size_t[]){CLASS_BYTES, CLASS_BYTES}, 2), false, &model, &data));
    assert_null(slc_training_data_note(data, 0));
    slc_training_data_close(data);
    fails(open_data(SLUICE_BERT, write_texts("one", (size_t[]){2 * CLASS_BYTES, 3}, 2), false, &model, &data),
          SLUICE_ERR_ARGUMENT, "at least two files of 40 tokens");
}

static void no_class_is_dropped(void **state)
{
    (void)state;
    enum { FILES = 1025 };
    static size_t sizes[FILES];
    sluice_model_config model;
    slc_training_data *data;
    for (uint32_t i = 0; i < FILES; i++) sizes[i] = CLASS_BYTES;
    fails(open_data(SLUICE_BERT, write_texts("many", sizes, FILES), false, &model, &data), SLUICE_ERR_ARGUMENT,
          "--data has more than 1024");
    assert_int_equal(unlink(path_of("many/0000")), 0);
    works(open_data(SLUICE_BERT, path_of("many"), false, &model, &data));
    assert_int_equal(model.classes, FILES - 1);
    slc_training_data_close(data);
}

static void one_class_of_images_is_not_trained_on(void **state)
{
    (void)state;
    static const unsigned char images[16 + 12 * 4] = {0, 0, 8, 3, 0, 0, 0, 12, 0, 0, 0, 2, 0, 0, 0, 2};
    static const unsigned char labels[8 + 12] = {0, 0, 8, 1, 0, 0, 0, 12, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    char csv[12 * 10 + 1] = "";
    sluice_model_config model;
    slc_training_data *data;
    for (int i = 0; i < 12; i++) strcat(csv, "1,2,3,4,3\n");
    write_file("one-labels-idx1-ubyte", labels, sizeof labels);
    const char *const paths[] = {write_file("one-images-idx3-ubyte", images, sizeof images),
                                 write_file("one.csv", csv, strlen(csv))};
    for (int i = 0; i < 2; i++) {
        fails(open_data(SLUICE_VIT, paths[i], false, &model, &data), SLUICE_ERR_ARGUMENT,
              "all 12 images are of one class");
        works(open_data(SLUICE_VIT, paths[i], true, &model, &data)); /* to be evaluated */
        assert_int_equal(slc_training_data_get_facts(data)->sequences, 12);
        slc_training_data_close(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_texts_are_left_out_aloud),
        cmocka_unit_test(no_class_is_dropped),
        cmocka_unit_test(one_class_of_images_is_not_trained_on),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
