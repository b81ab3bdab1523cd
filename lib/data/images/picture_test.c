/* Image files: what libpng and libjpeg write must be read back, in every form that a file may have; damaged files must
 * be refused by name, and what is no image must be recognised. Resizing must be Pillow's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/numbers/random.h"
#include "lib/data/images/picture.h"
#include "tests/support/base/folder.h"
#include "tests/support/seed.h"

#include <math.h>
#include <png.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jpeglib.h>

enum { WIDTH = 13, HEIGHT = 7 };

static uint8_t sample_of(uint32_t x, uint32_t y, uint32_t channel)
{
    return (uint8_t)(17 * x + 31 * y + 80 * channel);
}

/* ---- PNG ---- */

typedef struct {
    int type, depth;
    bool interlaced;
} png_form;

static void put_sample(uint8_t *row, const png_form *form, uint32_t at, uint32_t value)
{
    if (form->depth == 16) {
        row[2 * at] = row[2 * at + 1] = (uint8_t)value;
    } else if (form->depth == 8) {
        row[at] = (uint8_t)value;
    } else {
        uint32_t per_byte = 8u / (uint32_t)form->depth, shift = 8 - (uint32_t)form->depth * (at % per_byte + 1);
        row[at / per_byte] |= (uint8_t)(value >> (8 - form->depth) << shift);
    }
}

static const char *write_png(const char *name, const png_form *form)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_init_io(png, file);
    png_set_IHDR(png, info, WIDTH, HEIGHT, form->depth, form->type,
                 form->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_color colours[256];
    for (int i = 0; i < 256; i++) colours[i] = (png_color){(png_byte)i, (png_byte)(255 - i), (png_byte)(i / 2)};
    if (form->type == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, colours, 256);
    png_set_gAMA(png, info, 1.0); /* not applied by readers of training data */
    png_write_info(png, info);
    uint8_t rows[HEIGHT][WIDTH * 8];
    png_bytep pointers[HEIGHT];
    uint32_t channels = png_get_channels(png, info);
    memset(rows, 0, sizeof rows);
    for (uint32_t y = 0; y < HEIGHT; y++) {
        pointers[y] = rows[y];
        for (uint32_t x = 0; x < WIDTH; x++)
            for (uint32_t c = 0; c < channels; c++) put_sample(rows[y], form, x * channels + c, sample_of(x, y, c));
    }
    png_write_image(png, pointers);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    fclose(file);
    return path;
}

static uint32_t expected_png(const png_form *form, uint32_t x, uint32_t y, uint32_t channel)
{
    uint8_t index = sample_of(x, y, 0);
    if (form->type == PNG_COLOR_TYPE_PALETTE) return channel == 0 ? index : channel == 1 ? 255u - index : index / 2u;
    uint32_t levels = form->depth < 8 ? (1u << form->depth) - 1 : 255;
    uint32_t value = sample_of(x, y, channel);
    return form->depth < 8 ? (value >> (8 - form->depth)) * 255 / levels : value;
}

static void every_form_of_png_is_read(void **state)
{
    (void)state;
    static const png_form forms[] = {
        {PNG_COLOR_TYPE_GRAY, 1, false},      {PNG_COLOR_TYPE_GRAY, 2, true},
        {PNG_COLOR_TYPE_GRAY, 4, false},      {PNG_COLOR_TYPE_GRAY, 8, false},
        {PNG_COLOR_TYPE_GRAY, 16, true},      {PNG_COLOR_TYPE_RGB, 8, false},
        {PNG_COLOR_TYPE_RGB, 8, true},        {PNG_COLOR_TYPE_RGB, 16, false},
        {PNG_COLOR_TYPE_PALETTE, 8, false},   {PNG_COLOR_TYPE_GRAY_ALPHA, 8, false},
        {PNG_COLOR_TYPE_RGB_ALPHA, 8, false}, {PNG_COLOR_TYPE_RGB_ALPHA, 16, true},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        slc_raster raster;
        uint8_t *samples;
        works(slc_picture_read(write_png("form.png", &forms[i]), 0, &raster, &samples));
        bool grey = forms[i].type == PNG_COLOR_TYPE_GRAY || forms[i].type == PNG_COLOR_TYPE_GRAY_ALPHA;
        assert_int_equal(raster.width, WIDTH);
        assert_int_equal(raster.height, HEIGHT);
        assert_int_equal(raster.channels, grey ? 1 : 3);
        assert_int_equal(raster.white, 255);
        for (uint32_t y = 0; y < HEIGHT; y++)
            for (uint32_t x = 0; x < WIDTH; x++)
                for (uint32_t c = 0; c < raster.channels; c++)
                    assert_int_equal(samples[(y * WIDTH + x) * raster.channels + c], expected_png(&forms[i], x, y, c));
        free(samples);
    }
}

