/* A profile written as text must be read back exactly, also after changing worlds; a wrong text is refused with its
 * path. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/plan/profile.h"
#include "tests/support/plan/profile_equal.h"
#include "tests/support/plan/random_job.h"
#include "lib/plan/exchange_sizes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { JOBS = 150 };

/* A profile as a person would write it, as short as it can be. */
static const char minimal[] =
    "{\"version\": 1, \"world\": 4,\n"
    " \"layers\": [{\"name\": \"embed\", \"forward_s\": 0.1, \"backward_s\": 0.2},\n"
    "            {\"name\": \"h.0\", \"forward_s\": 0.3, \"backward_s\": 0.6}],\n"
    " \"units\": [{\"name\": \"embed\", \"parameters\": 1000},\n"
    "           {\"name\": \"wte\", \"parameters\": 1.5e6, \"uses\": [\"embed\", \"h.0\"]}],\n"
    " \"activations\": [{\"name\": \"h.0\", \"bytes\": 4096}],\n"
    " \"link\": {\"bytes_per_s\": 1e9}}\n";

/* A tied parameter that is split by its uses: 7 rows of 50 elements are 350, padded to 384. */
static const char tied[] =
    "{\"version\": 1, \"world\": 4,\n"
    " \"layers\": [{\"name\": \"embed\", \"forward_s\": 0.1, \"backward_s\": 0.2},\n"
    "            {\"name\": \"h.0\", \"forward_s\": 0.3, \"backward_s\": 0.6},\n"
    "            {\"name\": \"head\", \"forward_s\": 0.1, \"backward_s\": 0.1}],\n"
    " \"units\": [{\"name\": \"wte\", \"parameters\": 1000, \"dtype\": \"bf16\", \"uses\": [\"h.0\", \"head\"]},\n"
    "           {\"name\": \"rows of wte\", \"rows\": {\"of\": \"wte\", \"row_elements\": 50, \"row_count\": 20, "
    "\"most_rows\": 7}, \"uses\": [\"embed\"]},\n"
    "           {\"name\": \"h.0\", \"parameters\": 640}],\n"
    " \"link\": {\"bytes_per_s\": 1e9}}\n";

/* ---- Random profiles ---- */

static double draw_real(test_dice *dice)
{
    return ldexp((double)test_below(dice, UINT32_MAX) + test_below(dice, UINT32_MAX) * 0x1p-32,
                 -(int)test_below(dice, 60));
}

static slc_link_line draw_line(test_dice *dice)
{
    return (slc_link_line){draw_real(dice) * 0x1p-32, 1 + draw_real(dice)};
}

static void draw_times(const slc_job *job, test_dice *dice, slc_times *times)
{
    *times = (slc_times){.slot_s = calloc(slc_job_slots(job), sizeof(double)),
                         .recompute_s = calloc(job->layer_count, sizeof(double)),
                         .update_s_per_element = draw_real(dice) * 0x1p-40,
                         .link = {.reduce_scatter = draw_line(dice),
                                  .all_gather = draw_line(dice),
                                  .kappa = draw_real(dice) * 0x1p-33,
                                  .sigma = 1 + draw_real(dice) * 0x1p-32,
                                  .update_kappa = draw_real(dice) * 0x1p-33,
                                  .thread_moves = test_below(dice, 2),
                                  .block_bytes = test_below(dice, 1u << 30),
                                  .operation_s = draw_real(dice) * 0x1p-40}};
    times->compress_s_per_element = draw_real(dice) * 0x1p-40;
    times->apply_s_per_element = draw_real(dice) * 0x1p-40;
    times->update_compute_s_per_element = test_beside(dice, 100, 2) ? 0x1p-33 * (double)test_beside(dice, 101, 99) : 0;
    times->average_s_per_element = test_below(dice, 2) ? draw_real(dice) * 0x1p-40 : 0;
    times->outside_s = test_beside(dice, 102, 2) ? 0x1p-20 * (double)test_beside(dice, 103, 99) : 0;
    times->late_s = test_beside(dice, 104, 2) ? 0x1p-20 * (double)test_beside(dice, 105, 99) : 0;
    if (test_beside(dice, 106, 2))
        times->link.channel = (slc_link_line){0x1p-20, 1 + (double)test_beside(dice, 107, 99)};
    if (test_beside(dice, 108, 2)) times->weight_s = calloc(job->layer_count, sizeof(double));
    if (test_beside(dice, 109, 2)) times->keeps = calloc(job->layer_count, sizeof(double));
    for (uint32_t l = 0; times->keeps && l < job->layer_count; l++)
        times->keeps[l] = l ? 1 - 0x1p-7 * (double)test_beside(dice, 190 + l, 99) : 0.75;
    if (times->link.kappa > times->link.sigma) times->link.kappa = times->link.sigma;
    for (uint32_t s = 0; s < slc_job_slots(job); s++) times->slot_s[s] = draw_real(dice) * 0x1p-32;
    for (uint32_t l = 0; l < job->layer_count; l++) times->recompute_s[l] = draw_real(dice) * 0x1p-32;
    for (uint32_t l = 0; times->weight_s && l < job->layer_count; l++)
        times->weight_s[l] =
            l && test_beside(dice, 110 + l, 3) ? -1 : times->slot_s[slc_backward_slot(job, l)] * (1.0 / (1 + l));
}

