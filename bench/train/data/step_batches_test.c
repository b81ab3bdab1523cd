/* Copies of a step's micro-batches stay as they were put in, whatever becomes of the arrays that they were copied from,
 * also where micro-batches have less than the longest's tokens, or lack arrays. */
#include "bench/train/data/step_batches.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

enum { COUNT = 3, BATCH = 2, LENGTH = 5, IMAGE = 8 };

static void copies_of_text(void **state)
{
    (void)state;
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    slc_step_batches *kept;
    int32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH];
    uint8_t mask[BATCH * LENGTH];
    assert_int_equal(sluice_model_config_named("gpt2", "nano", &model), SLUICE_OK);
    assert_int_equal(slc_step_batches_create(&model, BATCH, LENGTH, COUNT, &kept), SLUICE_OK);
    assert_true(slc_step_batches_bytes(&model, BATCH, LENGTH, COUNT) >= COUNT * (sizeof tokens + sizeof targets));
    for (uint32_t m = 0; m < COUNT; m++) {
        memset(tokens, (int)m + 1, sizeof tokens);
        memset(targets, (int)m + 11, sizeof targets);
        memset(mask, (int)m + 21, sizeof mask);
        const sluice_batch batch =
            SLUICE_INIT(sluice_batch, .tokens = tokens, .targets = targets, .attention_mask = m == 1 ? mask : NULL,
                        .loss_divisor = m, .length = m == 2 ? LENGTH - 1 : 0);
        slc_step_batches_put(kept, m, &batch);
    }
    memset(tokens, 0, sizeof tokens);
    memset(mask, 0, sizeof mask);
    for (uint32_t m = 0; m < COUNT; m++) {
        const sluice_batch *batch = &slc_step_batches_all(kept)[m];
        const uint32_t count = BATCH * (m == 2 ? LENGTH - 1 : LENGTH);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(batch->tokens[i], 0x01010101 * (m + 1));
            assert_int_equal(batch->targets[i], 0x01010101 * (m + 11));
            if (m == 1) assert_int_equal(batch->attention_mask[i], 22);
        }
        assert_true((batch->attention_mask != NULL) == (m == 1) && !batch->types && !batch->pixels);
        assert_true(batch->loss_divisor == m);
    }
    slc_step_batches_destroy(kept);
}

static void copies_of_images(void **state)
{
    (void)state;
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    slc_step_batches *kept;
    float pixels[BATCH * IMAGE * IMAGE];
    int32_t targets[BATCH];
    assert_int_equal(sluice_model_config_named("vit", "nano", &model), SLUICE_OK);
    model.image_channels = 1;
    model.image_size = IMAGE;
    model.patch_size = 4;
    assert_int_equal(slc_step_batches_create(&model, BATCH, 0, COUNT, &kept), SLUICE_OK);
    for (uint32_t m = 0; m < COUNT; m++) {
        for (uint32_t i = 0; i < BATCH * IMAGE * IMAGE; i++) pixels[i] = (float)(m * 1000 + i);
        for (uint32_t i = 0; i < BATCH; i++) targets[i] = (int32_t)(m * 10 + i);
        slc_step_batches_put(kept, m, &SLUICE_INIT(sluice_batch, .pixels = pixels, .targets = targets));
    }
    for (uint32_t m = 0; m < COUNT; m++) {
        const sluice_batch *batch = &slc_step_batches_all(kept)[m];
        for (uint32_t i = 0; i < BATCH * IMAGE * IMAGE; i++) assert_true(batch->pixels[i] == (float)(m * 1000 + i));
        for (uint32_t i = 0; i < BATCH; i++) assert_int_equal(batch->targets[i], m * 10 + i);
    }
    slc_step_batches_destroy(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_of_text), cmocka_unit_test(copies_of_images)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
