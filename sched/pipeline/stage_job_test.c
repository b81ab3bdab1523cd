/* A stage's bytes must be those that its lives add up to, worked out by hand; a single stage's those of the job without
 * a pipeline; and stages of drawn jobs must together have all units, in orders that are legal. */
#include "sched/pipeline/stage_job.h"

#include "lib/base/status.h"
#include "lib/plan/profile_draft.h"
#include "lib/plan/stages.h"
#include "lib/plan/strategy_table.h"
#include "sched/layout/make_plan.h"
#include "sched/pipeline/stage_order.h"
#include "sched/study/made_profile.h"
#include "sched/study/random_profile.h"
#include "tests/support/draw.h"
#include "tests/support/scale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_PIECES = 16, MOST_STAGES = 4 };

static const slc_strategy all_dp[64]; /* SLC_DP is 0 */

/* Packs a stage and tells its bytes, and how many of them it has for good. */
static uint64_t bytes_and_resident(const slc_cut_job *cut, uint32_t stage, uint64_t *resident)
{
    slc_pipeline_program program;
    slc_stage_job job;
    uint64_t bytes;
    assert_int_equal(slc_pipeline_program_init(cut->schedule, &cut->shape, 1, &program), SLUICE_OK);
    assert_int_equal(slc_stage_job_init(cut, &program, stage, &job), SLUICE_OK);
    if (slc_stage_bytes(&job, &bytes)) fail_msg("stage %u: %s", stage, sluice_last_error());
    *resident = job.job.scratch_bytes + job.job.reserved_bytes + 8 * slc_agreement_words(&job.job);
    for (uint32_t u = 0; u < job.job.unit_count; u++)
        *resident += slc_resident_bytes(&job.job, &job.job.units[u], job.strategies[u]);
    slc_stage_job_fini(&job);
    slc_pipeline_program_fini(&program);
    return bytes;
}

/* The largest sum of what lives at a time, which the packing of the same lives in another order may miss by a little.
 */
static uint64_t live_bytes_of(const slc_cut_job *cut, uint32_t stage)
{
    slc_pipeline_program program;
    slc_stage_job job;
    slc_plan *plan;
    assert_int_equal(slc_pipeline_program_init(cut->schedule, &cut->shape, 1, &program), SLUICE_OK);
    assert_int_equal(slc_stage_job_init(cut, &program, stage, &job), SLUICE_OK);
    if (slc_stage_plan(&job, &plan)) fail_msg("stage %u: %s", stage, sluice_last_error());
    const uint64_t bytes = plan->lower_bound;
    assert_true(plan->arena_bytes >= bytes && plan->arena_bytes - bytes <= bytes / 10);
    slc_plan_destroy(plan);
    slc_stage_job_fini(&job);
    slc_pipeline_program_fini(&program);
    return bytes;
}

/* ---- By hand ---- */

/* Two layers; in units of 64 bytes: each keeps 1 and 10 for its backward, layer 1 reads 100 of layer 0's, and a
 * gradient of 1000 runs from backward to backward. */
static slc_profile *profile_by_hand(uint32_t micro_batches)
{
    slc_profile_draft draft;
    slc_profile *profile;
    static slc_use uses[2] = {{0, true}, {1, true}};
    assert_int_equal(slc_profile_draft_init(&draft, 2), SLUICE_OK);
    draft.job.world = 1;
    draft.job.micro_batches = micro_batches;
    draft.job.layers[0] = "a";
    draft.job.layers[1] = "b";
    draft.times.link.all_gather.bytes_per_s = draft.times.link.reduce_scatter.bytes_per_s = 1e9;
    slc_profile_draft_unit(&draft, "a", 16, 64, &uses[0], 1);
    slc_profile_draft_unit(&draft, "b", 16, 64, &uses[1], 1);
    const slc_activation_life lives[] = {
        {.name = "kept a", .bytes = 64, .first_slot = 0, .last_slot = 3},
        {.name = "kept b", .bytes = 640, .first_slot = 1, .last_slot = 2, .last_forward_slot = 1},
        {.name = "out", .bytes = 6400, .first_slot = 0, .last_slot = 1, .last_forward_slot = 1},
        {.name = "gradient", .bytes = 64000, .first_slot = 2, .last_slot = 3}};
    for (size_t a = 0; a < 4; a++) slc_profile_draft_activation(&draft, lives[a]);
    assert_int_equal(slc_profile_draft_finish(&draft, "by hand", "test", &profile), SLUICE_OK);
    slc_profile_draft_fini(&draft);
    return profile;
}