/* Some activations know which layers after their own read them: in a forward, in a backward, or in both. */
static void draw_readers(slc_job *job, test_dice *dice, slc_reader at[][TEST_LAYERS], slc_activation_readers *readers)
{
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        readers[a] = (slc_activation_readers){0};
        if (life->first_slot >= job->layer_count || test_beside(dice, 130 + a, 2)) continue;
        readers[a].at = at[a];
        for (uint32_t l = life->first_slot + 1; l < job->layer_count; l++) {
            const bool forward = l <= life->last_slot && test_beside(dice, 150 + l, 2);
            const bool backward = slc_backward_slot(job, l) <= life->last_slot;
            if (forward || backward) at[a][readers[a].count++] = (slc_reader){l, forward, backward};
        }
    }
}

static bool exchanges(const slc_unit *unit)
{
    return unit->trainable && unit->role == SLC_UNIT_WHOLE;
}

/* Gives a unit up to five tensors, some of them empty, that fill all of it or a part. */
static void draw_tensors(slc_profile *profile, test_dice *dice, uint32_t u)
{
    uint64_t elements[5], left = profile->parameters[u];
    uint32_t count = 1 + test_below(dice, 5);
    for (uint32_t t = 0; t < count; t++) {
        elements[t] = test_below(dice, (uint32_t)left + 1);
        left -= elements[t];
    }
    assert_int_equal(slc_profile_set_tensors(profile, u, elements, count), 0);
    elements[0] += left + 1;
    assert_int_equal(slc_profile_set_tensors(profile, u, elements, count), SLUICE_ERR_ARGUMENT);
    elements[0] -= left + 1;
    slc_exchange_sizes none = {0},
                       sizes = slc_exchange_of(elements, count, profile->job.world, profile->scratch_in_flight > 0);
    assert_memory_equal(&profile->job.units[u].exchange, exchanges(&profile->job.units[u]) ? &sizes : &none,
                        sizeof sizes);
}

/* Lengths without padding, but long enough for the rows that a look-up may touch. */
static void draw_parameters(const slc_job *job, test_dice *dice, uint64_t *parameters)
{
    for (uint32_t u = 0; u < job->unit_count; u++)
        parameters[u] = job->units[u].elements - test_below(dice, 16 * job->world);
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit *rows = &job->units[u];
        uint64_t least = rows->role == SLC_UNIT_ROWS ? rows->row_count * rows->row_elements : 0;
        if (least > parameters[rows->partner]) parameters[rows->partner] = least;
    }
}

/* Adds to the random job what it leaves out: recomputation, odd lengths, scratch as messages need it. */
static slc_profile *draw_profile(uint64_t seed)
{
    static test_job t;
    test_dice dice = {.seed = seed};
    do test_job_draw(&t, &dice);
    while (!t.job.unit_count);
    bool can[TEST_LAYERS];
    uint64_t parameters[TEST_UNITS];
    slc_job *job = &t.job;
    job->can_recompute = can;
    job->scratch_bytes = (uint64_t)test_below(&dice, 9000) * (job->world - 1);
    for (uint32_t l = 0; l < job->layer_count; l++) can[l] = test_below(&dice, 2);
    draw_parameters(job, &dice, parameters);
    for (uint32_t u = 0; u < job->unit_count; u++) {
        slc_unit *unit = &job->units[u];
        unit->fused = unit->trainable && unit->use_count > 1 && unit->role == SLC_UNIT_WHOLE;
        for (uint32_t n = 0; n < unit->use_count; n++) unit->uses[n].backward_value |= can[unit->uses[n].layer];
        for (uint32_t n = 1; n < unit->use_count; n++)
            unit->fused &= unit->uses[n].layer == unit->uses[n - 1].layer + 1;
    }
    for (uint32_t a = 0; a < job->activation_count; a++) {
        slc_activation_life *life = &job->activations[a];
        if (life->first_slot >= job->layer_count || test_below(&dice, 2)) continue;
        life->recomputable = life->last_slot == slc_backward_slot(job, life->first_slot);
    }
    slc_reader at[TEST_ACTIVATIONS][TEST_LAYERS];
    slc_activation_readers readers[TEST_ACTIVATIONS];
    draw_readers(job, &dice, at, readers);
    if (test_beside(&dice, 109, 2)) job->readers = readers;
    slc_times times;
    draw_times(job, &dice, &times);
    slc_profile *profile;
    assert_int_equal(slc_profile_create(job, parameters, &times, "random", "a seed: \"\\ \xc3\xa9", &profile), 0);
    slc_times_fini(&times);
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (test_below(&dice, 2) && job->units[u].role != SLC_UNIT_ROWS) draw_tensors(profile, &dice, u);
    return profile;
}

