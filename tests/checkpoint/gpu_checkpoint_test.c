/* A checkpoint goes from four GPUs to two ranks of the host and on to three GPUs: whoever loads it holds the weights
 * and the optimizer's states that were saved, to the bit, whatever the strategies. */
#include "tests/support/base/folder.h"
#include "tests/support/device/gpu_there.h"
#include "tests/support/onebit_model.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/mman.h>

enum { WORLDS = 3, STEPS = 3, HANG_S = 100 };

/* A world of the chain. Each but the first loads what the one before it has saved. */
typedef struct {
    int ranks;
    const char *device, *strategy;
} world;

/* Shared with the ranks. */
typedef struct {
    const char *optimizer;
    world worlds[WORLDS];
    int at;                                 /* the world that runs */
    char folder[64];                        /* where checkpoints lie */
    uint64_t loaded[WORLDS], saved[WORLDS]; /* hashes of weights and states */
} chain;

static int run_world(int rank, int size, void *context)
{
    chain *c = context;
    const world *w = &c->worlds[c->at];
    const trial t = {.seed = 61, .optimizer = c->optimizer, .device = w->device, .strategy = w->strategy};
    model m;
    uint64_t hash;
    if (!strcmp(w->device, "cuda")) setenv("SLUICE_COMM_TRANSPORT", "nccl", 1);
    if (model_world(&t, rank, size, &m) || model_build(&m)) return 1;
    if (c->at) {
        RANK_CHECK(!sluice_checkpoint_load(m.rt, c->folder, NULL, NULL));
        if (model_replicas_equal(&m, &hash)) return 1;
        if (!rank) c->loaded[c->at] = hash;
    }
    for (uint32_t step = 0; step < STEPS; step++)
        if (model_step(&m, NULL)) return 1;
    if (model_replicas_equal(&m, &hash)) return 1;
    if (!rank) c->saved[c->at] = hash;
    RANK_CHECK(!sluice_checkpoint_save(m.rt, c->folder, NULL, 0));
    return model_leave(&m);
}

static bool lacks_gpu;

static void run_chain(const chain *of)
{
    if (lacks_gpu || !getenv("SLUICE_COMM_NCCL")) skip();
    chain *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(c != MAP_FAILED);
    *c = *of;
    snprintf(c->folder, sizeof c->folder, "/tmp/gpu_checkpoint_test.%d", (int)getpid());
    for (c->at = 0; c->at < WORLDS; c->at++)
        assert_int_equal(run_ranks(c->worlds[c->at].ranks, run_world, c, HANG_S), 0);
    for (int i = 1; i < WORLDS; i++) {
        assert_true(c->loaded[i] == c->saved[i - 1]);
        assert_true(c->saved[i] != c->saved[i - 1]);
    }
    remove_tree(c->folder);
    munmap(c, sizeof *c);
}

static void weights_and_states_are_those_that_were_saved(void **state)
{
    (void)state;
    const char *const optimizers[] = {"adamw", "lamb"};
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        run_chain(&(chain){.optimizer = optimizers[i],
                           .worlds = {{4, "cuda", "fsdp"}, {2, "cpu", "sdp"}, {3, "cuda", i ? "dp" : "oss"}}});
}

int main(void)
{
    lacks_gpu = !gpu_is_there(HANG_S);
    const struct CMUnitTest tests[] = {cmocka_unit_test(weights_and_states_are_those_that_were_saved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