/* Counts by hand what the activations of a stage need, in units of 64 bytes. */
static uint64_t activations_by_hand(const char *schedule, uint32_t micro_batches, uint32_t stage)
{
    static const uint32_t first_layer[2] = {0, 1};
    slc_profile *profile = profile_by_hand(micro_batches);
    const slc_cut_job cut = {.profile = profile,
                             .schedule = slc_pipeline_schedule_find(schedule),
                             .shape = {2, 1, micro_batches},
                             .first_layer = first_layer,
                             .strategies = all_dp};
    uint64_t resident;
    assert_int_equal(slc_cut_forward_bytes(&profile->job, 0), 6400);
    assert_int_equal(slc_cut_backward_bytes(&profile->job, 0), 64000);
    const uint64_t bytes = bytes_and_resident(&cut, stage, &resident);
    slc_profile_destroy(profile);
    return (bytes - resident) / 64;
}

static void activations_live_as_long_as_counted_by_hand(void **state)
{
    (void)state;
    /* Stage 0 of 1f1b runs F0 F1 B0 F2 B1 B2. At B1 micro-batches 1 and 2 keep 1 each, the output of F2 leaves, and the
     * gradients of 1 and 2 are there. Stage 1 runs F B F B F B; while B0 runs, the input of 1 arrives. */
    assert_int_equal(activations_by_hand("1f1b", 3, 0), 2 + 100 + 2000);
    assert_int_equal(activations_by_hand("1f1b", 3, 1), 10 + 100 + 1000);
    /* F0 F1 F2 B0 B1 B2: at B0 all three keep 1, F2's output leaves, gradients 0 and 1 are there. At B1 there are two.
     */
    assert_int_equal(activations_by_hand("gpipe", 3, 0), 3 + 100 + 2000);
    /* At B1, gradient 0 leaves, gradient 1 is made. At F2 all three keep 10. */
    assert_int_equal(activations_by_hand("gpipe", 3, 1), 20 + 2000);
    assert_int_equal(activations_by_hand("1f1b", 1, 0), 1 + 100 + 1000);
}

/* ---- Against the job without a pipeline ---- */

static slc_profile *draw_profile(uint64_t seed, uint32_t world, uint32_t micro_batches, double split_share)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    options.layers = (slc_random_range){4, 10};
    options.world = world;
    options.micro_batches = micro_batches;
    options.can_recompute = seed % 2;
    options.tied_share = split_share > 0;
    options.split_share = split_share;
    options.unit_bytes = (slc_random_range){1e5, 1e6};
    assert_int_equal(slc_random_profile(&options, test_seed(seed), &profile), SLUICE_OK);
    return profile;
}

static void one_stage_needs_what_the_job_needs(void **state)
{
    (void)state;
    static const uint32_t first_layer[1] = {0};
    const uint32_t rounds = test_rounds(test_brief() ? 6 : 30);
    for (uint64_t round = 0; round < rounds; round++) {
        const slc_strategy asked = round % 3 == 0 ? SLC_DP : round % 3 == 1 ? SLC_OSS : SLC_SDP;
        slc_profile *profile = draw_profile(400 + round, 1 + (uint32_t)(round % 4), 1, 0);
        slc_strategy strategies[64];
        bool recompute[64] = {false};
        slc_plan *plan;
        for (uint32_t u = 0; u < profile->job.unit_count; u++) strategies[u] = asked;
        for (uint32_t l = 0; l < profile->job.layer_count; l++)
            recompute[l] = round % 4 == 1 && profile->job.can_recompute[l];
        const slc_scheduling in = {
            .job = &profile->job, .strategies = strategies, .recompute = recompute, .limit = UINT64_MAX};
        assert_int_equal(slc_plan_make(&in, &slc_scheduler_serial, &plan), SLUICE_OK);
        const slc_cut_job cut = {.profile = profile,
                                 .schedule = slc_pipeline_schedule_find("1f1b"),
                                 .shape = {1, 1, 1},
                                 .first_layer = first_layer,
                                 .strategies = strategies,
                                 .recompute = round % 4 == 1};
        assert_int_equal(live_bytes_of(&cut, 0), plan->lower_bound);
        slc_plan_destroy(plan);
        slc_profile_destroy(profile);
    }
}

