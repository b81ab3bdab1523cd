/* safetensors: written tensors must come back, wrong files must be refused by file and tensor, and shards must agree
 * with their index. */
#include "tests/support/base/folder.h"

#include "lib/weights/safetensors/safetensors.h"

#include <fcntl.h>
#include <math.h>
#include <sluice/dtype.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Files made by hand ---- */

static const char *make(const char *name, const char *header, size_t data_bytes)
{
    char content[8192] = {0};
    uint64_t length = strlen(header);
    assert_true(8 + length + data_bytes <= sizeof content);
    memcpy(content, &length, 8);
    memcpy(content + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++) content[8 + length + i] = (char)i;
    return write_file(name, content, 8 + length + data_bytes);
}

static void refused(const char *header, size_t data_bytes, const char *why)
{
    slc_tensors *tensors = NULL;
    const char *path = make("bad", header, data_bytes);
    fails(slc_safetensors_open(path, &tensors), SLUICE_ERR_FORMAT, why);
    assert_null(tensors);
    assert_non_null(strstr(sluice_last_error(), path));
}

#define ENTRY(name, dtype, shape, begin, end)                                                                          \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void lies_are_refused(void **state)
{
    (void)state;
    refused("{" ENTRY("w", "F32", "[2,3]", "0", "20") "}", 20, "tensor \"w\": its shape and dtype take 24 bytes");
    refused("{" ENTRY("w", "F32", "[2,3]", "0", "24") "}", 23, "tensor \"w\": its data end at byte 24 of 23");
    refused("{" ENTRY("w", "F32", "[2,3]", "0", "24") "}", 25, "1 bytes after the last tensor");
    refused("{" ENTRY("w", "F32", "[1]", "4", "8") "}", 8, "tensor \"w\": begins at byte 4, after a hole from 0");
    refused("{" ENTRY("v", "F32", "[2]", "0", "8") "," ENTRY("w", "F32", "[2]", "4", "12") "}", 12,
            "tensor \"w\": begins at byte 4, in what another holds up to 8");
    refused("{" ENTRY("v", "F32", "[2]", "0", "8") "," ENTRY("w", "F32", "[2]", "0", "8") "}", 8,
            "in what another holds");
    refused("{" ENTRY("v", "F32", "[1]", "0", "4") "," ENTRY("v", "F32", "[1]", "4", "8") "}", 8, "duplicate");
    refused("{" ENTRY("w", "F32", "[4294967296,4294967296]", "0", "0") "}", 0, "tensor \"w\": its shape overflows");
    refused("{" ENTRY("w", "F64", "[2305843009213693952]", "0", "0") "}", 0, "tensor \"w\": its shape overflows");
    refused("{" ENTRY("w", "F32", "[-1]", "0", "4") "}", 4, "tensor \"w\": its shape");
    refused("{" ENTRY("w", "F32", "[1.0]", "0", "4") "}", 4, "tensor \"w\": its shape");
    refused("{" ENTRY("w", "F32", "[99999999999999999999]", "0", "4") "}", 4, "too big");
    refused("{" ENTRY("w", "F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", 4, "at most 8");
    refused("{" ENTRY("w", "F32", "[1]", "4", "0") "}", 4, "tensor \"w\": its data_offsets");
    refused("{" ENTRY("w", "Q4", "[1]", "0", "4") "}", 4, "tensor \"w\": its dtype");
    refused("{" ENTRY("", "F32", "[1]", "0", "4") "}", 4, "empty");
    refused("{" ENTRY("a\\nb", "F32", "[1]", "0", "4") "}", 4, "control");
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}}", 4, "more than");
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "tensor \"w\": its data_offsets");
    refused("{\"w\":[]}", 0, "tensor \"w\": is no {");
    refused("{\"__metadata__\":{\"a\":1}}", 0, "__metadata__");
    refused("{\"__metadata__\":[]}", 0, "__metadata__");
    refused("[]", 0, "begin with {");
    refused("{\"w\":", 0, "its header");
    refused(" {}", 0, "begin with {");
}

