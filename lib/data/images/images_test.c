/* Images: every format must give the same pixels, and resizing must match PyTorch's. Samples must depend only on the
 * seed and their number and go through every image once in an epoch. Wrong files must be refused by name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/base/folder.h"
#include "lib/base/numbers/random.h"
#include "lib/data/images/images.h"
#include "lib/data/images/images_parts.h"
#include "tests/support/seed.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void refused(const char *path, sluice_status expected, const char *why)
{
    slc_images *images = NULL;
    sluice_status status = slc_images_open(path, &images);
    if (status != expected || !strstr(sluice_last_error(), why) || !strstr(sluice_last_error(), test_folder()))
        fail_msg("%s: %s", sluice_status_name(status), sluice_last_error());
    assert_null(images);
}

/* ---- One data set in three formats: 30 images of 2 x 2 with classes 0 to 2; image i is of class i / 10 ---- */

enum { IMAGES = 30, PIXELS = 4 };

static uint8_t sample_of(int image, int pixel)
{
    return (uint8_t)(image == 0 && pixel == 0 ? 255 : (image * 8 + pixel * 2) % 250);
}

static const char *write_csv(void)
{
    char text[4096] = "";
    size_t used = 0;
    for (int i = 0; i < IMAGES; i++) {
        for (int p = 0; p < PIXELS; p++)
            used += (size_t)snprintf(text + used, sizeof text - used, i % 2 ? "%u.0," : " %u,", sample_of(i, p));
        used += (size_t)snprintf(text + used, sizeof text - used, "%d%s", i / 10, i % 3 ? "\n" : "\r\n");
    }
    return write_file("table.csv", text, used);
}

static const char *write_idx(void)
{
    uint8_t images[16 + IMAGES * PIXELS] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, 2, 0, 0, 0, 2};
    uint8_t labels[8 + IMAGES] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
    for (int i = 0; i < IMAGES; i++) {
        labels[8 + i] = (uint8_t)(i / 10);
        for (int p = 0; p < PIXELS; p++) images[16 + i * PIXELS + p] = sample_of(i, p);
    }
    write_file("train-labels-idx1-ubyte", labels, sizeof labels);
    return write_file("train-images-idx3-ubyte", images, sizeof images);
}

static const char *write_folders(void)
{
    mkdir(path_of("classes"), 0700);
    for (int i = 0; i < IMAGES; i++) {
        char name[64], content[64];
        snprintf(name, sizeof name, "classes/c%d", i / 10);
        mkdir(path_of(name), 0700);
        snprintf(name, sizeof name, "classes/c%d/%02d.pgm", i / 10, i);
        int used = snprintf(content, sizeof content, "P5\n# made %d\n2 2\n255\n", i);
        for (int p = 0; p < PIXELS; p++) content[used++] = (char)sample_of(i, p);
        write_file(name, content, (size_t)used);
    }
    write_file("classes/not a class", "x", 1);
    return path_of("classes");
}

static slc_images *open_all(const char *path)
{
    slc_images *images;
    works(slc_images_open(path, &images));
    assert_int_equal(slc_images_get_facts(images).count, IMAGES);
    assert_int_equal(slc_images_get_facts(images).classes, 3);
    return images;
}

static void formats_agree(void **state)
{
    (void)state;
    const slc_image_shape shape = {.channels = 1, .side = 2, .mean = {.5f}, .deviation = {.5f}};
    slc_images *sets[] = {open_all(write_csv()), open_all(write_idx()), open_all(write_folders())};
    bool seen[IMAGES] = {false};
    for (uint64_t place = 0; place < IMAGES; place++) {
        float pixels[3][PIXELS];
        int32_t labels[3];
        for (int s = 0; s < 3; s++) works(slc_images_read(sets[s], &shape, place, pixels[s], &labels[s]));
        assert_memory_equal(pixels[0], pixels[1], sizeof pixels[0]);
        assert_memory_equal(pixels[0], pixels[2], sizeof pixels[0]);
        assert_true(labels[0] == labels[1] && labels[0] == labels[2]);
        int image = 0; /* the index of the image that has these pixels */
        for (; image < IMAGES; image++) {
            int same = 0;
            for (int p = 0; p < PIXELS; p++) same += fabs(pixels[0][p] - (sample_of(image, p) / 255. - .5) / .5) < 1e-6;
            if (same == PIXELS) break;
        }
        assert_true(image < IMAGES && !seen[image]);
        seen[image] = true;
        assert_int_equal(labels[0], image / 10);
    }
    assert_true(slc_images_get_facts(sets[0]).fingerprint != slc_images_get_facts(sets[1]).fingerprint);
    for (int s = 0; s < 3; s++) slc_images_close(sets[s]);
}