static slc_profile *read_back(const slc_profile *profile)
{
    char *text;
    slc_profile *back;
    assert_int_equal(slc_profile_to_json(profile, &text), 0);
    if (slc_profile_from_json(text, strlen(text), &back)) fail_msg("%s in\n%s", sluice_last_error(), text);
    free(text);
    return back;
}

static void text_and_back_is_exact(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        slc_profile *profile = draw_profile(seed), *back = read_back(profile);
        for (uint32_t a = 0; a < profile->job.activation_count; a++) /* the text has only one way to say "not used" */
            if (profile->job.activations[a].last_forward_slot < profile->job.activations[a].first_slot)
                profile->job.activations[a].last_forward_slot = 0;
        if (!test_profiles_equal(profile, back)) fail_msg("seed %llu", (unsigned long long)seed);
        slc_profile_destroy(back);
        slc_profile_destroy(profile);
    }
}

static void a_copy_is_its_own(void **state)
{
    (void)state;
    slc_profile *profile = draw_profile(3), *copy;
    assert_int_equal(
        slc_profile_create(&profile->job, profile->parameters, &profile->times, profile->model, profile->source, &copy),
        0);
    for (uint32_t u = 0; u < copy->job.unit_count; u++)
        assert_int_equal(slc_profile_set_tensors(copy, u, profile->tensors[u].elements, profile->tensors[u].count), 0);
    assert_true(test_jobs_equal(&profile->job, &copy->job));
    assert_true(test_times_equal(&profile->job, &profile->times, &copy->times));
    slc_profile_destroy(profile); /* the address sanitizer sees anything that the copy still shares */
    slc_profile_destroy(read_back(copy));
    slc_profile_destroy(copy);
    slc_profile_destroy(NULL);
}

static void another_world_and_back_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        slc_profile *profile = draw_profile(seed), *moved = read_back(profile), *again = read_back(profile);
        uint32_t worlds[] = {1, 3, 64, 1000};
        for (int w = 0; w < 4 && profile->job.world > 1; w++) {
            assert_int_equal(slc_profile_set_world(moved, worlds[w]), 0);
            assert_int_equal(moved->job.compressed, profile->compressed && worlds[w] > 1);
            for (uint32_t u = 0; u < moved->job.unit_count; u++) {
                const slc_unit *unit = &moved->job.units[u];
                uint64_t grain = 16 * (uint64_t)worlds[w];
                assert_true(unit->elements % grain == 0 && unit->block_elements % grain == 0);
                assert_true(unit->elements >= profile->parameters[u]);
                assert_true(unit->elements - profile->parameters[u] < grain);
                slc_exchange_sizes none = {0},
                                   sizes = slc_exchange_of(profile->tensors[u].elements, profile->tensors[u].count,
                                                           worlds[w], profile->scratch_in_flight > 0);
                assert_memory_equal(&unit->exchange, exchanges(unit) ? &sizes : &none, sizeof sizes);
                assert_true(unit->block_elements == (unit->role == SLC_UNIT_ROWS ? unit->elements : grain) ||
                            4 * unit->block_elements <= profile->block_bytes[u]);
            }
        }
        assert_int_equal(slc_profile_set_world(moved, profile->job.world), 0);
        assert_true(test_profiles_equal(moved, again));
        assert_int_equal(slc_profile_set_world(moved, 0), SLUICE_ERR_ARGUMENT);
        assert_int_equal(slc_profile_set_world(moved, SLC_PROFILE_WORLD_MAX + 1), SLUICE_ERR_ARGUMENT);
        assert_true(test_profiles_equal(moved, again));
        slc_profile_destroy(again);
        slc_profile_destroy(moved);
        slc_profile_destroy(profile);
    }
}

static void lengths_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    slc_profile *profile = draw_profile(5), *other = NULL;
    uint64_t one = profile->parameters[0];
    profile->parameters[0] = profile->job.units[0].elements + 1;
    assert_int_equal(slc_profile_create(&profile->job, profile->parameters, &profile->times, "", "", &other),
                     SLUICE_ERR_ARGUMENT);
    profile->parameters[0] = one;
    profile->job.world = 3;
    profile->job.scratch_bytes = 4097;
    assert_int_equal(slc_profile_create(&profile->job, NULL, &profile->times, "", "", &other), SLUICE_ERR_ARGUMENT);
    assert_null(other);
    slc_profile_destroy(profile);
}

/* ---- What a person writes ---- */

