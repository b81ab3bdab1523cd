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
void nano_destroy(nano *n);

/* Trains one step. Micro-batch m has the tokens that follow from first + m. The step's end alone is waited for. */
sluice_status nano_step(const nano *n, uint32_t micro_batches, uint32_t first);