/* ---- Drawn ---- */

static void draw_cuts(uint64_t *seed, uint32_t layers, uint32_t pieces, uint32_t *first_layer)
{
    first_layer[0] = 0;
    for (uint32_t p = 1; p < pieces; p++) {
        const uint32_t room = layers - (pieces - p) - first_layer[p - 1];
        first_layer[p] = first_layer[p - 1] + 1 + (uint32_t)draw(seed, room);
    }
}

/* Returns true if the validator must miss the end of this claim, which is an activation that several micro-batches or
 * messages need, or gathered values. */
static bool is_missed(const slc_stage_job *job, const slc_plan *plan, const slc_claim *claim)
{
    const slc_buffer *buffer = &plan->buffers[claim->buffer];
    if (buffer->kind == SLC_BUFFER_GATHERED) return true;
    if (buffer->kind != SLC_BUFFER_ACTIVATION) return false;
    const slc_activation_turn *turn = &job->turns[buffer->index];
    return turn->turns > 1 || turn->receive || turn->send;
}

static void expect_invalid(const slc_stage_job *job, const slc_plan *plan)
{
    assert_int_equal(slc_plan_validate(&job->job, plan), SLUICE_ERR_FORMAT);
}

/* Damages single items in turn: a slot in another place or of another task; a message lost, doubled, of another channel
 * or against its direction; a life cut short. */
static void expect_damage_is_found(const slc_stage_job *job, slc_plan *plan)
{
    slc_program *step = &plan->train;
    uint32_t slot = 0, message[2] = {SLC_NONE, SLC_NONE};
    for (uint32_t i = 0; i < step->item_count; i++) {
        if (step->items[i].kind == SLC_ITEM_SLOT) slot = i;
        if (slc_is_message(step->items[i].kind)) message[step->items[i].kind == SLC_ITEM_SEND] = i;
    }
    slc_item kept = step->items[slot];
    step->items[slot].slot--;
    expect_invalid(job, plan);
    step->items[slot] = kept;
    step->items[slot].index++;
    expect_invalid(job, plan);
    step->items[slot] = kept;
    for (int k = 0; k < 2 && message[k] != SLC_NONE; k++) {
        slc_item *item = &step->items[message[k]];
        kept = *item;
        item->micro_batch += item->micro_batch ? -1u : 1;
        expect_invalid(job, plan);
        *item = kept;
        item->index = job->job.channel_count;
        expect_invalid(job, plan);
        *item = kept;
        item->kind = item->kind == SLC_ITEM_SEND ? SLC_ITEM_RECEIVE : SLC_ITEM_SEND;
        expect_invalid(job, plan);
        *item = kept;
        item->unit = 0;
        expect_invalid(job, plan);
        *item = kept;
    }
    for (uint32_t c = 0, cut = 0; c < step->claim_count && cut < 8; c++) {
        slc_claim *claim = &step->claims[c];
        if (claim->from == claim->to || !is_missed(job, plan, claim)) continue;
        cut++;
        const uint32_t to = claim->to;
        claim->to = claim->from;
        expect_invalid(job, plan);
        claim->to = to;
    }
    assert_int_equal(slc_plan_validate(&job->job, plan), SLUICE_OK);
}

/* A gather may not be of another micro-batch, nor wait for less than the update before it. */
static void expect_damaged_gathers_are_found(const slc_stage_job *job, slc_plan *plan)
{
    slc_program *step = &plan->train;
    for (uint32_t i = 0, damaged = 0; i < step->item_count && damaged < 3; i++) {
        slc_item *item = &step->items[i];
        if (item->kind != SLC_ITEM_GATHER_WINDOW) continue;
        damaged++;
        const slc_item kept = *item;
        item->micro_batch += item->micro_batch ? -1u : 1;
        expect_invalid(job, plan);
        *item = kept;
        item->index++;
        expect_invalid(job, plan);
        *item = kept;
    }
}

