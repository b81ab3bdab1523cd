/* Trials drawn from a seed, and how a test runs them. */
#include "tests/support/engine_trial.h"

#include "tests/support/draw.h"
#include "tests/support/engine_steps.h"
#include "tests/support/ranks.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

trial random_trial(uint64_t seed)
{
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp", "random:1", "random:2", "random:3", "mixed"};
    static const sluice_recompute recomputes[] = {SLUICE_RECOMPUTE_AUTO, SLUICE_RECOMPUTE_NONE, SLUICE_RECOMPUTE_ALL};
    static const uint64_t blocks[] = {64, 1024, 4096, 1 << 20};
    uint64_t random = mix(seed), other = mix(seed + 77777);
    /* All layers are in bf16, or each is drawn, or all are in fp32. */
    uint64_t kind = draw(&other, 3), layers = kind == 0 ? UINT64_MAX : kind == 1 ? draw(&other, 1 << LAYERS_MAX) : 0;
    static const char *const updates[] = {NULL, "auto", "communication", "compute", "compute"};
    uint64_t lanes = mix(seed + 88888);
    bool lamb = draw(&other, 3) == 0;
    return (trial){.seed = seed,
                   .updates = updates[draw(&lanes, 5)],
                   .threads = (uint32_t)draw(&lanes, 4),
                   .lamb = lamb,
                   .bf16_layers = layers,
                   .bf16_wire = draw(&other, 4) > 0,
                   .mixed_update = draw(&other, 2),
                   .ranks = 1 + (int)draw(&random, 4),
                   .layers = 1 + (uint32_t)draw(&random, LAYERS_MAX),
                   .micro_batches = 1 + (uint32_t)draw(&random, 3),
                   .schedule = draw(&random, 3) ? "one_ahead" : "serial",
                   .strategy = strategies[draw(&random, 8)],
                   .recompute = recomputes[draw(&random, 3)],
                   .each = draw(&random, 2),
                   .direct = draw(&random, 2),
                   .clip = draw(&random, 3) || lamb ? 0 : 0.5,
                   .block = blocks[draw(&random, 4)],
                   .fewer = seed % 2,
                   .leaves_out = mix(seed + 99999) % 3 == 0};
}

trial look_up_trial(uint64_t seed)
{
    trial t = random_trial(seed);
    t.layers = 2 + t.layers % (LAYERS_MAX - 1);
    t.look_ups = true;
    t.split = seed % 4;
    return t;
}

void check_trial(trial t)
{
    int failed = run_ranks(t.ranks, engine_steps_run, &t, t.changing_steps ? 300 : 120);
    if (failed)
        print_error("seed %llu: %d ranks, %u layers%s, M %u%s, %s, %s, each %d, direct %d, clip %g, block %llu, %u "
                    "changing steps, bf16 layers %llx, wire %d, mixed update %d, lamb %d, look-ups %d, split %d, "
                    "updates %s, %u threads\n",
                    (unsigned long long)t.seed, t.ranks, t.layers, t.leaves_out ? " at most" : "", t.micro_batches,
                    t.fewer ? " at most" : "", t.random ? "random" : t.schedule, t.strategy, t.each, t.direct, t.clip,
                    (unsigned long long)t.block, t.changing_steps, (unsigned long long)t.bf16_layers, t.bf16_wire,
                    t.mixed_update, t.lamb, t.look_ups, t.split, t.updates ? t.updates : "one at a time", t.threads);
    assert_int_equal(failed, 0);
}

void read_extent(int argc, char **argv, extent *asked)
{
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    if (argc > 2) asked->many = (uint32_t)strtoul(argv[2], NULL, 10);
    if (argc > 3) asked->first_seed = (uint32_t)strtoul(argv[3], NULL, 10);
}

uint32_t check_random_plans(const extent *asked, uint32_t few, trial (*draw_trial)(uint64_t seed))
{
    uint32_t rounds = asked->many ? asked->many : few;
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        trial t = draw_trial(asked->first_seed + seed);
        t.random = true;
        t.delays = seed % 3 == 0;
        check_trial(t);
    }
    return rounds;
}