static void lengths_are_checked(void **state)
{
    (void)state;
    slc_tensors *tensors = NULL;
    const uint64_t lengths[] = {0, 1, 3, 100000001, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char content[10] = "........{}";
        memcpy(content, &lengths[i], 8);
        fails(slc_safetensors_open(write_file("length", content, 10), &tensors), SLUICE_ERR_FORMAT,
              "says that its header");
    }
    for (size_t size = 0; size < 10; size++)
        fails(slc_safetensors_open(write_file("short", "\2\0\0\0\0\0\0\0{}", size), &tensors), SLUICE_ERR_FORMAT,
              "short");
    works(slc_safetensors_open(write_file("none", "\2\0\0\0\0\0\0\0{}", 10), &tensors));
    assert_int_equal(slc_tensors_count(tensors), 0);
    assert_null(slc_tensors_find(tensors, "w"));
    slc_tensors_close(tensors);
    fails(slc_safetensors_open(path_of("nowhere"), &tensors), SLUICE_ERR_PATH, "nowhere");
    fails(slc_safetensors_open("/dev/null", &tensors), SLUICE_ERR_ARGUMENT, "regular");
    fails(slc_safetensors_open(test_folder(), &tensors), SLUICE_ERR_PATH, "has neither");
}

static void a_file_that_shrinks_is_an_error(void **state)
{
    (void)state;
    slc_tensors *tensors;
    float values[2];
    const char *path = make("shrinks", "{" ENTRY("w", "F32", "[2]", "0", "8") "}", 8);
    works(slc_safetensors_open(path, &tensors));
    const slc_tensor *tensor = slc_tensors_find(tensors, "w");
    works(slc_tensors_read_float(tensors, tensor, 0, 2, values));
    assert_int_equal(truncate(path, 60), 0);
    fails(slc_tensors_read_float(tensors, tensor, 0, 2, values), SLUICE_ERR_IO, "shorter");
    slc_tensors_close(tensors);
}

/* ---- Elements ---- */

static void every_half_is_converted(void **state)
{
    (void)state;
    enum { HALVES = 65536 };
    char *content = calloc(1, 8 + 80 + 4 * HALVES);
    const char *header =
        "{" ENTRY("h", "F16", "[65536]", "0", "131072") "," ENTRY("b", "BF16", "[65536]", "131072", "262144") "}   ";
    uint64_t length = strlen(header);
    content = realloc(content, 8 + length + 4 * HALVES);
    memcpy(content, &length, 8);
    memcpy(content + 8, header, length);
    for (uint32_t i = 0; i < HALVES; i++) {
        memcpy(content + 8 + length + 2 * i, &(uint16_t){(uint16_t)i}, 2);
        memcpy(content + 8 + length + 2 * HALVES + 2 * i, &(uint16_t){(uint16_t)i}, 2);
    }
    slc_tensors *tensors;
    works(slc_safetensors_open(write_file("halves", content, 8 + length + 4 * HALVES), &tensors));
    free(content);
    float *values = malloc(HALVES * sizeof *values);
    works(slc_tensors_read_float(tensors, slc_tensors_find(tensors, "h"), 0, HALVES, values));
    for (uint32_t i = 0; i < HALVES; i++) {
        uint32_t exponent = i >> 10 & 31, fraction = i & 1023;
        double expected = exponent == 31  ? (fraction ? NAN : INFINITY)
                          : exponent == 0 ? ldexp(fraction, -24)
                                          : ldexp(1024 + fraction, (int)exponent - 25);
        if (i >> 15) expected = -expected;
        if (isnan(expected))
            assert_true(isnan(values[i]));
        else
            assert_true(values[i] == expected && !signbit(values[i]) == !signbit(expected));
    }
    works(slc_tensors_read_float(tensors, slc_tensors_find(tensors, "b"), 0, HALVES, values));
    for (uint32_t i = 0; i < HALVES; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        assert_int_equal(bits, i << 16);
    }
    free(values);
    fails(slc_tensors_check_finite(tensors, slc_tensors_find(tensors, "h"), NULL), SLUICE_ERR_NON_FINITE,
          "\"h\": element 31744 of 65536 is infinite");
    slc_tensors_close(tensors);
}