/* An item that waits for a message may not forget it. */
static void expect_forgotten_waits_are_found(const slc_stage_job *job, slc_plan *plan)
{
    slc_program *step = &plan->train;
    for (uint32_t i = 0, forgotten = 0; i < step->item_count && forgotten < 3; i++)
        for (uint32_t a = 0; a < step->items[i].after_count; a++) {
            slc_item *item = &step->items[i];
            if (item->kind != SLC_ITEM_SLOT || step->items[item->after[a].item].kind != SLC_ITEM_RECEIVE) continue;
            const slc_after kept = item->after[a];
            item->after[a] = item->after[--item->after_count];
            expect_invalid(job, plan);
            item->after[item->after_count++] = item->after[a];
            item->after[a] = kept;
            forgotten++;
        }
    assert_int_equal(slc_plan_validate(&job->job, plan), SLUICE_OK);
}

typedef struct {
    slc_stage_job made[MOST_STAGES];
    const slc_job *jobs[MOST_STAGES];
    const slc_plan *plans[MOST_STAGES];
    slc_plan *owned[MOST_STAGES];
} all_stages;

static void make_stage(all_stages *all, const slc_cut_job *cut, const slc_pipeline_program *program, uint32_t s)
{
    assert_int_equal(slc_stage_job_init(cut, program, s, &all->made[s]), SLUICE_OK);
    if (slc_stage_plan(&all->made[s], &all->owned[s])) fail_msg("%s: %s", cut->schedule->name, sluice_last_error());
    all->jobs[s] = &all->made[s].job;
    all->plans[s] = all->owned[s];
}

static void forget_stages(all_stages *all, uint32_t stages)
{
    for (uint32_t s = 0; s < stages; s++) {
        slc_plan_destroy(all->owned[s]);
        slc_stage_job_fini(&all->made[s]);
    }
}

/* The simulator must be told of as many gathers as the plans have: those of each micro-batch, and one of each unit that
 * is held. */
static void expect_gathers(const slc_cut_job *cut, uint32_t gathers)
{
    slc_pipeline_costs costs;
    uint32_t held = 0;
    assert_int_equal(slc_pipeline_costs_init(cut, &costs), SLUICE_OK);
    for (uint32_t u = 0; u < cut->profile->job.unit_count; u++)
        held += !slc_looks_up(&cut->profile->job.units[u]) && slc_cut_holds(cut, u);
    assert_int_equal(gathers, costs.times.gather_count * cut->shape.micro_batches + held);
    slc_pipeline_costs_fini(&costs);
}

static void expect_stages(const slc_cut_job *cut)
{
    uint64_t elements = 0, expected = 0;
    uint32_t gathers = 0, layers = 0, stages = cut->shape.stages;
    slc_pipeline_program program;
    all_stages all;
    assert_int_equal(slc_pipeline_program_init(cut->schedule, &cut->shape, 1, &program), SLUICE_OK);
    for (uint32_t s = 0; s < stages; s++) {
        uint64_t bytes, resident = 0;
        make_stage(&all, cut, &program, s);
        slc_stage_job *job = &all.made[s];
        assert_int_equal(job->slot_count, 2 * job->job.layer_count * cut->shape.micro_batches);
        layers += job->job.layer_count - cut->schedule->splits;
        for (uint32_t u = 0; u < job->job.unit_count; u++) {
            elements += job->job.units[u].elements;
            resident += slc_resident_bytes(&job->job, &job->job.units[u], job->strategies[u]);
        }
        assert_int_equal(slc_stage_bytes(job, &bytes), SLUICE_OK);
        assert_true(bytes == all.plans[s]->arena_bytes + job->job.reserved_bytes);
        assert_true(bytes >= resident + job->job.scratch_bytes + cut->profile->job.reserved_bytes);
        expect_damage_is_found(job, all.owned[s]);
        expect_forgotten_waits_are_found(job, all.owned[s]);
        expect_damaged_gathers_are_found(job, all.owned[s]);
        for (uint32_t i = 0; i < all.plans[s]->train.item_count; i++)
            gathers += all.plans[s]->train.items[i].kind == SLC_ITEM_GATHER_WINDOW;
    }
    expect_gathers(cut, gathers);
    if (slc_stages_validate(all.jobs, all.plans, stages)) fail_msg("%s: %s", cut->schedule->name, sluice_last_error());
    slc_stage_channel *channel = &all.made[stages - 1].channels[0];
    channel->bytes++;
    assert_int_equal(slc_stages_validate(all.jobs, all.plans, stages), SLUICE_ERR_FORMAT);
    channel->bytes--;
    channel->number += 100;
    assert_int_equal(slc_stages_validate(all.jobs, all.plans, stages), SLUICE_ERR_FORMAT);
    forget_stages(&all, stages);
    slc_pipeline_program_fini(&program);
    for (uint32_t u = 0; u < cut->profile->job.unit_count; u++)
        if (!slc_looks_up(&cut->profile->job.units[u])) expected += cut->profile->job.units[u].elements;
    assert_true(elements == expected);
    assert_int_equal(layers, cut->profile->job.layer_count);
}

