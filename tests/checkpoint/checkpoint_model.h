/* The model that checkpoint tests share. Its contents are a function of a number, so that a test can tell them from
 * what any other save has written. */
#pragma once

#include "lib/base/numbers/random.h"
#include "tests/support/base/folder.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { LAYERS = 4, PARAMS = 2 * LAYERS + 2, ARRAYS = 3, LONGEST = 5000 };

static const uint64_t counts[PARAMS] = {1, 17, 1000, 4097, 33, 640, 16, 2999, LONGEST, 255};
typedef enum { AS_IT_IS, ONE_LESS, ONE_MORE, OTHER_COUNT, OTHER_NAME, OTHER_FROZEN, OTHER_OPTIMIZER } model_change;

typedef struct {
    const char *dir;
    uint64_t seed; /* the seed of strategies, schedule and blocks */
    uint64_t step;
    model_change change;
    const char *refused;        /* words of the refusal; NULL: it loads */
    volatile uint64_t *reached; /* the last step whose save has returned */
} trial;

typedef struct {
    const trial *t;
    uint64_t drawn;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[LAYERS];
    sluice_param *param[PARAMS + 1];
    uint32_t param_count;
} model;

static inline uint64_t draw(model *m, uint64_t limit)
{
    return slc_random_below(test_seed(m->t->seed), 9, m->drawn++, limit);
}

static inline bool is_frozen(uint32_t param)
{
    return param == 3;
}

/* A frozen parameter may lie in bf16 alone, so its contents have few bits. */
static inline float content(uint64_t step, uint32_t param, uint32_t array, uint64_t element)
{
    uint32_t block[4];
    slc_random_block(step, param * ARRAYS + array, element, block);
    return (float)(block[0] >> (is_frozen(param) ? 24 : 8)) * 0x1p-20f;
}

static inline sluice_status no_update(const sluice_update *update, void *context)
{
    (void)update, (void)context;
    return SLUICE_OK;
}

static const sluice_optimizer another = {.struct_size = sizeof(sluice_optimizer),
                                         .name = "another",
                                         .state_count = 2,
                                         .state_name = {"exp_avg", "exp_avg_sq"},
                                         .update = no_update};

static inline int add_param(model *m, uint32_t layer, const char *name, uint64_t count, bool frozen, bool tied)
{
    sluice_param_desc desc =
        SLUICE_INIT(sluice_param_desc, .name = name, .count = count, .frozen = frozen, .tied = tied);
    if (tied) { /* it may be split by its uses, which no checkpoint tells */
        desc.row_elements = 8;
        desc.most_rows = 100;
    }
    RANK_CHECK(!sluice_param_add(m->layer[layer], &desc, &m->param[m->param_count++]));
    return 0;
}

/* Each layer has two parameters, of which one layer's is frozen; one more parameter is tied, and one is plain. */
static inline int add_params(model *m)
{
    model_change change = m->t->change;
    for (uint32_t l = 0; l < LAYERS; l++)
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t p = 2 * l + k;
            bool here = p == 5, frozen = is_frozen(p) || (here && change == OTHER_FROZEN);
            if (here && change == ONE_LESS) continue;
            const char *name = here && change == OTHER_NAME ? "renamed" : k ? "bias" : "weight";
            if (add_param(m, l, name, counts[p] + (here && change == OTHER_COUNT), frozen, false)) return 1;
        }
    if (add_param(m, 0, "tied", counts[PARAMS - 2], false, true)) return 1;
    RANK_CHECK(!sluice_param_use(m->layer[LAYERS - 1], m->param[m->param_count - 1]));
    if (change == ONE_MORE && add_param(m, 1, "more", 5, false, false)) return 1;
    return add_param(m, 2, "last", counts[PARAMS - 1], false, false);
}

static inline int build(model *m)
{
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp"};
    static const char *const schedules[] = {"serial", "one_ahead", "bucketed", "random"};
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = strategies[draw(m, 4)];
    config.schedule = schedules[draw(m, 4)];
    config.block_bytes = 256 << draw(m, 8);
    config.precision = draw(m, 2) ? SLUICE_BF16 : SLUICE_FP32;
    config.tied = draw(m, 2) ? SLUICE_TIED_SPLIT : SLUICE_TIED_JOINT;
    if (m->t->change == OTHER_OPTIMIZER) config.optimizer = &another;
    RANK_CHECK(!sluice_world_create(NULL, &m->world));
    RANK_CHECK(!sluice_runtime_create(m->world, &config, &m->rt));
    for (uint32_t l = 0; l < LAYERS; l++) {
        char name[16];
        snprintf(name, sizeof name, "h.%u", l);
        RANK_CHECK(!sluice_layer_add(m->rt, name, &m->layer[l]));
        RANK_CHECK(!draw(m, 2) || !sluice_layer_strategy(m->layer[l], strategies[draw(m, 4)]));
    }
    if (add_params(m)) return 1;
    RANK_CHECK(!sluice_runtime_commit(m->rt));
    return 0;
}

static inline int destroy(model *m, int code)
{
    sluice_runtime_destroy(m->rt);
    sluice_world_destroy(m->world);
    return code;
}

static const char *state_name(uint32_t array)
{
    return array == 1 ? "exp_avg" : "exp_avg_sq";
}

static inline int fill_values(model *m, uint64_t step)
{
    static float values[LONGEST];
    for (uint32_t p = 0; p < PARAMS; p++)
        for (uint32_t a = 0; a < (is_frozen(p) ? 1 : ARRAYS); a++) {
            for (uint64_t i = 0; i < counts[p]; i++) values[i] = content(step, p, a, i);
            sluice_status status = a ? sluice_param_state_write(m->param[p], state_name(a), 0, counts[p], values)
                                     : sluice_param_write(m->param[p], 0, counts[p], values);
            RANK_CHECK(!status);
        }
    return 0;
}

static inline int fill(model *m, uint64_t step)
{
    if (fill_values(m, step)) return 1;
    RANK_CHECK(!sluice_runtime_step_set(m->rt, step));
    return 0;
}

static inline int check_values(model *m, uint64_t step)
{
    static float values[LONGEST];
    for (uint32_t p = 0; p < PARAMS; p++)
        for (uint32_t a = 0; a < (is_frozen(p) ? 1 : ARRAYS); a++) {
            sluice_status status = a ? sluice_param_state_read(m->param[p], state_name(a), 0, counts[p], values)
                                     : sluice_param_read(m->param[p], 0, counts[p], values);
            RANK_CHECK(!status);
            for (uint64_t i = 0; i < counts[p]; i++) {
                float wanted = content(step, p, a, i);
                RANK_CHECK(!memcmp(&values[i], &wanted, sizeof wanted));
            }
        }
    return 0;
}

static inline int check(model *m, uint64_t step)
{
    RANK_CHECK(sluice_runtime_step(m->rt) == step);
    return check_values(m, step);
}

/* ---- Folders ---- */

static inline uint32_t entries(const char *path)
{
    uint32_t count = 0;
    DIR *open = opendir(path);
    for (const struct dirent *entry; open && (entry = readdir(open));) count += entry->d_name[0] != '.';
    if (open) closedir(open);
    return count;
}