static void kinds_and_ranges_are_checked(void **state)
{
    (void)state;
    slc_tensors *tensors;
    float reals[8];
    int32_t ints[8];
    uint8_t bytes[8];
    works(slc_safetensors_open(
        make("kinds",
             "{" ENTRY("f", "F32", "[2]", "0", "8") "," ENTRY("i", "I64", "[1]", "8", "16") "," ENTRY(
                 "b", "BOOL", "[4]", "16", "20") "," ENTRY("s", "I8", "[4]", "20", "24") "," ENTRY("h", "I16", "[]",
                                                                                                   "24", "26") "}",
             26),
        &tensors));
    const slc_tensor *f = slc_tensors_find(tensors, "f"), *i = slc_tensors_find(tensors, "i");
    fails(slc_tensors_read_int32(tensors, f, 0, 1, ints), SLUICE_ERR_ARGUMENT, "\"f\" is of dtype F32");
    fails(slc_tensors_read_float(tensors, i, 0, 1, reals), SLUICE_ERR_ARGUMENT, "\"i\" is of dtype I64");
    fails(slc_tensors_read_float(tensors, f, 1, 2, reals), SLUICE_ERR_ARGUMENT, "elements 1 to 3 of 2");
    fails(slc_tensors_read_float(tensors, f, 3, 0, reals), SLUICE_ERR_ARGUMENT, "of 2");
    fails(slc_tensors_read_float(tensors, f, 1, UINT64_MAX, reals), SLUICE_ERR_ARGUMENT, "of 2");
    fails(slc_tensors_read_int32(tensors, i, 0, 1, ints), SLUICE_ERR_FORMAT, "\"i\": element 0 is");
    fails(slc_tensors_read_bytes(tensors, slc_tensors_find(tensors, "b"), 0, 4, bytes), SLUICE_ERR_FORMAT,
          "from 0 to 1");
    works(slc_tensors_read_int32(tensors, slc_tensors_find(tensors, "s"), 1, 3, ints));
    assert_int_equal(ints[2], 23);
    works(slc_tensors_read_bytes(tensors, slc_tensors_find(tensors, "s"), 0, 4, bytes));
    assert_int_equal(bytes[0], 20);
    works(slc_tensors_read_int32(tensors, slc_tensors_find(tensors, "h"), 0, 1, ints));
    assert_int_equal(ints[0], 24 + 256 * 25);
    assert_int_equal(slc_tensors_find(tensors, "h")->rank, 0);
    slc_tensors_close(tensors);
}

/* ---- Round trips ---- */

static void what_is_written_comes_back(void **state)
{
    (void)state;
    enum { MANY = 5003 };
    slc_safetensors_writer *writer;
    slc_tensors *tensors;
    uint32_t wide, half, none;
    float *values = malloc(MANY * sizeof *values), *back = malloc(MANY * sizeof *back);
    for (int i = 0; i < MANY; i++) values[i] = (float)sin(i) * ldexpf(1, i % 40 - 20);
    works(slc_safetensors_create(path_of("written"), &writer));
    works(slc_safetensors_declare(writer, "h.0.w", SLC_TENSOR_F32, 2, (uint64_t[]){5003, 1}, &wide));
    works(slc_safetensors_declare(writer, "h.0.w/\"\xc3\xa4", SLC_TENSOR_BF16, 1, (uint64_t[]){MANY}, &half));
    works(slc_safetensors_declare(writer, "none", SLC_TENSOR_F32, 2, (uint64_t[]){0, 4}, &none));
    works(slc_safetensors_write_float(writer, half, MANY, values));
    for (int at = 0; at < MANY; at += 1001) /* in pieces, with other tensors in between */
        works(slc_safetensors_write_float(writer, wide, MANY - at < 1001 ? MANY - at : 1001, values + at));
    assert_int_not_equal(access(path_of("written"), F_OK), 0);
    works(slc_safetensors_commit(writer));
    slc_safetensors_destroy(writer);
    assert_int_not_equal(access(path_of("written.part"), F_OK), 0);

    works(slc_safetensors_open(path_of("written"), &tensors));
    assert_int_equal(slc_tensors_count(tensors), 3);
    const slc_tensor *tensor = slc_tensors_find(tensors, "h.0.w");
    assert_int_equal(tensor->rank, 2);
    assert_int_equal(tensor->shape[0], MANY);
    works(slc_tensors_read_float(tensors, tensor, 0, MANY, back));
    assert_memory_equal(values, back, MANY * sizeof *values);
    works(slc_tensors_read_float(tensors, slc_tensors_find(tensors, "h.0.w/\"\xc3\xa4"), 7, MANY - 7, back));
    for (int i = 7; i < MANY; i++) assert_true(back[i - 7] == sluice_bf16_to_float(sluice_bf16_from_float(values[i])));
    assert_int_equal(slc_tensors_find(tensors, "none")->elements, 0);
    works(slc_tensors_read_float(tensors, slc_tensors_find(tensors, "none"), 0, 0, back));
    slc_tensors_close(tensors);
    free(values);
    free(back);
}