static void what_is_left_out_has_a_meaning(void **state)
{
    (void)state;
    slc_profile *profile;
    if (slc_profile_from_json(minimal, sizeof minimal - 1, &profile)) fail_msg("%s", sluice_last_error());
    const slc_job *job = &profile->job;
    assert_int_equal(job->world, 4);
    assert_int_equal(job->micro_batches, 1);
    assert_false(job->each || job->barrier || job->can_recompute[0]);
    assert_int_equal(job->states, 2);
    assert_false(job->compressed || profile->compressed || job->refreshes || job->norms_barrier || job->local_arrays);
    slc_times estimate = {0};
    slc_times_estimate_exchange(&estimate);
    assert_true(profile->times.compress_s_per_element == estimate.compress_s_per_element);
    assert_true(profile->times.average_s_per_element == estimate.average_s_per_element && estimate.apply_s_per_element);
    assert_int_equal(profile->tensors[0].count, 1);
    assert_int_equal(job->units[0].exchange.wire, 4 * (4 + 1024 / 4 / 8)); /* 1024 is a multiple of 4 ranks * 8 */
    assert_int_equal(job->units[0].elements, 1024);
    assert_int_equal(job->units[0].block_elements, 1 << 20);
    assert_int_equal(job->units[0].uses[0].layer, 0);
    assert_true(job->units[0].trainable && job->units[1].uses[1].backward_value);
    assert_true(job->wire == SLUICE_FP32 && job->units[0].dtype == SLUICE_FP32);
    assert_int_equal(profile->parameters[1], 1500000);
    assert_int_equal(job->units[1].use_count, 2);
    assert_int_equal(job->activations[0].first_slot, 1);
    assert_int_equal(job->activations[0].last_slot, 2);
    assert_int_equal(job->activations[0].last_forward_slot, 1);
    assert_true(profile->times.slot_s[2] == 0.6 && profile->times.slot_s[3] == 0.2);
    assert_true(profile->times.recompute_s[1] == 0.3);
    assert_true(profile->times.link.all_gather.bytes_per_s == 1e9 && profile->times.link.sigma == 1);
    assert_true(profile->times.link.kappa == 0 && profile->times.link.reduce_scatter.latency_s == 0);
    slc_profile_destroy(profile);
}

static void rows_of_a_look_up_are_a_table_of_one_block(void **state)
{
    (void)state;
    slc_profile *profile;
    if (slc_profile_from_json(tied, sizeof tied - 1, &profile)) fail_msg("%s", sluice_last_error());
    static const uint32_t worlds[] = {4, 1, 3};
    static const uint64_t table[] = {384, 352, 384};
    for (int w = 0; w < 3; w++) {
        assert_int_equal(slc_profile_set_world(profile, worlds[w]), 0);
        const slc_unit *wte = &profile->job.units[0], *rows = &profile->job.units[1], *other = &profile->job.units[2];
        assert_true(wte->role == SLC_UNIT_SPLIT && wte->partner == 1 && other->role == SLC_UNIT_WHOLE);
        assert_true(rows->role == SLC_UNIT_ROWS && rows->partner == 0 && rows->dtype == SLUICE_BF16 && rows->trainable);
        assert_true(rows->row_elements == 50 && rows->row_count == 20 && rows->most_rows == 7);
        assert_true(rows->elements == table[w] && rows->block_elements == table[w]);
        assert_true(rows->use_count == 1 && rows->uses[0].layer == 0 && rows->uses[0].backward_value);
        assert_int_equal(profile->parameters[1], 350);
        slc_exchange_sizes none = {0};
        assert_memory_equal(&wte->exchange, &none, sizeof none);
        assert_memory_equal(&rows->exchange, &none, sizeof none);
        assert_true(worlds[w] == 1 || other->exchange.wire);
        slc_profile *back = read_back(profile);
        assert_true(test_profiles_equal(profile, back));
        slc_profile_destroy(back);
    }
    slc_profile_destroy(profile);
}

/* The example on the page is between the fence lines below its heading. */
static void the_documented_example_is_read(void **state)
{
    (void)state;
    const char *path = SLUICE_SOURCE_DIR "/docs/formats.md";
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    static char page[1 << 17];
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    char *heading = strstr(page, "\n## Profiles\n"), *fence = heading ? strstr(heading, "```json\n") : NULL;
    char *end = fence ? strstr(fence + 8, "\n```") : NULL;
    assert_non_null(end);
    slc_profile *profile;
    if (slc_profile_from_json(fence + 8, (size_t)(end - fence - 8), &profile)) fail_msg("%s", sluice_last_error());
    assert_int_equal(profile->job.layer_count, 3);
    slc_profile *back = read_back(profile);
    assert_true(test_profiles_equal(profile, back));
    slc_profile_destroy(back);
    slc_profile_destroy(profile);
}

/* ---- What is refused ---- */

/* Copies `profile` with the first `from` replaced. */
static void changed(const char *profile, const char *from, const char *to, char *out, size_t room)
{
    const char *at = strstr(profile, from);
    if (!at) fail_msg("the profile holds no %s", from);
    snprintf(out, room, "%.*s%s%s", (int)(at - profile), profile, to, at + strlen(from));
}

typedef struct {
    const char *from, *to, *error;
} change;