static void samples_are_a_function_of_their_number(void **state)
{
    (void)state;
    const slc_image_shape shape = {.channels = 3, .side = 2, .deviation = {1, 1, 1}};
    slc_images *images = open_all(write_csv());
    slc_image_range train, held_out;
    works(slc_images_split(images, &train, &held_out));
    assert_int_equal(train.count, 27);
    assert_int_equal(held_out.count, 3);
    enum { EPOCHS = 3, N = 27 };
    static float pixels[EPOCHS * N][3 * PIXELS], again[3 * PIXELS];
    int32_t labels[EPOCHS * N], label;
    works(slc_images_batch(images, &shape, train, 7, 0, EPOCHS * N, pixels[0], labels));
    for (uint32_t i = 0; i < EPOCHS * N; i++) {
        works(slc_images_batch(images, &shape, train, 7, i, 1, again, &label));
        assert_memory_equal(again, pixels[i], sizeof again);
        assert_int_equal(label, labels[i]);
        /* The channels of a grey image are equal. */
        assert_memory_equal(pixels[i], pixels[i] + PIXELS, PIXELS * sizeof(float));
    }
    int moved = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < i; j++) /* each image comes once in an epoch */
                assert_true(memcmp(pixels[epoch * N + i], pixels[epoch * N + j], sizeof again) != 0);
            moved += memcmp(pixels[i], pixels[epoch * N + i], sizeof again) != 0;
        }
    assert_true(moved > N);
    works(slc_images_batch(images, &shape, train, 8, 0, N, pixels[N], labels));
    assert_true(memcmp(pixels[0], pixels[N], N * sizeof again) != 0);
    slc_images_close(images);
}

/* ---- Pixels ---- */

/* The result of torch.nn.functional.interpolate for [[0, 10, 20], [30, 40, 50]] to 4 x 4, bilinear with
 * align_corners=False and nearest-exact. */
static void resizing_is_pytorchs(void **state)
{
    (void)state;
    const uint8_t samples[] = {0, 10, 20, 30, 40, 50};
    const slc_raster raster = {.height = 2, .width = 3, .channels = 1, .white = 100, .samples = samples};
    const float bilinear[16] = {0,     6.25f,  13.75f, 20,    7.5f, 13.75f, 21.25f, 27.5f,
                                22.5f, 28.75f, 36.25f, 42.5f, 30,   36.25f, 43.75f, 50};
    const float nearest[16] = {0, 10, 10, 20, 0, 10, 10, 20, 30, 40, 40, 50, 30, 40, 40, 50};
    float out[16];
    slc_image_shape shape = {.channels = 1, .side = 4, .mean = {.25f}, .deviation = {.5f}};
    works(slc_raster_pixels(&raster, &shape, out));
    for (int i = 0; i < 16; i++) assert_true(fabsf(out[i] - (bilinear[i] / 100 - .25f) / .5f) < 1e-6f);
    shape.filter = SLC_FILTER_NEAREST;
    works(slc_raster_pixels(&raster, &shape, out));
    for (int i = 0; i < 16; i++) assert_true(fabsf(out[i] - (nearest[i] / 100 - .25f) / .5f) < 1e-6f);
}