static void a_writer_is_held_to_its_word(void **state)
{
    (void)state;
    slc_safetensors_writer *writer;
    uint32_t a, b, other;
    const char *path = write_file("kept", "old", 3);
    fails(slc_safetensors_create("/nowhere/at/all", &writer), SLUICE_ERR_PATH, "/nowhere/at/all");
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    fails(slc_safetensors_create(path_of("pipe"), &writer), SLUICE_ERR_PATH, "no regular file");
    assert_int_equal(unlink(path_of("pipe")), 0);
    works(slc_safetensors_create(path, &writer));
    works(slc_safetensors_declare(writer, "a", SLC_TENSOR_F32, 1, (uint64_t[]){3}, &a));
    works(slc_safetensors_declare(writer, "b", SLC_TENSOR_U8, 0, NULL, &b));
    fails(slc_safetensors_declare(writer, "a", SLC_TENSOR_F32, 0, NULL, &other), SLUICE_ERR_ARGUMENT, "twice");
    fails(slc_safetensors_declare(writer, "", SLC_TENSOR_F32, 0, NULL, &other), SLUICE_ERR_ARGUMENT, "name");
    fails(slc_safetensors_declare(writer, "__metadata__", SLC_TENSOR_F32, 0, NULL, &other), SLUICE_ERR_ARGUMENT,
          "name");
    fails(slc_safetensors_declare(writer, "\xff", SLC_TENSOR_F32, 0, NULL, &other), SLUICE_ERR_ARGUMENT, "UTF-8");
    fails(slc_safetensors_declare(writer, "c", SLC_TENSOR_F32, 2, (uint64_t[]){UINT64_MAX, 2}, &other),
          SLUICE_ERR_ARGUMENT, "overflows");
    works(slc_safetensors_write_float(writer, a, 2, (float[]){1, 2}));
    fails(slc_safetensors_declare(writer, "c", SLC_TENSOR_F32, 0, NULL, &other), SLUICE_ERR_ORDER, "after the first");
    fails(slc_safetensors_write_float(writer, a, 2, (float[]){1, 2}), SLUICE_ERR_ARGUMENT, "more are written");
    fails(slc_safetensors_write_float(writer, b, 1, (float[]){1}), SLUICE_ERR_ARGUMENT, "from float");
    fails(slc_safetensors_commit(writer), SLUICE_ERR_ORDER, "\"a\" has 2 of its 3");
    slc_safetensors_destroy(writer);
    assert_int_not_equal(access(path_of("kept.part"), F_OK), 0);
    struct stat info;
    assert_int_equal(stat(path_of("kept"), &info), 0);
    assert_int_equal(info.st_size, 3);
}

/* ---- Shards ---- */