static const change wrong[] = {
    {"0.3", "-1", "$.layers[1].forward_s: -1 is no time; give seconds from 0 to 1e9"},
    {"0.3", "\"soon\"", "$.layers[1].forward_s: \"soon\" is no time"},
    {"0.3", "1e300", "$.layers[1].forward_s: 1e300 is no time"},
    {"\"forward_s\": 0.3, ", "", "$.layers[1].forward_s: is missing"},
    {"backward_s", "backwards", "$.layers[0]: \"backwards\" is unknown; there are name, forward_s, backward_s"},
    {"\"h.0\"", "\"embed\"", "$.layers[1].name: \"embed\" is there already"},
    {"\"wte\"", "\"embed\"", "$.units[1].name: \"embed\" is there already"},
    {"\"h.0\"", "\"\"", "$.layers[1].name: \"\" is no name"},
    {"\"h.0\"", "\"a\\nb\"", "$.layers[1].name: \"a\\nb\" is no name"},
    {"[\"embed\", \"h.0\"]", "[\"embed\", \"h.7\"]", "$.units[1].uses[1]: there is no layer \"h.7\""},
    {"[\"embed\", \"h.0\"]", "[\"h.0\", \"embed\"]", "$.units[1].uses[1]: layer \"embed\" comes at or before \"h.0\""},
    {"[\"embed\", \"h.0\"]", "[\"h.0\", \"h.0\"]", "$.units[1].uses[1]: layer \"h.0\" comes at or before \"h.0\""},
    {"0.6}],\n \"units\": [{\"name\": \"embed\", \"parameters\": 1000},\n           {\"name\": \"wte\", "
     "\"parameters\": "
     "1.5e6, \"uses\": [\"embed\", \"h.0\"]",
     "0.6, \"can_recompute\": true}],\n \"units\": [{\"name\": \"embed\", \"parameters\": 1000},\n {\"name\": \"wte\", "
     "\"parameters\": 1.5e6, \"uses\": [\"embed\", {\"layer\": \"h.0\", \"backward_value\": false}]",
     "$.units[1].uses[1]: \"backward_value\" is false, and layer \"h.0\" can recompute"},
    {"[\"embed\", \"h.0\"]", "[]", "$.units[1].uses: is empty"},
    {"[\"embed\", \"h.0\"]", "[\"embed\"], \"fused\": true", "$.units[1].fused: true, but it is"},
    {"[\"embed\", \"h.0\"]", "[\"embed\", \"h.0\"], \"fused\": true, \"trainable\": false",
     "$.units[1].fused: true, but it is"},
    {", \"uses\": [\"embed\", \"h.0\"]", "", "$.units[1].uses: is missing and there is no layer \"wte\""},
    {"[\"embed\", \"h.0\"]", "[{\"layer\": \"h.0\", \"backward\": true}]",
     "$.units[1].uses[0]: \"backward\" is unknown"},
    {"\"parameters\": 1000", "\"parameters\": 1000, \"tensors\": [600, 401]",
     "$.units[0].tensors[1]: the tensors are longer than the unit's 1000 parameters"},
    {"\"parameters\": 1000", "\"parameters\": 1000, \"tensors\": []", "$.units[0].tensors: 0 tensors"},
    {"\"parameters\": 1000", "\"parameters\": 1000, \"tensors\": [-1]", "$.units[0].tensors[0]: -1"},
    {"\"world\": 4", "\"world\": 4, \"compressed\": {\"refresh\": true}",
     "$.compressed: \"refresh\" is unknown; there are refreshes, norms_barrier, local_arrays"},
    {"\"world\": 4", "\"world\": 4, \"compressed\": {\"local_arrays\": 17}", "$.compressed.local_arrays: 17 arrays"},
    {"\"world\": 4", "\"world\": 4, \"accumulate\": \"each\", \"compressed\": {}",
     "$.compressed: gradients are reduced in each micro-batch"},
    {"\"world\": 4", "\"world\": 4, \"apply_s_per_element\": -1", "$.apply_s_per_element: -1 is no time"},
    {"\"world\": 4", "\"world\": 0", "$.world: 0 is no count; give a whole number from 1"},
    {"\"world\": 4", "\"world\": 2000000", "$.world: 2000000 ranks"},
    {"\"world\": 4", "\"world\": 2.5", "$.world: 2.5 is no count"},
    {"\"version\": 1", "\"version\": 4", "$.version: version 4; this program reads 1"},
    {"\"version\": 1, ", "", "$.version: is missing; this program reads 1"},
    {"\"version\": 1", "\"version\": 1, \"world\": 4", "line 1, column"},
    {"1.5e6", "1.5", "$.units[1].parameters: 1.5 is no size"},
    {"1.5e6", "0", "$.units[1].parameters: 0 elements; give a count from 1 to 2^58"},
    {"1.5e6", "288230376151711745", "$.units[1].parameters: 288230376151711745 elements"},
    {"1.5e6", "288230376151711744", "$: its sizes add up to more than 2^62 bytes"},
    {"4096}]",
     "1e18}, {\"name\": \"h.0\", \"bytes\": 1e18}, {\"name\": \"h.0\", \"bytes\": 1e18}, {\"name\": \"h.0\", "
     "\"bytes\": 1e18}, {\"name\": \"h.0\", \"bytes\": 1e18}]",
     "$: its sizes add up to more than 2^62 bytes"},
    {"4096", "4611686018427387905", "$.activations[0].bytes: 4611686018427387905 is no size"},
    {"4096", "99999999999999999999", "too big"},
    {"4096", "4096, \"first\": \"h.0\"", "$.activations[0].first: \"h.0\" is no slot; give \"forward LAYER\""},
    {"4096", "4096, \"first\": \"forward h.1\"", "$.activations[0].first: there is no layer \"h.1\""},
    {"4096", "4096, \"last\": \"forward embed\"", "$.activations[0].last: it ends before it begins"},
    {"4096", "4096, \"last_in_evaluation\": \"embed\"", "$.activations[0].last_in_evaluation: \"embed\" comes before"},
    {"4096", "4096, \"recomputable\": true, \"last\": \"backward embed\"", "$.activations[0].recomputable: only what"},
    {"1e9", "1e9, \"kappa\": 2", "$.link.kappa: 2; give a factor from 0 to sigma, which is 1"},
    {"1e9", "1e9, \"sigma\": 0.5", "$.link.sigma: 0.5; give a factor of at least 1"},
    {"1e9", "0", "$.link.bytes_per_s: 0 is no rate"},
    {"\"bytes_per_s\": 1e9", "\"all_gather\": {}", "$.link.bytes_per_s: is missing"},
    {"\"bytes_per_s\": 1e9", "\"reduce_scatter\": {\"latency_s\": 1}", "$.link.reduce_scatter.bytes_per_s: is missing"},
    {"\"world\": 4", "\"world\": 4, \"accumulate\": \"all\"", "$.accumulate: \"all\"; give \"last\" or \"each\""},
    {"\"world\": 4", "\"world\": 4, \"wire\": \"fp16\"", "$.wire: \"fp16\"; give \"fp32\" or \"bf16\""},
    {"1.5e6", "1.5e6, \"dtype\": \"half\"", "$.units[1].dtype: \"half\"; give \"fp32\" or \"bf16\""},
    {"1.5e6", "1.5e6, \"dtype\": 16", "$.units[1].dtype: 16 is no text"},
    {"\"world\": 4", "\"world\": 4, \"optimizer_states\": 17", "$.optimizer_states: 17 states"},
    {"\"world\": 4", "\"world\": 4, \"workspaces\": [{\"name\": \"w\", \"bytes\": 1}]",
     "$.workspaces[0].layer: there is no layer \"w\""},
    {"\"world\": 4", "\"world\": 4, \"workspaces\": [{\"name\": \"w\", \"bytes\": 1, \"slot\": \"backward w\"}]",
     "$.workspaces[0].slot: there is no layer \"w\""},
    {"\"world\": 4",
     "\"world\": 4, \"workspaces\": [{\"name\": \"w\", \"bytes\": 1, \"slot\": \"forward w\", \"layer\": \"w\"}]",
     "$.workspaces[0].layer: there is a slot too"},
    {"\"world\": 4", "\"world\": 4, \"micro_batches\": 1073741824", "$.layers: 2 layers in 1073741824 micro-batches"},
    {"\"link\": {", "\"links\": {", "$: \"links\" is unknown"},
    {"]}", "", "line"},
};

