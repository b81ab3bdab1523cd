/* Every optimizer of the table that is not compressed, with its default settings, and with each setting that an option
 * sets switched on or 0: values and states have the same bits under every exact strategy, on every rank, on one, two
 * and four ranks that have equal gradients, and in a run that goes on from a checkpoint, whatever strategy saved it. */
#include "lib/optim/optimizers.h"
#include "tests/support/base/folder.h"
#include "tests/support/draw.h"
#include "tests/support/onebit_model.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <setjmp.h>
#include <cmocka.h>

enum { SAVED = 3, STEPS = 6, STRATEGIES = 4, VARIANTS_MAX = 32 };
static const char *const strategies[STRATEGIES] = {"dp", "oss", "sdp", "fsdp"};

/* One optimizer with one choice of settings. */
typedef struct {
    const slc_optimizer_row *row;
    const slc_optimizer_setting *changed; /* NULL: all are defaults */
} variant;

static variant variants[VARIANTS_MAX];
static int variant_count;

typedef struct {
    trial t;
    int strategies; /* how many of them, from dp on */
    bool alike;     /* all ranks have rank 0's gradients */
    char dir[64];
    uint64_t *hash; /* [VARIANTS_MAX], shared by all processes: of a world of one rank */
} trial_run;

static void list_variants(void)
{
    for (size_t o = 0; slc_optimizer_at(o); o++) {
        const slc_optimizer_row *row = slc_optimizer_at(o);
        if (row->compressed) continue;
        variants[variant_count++].row = row;
        for (uint32_t i = 0; i < row->groups[0]->count; i++) {
            const slc_optimizer_setting *s = &row->groups[0]->settings[i];
            const bool other = s->type == SLC_OPTIMIZER_SWITCH || (s->least <= 0 && s->fallback > 0);
            if (s->way == SLC_OPTIMIZER_OPTION && other) variants[variant_count++] = (variant){row, s};
            assert_true(variant_count < VARIANTS_MAX);
        }
    }
}

static sluice_config config_of(const trial *t, const variant *v)
{
    sluice_config config = model_config(t);
    void *field = v->changed ? (char *)&config + v->changed->offset : NULL;
    config.optimizer_name = v->row->name;
    if (field && v->changed->type == SLC_OPTIMIZER_SWITCH)
        *(bool *)field = true;
    else if (field)
        *(double *)field = 0;
    return config;
}

/* The states' names, as the optimizer says them. */
static int hash_states(model *m, const sluice_config *config, uint64_t *hash)
{
    static float x[COUNT_MAX];
    sluice_optimizer optimizer = {0};
    slc_compressed none = {0};
    RANK_CHECK(!slc_optimizer_create(config, NULL, &optimizer, &none));
    if (model_hash(m, false, hash)) return 1;
    for (uint32_t p = 0; p < m->param_count; p++)
        for (uint32_t s = 0; s < optimizer.state_count; s++) {
            const known *k = &m->params[p];
            RANK_CHECK(!sluice_param_state_read(k->param, optimizer.state_name[s], 0, k->count, x));
            for (uint64_t i = 0; i < k->count; i++) {
                uint32_t bits;
                memcpy(&bits, &x[i], 4);
                *hash = mix(*hash ^ bits);
            }
        }
    slc_optimizer_destroy(&optimizer, &none);
    return 0;
}

static int take_steps(model *m, uint64_t count)
{
    for (uint64_t s = 0; s < count; s++)
        if (model_step(m, NULL)) return 1;
    return 0;
}

static int end(model *m, const sluice_config *config, uint64_t *hash)
{
    uint64_t all[RANKS_MAX];
    if (hash_states(m, config, hash) || model_peak_is_planned(m)) return 1;
    RANK_CHECK(!sluice_world_all_gather(m->world, hash, sizeof *hash, all));
    for (int r = 0; r < m->size; r++) RANK_CHECK(all[r] == *hash);
    model_end(m);
    return 0;
}

/* A run that saves, and one that goes on from there under the strategy after it. */
static int under_strategy(model *m, const trial_run *run, const variant *v, int strategy, uint64_t *hash,
                          uint64_t *again)
{
    trial t = run->t;
    m->t = &t;
    t.strategy = strategies[strategy];
    sluice_config config = config_of(&t, v);
    if (model_build_with(m, &config) || take_steps(m, SAVED)) return 1;
    RANK_CHECK(!sluice_checkpoint_save(m->rt, run->dir, "x", 1));
    if (take_steps(m, STEPS - SAVED) || end(m, &config, hash)) return 1;
    t.strategy = strategies[(strategy + 1) % STRATEGIES];
    config = config_of(&t, v);
    if (model_build_with(m, &config)) return 1;
    RANK_CHECK(!sluice_checkpoint_load(m->rt, run->dir, NULL, NULL));
    m->calls = SAVED;
    return take_steps(m, STEPS - SAVED) || end(m, &config, again);
}

static int each_variant(int rank, int size, void *context)
{
    const trial_run *run = context;
    model m;
    uint64_t plain = 0;
    if (model_world(&run->t, rank, size, &m)) return 1;
    if (run->alike) m.rank = 0;
    for (int v = 0; v < variant_count; v++) {
        uint64_t expected = 0, hash, again;
        for (int s = 0; s < run->strategies; s++) {
            if (under_strategy(&m, run, &variants[v], s, &hash, &again)) return 1;
            if (!s) expected = hash;
            if (hash == expected && again == expected) continue;
            fprintf(stderr, "%s, %s: %s gives other bits than dp, or when it goes on\n", variants[v].row->name,
                    variants[v].changed ? variants[v].changed->name : "defaults", strategies[s]);
            return 1;
        }
        if (run->alike && size == 1) run->hash[v] = expected;
        RANK_CHECK(!run->alike || run->hash[v] == expected);
        if (!variants[v].changed) plain = expected;
        RANK_CHECK(!variants[v].changed || expected != plain); /* the setting is heeded */
    }
    sluice_world_destroy(m.world);
    return 0;
}

static void passes(int size, trial_run run)
{
    make_own_folder(run.dir);
    assert_int_equal(run_ranks(size, each_variant, &run, 240), 0);
    remove_tree(run.dir);
}

static uint64_t *shared_hashes(void)
{
    void *shared =
        mmap(NULL, VARIANTS_MAX * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    return shared;
}

static void strategies_and_resuming_change_no_bit(void **state)
{
    (void)state;
    uint64_t *hash = shared_hashes();
    passes(3, (trial_run){.t = {.seed = 31, .schedule = "one_ahead"}, .strategies = STRATEGIES, .hash = hash});
    passes(2, (trial_run){.t = {.seed = 32, .bf16_layers = 6, .micro_batches = 2, .frozen = true},
                          .strategies = STRATEGIES,
                          .hash = hash});
}

/* Two and four equal gradients have an exact mean. */
static void the_number_of_ranks_changes_no_bit(void **state)
{
    (void)state;
    uint64_t *hash = shared_hashes();
    for (int size = 1; size <= 4; size *= 2)
        passes(size, (trial_run){.t = {.seed = 33, .bf16_layers = 8}, .strategies = 1, .alike = true, .hash = hash});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategies_and_resuming_change_no_bit),
        cmocka_unit_test(the_number_of_ranks_changes_no_bit),
    };
    list_variants();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
