/* Ranks on unlike processors, and with other numbers of threads, are one job: if their workspaces and what they
 * reserve differ, all have room for the largest; replicas of the weights stay equal to the bit, and are the same under
 * every strategy and budget. */
#include "lib/kernels/gemm/gemm.h"
#include "lib/kernels/isa.h"
#include "tests/support/ranks.h"

#include <sluice/model.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdbool.h>
#include <cmocka.h>

enum { LIMIT_S = 120, LAYERS = 2, LARGE = 1 << 20, SMALL = 10000 };

/* ---- Workspaces ---- */

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[LAYERS];
    sluice_workspace *space[3]; /* NULL: not on this rank */
    uint64_t bytes[3];
} program;

static int add_space(program *p, int which, sluice_direction direction, uint64_t bytes, uint32_t first, uint32_t last)
{
    const sluice_workspace_desc desc = SLUICE_INIT(sluice_workspace_desc, "scratch", bytes, direction, first, last);
    p->bytes[which] = bytes;
    RANK_CHECK(!sluice_workspace_add(p->layer[0], &desc, &p->space[which]));
    return 0;
}

/* One rank has what it needs in the forward, one in the backward, where it reserves too, and rank 0 has nothing; or
 * `all` of them have all of it. */
static int make(program *p, int rank, bool all)
{
    sluice_config config;
    sluice_config_init(&config);
    sluice_param *param;
    *p = (program){0};
    RANK_CHECK(!sluice_world_create(NULL, &p->world) && !sluice_runtime_create(p->world, &config, &p->rt));
    for (int l = 0; l < LAYERS; l++) {
        RANK_CHECK(!sluice_layer_add(p->rt, l ? "second" : "first", &p->layer[l]));
        RANK_CHECK(!sluice_param_add(p->layer[l], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = 64), &param));
    }
    if ((all || rank == 1) && add_space(p, 0, SLUICE_FORWARD, LARGE, 0, UINT32_MAX)) return 1;
    if ((all || rank == 2) && add_space(p, 1, SLUICE_BACKWARD, SMALL, 1, 2)) return 1;
    if ((all || rank == 2) && add_space(p, 2, SLUICE_BACKWARD, 2 * SMALL, 2, 3)) return 1;
    if (all || rank == 2) RANK_CHECK(!sluice_runtime_reserve(p->rt, "own", 3 * LARGE));
    RANK_CHECK(!sluice_runtime_commit(p->rt));
    return 0;
}

static int fill_spaces(const program *p, int first, int end)
{
    for (int i = first; i < end; i++) {
        if (!p->space[i]) continue;
        RANK_CHECK(sluice_workspace_data(p->space[i]));
        memset(sluice_workspace_data(p->space[i]), i + 1, p->bytes[i]);
    }
    for (int i = first; i < end; i++) {
        const unsigned char *data = p->space[i] ? sluice_workspace_data(p->space[i]) : NULL;
        for (uint64_t at = 0; data && at < p->bytes[i]; at++) RANK_CHECK(data[at] == i + 1);
    }
    return 0;
}

