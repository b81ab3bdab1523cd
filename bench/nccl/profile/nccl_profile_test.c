/* Profiles of programs that are simulated, so that the truth is known: times and sizes of layers are drawn, operations
 * are recorded as the shim would, and the profile must say the truth, or mark what only bounds it. */
#include "tests/support/base/folder.h"

#include "bench/nccl/profile/compute_times.h"
#include "bench/nccl/steps/period.h"
#include "bench/nccl/profile/profile.h"
#include "lib/plan/profile.h"
#include "sched/planner.h"
#include "tests/support/draw.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

enum { LAYERS_MAX = 12, RANKS_MAX = 4, STEPS_MAX = 12, ENTRIES_MAX = 3 * LAYERS_MAX * STEPS_MAX + 64 };
static char made_path[] = "made.nccl";
enum { FLOAT32 = 7, BFLOAT16 = 9, SUM = 0, AVG = 4 };

/* ---- Simulated programs ---- */

typedef enum { DDP, FSDP } program_kind;

/* Sizes are of full buffers, in elements; layers in forward order. Seconds. */
typedef struct {
    program_kind kind;
    uint32_t ranks, layers, steps;
    uint64_t elements[LAYERS_MAX];
    double forward_s[LAYERS_MAX], backward_s[LAYERS_MAX], optimizer_s;
    double latency_s, bytes_per_s; /* of a reduce-scatter or an all-gather */
    double slower[RANKS_MAX];      /* factors on a rank's compute */
    bool prefetches;               /* a gather is sent when the layer before begins */
    unsigned group_calls;          /* each layer's reduction is a group of so many calls; 0: no groups */
    bool agrees;                   /* a sum of one element ends each step */
    unsigned interrupted;          /* after so many steps something else is reduced; 0: never */
    unsigned gather_dtype;
} program;

typedef struct {
    slc_nccl_entry entries[ENTRIES_MAX];
    slc_record_communicator row;
    double stream_free_s[3], compute_s; /* while it is simulated */
    unsigned group;
} rank_state;

typedef struct {
    program p;
    rank_state ranks[RANKS_MAX];
    slc_nccl_process processes[RANKS_MAX];
    slc_nccl_records records;
    double step_s; /* the truth, in a steady state */
} run;

static double transfer_s(const program *p, double bytes)
{
    double n = p->ranks;
    return n < 2 ? 5e-6 : p->latency_s * (n - 1) + bytes * (n - 1) / n / p->bytes_per_s;
}

static int64_t to_ns(double seconds)
{
    return 1000000000 + llround(seconds * 1e9);
}

static slc_nccl_entry *new_entry(run *r, uint32_t rank)
{
    slc_nccl_process *process = &r->processes[rank];
    assert_true(process->entry_count < ENTRIES_MAX);
    slc_nccl_entry *e = &process->entries[process->entry_count];
    *e = (slc_nccl_entry){.index = process->entry_count, .number = process->entry_count + 1, .peer = -1};
    process->entry_count++;
    return e;
}

/* Sends one operation of all ranks on a stream; it ends when the last rank has come and all is moved. `ready_s` are the
 * moments at which each rank's data is there. Returns when it ended. */