static const change wrong_rows[] = {
    {"\"of\": \"wte\"", "\"of\": \"nothing\"", "$.units[1].rows.of: there is no unit \"nothing\" before this one"},
    {"\"of\": \"wte\"", "\"of\": \"rows of wte\"", "$.units[1].rows.of: there is no unit \"rows of wte\" before"},
    {"\"of\": \"wte\"", "\"of\": \"h.0\"", "$.units[1].rows.of: there is no unit \"h.0\" before this one"},
    {"\"of\": \"wte\"", "\"of\": 7", "$.units[1].rows.of: 7 is no name"},
    {"\"of\": \"wte\", ", "", "$.units[1].rows.of: is missing"},
    {"{\"name\": \"h.0\", \"parameters\": 640}",
     "{\"name\": \"again\", \"uses\": [\"embed\"], \"rows\": {\"of\": \"wte\", \"row_elements\": 16, \"row_count\": 3, "
     "\"most_rows\": 3}}",
     "$.units[2].rows.of: unit \"wte\" has its rows already: \"rows of wte\""},
    {"{\"name\": \"h.0\", \"parameters\": 640}",
     "{\"name\": \"again\", \"uses\": [\"embed\"], \"rows\": {\"of\": \"rows of wte\", \"row_elements\": 16, "
     "\"row_count\": 3, \"most_rows\": 3}}",
     "$.units[2].rows.of: unit \"rows of wte\" is of rows itself"},
    {"{\"name\": \"rows of wte\"",
     "{\"name\": \"between\", \"uses\": [\"h.0\"], \"parameters\": 1}, {\"name\": \"rows\"",
     "$.units[2].rows.of: unit \"wte\" is not the one before this; put its rows after it"},
    {"[\"h.0\", \"head\"]", "[\"h.0\", \"head\"], \"fused\": true", "$.units[1].rows.of: unit \"wte\" is fused"},
    {"\"row_elements\": 50", "\"row_elements\": 0", "$.units[1].rows.row_elements: 0 elements"},
    {"\"row_elements\": 50", "\"row_elements\": 51",
     "$.units[1].rows.row_count: 20 rows of 51 elements are more than the 1000 parameters of \"wte\""},
    {"\"row_elements\": 50", "\"row_elements\": 4611686018427387904", "$.units[1].rows.row_count: 20 rows of 46"},
    {"\"row_count\": 20", "\"row_count\": 0", "$.units[1].rows.row_count: 0 rows; give a count from 1"},
    {"\"row_count\": 20", "\"row_count\": 4294967296", "$.units[1].rows.row_count: 4294967296 rows"},
    {"\"most_rows\": 7", "\"most_rows\": 0", "$.units[1].rows.most_rows: 0 rows; give a count from 1 to row_count"},
    {"\"most_rows\": 7", "\"most_rows\": 21",
     "$.units[1].rows.most_rows: 21 rows; give a count from 1 to row_count, "
     "which is 20"},
    {"\"most_rows\": 7", "\"most\": 7", "$.units[1].rows: \"most\" is unknown; there are of, row_elements, row_count"},
    {"\"most_rows\": 7}", "\"most_rows\": 7}, \"parameters\": 350", "$.units[1].parameters: follows from \"wte\""},
    {"\"most_rows\": 7}", "\"most_rows\": 7}, \"trainable\": true", "$.units[1].trainable: follows from \"wte\""},
    {"[\"embed\"]", "[\"embed\", \"h.0\"]", "$.units[1].uses: 2 layers; it is one that looks rows up"},
    {"[\"embed\"]", "[\"h.0\"]", "$.units[1].uses: layer \"h.0\" does not come before \"h.0\", which uses all of"},
    {", \"uses\": [\"embed\"]", "", "$.units[1].uses: is missing and there is no layer \"rows of wte\""},
    {"\"parameters\": 1000, ", "", "$.units[0].parameters: is missing; give a count from 1 to 2^58"},
    {"\"world\": 4", "\"world\": 4, \"update_compute_s_per_element\": -1", "$.update_compute_s_per_element: -1 is no"},
    {"\"world\": 4", "\"world\": 4, \"outside_s\": -1", "$.outside_s: -1 is no"},
    {"\"world\": 4", "\"world\": 4, \"late_s\": -1", "$.late_s: -1 is no"},
};

