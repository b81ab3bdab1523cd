/* A step's loss and gradient are means over all of its targets, however it is split between ranks and micro-batches,
 * though the parts have different numbers of targets, or none: padded text, masked tokens, labels that are not known.
 * sluice_batch.loss_divisor and sluice_step_options.gradient_scale say the same. For one split strategies are equal to
 * the bit. */
#include "tests/support/model/lone_model.h"

#include "lib/base/numbers/random.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include <math.h>
#include <sys/mman.h>

enum { SEQUENCES = 4, LENGTH = 10, MOST_WEIGHTS = 40000, VOCABULARY = 61, RANKS = 4 };

/* ---- Models and their batches ---- */

#define SMALL                                                                                                          \
    .struct_size = sizeof(sluice_model_config), .layers = 2, .channels = 32, .heads = 2, .hidden = 64,                 \
    .vocabulary = VOCABULARY, .context = 12, .epsilon = 1e-5, .dropout = 0.1, .drop_path = 0.4

typedef struct {
    const char *name;
    sluice_model_config config;
} kind;

static const kind kinds[] = {
    {"padded gpt2", {SMALL, .family = SLUICE_GPT2, .gelu_tanh = true}},
    {"masked bert", {SMALL, .family = SLUICE_BERT, .types = 2}},
    {"bert with unknown classes",
     {SMALL, .family = SLUICE_BERT, .types = 2, .head = SLUICE_HEAD_CLASSES, .classes = 3}},
    {"bert with norms before branches",
     {SMALL, .family = SLUICE_ROBERTA_PRELAYERNORM, .types = 2, .head = SLUICE_HEAD_CLASSES, .classes = 3}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct {
    int32_t tokens[SEQUENCES * LENGTH], targets[SEQUENCES * LENGTH];
    uint8_t mask[SEQUENCES * LENGTH];
    uint64_t each; /* targets of a sequence */
    uint64_t targets_there;
} text;

/* Sequences are 10, 3, 6 and 9 tokens long; the second has no target at all. */
static text make_text(const sluice_model_config *c)
{
    static const uint32_t lengths[SEQUENCES] = {10, 3, 6, 9};
    const bool classes = c->head == SLUICE_HEAD_CLASSES;
    text t = {.each = sluice_model_targets(c, LENGTH)};
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        for (uint32_t i = 0; i < LENGTH; i++) {
            const uint32_t at = s * LENGTH + i;
            const bool there = i < lengths[s], asked = c->family == SLUICE_GPT2 || at % 7 < 2;
            t.mask[at] = there;
            t.tokens[at] = there ? (int32_t)slc_random_below(3, 0, at, VOCABULARY) : 0;
            if (!classes) t.targets[at] = there && asked ? (int32_t)slc_random_below(3, 1, at, VOCABULARY) : -1;
        }
        if (classes) t.targets[s] = (int32_t)(s % c->classes);
        for (uint64_t i = 0; s == 1 && i < t.each; i++) t.targets[s * t.each + i] = -1;
    }
    for (uint64_t i = 0; i < SEQUENCES * t.each; i++) t.targets_there += t.targets[i] >= 0;
    return t;
}

/* ---- One run ---- */

typedef struct {
    const char *strategy;
    sluice_accumulate accumulate;
    bool by_scale; /* sums are added, and the step's gradient_scale divides */
} way;

static const way ways[] = {
    {"dp", SLUICE_ACCUMULATE_LAST, false},  {"oss", SLUICE_ACCUMULATE_LAST, false},
    {"sdp", SLUICE_ACCUMULATE_LAST, false}, {"fsdp", SLUICE_ACCUMULATE_LAST, false},
    {"sdp", SLUICE_ACCUMULATE_EACH, false}, {"fsdp", SLUICE_ACCUMULATE_LAST, true},
};
enum { WAYS = sizeof ways / sizeof *ways, EQUAL_WAYS = 4 };

typedef struct {
    double first_loss, evaluation;
    uint64_t count;
    float weights[MOST_WEIGHTS];
} outcome;

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
    const kind *kind;
    const way *way;
    text text;
    uint32_t rank, ranks, micro_batches, batch;
} trainer;

static sluice_batch batch_of(const trainer *t, uint32_t micro_batch)
{
    const uint64_t first = (uint64_t)(micro_batch * t->ranks + t->rank) * t->batch;
    const double parts = (double)(t->ranks * t->micro_batches);
    return SLUICE_INIT(sluice_batch, .tokens = t->text.tokens + first * LENGTH,
                       .attention_mask = t->text.mask + first * LENGTH,
                       .targets = t->text.targets + first * t->text.each,
                       .loss_divisor = t->way->by_scale ? 1 : (double)t->text.targets_there / parts);
}

/* The gradients of the keys' biases are 0 but for rounding; with a small epsilon AdamW would make whole steps of that.
 */
static int begin(trainer *t)
{
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = t->way->strategy;
    config.schedule = "serial";
    config.accumulate = t->way->accumulate;
    config.micro_batches = t->micro_batches;
    config.adamw.epsilon = 1e-4;
    t->text = make_text(&t->kind->config);
    t->batch = SEQUENCES / (t->ranks * t->micro_batches);
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = t->batch, .length = LENGTH, .dropout_seed = 5);
    RANK_CHECK(!sluice_runtime_create(t->world, &config, &t->rt));
    RANK_CHECK(!sluice_model_create(t->rt, &t->kind->config, &options, &t->model));
    RANK_CHECK(!sluice_runtime_commit(t->rt));
    RANK_CHECK(!sluice_model_init(t->model, 7));
    return 0;
}

