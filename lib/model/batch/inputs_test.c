/* Files of inputs that are whole must be read, and all others must be refused by name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/model/batch/inputs.h"
#include "lib/weights/tensors.h"
#include "lib/weights/tensors_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *name;
    slc_tensor_dtype dtype;
    uint32_t rank;
    uint64_t shape[4];
} given_tensor;

/* Every number is 0, which is a valid token, type, class and pixel, and false in every mask. */
static sluice_status read_inputs(const sluice_model_config *config, const given_tensor *given, uint32_t count,
                                 slc_model_inputs *out)
{
    char path[] = "/tmp/sluice-inputs-XXXXXX", header[2048] = "{";
    uint64_t bytes = 0, length;
    for (uint32_t i = 0; i < count; i++) {
        char shape[128];
        uint64_t elements, size;
        assert_true(slc_tensor_measure(given[i].dtype, given[i].rank, given[i].shape, &elements, &size));
        slc_tensor_shape_text(given[i].rank, given[i].shape, shape, sizeof shape);
        snprintf(header + strlen(header), sizeof header - strlen(header),
                 "%s\"%s\": {\"dtype\": \"%s\", \"shape\": %s, \"data_offsets\": [%llu, %llu]}", i ? ", " : "",
                 given[i].name, slc_tensor_dtype_name(given[i].dtype), shape, (unsigned long long)bytes,
                 (unsigned long long)(bytes + size));
        bytes += size;
    }
    length = strlen(strcat(header, "}"));
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, &length, 8), 8);
    assert_int_equal(write(fd, header, length), length);
    assert_int_equal(ftruncate(fd, (off_t)(8 + length + bytes)), 0);
    close(fd);
    sluice_status status = slc_model_inputs_read(path, config, out);
    unlink(path);
    return status;
}

static sluice_model_config config_of(const char *family)
{
    sluice_model_config config = SLUICE_INIT(sluice_model_config);
    assert_int_equal(sluice_model_config_named(family, "nano", &config), SLUICE_OK);
    return config;
}

static void refused(const sluice_model_config *config, const given_tensor *given, uint32_t count, const char *why)
{
    slc_model_inputs inputs;
    assert_int_not_equal(read_inputs(config, given, count, &inputs), SLUICE_OK);
    if (!strstr(sluice_last_error(), why)) fail_msg("%s does not say %s", sluice_last_error(), why);
    slc_model_inputs_free(&inputs);
}

/* Hugging Face's GPT-2 would add rows of the token table for token types. */
static void token_types_are_berts(void **state)
{
    (void)state;
    const given_tensor text[] = {{"input_ids", SLC_TENSOR_I64, 2, {2, 5}},
                                 {"token_type_ids", SLC_TENSOR_I64, 2, {2, 5}}};
    const sluice_model_config gpt2 = config_of("gpt2"), bert = config_of("bert");
    slc_model_inputs inputs;
    refused(&gpt2, text, 2, "\"token_type_ids\" is no input of gpt2");
    assert_int_equal(read_inputs(&bert, text, 2, &inputs), SLUICE_OK);
    assert_int_equal(inputs.batch, 2);
    assert_int_equal(inputs.length, 5);
    assert_non_null(inputs.given.types);
    slc_model_inputs_free(&inputs);
}

static void no_labels_for_no_masked_patch(void **state)
{
    (void)state;
    sluice_model_config beit = config_of("beit");
    beit.head = SLUICE_HEAD_TOKENS;
    beit.classes = 0;
    beit.vocabulary = 64;
    beit.mask_token = true;
    const uint64_t side = beit.image_size, patches = sluice_model_targets(&beit, 0);
    given_tensor images[] = {{"pixel_values", SLC_TENSOR_F32, 4, {2, beit.image_channels, side, side}},
                             {"labels", SLC_TENSOR_I64, 1, {0}},
                             {"bool_masked_pos", SLC_TENSOR_BOOL, 2, {2, patches}}};
    for (uint32_t count = 2; count <= 3; count++) {
        slc_model_inputs inputs;
        assert_int_equal(read_inputs(&beit, images, count, &inputs), SLUICE_OK);
        for (uint64_t i = 0; i < 2 * patches; i++) assert_int_equal(inputs.targets[i], -1);
        slc_model_inputs_free(&inputs);
    }
    images[1].shape[0] = 1;
    refused(&beit, images, 2, "\"labels\" has 1 elements for 0 masked patches");
}

static void shapes_are_checked(void **state)
{
    (void)state;
    const sluice_model_config gpt2 = config_of("gpt2"), vit = config_of("vit");
    refused(&gpt2, (given_tensor[]){{"input_ids", SLC_TENSOR_I64, 1, {5}}}, 1, "sequences x tokens");
    refused(&gpt2, (given_tensor[]){{"input_ids", SLC_TENSOR_I64, 2, {1, gpt2.context + 1}}}, 1, "at most");
    refused(&gpt2, (given_tensor[]){{"input_ids", SLC_TENSOR_F32, 2, {1, 5}}}, 1, "whole numbers");
    refused(&gpt2, (given_tensor[]){{"labels", SLC_TENSOR_I64, 2, {1, 5}}}, 1, "\"input_ids\" is missing");
    refused(&gpt2,
            (given_tensor[]){{"input_ids", SLC_TENSOR_I64, 2, {1, 5}}, {"attention_mask", SLC_TENSOR_I64, 2, {1, 4}}},
            2, "here it must be [1, 5]");
    refused(&vit, (given_tensor[]){{"pixel_values", SLC_TENSOR_F32, 4, {1, 3, 16, 16}}}, 1,
            "\"pixel_values\" has shape");
    refused(&vit, (given_tensor[]){{"input_ids", SLC_TENSOR_I64, 2, {1, 5}}}, 1, "no input of vit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_types_are_berts),
        cmocka_unit_test(no_labels_for_no_masked_patch),
        cmocka_unit_test(shapes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