/* A profile with all that only version 2 has. */
static const char staged[] =
    "{\"version\": 2, \"world\": 1, \"link\": {\"bytes_per_s\": 1e9, \"channel\": {\"latency_s\": 0.5}},"
    " \"layers\": [{\"name\": \"a\", \"forward_s\": 1, \"input_s\": 0.75, \"weight_s\": 0.5},"
    " {\"name\": \"b\", \"forward_s\": 1, \"backward_s\": 2, \"weight_s\": 1.5},"
    " {\"name\": \"c\", \"forward_s\": 1, \"backward_s\": 2}], \"units\": [{\"name\": \"a\", \"parameters\": 10}],"
    " \"activations\": [{\"name\": \"x\", \"bytes\": 8, \"first\": \"forward a\", \"last\": \"backward b\","
    " \"readers\": [{\"layer\": \"b\", \"forward\": true, \"backward\": true}, {\"layer\": \"c\", \"forward\": "
    "true}]}]}";

static void what_pipelines_ask_for_is_version_2(void **state)
{
    (void)state;
    slc_profile *profile;
    if (slc_profile_from_json(staged, strlen(staged), &profile)) fail_msg("%s", sluice_last_error());
    const slc_times *times = &profile->times;
    assert_true(times->slot_s[slc_backward_slot(&profile->job, 0)] == 1.25);
    assert_true(times->weight_s[0] == 0.5 && times->weight_s[1] == 1.5 && times->weight_s[2] < 0);
    assert_true(times->link.channel.latency_s == 0.5 && times->link.channel.bytes_per_s == 1e9);
    const slc_activation_readers *readers = slc_readers_of(&profile->job, &profile->job.activations[0]);
    assert_true(readers && readers->count == 2);
    assert_true(readers->at[0].layer == 1 && readers->at[0].forward && readers->at[0].backward);
    assert_true(readers->at[1].layer == 2 && readers->at[1].forward && !readers->at[1].backward);
    slc_profile_destroy(profile);
}