static double communicate(run *r, unsigned operation, unsigned dtype, uint64_t elements, uint64_t address,
                          unsigned stream, const double *ready_s)
{
    const program *p = &r->p;
    double begin_s[RANKS_MAX], end_s = 0, bytes = (double)elements * (dtype == BFLOAT16 ? 2 : 4);
    unsigned calls = p->group_calls && operation != SLC_RECORD_ALL_GATHER && elements > 1 ? p->group_calls : 1;
    for (uint32_t k = 0; k < p->ranks; k++) {
        begin_s[k] = fmax(ready_s[k], r->ranks[k].stream_free_s[stream]);
        end_s = fmax(end_s, begin_s[k]);
    }
    end_s += transfer_s(p, bytes) * (operation == SLC_RECORD_ALL_REDUCE && p->ranks > 1 ? 2 : 1);
    for (uint32_t k = 0; k < p->ranks; k++) {
        uint64_t left = elements;
        if (calls > 1) r->ranks[k].group++;
        for (unsigned c = 0; c < calls; c++) {
            uint64_t part = c + 1 < calls ? elements / calls / p->ranks * p->ranks : left;
            slc_nccl_entry *e = new_entry(r, k);
            left -= part;
            e->operation = operation;
            e->dtype = dtype;
            e->redop = operation == SLC_RECORD_ALL_GATHER ? SLC_RECORD_NO_REDOP : SUM;
            e->count = operation == SLC_RECORD_ALL_REDUCE ? part : part / p->ranks;
            e->send = e->receive = address + c * 64;
            e->stream = stream;
            e->group = calls > 1 ? r->ranks[k].group : 0;
            e->flags = calls > 1 ? SLC_RECORD_GROUPED : 0;
            e->begin_ns = to_ns(begin_s[k]);
            e->end_ns = to_ns(end_s);
        }
        r->ranks[k].stream_free_s[stream] = end_s;
    }
    return end_s;
}

static void compute(run *r, double seconds)
{
    for (uint32_t k = 0; k < r->p.ranks; k++) r->ranks[k].compute_s += seconds * r->p.slower[k];
}

static void wait_for(run *r, double moment_s)
{
    for (uint32_t k = 0; k < r->p.ranks; k++) r->ranks[k].compute_s = fmax(r->ranks[k].compute_s, moment_s);
}

static const double *now_s(const run *r)
{
    static double moments[RANKS_MAX];
    for (uint32_t k = 0; k < r->p.ranks; k++) moments[k] = r->ranks[k].compute_s;
    return moments;
}

static double gather(run *r, uint32_t layer)
{
    return communicate(r, SLC_RECORD_ALL_GATHER, r->p.gather_dtype, r->p.elements[layer], 0x1000 + layer % 2 * 256, 1,
                       now_s(r));
}

static void simulate_ddp_step(run *r)
{
    const program *p = &r->p;
    double end_s = 0;
    for (uint32_t l = 0; l < p->layers; l++) compute(r, p->forward_s[l]);
    for (uint32_t l = p->layers; l-- > 0;) {
        compute(r, p->backward_s[l]);
        end_s = communicate(r, SLC_RECORD_ALL_REDUCE, FLOAT32, p->elements[l], 0x10000 * (l + 1), 0, now_s(r));
    }
    wait_for(r, end_s);
}

/* Layers in the order of a pass; a gather is sent before the layer, or before the one before it. */
static void simulate_fsdp_pass(run *r, bool backward)
{
    const program *p = &r->p;
    double gathered_s = 0, next_s = 0;
    for (uint32_t i = 0; i < p->layers; i++) {
        uint32_t l = backward ? p->layers - 1 - i : i;
        bool kept = backward && i == 0; /* the last layer still has its values */
        if (!kept) gathered_s = p->prefetches && i > 0 ? next_s : gather(r, l);
        if (p->prefetches && i + 1 < p->layers) next_s = gather(r, backward ? l - 1 : l + 1);
        if (!kept) wait_for(r, gathered_s);
        compute(r, backward ? p->backward_s[l] : p->forward_s[l]);
        if (!backward) continue;
        double end_s =
            communicate(r, SLC_RECORD_REDUCE_SCATTER, FLOAT32, p->elements[l], 0x2000 + i % 2 * 256, 2, now_s(r));
        if (i + 1 == p->layers) wait_for(r, end_s);
    }
}