static void colours_become_channels(void **state)
{
    (void)state;
    slc_raster raster;
    uint8_t *samples;
    float out[3];
    works(slc_pnm_read(write_file("colour.ppm", "P6 1 1 200\n\x64\xc8\x00", 14), &raster, &samples));
    const slc_image_shape three = {.channels = 3, .side = 1, .deviation = {1, 1, 1}};
    const slc_image_shape one = {.channels = 1, .side = 1, .deviation = {1}};
    works(slc_raster_pixels(&raster, &three, out));
    assert_true(fabsf(out[0] - .5f) < 1e-6f && fabsf(out[1] - 1) < 1e-6f && out[2] == 0);
    works(slc_raster_pixels(&raster, &one, out));
    assert_true(fabsf(out[0] - (.299f * .5f + .587f)) < 1e-6f);
    free(samples);
}

/* ---- Refusals ---- */

static void bad_tables_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"1,2,3,4\n", "no IDX file"},
        {"1,2,3,4,0\n1,2,3,4\n", ":2: is not 4"},
        {"1,2,3,4,0\n1,2,3,4,5,6\n", ":2:"},
        {"1,2,3,256,0\n", ":1:"},
        {"1,2,3,-4,0\n", ":1:"},
        {"1,2,3,4.5,0\n", ":1:"},
        {"1,2,3,,0\n", ":1:"},
        {"1,2,3,4,1048576\n", ":1:"},
        {"1,2,3,4,0\n\n", ":2:"},
        {"hello\n", "no IDX file"},
        {"1,2,3,4,99999999999999999999\n", ":1:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(write_file("bad.csv", cases[i].text, strlen(cases[i].text)), SLUICE_ERR_FORMAT, cases[i].why);
    refused(write_file("empty", "", 0), SLUICE_ERR_FORMAT, "empty");
    refused(path_of("nowhere"), SLUICE_ERR_PATH, "No such file");

    write_idx();
    refused(write_file("other", "\0\0\10\3\0\0\0\1\0\0\0\1\0\0\0\1x", 17), SLUICE_ERR_ARGUMENT, "name it");
    refused(write_file("train-images-idx3-ubyte", "\0\0\10\3\0\0\0\1\0\0\0\1\0\0\0\1x", 17), SLUICE_ERR_FORMAT,
            "has not a label for each");
    refused(write_file("train-images-idx3-ubyte", "\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\1x", 17), SLUICE_ERR_FORMAT,
            "agree");
    refused(write_file("train-images-idx3-ubyte", "\0\0\10\3\377\377\377\377\0\0\377\377\0\0\377\377x", 17),
            SLUICE_ERR_FORMAT, "agree");
    write_file("train-labels-idx1-ubyte", "hello, labels", 13);
    refused(write_file("train-images-idx3-ubyte", "\0\0\10\3\0\0\0\1\0\0\0\1\0\0\0\1x", 17), SLUICE_ERR_FORMAT,
            "no IDX");
}

/* ---- The column of classes ---- */

/* Writes rows of `pixels` samples between 0 and `white` and a class; first: the class comes first. Samples at the edge
 * are dark in nearly all images, and the image's own in the middle. */
static const char *write_rows(const char *header, bool first, uint32_t pixels, uint32_t classes, uint32_t white,
                              bool dark)
{
    static char text[1 << 20];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", header);
    for (uint32_t row = 0; row < 400; row++) {
        const uint32_t class = row * 7 % classes;
        if (first) used += (size_t)snprintf(text + used, sizeof text - used, "%u,", class);
        for (uint32_t p = 0; p < pixels; p++) {
            const bool edge = p == 0 || p + 1 == pixels;
            uint32_t sample = (uint32_t)slc_random_below(test_seed(5), p, row, white + 1);
            if (edge && dark) sample = row % 50 ? 0 : white / 3 + row / 50;
            used += (size_t)snprintf(text + used, sizeof text - used, p + 1 < pixels || !first ? "%u," : "%u", sample);
        }
        if (!first) used += (size_t)snprintf(text + used, sizeof text - used, "%u", class);
        used += (size_t)snprintf(text + used, sizeof text - used, "\n");
    }
    return write_file("rows.csv", text, used);
}

static void read_with_classes(const char *path, uint64_t count, uint32_t classes)
{
    slc_images *images;
    works(slc_images_open(path, &images));
    assert_int_equal(slc_images_get_facts(images).count, count);
    assert_int_equal(slc_images_get_facts(images).classes, classes);
    assert_true(slc_images_have_two_classes(images));
    slc_images_close(images);
}