/* A stage that runs one schedule and a stage that runs another are valid by themselves, and wait for each other. */
static void stages_of_different_schedules_are_refused(void **state)
{
    (void)state;
    static const uint32_t first_layer[2] = {0, 2};
    slc_profile *profile = draw_profile(9, 1, 4, 0);
    all_stages all;
    slc_pipeline_program programs[2];
    for (uint32_t s = 0; s < 2; s++) {
        const slc_cut_job cut = {.profile = profile,
                                 .schedule = slc_pipeline_schedule_find(s ? "gpipe" : "1f1b"),
                                 .shape = {2, 1, 4},
                                 .first_layer = first_layer,
                                 .strategies = all_dp};
        assert_int_equal(slc_pipeline_program_init(cut.schedule, &cut.shape, 1, &programs[s]), SLUICE_OK);
        make_stage(&all, &cut, &programs[s], s);
    }
    assert_int_equal(slc_stages_validate(all.jobs, all.plans, 2), SLUICE_ERR_FORMAT);
    assert_non_null(strstr(sluice_last_error(), "they wait for each other: stage 0 before slot"));
    forget_stages(&all, 2);
    for (uint32_t s = 0; s < 2; s++) slc_pipeline_program_fini(&programs[s]);
    slc_profile_destroy(profile);
}

static void stages_of_drawn_jobs_have_everything_once(void **state)
{
    (void)state;
    const uint32_t rounds = test_rounds(test_brief() ? 15 : 120);
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t seed = 2600 + round;
        uint32_t first_layer[MOST_PIECES];
        const slc_pipeline_schedule *schedule = slc_pipeline_schedule_at(round % 6);
        slc_pipeline_shape shape = {2 + (uint32_t)draw(&seed, 3), 1, 0};
        if (schedule->chunked) shape = (slc_pipeline_shape){2, 1 + (uint32_t)draw(&seed, 2), 0};
        shape.micro_batches = shape.stages * (1 + (uint32_t)draw(&seed, 3));
        slc_profile *profile = draw_profile(round, 1 + (uint32_t)draw(&seed, 3), shape.micro_batches, round % 2);
        draw_cuts(&seed, profile->job.layer_count, slc_pipeline_pieces(&shape), first_layer);
        slc_strategy strategies[64];
        bool held[64];
        assert_int_equal(slc_profile_set_compressed(profile, draw(&seed, 2)), SLUICE_OK);
        for (uint32_t u = 0; u < profile->job.unit_count; u++) {
            strategies[u] = (slc_strategy)draw(&seed, schedule->flushes ? SLC_STRATEGIES : SLC_FSDP);
            held[u] = draw(&seed, 2);
        }
        const slc_cut_job cut = {.profile = profile,
                                 .schedule = schedule,
                                 .shape = shape,
                                 .first_layer = first_layer,
                                 .strategies = strategies,
                                 .held = held,
                                 .recompute = !schedule->splits && draw(&seed, 2)};
        expect_stages(&cut);
        slc_profile_destroy(profile);
    }
}

/* A stage that has received an activation keeps it for its readers alone, if the profile knows them; if it
 * does not, until its own backward. In units of 64 bytes: 100 of layer 0's are read by the backward of layer 0 last. */