static int make_step(const program *p)
{
    RANK_CHECK(!sluice_step_begin(p->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
    for (int l = 0; l < LAYERS; l++) {
        RANK_CHECK(!sluice_forward_begin(p->layer[l]));
        if (!l && fill_spaces(p, 0, 1)) return 1;
        RANK_CHECK(!sluice_forward_end(p->layer[l]));
    }
    for (int l = LAYERS; l-- > 0;) {
        RANK_CHECK(!sluice_backward_begin(p->layer[l]));
        if (!l && fill_spaces(p, 1, 3)) return 1;
        RANK_CHECK(!sluice_backward_end(p->layer[l]));
    }
    RANK_CHECK(!sluice_step_end(p->rt, NULL));
    return 0;
}

static int train_with_own_spaces(int rank, int size, void *context)
{
    program p;
    sluice_memory_report memory[2];
    (void)size, (void)context;
    for (int all = 0; all < 2; all++) {
        if (make(&p, rank, all) || make_step(&p)) return 1;
        memory[all] = SLUICE_INIT(sluice_memory_report);
        RANK_CHECK(!sluice_runtime_memory(p.rt, &memory[all]));
        RANK_CHECK(!sluice_world_same(p.world, "plan", memory[all].planned_bytes));
        RANK_CHECK(memory[all].activation_packed_bytes <= memory[all].activation_sum_bytes);
        sluice_runtime_destroy(p.rt);
        sluice_world_destroy(p.world);
    }
    RANK_CHECK(memory[0].planned_bytes == memory[1].planned_bytes);
    RANK_CHECK(memory[0].peak_bytes == memory[1].peak_bytes && memory[0].peak_bytes > 4 * LARGE);
    RANK_CHECK(memory[0].activation_bound_bytes == memory[1].activation_bound_bytes);
    return 0;
}

static void every_rank_has_room_for_the_largest(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(3, train_with_own_spaces, NULL, LIMIT_S), 0);
}

/* ---- Processors ---- */

enum { BATCH = 2, LENGTH = 32, ROWS = BATCH * LENGTH, STEPS = 3 };

static int lacks_products(int rank, int size, void *context)
{
    bool widened, allocates;
    const char *name;
    (void)rank, (void)size, (void)context;
    return slc_gemm_path(SLUICE_FP32, &widened, &allocates, &name) != SLUICE_OK;
}

/* oneDNN's code for products keeps to the instruction set that was asked for. */
static int check_products(slc_isa isa)
{
    for (sluice_dtype dtype = SLUICE_FP32; dtype <= SLUICE_BF16; dtype++) {
        bool widened, allocates;
        const char *name = "";
        RANK_CHECK(!slc_gemm_path(dtype, &widened, &allocates, &name));
        RANK_CHECK(isa == SLC_ISA_AVX512 || !strstr(name, "avx512"));
        RANK_CHECK(!strstr(name, "amx") && !strstr(name, "bf16"));
    }
    return 0;
}

/* Trains, and tells what the plan takes and the hash of the weights, which is an error if replicas differ. */
static int train(sluice_dtype precision, const char *strategy, uint64_t budget, uint64_t *planned, char hex[65])
{
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
    sluice_config config;
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    const sluice_model_config gpt2 =
        SLUICE_INIT(sluice_model_config, .family = SLUICE_GPT2, .layers = 5, .channels = 64, .heads = 2, .hidden = 256,
                    .vocabulary = 96, .context = LENGTH, .epsilon = 1e-5, .gelu_tanh = true);
    const sluice_model_options options = SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = LENGTH);
    int32_t tokens[ROWS], targets[ROWS];
    sluice_config_init(&config);
    config.strategy = strategy;
    config.schedule = "one_ahead";
    config.precision = config.wire = precision;
    config.budget_bytes = budget;
    config.clip = 1;
    RANK_CHECK(!sluice_world_create(NULL, &world) && !sluice_runtime_create(world, &config, &rt));
    RANK_CHECK(!sluice_model_create(rt, &gpt2, &options, &model) && !sluice_runtime_commit(rt));
    RANK_CHECK(!sluice_model_init(model, 1));
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < ROWS; i++) {
            tokens[i] = (i * 7 + s + 31 * sluice_world_rank(world)) % 96;
            targets[i] = (tokens[i] * 5 + 1) % 96;
        }
        RANK_CHECK(!sluice_step_begin(rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-2)));
        RANK_CHECK(!sluice_model_forward(model, &SLUICE_INIT(sluice_batch, .tokens = tokens, .targets = targets)));
        RANK_CHECK(!sluice_model_backward(model, NULL) && !sluice_step_end(rt, NULL));
    }
    RANK_CHECK(!sluice_runtime_weights_sha256(rt, hex));
    RANK_CHECK(!sluice_runtime_memory(rt, &memory));
    *planned = memory.planned_bytes;
    sluice_model_destroy(model);
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    return 0;
}

/* Rank 1 has the instruction set *context; rank 0 the best there is. */
static int train_beside_another(int rank, int size, void *context)
{
    const slc_isa isa = *(const slc_isa *)context;
    (void)size;
    if (rank == 1) setenv("SLUICE_KERNELS_ISA", slc_isa_name(isa), 1);
    if (rank == 1 && check_products(isa)) return 1;
    for (sluice_dtype precision = SLUICE_FP32; precision <= SLUICE_BF16; precision++) {
        uint64_t whole, sharded, planned;
        char dp[65], fsdp[65], within[65];
        if (train(precision, "dp", 0, &whole, dp) || train(precision, "fsdp", 0, &sharded, fsdp)) return 1;
        RANK_CHECK(whole > sharded && !strcmp(dp, fsdp));
        if (train(precision, "auto", (whole + sharded) / 2, &planned, within)) return 1;
        RANK_CHECK(planned <= (whole + sharded) / 2 && !strcmp(dp, within));
    }
    return 0;
}

static void replicas_are_equal_on_unlike_processors(void **state)
{
    bool any = false;
    (void)state;
    if (run_ranks(1, lacks_products, NULL, LIMIT_S)) { /* oneDNN takes its limit before this process has used it */
        print_message("SKIP: built without oneDNN\n");
        skip();
    }
    for (slc_isa isa = SLC_ISA_BASELINE; isa < SLC_ISA_COUNT; isa++) {
        if (!slc_isa_available(isa)) continue;
        any |= isa > SLC_ISA_BASELINE;
        assert_int_equal(run_ranks(2, train_beside_another, &isa, LIMIT_S), 0);
    }
    if (!any) print_message("SKIP: this processor has the baseline's instructions only, so no two were unlike\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_has_room_for_the_largest),
        cmocka_unit_test(replicas_are_equal_on_unlike_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