static void a_first_column_of_classes_is_not_overlooked(void **state)
{
    (void)state;
    static const struct {
        uint32_t classes, white;
        bool dark;
    } rows[] = {{10, 255, true},   {10, 255, false}, {2, 255, true},  {2, 255, false}, {100, 255, true},
                {100, 255, false}, {10, 16, true},   {10, 16, false}, {10, 1, false},  {3, 255, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        print_message("%u classes, white is %u, edges are %s\n", rows[i].classes, rows[i].white,
                      rows[i].dark ? "dark" : "like the rest");
        refused(write_rows("", true, 16, rows[i].classes, rows[i].white, rows[i].dark), SLUICE_ERR_FORMAT,
                "its first column looks like classes");
        read_with_classes(write_rows("", false, 16, rows[i].classes, rows[i].white, rows[i].dark), 400,
                          rows[i].classes);
    }
    /* An edge without a single bright sample, as MNIST's. */
    refused(write_file("rows.csv", "0,9,9,9,0\n1,8,8,9,0\n2,9,9,8,0\n", 30), SLUICE_ERR_FORMAT, "first column");
}

static void a_header_names_the_column(void **state)
{
    (void)state;
    static const char *const headers[] = {"label,a,b,c,d", "\"label\",\"1x1\",\"1x2\",\"2x1\",\"2x2\"",
                                          "Class, a, b, c, d\r", "\xEF\xBB\xBFLABEL,0,1,2,3", "a,b,label,c,d"};
    const slc_image_shape shape = {.channels = 1, .side = 2, .deviation = {1}};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char text[256];
        int used =
            snprintf(text, sizeof text,
                     i < 4 ? "%s\n3,10,20,30,40\n0,40,20,30,10\n" : "%s\n10,20,3,30,40\n40,20,0,30,10\n", headers[i]);
        slc_images *images;
        works(slc_images_open(write_file("named.csv", text, (size_t)used), &images));
        assert_int_equal(slc_images_get_facts(images).count, 2);
        assert_int_equal(slc_images_get_facts(images).classes, 4);
        for (uint64_t place = 0; place < 2; place++) {
            float pixels[4];
            int32_t label;
            works(slc_images_read(images, &shape, place, pixels, &label));
            assert_true(label == 0 || label == 3);
            for (int p = 0; p < 4; p++) {
                static const float of_three[] = {10, 20, 30, 40}, of_zero[] = {40, 20, 30, 10};
                assert_true(fabsf(pixels[p] * 40 - (label ? of_three : of_zero)[p]) < 1e-4f);
            }
        }
        slc_images_close(images);
    }
    read_with_classes(write_rows("label,a,b,c,d,e,f,g,h,i\n", true, 9, 10, 255, false), 400, 10);
    read_with_classes(write_rows("a,b,c,d,e,f,g,h,i,class\n", false, 9, 2, 255, true), 400, 2);
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"a,b,c,d,e\n1,2,3,4,0\n", "none of them is called \"label\""},
        {"label,a,b,c,class\n1,2,3,4,0\n", "more than one of them"},
        {"0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,3\n", "numbers the columns"},
        {"label,a,b,c,d\n", "no images"},
        {"label,a,b,c,d\n1,2,3,4,0\n1,2,3,4,256\n", ":3: is not 4"},
        {"label,a,b,c\n1,2,3,4\n", "no CSV of square"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(write_file("bad.csv", cases[i].text, strlen(cases[i].text)), SLUICE_ERR_FORMAT, cases[i].why);
}

static void one_class_is_seen(void **state)
{
    (void)state;
    slc_images *images;
    works(slc_images_open(write_file("one.csv", "1,2,3,4,5\n4,3,2,1,5\n", 20), &images));
    assert_int_equal(slc_images_get_facts(images).classes, 6);
    assert_false(slc_images_have_two_classes(images));
    slc_images_close(images);
    images = open_all(write_idx());
    assert_true(slc_images_have_two_classes(images));
    slc_images_close(images);
}