static const change wrong_stages[] = {
    {"\"version\": 2", "\"version\": 4", "$.version: version 4; this program reads 1 to 3"},
    {"\"version\": 2", "\"version\": 1", "$.link.channel: is a key of version 2; write \"version\": 2"},
    {"\"latency_s\": 0.5", "\"latency_s\": -1", "$.link.channel.latency_s: -1 is no time"},
    {"\"input_s\": 0.75, \"weight_s\": 0.5", "\"input_s\": 0.75", "$.layers[0].weight_s: is missing beside input_s"},
    {"\"input_s\": 0.75", "\"input_s\": 0.75, \"backward_s\": 1", "$.layers[0].input_s: there is a backward_s too"},
    {"\"input_s\": 0.75, ", "", "$.layers[0].backward_s: is missing; give seconds"},
    {"\"weight_s\": 1.5", "\"weight_s\": 2.5", "$.layers[1].weight_s: 2.5 seconds of a backward of 2; give at most"},
    {"\"weight_s\": 1.5", "\"weight_s\": 1.5, \"keeps\": 0.5", "$.layers[1].keeps: is a key of version 3; write"},
    {"\"weight_s\": 1.5", "\"weight_s\": 1.5, \"keeps\": 1.5", "$.layers[1].keeps: 1.5; give a probability above 0"},
    {"\"weight_s\": 1.5", "\"weight_s\": 1.5, \"keeps\": 0", "$.layers[1].keeps: 0; give a probability above 0"},
    {"\"layer\": \"c\"", "\"layer\": \"a\"", "$.activations[0].readers[1]: it begins in layer \"a\""},
    {"\"layer\": \"c\"", "\"layer\": \"b\"", "$.activations[0].readers[1]: layer \"b\" comes at or before \"b\""},
    {"\"layer\": \"c\"", "\"layer\": \"d\"", "$.activations[0].readers[1]: there is no layer \"d\""},
    {"\"c\", \"forward\": true", "\"c\", \"forward\": false",
     "$.activations[0].readers[1]: layer \"c\" reads it in no"},
    {"\"backward b\"", "\"backward c\"", "$.activations[0].readers[0]: layer \"b\" reads it when it is not in memory"},
    {"\"backward\": true}", "\"backward\": true}, {\"layer\": \"c\", \"forward\": true}",
     "$.activations[0].readers: 3 readers;"},
};

static void changes_are_refused(const char *profile_text, const change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[2048];
        slc_profile *profile = NULL;
        changed(profile_text, changes[i].from, changes[i].to, text, sizeof text);
        assert_int_equal(slc_profile_from_json(text, strlen(text), &profile), SLUICE_ERR_FORMAT);
        assert_null(profile);
        if (!strstr(sluice_last_error(), changes[i].error) || strchr(sluice_last_error(), '\n'))
            fail_msg("row %zu: \"%s\" lacks \"%s\"", i, sluice_last_error(), changes[i].error);
    }
}

static void what_is_wrong_is_refused_with_its_path(void **state)
{
    (void)state;
    changes_are_refused(minimal, wrong, sizeof wrong / sizeof *wrong);
    changes_are_refused(tied, wrong_rows, sizeof wrong_rows / sizeof *wrong_rows);
    changes_are_refused(staged, wrong_stages, sizeof wrong_stages / sizeof *wrong_stages);
    slc_profile *profile;
    assert_int_equal(slc_profile_from_json("[]", 2, &profile), SLUICE_ERR_FORMAT);
    assert_int_equal(slc_profile_from_json("", 0, &profile), SLUICE_ERR_FORMAT);
}

/* A part of a file must be refused, wherever the file is cut. */
static void every_cut_is_refused(void **state)
{
    (void)state;
    slc_profile *profile;
    for (size_t length = 0; length < sizeof minimal - 2; length++)
        assert_int_equal(slc_profile_from_json(minimal, length, &profile), SLUICE_ERR_FORMAT);
}

/* ---- Files ---- */

static void files_are_whole_or_untouched(void **state)
{
    (void)state;
    char folder[] = "/tmp/sluice-profile-XXXXXX", path[64], missing[80];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/profile.json", folder);
    snprintf(missing, sizeof missing, "%s/none/profile.json", folder);
    slc_profile *profile = draw_profile(7), *back;
    assert_int_equal(slc_profile_write(profile, path), 0);
    assert_int_equal(slc_profile_read(path, &back), 0);
    slc_profile_destroy(back);

    profile->times.slot_s[0] = INFINITY; /* cannot be written */
    assert_int_equal(slc_profile_write(profile, path), SLUICE_ERR_FORMAT);
    assert_int_equal(slc_profile_read(path, &back), 0);
    assert_true(isfinite(back->times.slot_s[0]));
    assert_int_equal(slc_profile_write(back, missing), SLUICE_ERR_PATH);
    assert_non_null(strstr(sluice_last_error(), missing));
    assert_int_equal(slc_profile_read(missing, &profile), SLUICE_ERR_PATH);
    assert_int_equal(slc_profile_write(back, "/dev/null"), 0);
    assert_int_equal(access("/dev/null.part", F_OK), -1);
    slc_profile_destroy(back);
    slc_profile_destroy(profile);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* no other file was left in the folder */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_back_is_exact),
        cmocka_unit_test(a_copy_is_its_own),
        cmocka_unit_test(another_world_and_back_changes_nothing),
        cmocka_unit_test(lengths_that_do_not_fit_are_refused),
        cmocka_unit_test(what_is_left_out_has_a_meaning),
        cmocka_unit_test(rows_of_a_look_up_are_a_table_of_one_block),
        cmocka_unit_test(the_documented_example_is_read),
        cmocka_unit_test(what_pipelines_ask_for_is_version_2),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_path),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(files_are_whole_or_untouched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
