/* llm.c's checkpoints: each element has a different value, so that a wrong place or a missing transpose shows. */
#include "tests/support/base/folder.h"

#include "lib/weights/checkpoint.h"
#include "lib/weights/llmc.h"

#include <sluice/dtype.h>
#include <stdlib.h>

enum { POSITIONS = 5, VOCABULARY = 7, LAYERS = 2, HEADS = 3, CHANNELS = 6, PADDED = 8, WORDS = 256 };
enum { ELEMENTS = (PADDED + POSITIONS + 2) * CHANNELS + LAYERS * (12 * CHANNELS * CHANNELS + 13 * CHANNELS) };

/* The value of each element is its index in the file; in bf16 it is the index modulo 256, which bf16 holds exactly. */
static const char *write_checkpoint(int version, int padded, long cut)
{
    static char content[WORDS * 4 + 4 * ELEMENTS + 64];
    int32_t words[WORDS] = {SLC_LLMC_MAGIC, version, POSITIONS, VOCABULARY, LAYERS, HEADS, CHANNELS, padded};
    memcpy(content, words, sizeof words);
    for (int i = 0; i < ELEMENTS; i++) {
        if (version == 5)
            memcpy(content + sizeof words + 2 * (size_t)i, &(uint16_t){sluice_bf16_from_float((float)(i % 256))}, 2);
        else
            memcpy(content + sizeof words + 4 * (size_t)i, &(float){(float)i}, 4);
    }
    return write_file("model.bin", content, sizeof words + (version == 5 ? 2 : 4) * (size_t)ELEMENTS - (size_t)cut);
}

/* Returns the place at which the tensor of a kind and a layer begins in the file, in llm.c's order; -1: there is no
 * such name. */
static long begins_at(const char *name, int layer)
{
    static const struct {
        const char *name;
        int elements; /* elements of one layer */
    } kinds[] = {
        {"ln_1.weight", CHANNELS},
        {"ln_1.bias", CHANNELS},
        {"attn.c_attn.weight", 3 * CHANNELS * CHANNELS},
        {"attn.c_attn.bias", 3 * CHANNELS},
        {"attn.c_proj.weight", CHANNELS * CHANNELS},
        {"attn.c_proj.bias", CHANNELS},
        {"ln_2.weight", CHANNELS},
        {"ln_2.bias", CHANNELS},
        {"mlp.c_fc.weight", 4 * CHANNELS * CHANNELS},
        {"mlp.c_fc.bias", 4 * CHANNELS},
        {"mlp.c_proj.weight", 4 * CHANNELS * CHANNELS},
        {"mlp.c_proj.bias", CHANNELS},
    };
    long at = (PADDED + POSITIONS) * CHANNELS;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!strcmp(kinds[i].name, name)) return at + layer * kinds[i].elements;
        at += LAYERS * kinds[i].elements;
    }
    return -1;
}

/* The whole tensor must hold these values, and so must every range of it. */
static void holds(const slc_tensors *tensors, const slc_tensor *tensor, long begin, int version)
{
    float all[1024], part[1024];
    uint64_t rows = tensor->shape[0], columns = tensor->rank == 2 ? tensor->shape[1] : 1;
    assert_true(tensor->elements <= 1024 && rows * columns == tensor->elements);
    works(slc_tensors_read_float(tensors, tensor, 0, tensor->elements, all));
    bool transposed = tensor->rank == 2 && strstr(tensor->name, ".h.");
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < columns; c++) {
            long number = begin + (long)(transposed ? c * rows + r : r * columns + c);
            assert_true(all[r * columns + c] == (float)(version == 5 ? number % 256 : number));
        }
    for (uint64_t first = 0; first < tensor->elements; first += 5)
        for (uint64_t count = 0; count <= tensor->elements - first; count += 7) {
            works(slc_tensors_read_float(tensors, tensor, first, count, part));
            assert_memory_equal(part, all + first, count * sizeof *part);
        }
}

static void check_version(int version)
{
    slc_config config;
    slc_tensors *tensors;
    works(slc_checkpoint_open(write_checkpoint(version, PADDED, 0), &config, &tensors));
    assert_int_equal(config.head, SLUICE_HEAD_TOKENS);
    assert_int_equal(config.vocabulary, VOCABULARY);
    assert_int_equal(config.positions, POSITIONS);
    assert_int_equal(config.inner, 4 * CHANNELS);
    assert_int_equal(slc_tensors_count(tensors), 4 + 12 * LAYERS);
    for (size_t i = 0; i < slc_tensors_count(tensors); i++) {
        const slc_tensor *tensor = slc_tensors_at(tensors, i);
        long begin;
        if (!strncmp(tensor->name, "transformer.h.", 14))
            begin = begins_at(tensor->name + 16, tensor->name[14] - '0');
        else if (!strncmp(tensor->name, "transformer.ln_f", 16))
            begin = ELEMENTS - (strstr(tensor->name, "weight") ? 2 : 1) * CHANNELS;
        else
            begin = strcmp(tensor->name, "transformer.wte.weight") != 0 ? PADDED * CHANNELS : 0;
        assert_true(begin >= 0);
        holds(tensors, tensor, begin, version);
    }
    const slc_tensor *projection = slc_tensors_find(tensors, "transformer.h.1.mlp.c_proj.weight");
    assert_int_equal(projection->shape[0], 4 * CHANNELS);
    assert_int_equal(projection->shape[1], CHANNELS);
    assert_int_equal(slc_tensors_find(tensors, "transformer.wte.weight")->shape[0], VOCABULARY);
    slc_tensors_close(tensors);
}