static run *simulate(const program *p)
{
    run *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->p = *p;
    for (uint32_t k = 0; k < p->ranks; k++) {
        r->ranks[k].row = (slc_record_communicator){
            .state = SLC_RECORD_ROW_READY, .rank = (int)k, .size = (int)p->ranks, .device = (int)k, .key = 77};
        r->processes[k] = (slc_nccl_process){.path = made_path,
                                             .header = {.times_at = 1, .communicators = 1, .command = "/bin/train -x"},
                                             .state = SLC_NCCL_ENDED,
                                             .communicators = &r->ranks[k].row,
                                             .entries = r->ranks[k].entries};
    }
    double began_s[STEPS_MAX + 1];
    for (uint32_t s = 0; s < p->steps; s++) {
        began_s[s] = r->ranks[0].compute_s;
        if (p->kind == DDP) simulate_ddp_step(r);
        if (p->kind == FSDP) simulate_fsdp_pass(r, false);
        if (p->kind == FSDP) simulate_fsdp_pass(r, true);
        if (p->agrees) wait_for(r, communicate(r, SLC_RECORD_ALL_REDUCE, FLOAT32, 1, 0x9000, 0, now_s(r)));
        compute(r, p->optimizer_s);
        if (p->interrupted && s % p->interrupted == p->interrupted - 1)
            wait_for(r, communicate(r, SLC_RECORD_ALL_REDUCE, FLOAT32, 4800, 0x8000, 0, now_s(r)));
    }
    r->step_s = began_s[p->steps - 1] - began_s[p->steps - 2];
    r->records = (slc_nccl_records){.processes = r->processes, .count = p->ranks};
    return r;
}

/* Layers of 2 to 20 ms, of 64 Ki to 1 Mi elements; rank 0 is the slowest. With a fast link everything ends long before
 * it is needed. */
static program draw_program(uint64_t seed, program_kind kind, double bytes_per_s)
{
    uint64_t d = seed;
    program p = {.kind = kind,
                 .ranks = 2 + (uint32_t)draw(&d, RANKS_MAX - 1),
                 .layers = 2 + (uint32_t)draw(&d, LAYERS_MAX - 1),
                 .steps = 6 + (uint32_t)draw(&d, STEPS_MAX - 5),
                 .optimizer_s = 1e-4 * (double)draw(&d, 20),
                 .latency_s = 1e-6 * (double)(5 + draw(&d, 20)),
                 .bytes_per_s = bytes_per_s,
                 .gather_dtype = FLOAT32};
    for (uint32_t l = 0; l < p.layers; l++) {
        p.elements[l] = 48 * (1366 + draw(&d, 20000)); /* a multiple of all worlds */
        p.backward_s[l] = 1e-3 * (double)(2 + draw(&d, 18));
        p.forward_s[l] = p.backward_s[l] / 2;
    }
    for (uint32_t k = 0; k < p.ranks; k++) p.slower[k] = k ? 1 - 0.01 * (double)draw(&d, 5) : 1;
    return p;
}

static const double fast = 4e9, slow = 3e8;

/* ---- What a profile must say ---- */

static slc_profile *profile_of(const run *r, const run *alone)
{
    slc_profile *profile = NULL;
    works(slc_nccl_profile(&r->records, alone ? &alone->records : NULL, 4096, path_of("made.json")));
    works(slc_profile_read(path_of("made.json"), &profile));
    return profile;
}

static void is_near(const char *what, uint64_t seed, double found, double truth, double share)
{
    if (fabs(found - truth) > share * truth + 2e-8)
        fail_msg("%s, seed %llu: %.9g, not %.9g", what, (unsigned long long)seed, found, truth);
}

static double backward_of(const slc_profile *profile, uint32_t layer)
{
    return profile->times.slot_s[slc_backward_slot(&profile->job, layer)];
}

static void sizes_are_exact(const slc_profile *profile, const program *p)
{
    assert_int_equal(profile->job.unit_count, p->layers);
    assert_int_equal(profile->job.layer_count, p->layers);
    assert_int_equal(profile->job.world, p->ranks);
    assert_int_equal(profile->job.reserved_bytes, 4096);
    assert_string_equal(profile->model, "train");
    for (uint32_t l = 0; l < p->layers; l++) {
        char name[32];
        snprintf(name, sizeof name, "unit.%u", l);
        assert_string_equal(profile->job.layers[l], name);
        assert_int_equal(profile->parameters[l], p->elements[l]);
    }
}

/* The work between the last reduction of a step and the first one of the next, whose parts cannot be told apart. */
static double rest_of(const slc_profile *profile)
{
    double sum = backward_of(profile, profile->job.layer_count - 1);
    for (uint32_t l = 0; l < profile->job.layer_count; l++) sum += profile->times.slot_s[l];
    return sum;
}