/* ---- JPEG ---- */

typedef struct {
    uint32_t width, height;
    int components;
    J_COLOR_SPACE space;
    uint32_t across, down; /* what a sample grows by */
} jpeg_form;

static const char *write_jpeg(const char *name, const jpeg_form *form)
{
    enum { WIDEST = 128 };
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = form->width;
    jpeg.image_height = form->height;
    jpeg.input_components = form->components;
    jpeg.in_color_space = form->space;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    jpeg.write_Adobe_marker = form->components == 4;
    for (int c = 0; c < form->components; c++) jpeg.comp_info[c].h_samp_factor = jpeg.comp_info[c].v_samp_factor = 1;
    jpeg_start_compress(&jpeg, TRUE);
    for (uint32_t y = 0; y < form->height; y++) {
        uint8_t row[WIDEST * 4], *pointer = row;
        for (uint32_t x = 0; x < form->width; x++)
            for (int c = 0; c < form->components; c++)
                row[x * (uint32_t)form->components + (uint32_t)c] =
                    (uint8_t)(30 + form->across * x + form->down * y + 20 * (uint32_t)c);
        jpeg_write_scanlines(&jpeg, &pointer, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    fclose(file);
    return path;
}

static void near(int got, int wanted)
{
    if (abs(got - wanted) > 4) fail_msg("%d, not %d", got, wanted);
}

static void every_form_of_jpeg_is_read(void **state)
{
    (void)state;
    static const jpeg_form forms[] = {{WIDTH, HEIGHT, 1, JCS_GRAYSCALE, 8, 10},
                                      {WIDTH, HEIGHT, 3, JCS_RGB, 8, 10},
                                      {WIDTH, HEIGHT, 4, JCS_CMYK, 8, 10}};
    for (int i = 0; i < 3; i++) {
        slc_raster raster;
        uint8_t *samples;
        works(slc_picture_read(write_jpeg("form.jpg", &forms[i]), 0, &raster, &samples));
        assert_int_equal(raster.width, WIDTH);
        assert_int_equal(raster.height, HEIGHT);
        assert_int_equal(raster.channels, forms[i].components == 1 ? 1 : 3);
        for (uint32_t y = 0; y < HEIGHT; y++)
            for (uint32_t x = 0; x < WIDTH; x++)
                for (uint32_t c = 0; c < raster.channels; c++) {
                    int value = (int)(30 + 8 * x + 10 * y + 20 * c), black = (int)(30 + 8 * x + 10 * y + 60);
                    near(samples[(y * WIDTH + x) * raster.channels + c],
                         forms[i].components == 4 ? value * black / 255 : value);
                }
        free(samples);
    }
}

/* A slope that is decoded at a part of its size stays one: what lies around a pixel has its mean. */
static void drafts_are_smaller(void **state)
{
    (void)state;
    static const struct {
        uint32_t least, divisor;
    } cases[] = {{0, 1}, {61, 1}, {31, 1}, {30, 2}, {16, 2}, {15, 4}, {8, 4}, {7, 8}, {1, 8}, {100, 1}};
    static const jpeg_form forms[] = {
        {83, 61, 1, JCS_GRAYSCALE, 1, 2}, {61, 83, 3, JCS_RGB, 1, 1}, {61, 62, 4, JCS_CMYK, 1, 1}};
    for (size_t i = 0; i < 3 * sizeof cases / sizeof *cases; i++) {
        const jpeg_form *form = &forms[i % 3];
        const uint32_t divisor = cases[i / 3].divisor;
        slc_raster raster;
        uint8_t *samples;
        works(slc_picture_read(write_jpeg("draft.jpg", form), cases[i / 3].least, &raster, &samples));
        assert_int_equal(raster.width, (form->width + divisor - 1) / divisor);
        assert_int_equal(raster.height, (form->height + divisor - 1) / divisor);
        for (uint32_t y = 0; y < form->height / divisor; y++)
            for (uint32_t x = 0; x < form->width / divisor; x++)
                for (uint32_t c = 0; c < raster.channels; c++) {
                    const double middle = (divisor - 1) / 2.,
                                 slope = form->across * (divisor * x + middle) + form->down * (divisor * y + middle);
                    const double value = 30 + slope + 20 * c, black = 30 + slope + 60;
                    near(samples[(y * raster.width + x) * raster.channels + c],
                         (int)(form->components == 4 ? value * black / 255 : value));
                }
        free(samples);
    }
}

/* ---- Refusals ---- */

static size_t read_all(const char *path, char *out, size_t room)
{
    FILE *file = fopen(path, "rb");
    size_t count = fread(out, 1, room, file);
    fclose(file);
    assert_true(count < room);
    return count;
}

static void refused(const char *path, const char *why)
{
    slc_raster raster;
    uint8_t *samples;
    if (slc_picture_read(path, 0, &raster, &samples) != SLUICE_ERR_FORMAT || !strstr(sluice_last_error(), why) ||
        !strstr(sluice_last_error(), path))
        fail_msg("%s: %s", path, sluice_last_error());
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    static char bytes[1 << 16], cut[1 << 16];
    const png_form form = {PNG_COLOR_TYPE_RGB, 8, false};
    const jpeg_form coloured = {WIDTH, HEIGHT, 3, JCS_RGB, 8, 10};
    char png[512], jpeg[512];
    snprintf(png, sizeof png, "%s", write_png("whole.png", &form));
    snprintf(jpeg, sizeof jpeg, "%s", write_jpeg("whole.jpg", &coloured));
    size_t count = read_all(png, bytes, sizeof bytes);
    for (size_t at = 8; at + 12 < count; at += 5) { /* the last 12 bytes are the end's chunk */
        memcpy(cut, bytes, count);
        cut[at] ^= 0x55;
        refused(write_file("damaged.png", cut, at), "damaged PNG");
        slc_raster raster;
        uint8_t *samples;
        sluice_status status = slc_picture_read(write_file("damaged.png", cut, count), 0, &raster, &samples);
        if (!status) free(samples); /* an optional chunk was damaged */
    }
    refused(write_file("bits.png", "\x89PNG\r\n\x1a\n", 8), "damaged PNG");
    count = read_all(jpeg, bytes, sizeof bytes);
    for (size_t at = 3; at + 40 < count; at += 7) refused(write_file("damaged.jpg", bytes, at), "damaged JPEG");
    refused(write_file("other.txt", "hello", 5), "no PNG");
}

static void kinds_are_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
        slc_picture_kind kind;
    } cases[] = {
        {"", 0, SLC_PICTURE_NONE},
        {"P", 1, SLC_PICTURE_NONE},
        {"P5 1 1 255\na", 12, SLC_PICTURE_PNM},
        {"P2 1 1 255\n0", 12, SLC_PICTURE_NONE},
        {"P50 is a road", 13, SLC_PICTURE_NONE},
        {"\xff\xd8\xff", 3, SLC_PICTURE_JPEG},
        {"\x89PNG\r\n\x1a\n", 8, SLC_PICTURE_PNG},
        {"\x89PNG\r\n\x1a", 7, SLC_PICTURE_NONE},
        {"GIF89a..", 8, SLC_PICTURE_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        slc_picture_kind kind;
        works(slc_picture_look(write_file("kind", cases[i].bytes, cases[i].count), &kind, NULL));
        assert_int_equal(kind, cases[i].kind);
        assert_int_equal(slc_picture_kind_of((const uint8_t *)cases[i].bytes, cases[i].count), cases[i].kind);
    }
}

/* ---- Resizing ---- */

/* Pillow 13, Image.resize((3, 3), ...) of the 5 x 4 grey image with samples 12 y + 7 x^2 as mode "F", which Pillow
 * computes in floating point. */
static void making_smaller_is_pillows(void **state)
{
    (void)state;
    uint8_t samples[4 * 5];
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 5; x++) samples[y * 5 + x] = (uint8_t)(12 * y + 7 * x * x);
    const slc_raster raster = {.height = 4, .width = 5, .channels = 1, .white = 255, .samples = samples};
    static const float wanted[2][9] = {
        {6.6f, 34.71111f, 94.6f, 21, 49.11111f, 109, 35.4f, 63.51111f, 123.4f},
        {3.46379f, 31.64662f, 95.64841f, 19.18462f, 47.36744f, 111.36923f, 34.90544f, 63.08826f, 127.09006f}};
    float out[9];
    for (int filter = 0; filter < 2; filter++) {
        slc_image_shape shape = {.channels = 1, .side = 3, .deviation = {1}};
        shape.filter = filter ? SLC_FILTER_BICUBIC : SLC_FILTER_BILINEAR;
        works(slc_raster_pixels(&raster, &shape, out));
        for (int i = 0; i < 9; i++)
            if (fabsf(out[i] * 255 - wanted[filter][i]) > 1e-3f)
                fail_msg("filter %d, place %d: %f, not %f", filter, i, (double)(out[i] * 255),
                         (double)wanted[filter][i]);
    }
}