static void both_versions_have_hugging_faces_shapes(void **state)
{
    (void)state;
    check_version(3);
    check_version(5);
}

/* A matrix must be transposed if it is taller than a panel of the reader. */
static void a_tall_matrix_is_transposed(void **state)
{
    (void)state;
    enum { WIDE = 700, TOTAL = (2 + 1 + 2) * WIDE + 12 * WIDE * WIDE + 13 * WIDE };
    char *content = malloc(WORDS * 4 + 4 * (size_t)TOTAL);
    int32_t words[WORDS] = {SLC_LLMC_MAGIC, 3, 1, 2, 1, 7, WIDE, 2};
    memcpy(content, words, sizeof words);
    for (int i = 0; i < TOTAL; i++) memcpy(content + sizeof words + 4 * (size_t)i, &(float){(float)i}, 4);
    slc_config config;
    slc_tensors *tensors;
    works(slc_llmc_open(write_file("tall.bin", content, sizeof words + 4 * (size_t)TOTAL), &config, &tensors));
    free(content);
    const slc_tensor *tensor = slc_tensors_find(tensors, "transformer.h.0.mlp.c_proj.weight");
    int begin = TOTAL - 2 * WIDE - WIDE - 4 * WIDE * WIDE;
    float *values = malloc(4 * sizeof *values * WIDE * WIDE);
    const uint64_t firsts[] = {0, 1, 5 * WIDE, 99999};
    for (size_t i = 0; i < 4; i++) {
        uint64_t first = firsts[i], count = tensor->elements - first;
        works(slc_tensors_read_float(tensors, tensor, first, count, values));
        for (uint64_t k = 0; k < count; k++) {
            uint64_t row = (first + k) / WIDE, column = (first + k) % WIDE;
            if (values[k] != (float)(begin + (int)(column * 4 * WIDE + row))) fail_msg("element %zu", (size_t)k);
        }
    }
    free(values);
    slc_tensors_close(tensors);
}

static void bad_checkpoints_are_refused(void **state)
{
    (void)state;
    slc_config config;
    slc_tensors *tensors = NULL;
    fails(slc_llmc_open(write_checkpoint(1, PADDED, 0), &config, &tensors), SLUICE_ERR_FORMAT, "version 1");
    fails(slc_llmc_open(write_checkpoint(3, 6, 0), &config, &tensors), SLUICE_ERR_FORMAT, "padded vocabulary 6");
    fails(slc_llmc_open(write_checkpoint(3, 9, 0), &config, &tensors), SLUICE_ERR_FORMAT, "must have");
    fails(slc_llmc_open(write_checkpoint(3, PADDED, 1), &config, &tensors), SLUICE_ERR_FORMAT, "must have");
    fails(slc_llmc_open(write_checkpoint(3, INT32_MAX, 1), &config, &tensors), SLUICE_ERR_FORMAT, "padded vocabulary");
    fails(slc_llmc_open(write_checkpoint(3, -1, 1), &config, &tensors), SLUICE_ERR_FORMAT, "padded vocabulary -1");
    fails(slc_llmc_open(write_file("empty", "", 0), &config, &tensors), SLUICE_ERR_FORMAT, "too short");
    int32_t words[WORDS] = {20240520, 1};
    fails(slc_llmc_open(write_file("tokens", words, sizeof words), &config, &tensors), SLUICE_ERR_FORMAT,
          "magic 20240520");
    const int32_t huge[WORDS] = {SLC_LLMC_MAGIC, 3, 1 << 24, 1 << 24, 1 << 24, 1, 1 << 24, 1 << 24};
    fails(slc_llmc_open(write_file("huge", huge, sizeof huge), &config, &tensors), SLUICE_ERR_FORMAT, "must have");
    const int32_t heads[WORDS] = {SLC_LLMC_MAGIC, 3, 1, 1, 1, 5, 6, 1};
    fails(slc_llmc_open(write_file("heads", heads, sizeof heads), &config, &tensors), SLUICE_ERR_FORMAT, "heads 5");
    assert_null(tensors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_versions_have_hugging_faces_shapes),
        cmocka_unit_test(a_tall_matrix_is_transposed),
        cmocka_unit_test(bad_checkpoints_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