static double true_rest(const program *p)
{
    double sum = p->optimizer_s + p->backward_s[p->layers - 1];
    for (uint32_t l = 0; l < p->layers; l++) sum += p->forward_s[l];
    return sum;
}

/* Sizes of which the largest is less than twice the smallest tell the speed at these sizes alone. */
static void link_is_found(const slc_profile *profile, const program *p, uint64_t seed)
{
    const slc_link_line *line = &profile->times.link.all_gather;
    if (strstr(profile->source, "latency: it counts as 0")) {
        double bytes = 4 * (double)p->elements[0];
        is_near("time", seed, slc_transfer_s(&profile->job, &profile->times, SLC_ITEM_GATHER_VALUE, (uint64_t)bytes),
                transfer_s(p, bytes), 0.25);
        assert_true(line->latency_s <= 0);
        return;
    }
    is_near("bandwidth", seed, line->bytes_per_s, p->bytes_per_s, 1e-3);
    is_near("latency", seed, line->latency_s, p->latency_s, 1e-2);
}

static void planner_takes_it(const slc_profile *profile)
{
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp", "auto"};
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        slc_plan_request request = {
            .strategy = strategies[i], .schedule = "portfolio", .times = &profile->times, .effort_s = 0.05};
        slc_plan_answer answer = {0};
        works(slc_plan_for_budget(&profile->job, &request, &answer));
        assert_true(isfinite(answer.forecast.step_s) && answer.forecast.step_s > 0);
        slc_plan_destroy(answer.plan);
    }
}

static void free_links_give_exact_times(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        program p = draw_program(seed, DDP, fast);
        run *r = simulate(&p);
        slc_profile *profile = profile_of(r, NULL);
        sizes_are_exact(profile, &p);
        for (uint32_t l = 0; l + 1 < p.layers; l++)
            is_near("backward", seed, backward_of(profile, l), p.backward_s[l], 1e-6);
        is_near("rest of the step", seed, rest_of(profile), true_rest(&p), 1e-6);
        link_is_found(profile, &p, seed);
        assert_null(strstr(profile->source, "Upper bounds"));
        assert_non_null(strstr(profile->source, "Estimated: the backward of unit."));
        if (seed <= 3) planner_takes_it(profile);
        slc_profile_destroy(profile);
        free(r);
    }
}

/* Returns true if unit.N is among "the backward of unit.A to unit.B, unit.C, whose". */
static bool is_marked(const slc_profile *profile, uint32_t layer)
{
    const char *at = strstr(profile->source, "Upper bounds: the backward of "),
               *end = at ? strstr(at, ", whose") : NULL;
    for (unsigned first = 0, last; at && end && (at = strstr(at, "unit.")) && at < end; at += 5) {
        int fields = sscanf(at, "unit.%u to unit.%u", &first, &last);
        if (layer >= first && layer <= (fields == 2 ? last : first)) return true;
    }
    return false;
}

static void full_links_give_marked_bounds(void **state)
{
    (void)state;
    unsigned marked = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        program p = draw_program(seed, DDP, slow / (1 + (double)(seed % 4)));
        run *r = simulate(&p), *alone;
        slc_profile *profile = profile_of(r, NULL);
        sizes_are_exact(profile, &p);
        for (uint32_t l = 0; l + 1 < p.layers; l++) {
            double found = backward_of(profile, l), truth = p.backward_s[l];
            marked += is_marked(profile, l);
            if (found < truth - 1e-7)
                fail_msg("seed %llu, layer %u: %g is below %g", (unsigned long long)seed, l, found, truth);
            if (found > 1.12 * truth && !is_marked(profile, l))
                fail_msg("seed %llu, layer %u: %g for %g, without a mark", (unsigned long long)seed, l, found, truth);
        }
        slc_profile_destroy(profile);

        p.ranks = 1;
        alone = simulate(&p);
        profile = profile_of(r, alone);
        sizes_are_exact(profile, &r->p);
        for (uint32_t l = 0; l + 1 < p.layers; l++)
            is_near("backward on one rank", seed, backward_of(profile, l), p.backward_s[l], 1e-6);
        is_near("rest on one rank", seed, rest_of(profile), true_rest(&p), 1e-6);
        assert_null(strstr(profile->source, "Upper bounds"));
        assert_non_null(strstr(profile->source, "run on one rank"));
        slc_profile_destroy(profile);
        free(alone);
        free(r);
    }
    assert_true(marked > 60);
}