static int run_step(trainer *t, double *loss)
{
    const double scale = t->way->by_scale ? 1 / (double)t->text.targets_there : 0;
    RANK_CHECK(
        !sluice_step_begin(t->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3, .gradient_scale = scale)));
    for (uint32_t m = 0; m < t->micro_batches; m++) {
        const sluice_batch batch = batch_of(t, m);
        RANK_CHECK(!sluice_model_forward(t->model, &batch));
        RANK_CHECK(!sluice_model_backward(t->model, NULL));
    }
    RANK_CHECK(!sluice_step_end(t->rt, NULL));
    RANK_CHECK(!sluice_model_loss(t->model, loss));
    RANK_CHECK(!sluice_world_all_reduce(t->world, loss, 1));
    *loss = t->way->by_scale ? *loss * t->micro_batches * scale : *loss / t->ranks;
    return 0;
}

static int evaluate(trainer *t, double *mean)
{
    *mean = 0;
    for (uint32_t m = 0; m < t->micro_batches; m++) {
        double loss;
        sluice_batch batch = batch_of(t, m);
        batch.loss_divisor = (double)t->text.targets_there;
        RANK_CHECK(!sluice_model_evaluate(t->model, &batch, &loss, NULL));
        *mean += loss;
    }
    RANK_CHECK(!sluice_world_all_reduce(t->world, mean, 1));
    return 0;
}

static int read_weights(const trainer *t, outcome *out)
{
    out->count = 0;
    for (uint32_t i = 0; i < sluice_runtime_param_count(t->rt); i++) {
        sluice_param *param = sluice_runtime_param(t->rt, i);
        const uint64_t count = sluice_param_count(param);
        RANK_CHECK(out->count + count <= MOST_WEIGHTS);
        RANK_CHECK(!sluice_param_read(param, 0, count, out->weights + out->count));
        out->count += count;
    }
    return 0;
}

static int train(trainer *t, outcome *out)
{
    const int steps = test_brief() ? 2 : 20;
    int failed = begin(t);
    for (int step = 0; !failed && step < steps; step++) {
        double loss = NAN;
        failed = run_step(t, &loss);
        if (!step) out->first_loss = loss;
    }
    if (!failed) failed = evaluate(t, &out->evaluation) || read_weights(t, out);
    sluice_model_destroy(t->model);
    sluice_runtime_destroy(t->rt);
    return failed;
}

/* ---- All runs ---- */

typedef struct {
    uint32_t ranks, micro_batches, ways;
} split;

static const split splits[] = {{1, 1, 1}, {1, 2, 1}, {1, 4, 1}, {2, 1, WAYS}, {2, 2, WAYS}, {4, 1, WAYS}};
enum { SPLITS = sizeof splits / sizeof *splits };

/* Rank 0 writes the results of all its trainings here, where the test program reads them. */
typedef struct {
    outcome of[KINDS][SPLITS][WAYS];
} outcomes;

static int train_all(int rank, int size, void *context)
{
    outcomes *all = context;
    sluice_world *world = NULL;
    outcome *own = calloc(1, sizeof *own);
    RANK_CHECK(own && !sluice_world_create(NULL, &world));
    for (size_t k = 0; k < KINDS; k++)
        for (size_t s = 0; s < SPLITS; s++)
            for (size_t w = 0; (int)splits[s].ranks == size && w < splits[s].ways; w++) {
                trainer t = {.world = world,
                             .kind = &kinds[k],
                             .way = &ways[w],
                             .rank = (uint32_t)rank,
                             .ranks = (uint32_t)size,
                             .micro_batches = splits[s].micro_batches};
                RANK_CHECK(!train(&t, rank ? own : &all->of[k][s][w]));
            }
    RANK_CHECK(!sluice_world_barrier(world));
    sluice_world_destroy(world);
    free(own);
    return 0;
}

static double apart(const outcome *a, const outcome *b)
{
    double most = 0;
    assert_int_equal(a->count, b->count);
    for (uint64_t i = 0; i < a->count; i++) most = fmax(most, fabs((double)a->weights[i] - b->weights[i]));
    return most;
}

static void compare(const kind *k, const split *s, const way *w, const outcome *got, const outcome *want)
{
    print_message("%s, %u ranks, %u micro-batches, %s%s%s: losses apart by %.1e and %.1e, weights by %.1e\n", k->name,
                  s->ranks, s->micro_batches, w->strategy, w->accumulate == SLUICE_ACCUMULATE_EACH ? ", each" : "",
                  w->by_scale ? ", by scale" : "", fabs(got->first_loss - want->first_loss),
                  fabs(got->evaluation - want->evaluation), apart(got, want));
    assert_true(fabs(got->first_loss - want->first_loss) < 1e-6);
    assert_true(fabs(got->evaluation - want->evaluation) < 1e-5);
    assert_true(apart(got, want) < 1e-5);
}

static void splits_do_not_matter(void **state)
{
    (void)state;
    outcomes *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    for (int ranks = 1; ranks <= RANKS; ranks *= 2) assert_int_equal(run_ranks(ranks, train_all, all, 100), 0);
    for (size_t k = 0; k < KINDS; k++)
        for (size_t s = 0; s < SPLITS; s++)
            for (size_t w = 0; w < splits[s].ways; w++) {
                const outcome *got = &all->of[k][s][w];
                assert_true(got->count > 0);
                compare(&kinds[k], &splits[s], &ways[w], got, &all->of[k][0][0]);
                if (w < EQUAL_WAYS) assert_memory_equal(got, &all->of[k][s][0], sizeof *got);
            }
    munmap(all, sizeof *all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(splits_do_not_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