static void write_shard(const char *name, const char *const *tensors, size_t count)
{
    slc_safetensors_writer *writer;
    works(slc_safetensors_create(path_of(name), &writer));
    for (uint32_t i = 0, index; i < count; i++)
        works(slc_safetensors_declare(writer, tensors[i], SLC_TENSOR_F32, 1, (uint64_t[]){2}, &index));
    for (uint32_t i = 0; i < count; i++)
        works(slc_safetensors_write_float(writer, i, 2, (float[]){(float)tensors[i][0], 1}));
    works(slc_safetensors_commit(writer));
    slc_safetensors_destroy(writer);
}

static void index_refused(const char *text, const char *why)
{
    slc_tensors *tensors = NULL;
    fails(slc_safetensors_open(write_file("shards/model.safetensors.index.json", text, strlen(text)), &tensors),
          SLUICE_ERR_FORMAT, why);
    assert_null(tensors);
    assert_non_null(strstr(sluice_last_error(), "model.safetensors.index.json"));
}

static void shards_are_one_set(void **state)
{
    (void)state;
    slc_tensors *tensors;
    assert_int_equal(mkdir(path_of("shards"), 0700), 0);
    write_shard("shards/one.safetensors", (const char *[]){"a", "b"}, 2);
    write_shard("shards/two.safetensors", (const char *[]){"c"}, 1);
    write_shard("stray.safetensors", (const char *[]){"d"}, 1);
    const char *good = "{\"metadata\":{\"total_size\":24},\"weight_map\":{\"c\":\"two.safetensors\","
                       "\"a\":\"one.safetensors\",\"b\":\"one.safetensors\"}}";
    write_file("shards/model.safetensors.index.json", good, strlen(good));
    works(slc_safetensors_open(path_of("shards"), &tensors));
    assert_int_equal(slc_tensors_count(tensors), 3);
    for (const char *name = "abc"; *name; name++) {
        const slc_tensor *tensor = slc_tensors_find(tensors, (char[]){*name, 0});
        float values[2];
        assert_non_null(tensor);
        works(slc_tensors_read_float(tensors, tensor, 0, 2, values));
        assert_true(values[0] == (float)*name);
        assert_non_null(strstr(slc_tensors_path(tensors, tensor), *name == 'c' ? "two" : "one"));
    }
    slc_tensors_close(tensors);

    index_refused("{\"weight_map\":{\"a\":\"one.safetensors\",\"c\":\"two.safetensors\"}}", "\"b\" is in");
    index_refused("{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\",\"c\":\"two.safetensors\"}}",
                  "\"b\" is in");
    index_refused("{\"weight_map\":{\"c\":\"two.safetensors\",\"d\":\"two.safetensors\"}}", "\"d\" is not in");
    index_refused("{\"weight_map\":{\"d\":\"../stray.safetensors\"}}", "\"d\" is no name");
    index_refused("{\"weight_map\":{\"d\":\"/etc/passwd\"}}", "\"d\" is no name");
    index_refused("{\"weight_map\":{\"d\":7}}", "\"d\" is no name");
    index_refused("{\"weight_map\":{}}", "weight_map");
    index_refused("{\"weight_map\":[]}", "weight_map");
    index_refused("[]", "weight_map");
    index_refused("{", ":1:1");
    const char *missing = "{\"weight_map\":{\"a\":\"three.safetensors\"}}";
    write_file("shards/model.safetensors.index.json", missing, strlen(missing));
    fails(slc_safetensors_open(path_of("shards"), &tensors), SLUICE_ERR_PATH, "three.safetensors");
    write_shard("shards/copy.safetensors", (const char *[]){"a", "b"}, 2);
    index_refused("{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"copy.safetensors\"}}", "too");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(lengths_are_checked),
        cmocka_unit_test(a_file_that_shrinks_is_an_error),
        cmocka_unit_test(every_half_is_converted),
        cmocka_unit_test(kinds_and_ranges_are_checked),
        cmocka_unit_test(what_is_written_comes_back),
        cmocka_unit_test(a_writer_is_held_to_its_word),
        cmocka_unit_test(shards_are_one_set),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