static double filter_at(double x, bool cubic)
{
    x = fabs(x);
    if (!cubic) return x < 1 ? 1 - x : 0;
    return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : x < 2 ? ((-.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/* The share of each source in one place of a row or column that becomes `side` long: weights of `size` elements. */
static void shares(double *weights, uint32_t size, uint32_t side, uint32_t place, bool cubic)
{
    const double scale = (double)size / side, stretch = scale > 1 ? scale : 1, centre = (place + .5) * scale;
    double sum = 0;
    for (uint32_t k = 0; k < size; k++) sum += weights[k] = filter_at((k + .5 - centre) / stretch, cubic);
    for (uint32_t k = 0; k < size; k++) weights[k] /= sum;
}

/* Images of every width that is more or less than a block of columns, against all sums in double. */
static void resizing_is_the_sum_in_double(void **state)
{
    (void)state;
    enum { SIDE = 7, MOST = 75 };
    static uint8_t samples[MOST * MOST * 3];
    static double columns[MOST], rows[MOST];
    static float out[3 * SIDE * SIDE];
    for (uint64_t draw = 0; draw < 60; draw++) {
        const uint64_t seed = test_seed(71);
        const slc_raster raster = {.width = 1 + (uint32_t)slc_random_below(seed, 1, draw, MOST),
                                   .height = 1 + (uint32_t)slc_random_below(seed, 2, draw, MOST),
                                   .channels = draw % 3 ? 3 : 1,
                                   .white = 200,
                                   .samples = samples};
        for (uint32_t i = 0; i < sizeof samples; i++) samples[i] = (uint8_t)slc_random_below(seed, 3 + draw, i, 201);
        slc_image_shape shape = {.channels = draw % 3 == 1 ? 1 : 3, .side = SIDE, .deviation = {1, 1, 1}};
        shape.filter = draw % 2 ? SLC_FILTER_BICUBIC : SLC_FILTER_BILINEAR;
        works(slc_raster_pixels(&raster, &shape, out));
        for (uint32_t i = 0; i < SIDE * SIDE * shape.channels; i++) {
            const uint32_t channel = i / (SIDE * SIDE);
            double sum = 0;
            shares(columns, raster.width, SIDE, i % SIDE, draw % 2);
            shares(rows, raster.height, SIDE, i / SIDE % SIDE, draw % 2);
            for (uint32_t y = 0; y < raster.height; y++)
                for (uint32_t x = 0; x < raster.width; x++) {
                    const uint8_t *at = samples + (y * raster.width + x) * raster.channels;
                    const double luma = raster.channels == 3 ? .299 * at[0] + .587 * at[1] + .114 * at[2] : at[0];
                    const double value = raster.channels == 1 || shape.channels == 1 ? luma : at[channel];
                    sum += rows[y] * columns[x] * value;
                }
            sum = sum / raster.white < 0 ? 0 : sum / raster.white > 1 ? 1 : sum / raster.white;
            if (fabs(out[i] - sum) > 2e-6)
                fail_msg("%u x %u x %u, element %u: %.8f, not %.8f", raster.width, raster.height, raster.channels, i,
                         (double)out[i], sum);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_png_is_read),
        cmocka_unit_test(every_form_of_jpeg_is_read),
        cmocka_unit_test(drafts_are_smaller),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(kinds_are_recognised),
        cmocka_unit_test(making_smaller_is_pillows),
        cmocka_unit_test(resizing_is_the_sum_in_double),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