static void sharded_programs_have_their_units(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        program p = draw_program(seed, FSDP, 16 * fast), one;
        p.prefetches = seed % 2;
        p.layers += 2; /* so that the forward has the most gathers in a row */
        if (p.layers > LAYERS_MAX) p.layers = LAYERS_MAX;
        for (uint32_t l = 0; l < p.layers; l++)
            if (l % 3 != 2 || !p.elements[l]) p.elements[l] = p.elements[0], p.backward_s[l] = p.backward_s[0];
        for (uint32_t l = 0; l < p.layers; l++) p.forward_s[l] = p.backward_s[l] / 2;
        run *r = simulate(&p), *alone;
        slc_profile *profile = profile_of(r, NULL);
        sizes_are_exact(profile, &p);
        for (uint32_t l = 0; l + 1 < p.layers; l++)
            is_near("sharded backward", seed, backward_of(profile, l), p.backward_s[l], 1e-6);
        if (rest_of(profile) < true_rest(&p) - 1e-7)
            fail_msg("seed %llu: the rest is too short", (unsigned long long)seed);
        is_near("sharded rest", seed, rest_of(profile), true_rest(&p), 0.1);
        assert_null(strstr(profile->source, "of no unit"));
        if (seed <= 3) planner_takes_it(profile);
        slc_profile_destroy(profile);

        p.bytes_per_s = slow; /* gathers hold compute up: only a run on one rank tells the forward from waiting */
        one = p;
        one.ranks = 1;
        free(r);
        r = simulate(&p);
        alone = simulate(&one);
        profile = profile_of(r, alone);
        sizes_are_exact(profile, &p);
        for (uint32_t l = 0; l + 1 < p.layers; l++)
            is_near("sharded backward on one rank", seed, backward_of(profile, l), p.backward_s[l], 0.01);
        is_near("sharded rest on one rank", seed, rest_of(profile), true_rest(&p), 0.05);
        slc_profile_destroy(profile);
        free(alone);
        free(r);
    }
}

static void backwards_are(const slc_profile *profile, const program *p, const char *what, uint64_t seed)
{
    sizes_are_exact(profile, p);
    for (uint32_t l = 0; l + 1 < p->layers; l++) is_near(what, seed, backward_of(profile, l), p->backward_s[l], 1e-6);
}

/* Interruptions are less than a tenth of the calls: a period that holds more of them is taken for a longer step. */
static void interrupted_programs_have_steps(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        program p = draw_program(seed, seed % 2 ? DDP : FSDP, 16 * fast);
        p.steps = STEPS_MAX;
        p.interrupted = p.layers < 3 ? 5 : 4;
        run *r = simulate(&p);
        slc_profile *profile = profile_of(r, NULL);
        backwards_are(profile, &p, "interrupted backward", seed);
        if (p.kind == DDP) is_near("interrupted rest", seed, rest_of(profile), true_rest(&p), 1e-6);
        slc_profile_destroy(profile);
        free(r);
    }
}

/* The oldest entries are gone and the program runs on: the pause of the forward, or its gathers, tell where steps
 * begin.
 */
static void running_programs_have_steps(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        program p = draw_program(seed, seed % 2 ? DDP : FSDP, 16 * fast);
        p.steps = STEPS_MAX;
        if (p.layers < 4) p.layers = 4;
        for (uint32_t l = 0; l < p.layers; l++) { /* no layer's backward is longer than all forwards */
            p.elements[l] = p.elements[0] + 48 * l;
            p.backward_s[l] = 1e-3 * (4 + l % 3);
            p.forward_s[l] = p.backward_s[l] / 2;
        }
        run *r = simulate(&p);
        size_t gone = 1 + seed % 13;
        for (uint32_t k = 0; k < p.ranks; k++) {
            r->processes[k].state = SLC_NCCL_RUNNING;
            r->processes[k].entries += gone;
            r->processes[k].entry_count -= gone + 2;
            r->processes[k].entries_gone = gone;
        }
        slc_profile *profile = profile_of(r, NULL);
        backwards_are(profile, &p, "backward of a program that runs", seed);
        slc_profile_destroy(profile);
        free(r);
    }
}