static void readers_decide_how_long_a_stage_keeps_what_it_receives(void **state)
{
    (void)state;
    static const uint32_t first_layer[2] = {0, 1};
    static const slc_reader forward[] = {{1, true, false}}, backward[] = {{1, true, true}};
    uint64_t bytes[3], resident;
    for (int k = 0; k < 3; k++) {
        slc_profile *profile = profile_by_hand(3);
        slc_activation_readers readers[4] = {{0}};
        const slc_activation_readers *const kept = profile->job.readers;
        profile->job.activations[2].last_slot = 3;
        if (k) readers[2] = (slc_activation_readers){k == 1 ? forward : backward, 1};
        profile->job.readers = readers;
        const slc_cut_job cut = {.profile = profile,
                                 .schedule = slc_pipeline_schedule_find("gpipe"),
                                 .shape = {2, 1, 3},
                                 .first_layer = first_layer,
                                 .strategies = all_dp};
        bytes[k] = bytes_and_resident(&cut, 1, &resident) - resident;
        profile->job.readers = kept;
        slc_profile_destroy(profile);
    }
    /* At the second backward of gpipe two gradients are there, and two micro-batches keep 10 each, and 100 that came.
     */
    assert_int_equal(bytes[0], bytes[2]);
    assert_int_equal(bytes[0] / 64, 20 + 200 + 2000);
    assert_int_equal(bytes[1] / 64, 20 + 2000);
}

/* 1f1b holds as much however many micro-batches there are, once messages go both ways at a time; gpipe holds them all.
 * The sums of a table's rows are not counted here: they are of as many rows as all micro-batches may have.
 */
static void only_gpipe_grows_with_micro_batches(void **state)
{
    (void)state;
    static const uint32_t first_layer[4] = {0, 4, 8, 12};
    slc_made_options options = {.model = "gpt2-small", .batch = 4, .context = 64, .tied = SLUICE_TIED_SPLIT};
    assert_int_equal(slc_made_cluster("2xcpu-1gbit", &options), SLUICE_OK);
    for (uint32_t s = 0; s < 4; s++) {
        uint64_t bytes[2][2], resident;
        for (int many = 0; many < 2; many++)
            for (int gpipe = 0; gpipe < 2; gpipe++) {
                slc_profile *profile;
                options.micro_batches = many ? 32 : 8;
                assert_int_equal(slc_made_profile(&options, &profile), SLUICE_OK);
                assert_int_equal(slc_profile_set_world(profile, 1), SLUICE_OK);
                const slc_cut_job cut = {.profile = profile,
                                         .schedule = slc_pipeline_schedule_find(gpipe ? "gpipe" : "1f1b"),
                                         .shape = {4, 1, options.micro_batches},
                                         .first_layer = first_layer,
                                         .strategies = all_dp};
                bytes[gpipe][many] = bytes_and_resident(&cut, s, &resident) - resident;
                slc_profile_destroy(profile);
            }
        assert_int_equal(bytes[0][0], bytes[0][1]);
        assert_true(bytes[1][1] > bytes[1][0]);
        assert_true(bytes[0][0] <= bytes[1][0]);
    }
}

/* Older values are counted as the table says: pipedream keeps P - s versions, 2bw two. */
static void older_values_are_part_of_the_bytes(void **state)
{
    (void)state;
    static const uint32_t first_layer[3] = {0, 1, 2};
    for (uint32_t s = 0; s < 3; s++) {
        slc_profile *profile = draw_profile(77, 1, 6, 0);
        slc_cut_job cut = {.profile = profile,
                           .schedule = slc_pipeline_schedule_find("1f1b"),
                           .shape = {3, 1, 6},
                           .first_layer = first_layer,
                           .strategies = all_dp};
        uint64_t values = 0;
        for (uint32_t u = 0; u < profile->job.unit_count; u++) {
            const slc_unit *unit = &profile->job.units[u];
            const uint32_t layer = unit->uses[0].layer;
            if (layer >= first_layer[s] && layer < slc_piece_end(&cut, s))
                values += unit->elements * sluice_dtype_bytes(unit->dtype);
        }
        const uint64_t one = live_bytes_of(&cut, s);
        cut.schedule = slc_pipeline_schedule_find("2bw");
        assert_int_equal(live_bytes_of(&cut, s), one + values);
        cut.schedule = slc_pipeline_schedule_find("pipedream");
        assert_int_equal(live_bytes_of(&cut, s), one + (2 - s) * values);
        slc_profile_destroy(profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_live_as_long_as_counted_by_hand),
        cmocka_unit_test(one_stage_needs_what_the_job_needs),
        cmocka_unit_test(stages_of_drawn_jobs_have_everything_once),
        cmocka_unit_test(stages_of_different_schedules_are_refused),
        cmocka_unit_test(readers_decide_how_long_a_stage_keeps_what_it_receives),
        cmocka_unit_test(only_gpipe_grows_with_micro_batches),
        cmocka_unit_test(older_values_are_part_of_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