/* The fingerprint of a set must change with one pixel in a file of equal size, and with the class of an equal file. */
static void the_content_is_all_of_it(void **state)
{
    (void)state;
    static const char grey[] = "P5\n1 1\n255\na", other[] = "P5\n1 1\n255\nb";
    uint64_t seen[3];
    assert_int_equal(mkdir(path_of("content"), 0777), 0);
    assert_int_equal(mkdir(path_of("content/a"), 0777), 0);
    assert_int_equal(mkdir(path_of("content/b"), 0777), 0);
    for (int i = 0; i < 3; i++) {
        write_file("content/a/1.pgm", grey, sizeof grey - 1);
        write_file(i == 2 ? "content/b/2.pgm" : "content/a/2.pgm", i == 1 ? other : grey, sizeof grey - 1);
        if (i == 2) assert_int_equal(unlink(path_of("content/a/2.pgm")), 0);
        write_file("content/b/3.pgm", grey, sizeof grey - 1);
        slc_images *images;
        works(slc_images_open(path_of("content"), &images));
        assert_int_equal(slc_images_get_facts(images).count, 3);
        works(slc_images_content(images, &seen[i]));
        for (int k = 0; k < i; k++) assert_true(seen[k] != seen[i]);
        slc_images_close(images);
    }
    slc_images *table = open_all(write_csv());
    works(slc_images_content(table, &seen[0]));
    assert_true(seen[0] == slc_images_get_facts(table).fingerprint); /* which is of all of it */
    slc_images_close(table);
}

static void bad_folders_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"P5\n1 1\n65535\nab", "largest sample"},
        {"P5\n0 1\n255\n", "largest sample"},
        {"P5\n2 2\n255\nabc", "need 15"},
        {"P5\n1 1\n255\nab", "need 12"},
        {"P5\n1 1\n255", "largest sample"},
        {"P5\n1\n", "largest sample"},
        {"P5 99999999999 1 255\n", "largest sample"},
        {"P6\n1 1\n255\nab", "need 14"},
    };
    mkdir(path_of("bad"), 0700);
    refused(path_of("bad"), SLUICE_ERR_ARGUMENT, "two folders");
    mkdir(path_of("bad/a"), 0700);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file("bad/a/1.pgm", cases[i].text, strlen(cases[i].text));
        refused(path_of("bad"), SLUICE_ERR_FORMAT, cases[i].why);
    }
    write_file("bad/a/1.pgm", "P5\n1 1\n255\na", 12);
    refused(path_of("bad"), SLUICE_ERR_ARGUMENT, "two folders");
}

/* ---- Classes and what is no image ---- */

static void other_files_are_passed_over(void **state)
{
    (void)state;
    static const char grey[] = "P5\n1 1\n255\na";
    slc_images *images;
    mkdir(path_of("mixed"), 0700);
    mkdir(path_of("mixed/cat"), 0700);
    mkdir(path_of("mixed/dog"), 0700);
    mkdir(path_of("mixed/empty"), 0700);
    write_file("mixed/cat/1.pgm", grey, sizeof grey - 1);
    write_file("mixed/dog/1.txt", grey, sizeof grey - 1); /* the content says what it is */
    works(slc_images_open(path_of("mixed"), &images));
    assert_null(slc_images_get_facts(images).passed_over);
    slc_images_close(images);

    write_file("mixed/cat/notes.txt", "hello", 5);
    write_file("mixed/dog/zero", "", 0);
    write_file("mixed/empty/notes.txt", "hello", 5);
    works(slc_images_open(path_of("mixed"), &images));
    assert_int_equal(slc_images_get_facts(images).count, 2);
    assert_int_equal(slc_images_get_facts(images).classes, 2);
    assert_non_null(strstr(slc_images_get_facts(images).passed_over, "3 files are no PNG"));
    assert_non_null(strstr(slc_images_get_facts(images).passed_over, "cat/notes.txt"));
    slc_images_close(images);
}

static int32_t class_of(const slc_images *images, const char *name)
{
    char found[SLC_CLASS_NAME_ROOM];
    for (uint32_t i = 0; i < slc_images_get_facts(images).classes; i++) {
        slc_images_class_name(images, i, found);
        if (!strcmp(found, name)) return (int32_t)i;
    }
    return -1;
}