/* ---- Sizes, types, what is left out ---- */

static void groups_are_one_unit(void **state)
{
    (void)state;
    program p = draw_program(7, DDP, fast);
    p.group_calls = 3;
    p.agrees = true;
    run *r = simulate(&p);
    slc_profile *profile = profile_of(r, NULL);
    sizes_are_exact(profile, &p);
    for (uint32_t u = 0; u < p.layers; u++) assert_int_equal(profile->tensors[u].count, 3);
    for (uint32_t l = 0; l + 1 < p.layers; l++)
        is_near("backward of a group", 7, backward_of(profile, l), p.backward_s[l], 1e-6);
    assert_non_null(strstr(profile->source, "calls of other kinds or a few bytes"));
    slc_profile_destroy(profile);
    free(r);
}

static void gathers_decide_the_type_of_values(void **state)
{
    (void)state;
    program p = draw_program(11, FSDP, fast);
    p.gather_dtype = BFLOAT16;
    run *r = simulate(&p);
    slc_profile *profile = profile_of(r, NULL);
    sizes_are_exact(profile, &p);
    for (uint32_t u = 0; u < p.layers; u++) assert_int_equal(profile->job.units[u].dtype, SLUICE_BF16);
    assert_int_equal(profile->job.wire, SLUICE_FP32);
    slc_profile_destroy(profile);
    free(r);
}

static void other_communicators_are_left_out(void **state)
{
    (void)state;
    program p = draw_program(13, DDP, fast);
    run *r = simulate(&p);
    for (uint32_t k = 0; k < p.ranks; k++) { /* each rank has a communicator of its own, with more bytes */
        slc_record_communicator *rows = calloc(2, sizeof *rows);
        assert_non_null(rows);
        rows[0] = r->ranks[k].row;
        rows[1] = (slc_record_communicator){.rank = 0, .size = 1, .device = (int)k, .key = 100 + k};
        r->processes[k].communicators = rows;
        r->processes[k].header.communicators = 2;
        for (unsigned i = 0; i < 9; i++) {
            slc_nccl_entry *e = new_entry(r, k);
            *e = r->ranks[k].entries[0];
            e->communicator = 1;
            e->stream = 99;
        }
    }
    slc_profile *profile = profile_of(r, NULL);
    sizes_are_exact(profile, &p);
    assert_non_null(strstr(profile->source, "calls of other communicators"));
    slc_profile_destroy(profile);
    for (uint32_t k = 0; k < p.ranks; k++) free(r->processes[k].communicators);
    free(r);
}

/* ---- Refusals ---- */

