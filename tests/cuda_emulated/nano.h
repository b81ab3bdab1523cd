/* GPT-2 on the emulated GPU, for tests that count or fail what its steps do: nano, or another size. */
#pragma once

#include <sluice/model.h>
#include <sluice/sluice.h>

enum { NANO_BATCH = 2, NANO_LENGTH = 16 };

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
    uint32_t batch, length;
} nano;

/* Makes a world, a runtime of `config`, whose device becomes cuda, and the model with its first values. On failure the
 * caller destroys what is there. */
sluice_status nano_create(sluice_config config, nano *out);
/* Makes a model of another size, for `batch` sequences of `length` tokens: both at most nano's. */
sluice_status nano_create_size(sluice_config config, const char *size, uint32_t batch, uint32_t length, nano *out);
/* Makes nano for recipes: its branches may be scaled, and sequences may have NANO_SHORT tokens, which is shape 1 of the
 * runtime. */
enum { NANO_SHORT = NANO_LENGTH / 2 };
sluice_status nano_create_for_recipes(sluice_config config, nano *out);
void nano_destroy(nano *n);

/* Trains one step. Micro-batch m has the tokens that follow from first + m. The step's end alone is waited for. */
sluice_status nano_step(const nano *n, uint32_t micro_batches, uint32_t first);
/* Trains a step with these options, among which is the shape that `length` tokens of a sequence have. */
sluice_status nano_step_of(const nano *n, const sluice_step_options *options, uint32_t micro_batches, uint32_t first,
                           uint32_t length);
/* Trains a step of a recipe, one micro-batch: step number `step` is short if `is_short`, leaves out blocks, and scales
 * the others by a factor of its own. */
sluice_status nano_recipe_step(const nano *n, uint32_t step, bool is_short, uint32_t first);