static void classes_take_a_models_numbers(void **state)
{
    (void)state;
    const slc_image_shape shape = {.channels = 1, .side = 1, .deviation = {1}};
    static const char *const model[] = {"zebra", "c2", "c0", "c1"}, *const other[] = {"c0", "c1", "x"};
    slc_images *images = open_all(write_folders());
    int32_t before[IMAGES], after;
    float pixel;
    bool done;
    assert_int_equal(class_of(images, "c2"), 2);
    for (uint64_t i = 0; i < IMAGES; i++) works(slc_images_read(images, &shape, i, &pixel, &before[i]));
    works(slc_images_number_classes(images, other, 3, &done));
    assert_false(done);
    assert_int_equal(slc_images_get_facts(images).classes, 3);
    uint64_t fingerprint = slc_images_get_facts(images).fingerprint;
    works(slc_images_number_classes(images, model, 4, &done));
    assert_true(done);
    assert_int_equal(slc_images_get_facts(images).classes, 4);
    assert_int_equal(class_of(images, "c2"), 1);
    assert_true(fingerprint != slc_images_get_facts(images).fingerprint);
    static const int32_t places[] = {2, 3, 1};
    for (uint64_t i = 0; i < IMAGES; i++) {
        works(slc_images_read(images, &shape, i, &pixel, &after));
        assert_int_equal(after, places[before[i]]);
    }
    slc_images_close(images);

    images = open_all(write_csv()); /* whose classes are called by their numbers */
    static const char *const numbers[] = {"2", "1", "0"};
    assert_int_equal(class_of(images, "1"), 1);
    works(slc_images_number_classes(images, numbers, 3, &done));
    assert_true(done);
    assert_int_equal(class_of(images, "2"), 0);
    slc_images_close(images);
}

/* ---- A real data set, if it is there ---- */

static void the_digits_of_scikit_learn_are_read(void **state)
{
    (void)state;
    static const char path[] = "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz";
    slc_images *images;
    if (access(path, R_OK)) {
        print_message("SKIP: %s is absent: python3-sklearn is not installed\n", path);
        skip();
    }
    sluice_status status = slc_images_open(path, &images);
    if (status == SLUICE_ERR_UNSUPPORTED) {
        print_message("SKIP: built without zlib\n");
        skip();
    }
    works(status);
    assert_int_equal(slc_images_get_facts(images).count, 1797);
    assert_int_equal(slc_images_get_facts(images).classes, 10);
    const slc_image_shape shape = {.channels = 1, .side = 8, .deviation = {1}};
    int counts[10] = {0};
    for (uint64_t place = 0; place < 1797; place++) {
        float pixels[64];
        int32_t label;
        works(slc_images_read(images, &shape, place, pixels, &label));
        for (int i = 0; i < 64; i++) assert_true(pixels[i] >= 0 && pixels[i] <= 1);
        counts[label]++;
    }
    for (int i = 0; i < 10; i++) assert_true(counts[i] > 170);
    slc_images_close(images);

    FILE *from = fopen(path, "rb");
    char part[2000];
    assert_int_equal(fread(part, 1, sizeof part, from), sizeof part);
    fclose(from);
    refused(write_file("cut.csv.gz", part, sizeof part), SLUICE_ERR_FORMAT, "damaged or cut short");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_agree),
        cmocka_unit_test(samples_are_a_function_of_their_number),
        cmocka_unit_test(resizing_is_pytorchs),
        cmocka_unit_test(colours_become_channels),
        cmocka_unit_test(bad_tables_are_refused),
        cmocka_unit_test(bad_folders_are_refused),
        cmocka_unit_test(a_first_column_of_classes_is_not_overlooked),
        cmocka_unit_test(a_header_names_the_column),
        cmocka_unit_test(one_class_is_seen),
        cmocka_unit_test(the_content_is_all_of_it),
        cmocka_unit_test(other_files_are_passed_over),
        cmocka_unit_test(classes_take_a_models_numbers),
        cmocka_unit_test(the_digits_of_scikit_learn_are_read),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