static void what_cannot_be_a_profile_is_refused(void **state)
{
    (void)state;
    program p = draw_program(17, DDP, fast);
    const char *out = path_of("refused.json");
    run *r = simulate(&p);

    r->processes[0].header.times_at = 0;
    fails(slc_nccl_profile(&r->records, NULL, 0, out), SLUICE_ERR_ARGUMENT, "SLUICE_SHIM_TIME=1");
    r->processes[0].header.times_at = 1;

    r->processes[1].entries[p.layers].count++;
    r->processes[1].entry_count = 3 * p.layers;
    fails(slc_nccl_profile(&r->records, NULL, 0, out), SLUICE_ERR_ARGUMENT, "no step repeats 3 times");
    r->processes[1].entries[p.layers].count--;

    for (uint32_t i = 0; i < r->processes[1].entry_count; i++)
        if (i % p.layers == 1) r->processes[1].entries[i].count *= 2;
    fails(slc_nccl_profile(&r->records, NULL, 0, out), SLUICE_ERR_ARGUMENT, "repeats other operations");

    for (uint32_t k = 0; k < p.ranks; k++)
        for (size_t i = 0; i < r->processes[k].entry_count; i++)
            r->processes[k].entries[i].flags |= SLC_RECORD_CAPTURED;
    fails(slc_nccl_profile(&r->records, NULL, 0, out), SLUICE_ERR_ARGUMENT, "captured into CUDA graphs");
    r->records.count = 0;
    fails(slc_nccl_profile(&r->records, NULL, 0, out), SLUICE_ERR_ARGUMENT, "no all-reduce");
    free(r);

    r = simulate(&p);
    for (size_t i = 0; i < r->processes[0].entry_count; i += 2)
        r->processes[0].entries[i].begin_ns = r->processes[0].entries[i].end_ns = 0;
    fails(slc_nccl_profile(&r->records, NULL, 0, out), SLUICE_ERR_ARGUMENT, "have all their times");
    free(r);

    r = simulate(&p);
    for (uint32_t k = 0; k < p.ranks; k++)
        for (size_t i = 0; i < r->processes[k].entry_count; i++) {
            r->processes[k].entries[i].flags |= SLC_RECORD_INSIDE;
            r->processes[k].entries[i].redop = SLC_RECORD_NO_REDOP;
        }
    fails(slc_nccl_profile(&r->records, NULL, 0, out), SLUICE_ERR_ARGUMENT, "profiler plugin");
    free(r);

    r = simulate(&p);
    r->processes[0].entries[3].flags |= SLC_RECORD_COMPRESSED;
    fails(slc_nccl_profile(&r->records, NULL, 0, out), SLUICE_ERR_ARGUMENT, "without SLUICE_SHIM_COMPRESS");
    free(r);
    assert_int_not_equal(access(out, F_OK), 0);
}

static void runs_that_do_not_belong_together_are_refused(void **state)
{
    (void)state;
    program p = draw_program(19, DDP, fast), other = p;
    const char *out = path_of("refused.json");
    run *r = simulate(&p), *alone;
    fails(slc_nccl_profile(&r->records, &r->records, 0, out), SLUICE_ERR_ARGUMENT, "run the program on one rank");

    other.ranks = 1;
    other.elements[0] += 48;
    alone = simulate(&other);
    fails(slc_nccl_profile(&r->records, &alone->records, 0, out), SLUICE_ERR_ARGUMENT, "elements of float32");
    fails(slc_nccl_profile(&alone->records, NULL, 0, out), SLUICE_ERR_ARGUMENT, "one rank");
    free(alone);

    other.layers--;
    alone = simulate(&other);
    fails(slc_nccl_profile(&r->records, &alone->records, 0, out), SLUICE_ERR_ARGUMENT, "reductions");
    free(alone);
    free(r);
}

static void periods_survive_what_lies_between(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t numbers[600], d = seed, count = 0;
        size_t length = 1 + draw(&d, 12);
        for (uint64_t i = draw(&d, 9); i-- > 0;) numbers[count++] = 1000 + draw(&d, 1000);
        for (unsigned runs = 0; runs < 3; runs++) {
            for (size_t i = 0; i < 12 * length; i++) numbers[count++] = i % length;
            numbers[count++] = 5000 + runs;
        }
        slc_period period;
        assert_true(slc_period_find(numbers, count, false, &period));
        assert_int_equal(period.length, length);
        assert_true(slc_period_find(numbers, count, true, &period));
        assert_int_equal(period.length, length);
    }
    uint64_t different[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    slc_period none;
    assert_false(slc_period_find(different, 9, false, &none));
    assert_false(slc_period_find(different, 0, false, &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(periods_survive_what_lies_between),
        cmocka_unit_test(free_links_give_exact_times),
        cmocka_unit_test(full_links_give_marked_bounds),
        cmocka_unit_test(sharded_programs_have_their_units),
        cmocka_unit_test(interrupted_programs_have_steps),
        cmocka_unit_test(running_programs_have_steps),
        cmocka_unit_test(groups_are_one_unit),
        cmocka_unit_test(gathers_decide_the_type_of_values),
        cmocka_unit_test(other_communicators_are_left_out),
        cmocka_unit_test(what_cannot_be_a_profile_is_refused),
        cmocka_unit_test(runs_that_do_not_belong_together_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
