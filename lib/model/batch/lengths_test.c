/* Micro-batches may be shorter than the model: each gives the loss of a model that was made for its length, to the bit,
 * and a step the weights that padding to the whole length gives. Folded ones, of more sequences, train as a model that
 * was made for their shape, to the bit. Other lengths and numbers are refused, and change nothing. */
#include "tests/support/model/lone_model.h"

#include "lib/base/numbers/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, LONGEST = 16, STEP = 4, VOCABULARY = 61, MICRO_BATCHES = 2, STEPS = 4 };

#define SMALL                                                                                                          \
    .struct_size = sizeof(sluice_model_config), .layers = 2, .channels = 32, .heads = 2, .hidden = 64,                 \
    .vocabulary = VOCABULARY, .context = 20, .epsilon = 1e-5

static const struct {
    const char *name;
    sluice_model_config config;
} kinds[] = {
    {"gpt2", {SMALL, .family = SLUICE_GPT2, .gelu_tanh = true}},
    {"masked bert", {SMALL, .family = SLUICE_BERT, .types = 2}},
    {"bert with classes", {SMALL, .family = SLUICE_BERT, .types = 2, .head = SLUICE_HEAD_CLASSES, .classes = 3}},
    {"masked bert with norms before branches",
     {SMALL, .family = SLUICE_ROBERTA_PRELAYERNORM, .types = 2, .padding = 2}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The lengths of the micro-batches of the steps, in turn. */
static const uint32_t lengths[STEPS * MICRO_BATCHES] = {8, 4, 16, 12, 4, 8, 12, 16};

typedef struct {
    int32_t tokens[BATCH * LONGEST], types[BATCH * LONGEST], targets[BATCH * LONGEST];
    uint8_t mask[BATCH * LONGEST];
} arrays;

/* Sequences of at most `longest` tokens, drawn by `number`, laid out with `length` tokens each. */
static arrays make(const sluice_model_config *c, uint64_t number, uint32_t longest, uint32_t length)
{
    arrays a = {0};
    const bool classes = c->head == SLUICE_HEAD_CLASSES;
    for (uint32_t b = 0; b < BATCH; b++) {
        const uint32_t there = b ? longest - (uint32_t)slc_random_below(1, number, b, 3) : longest;
        for (uint32_t i = 0; i < length; i++) {
            const uint32_t at = b * length + i;
            const uint64_t draw = b * LONGEST + i;
            a.mask[at] = i < there;
            a.tokens[at] = i < there ? (int32_t)slc_random_below(2, number, draw, VOCABULARY) : 0;
            a.types[at] = i < there && i > there / 2;
            if (!classes) a.targets[at] = i < there ? (int32_t)slc_random_below(3, number, draw, VOCABULARY) : -1;
        }
        if (classes) a.targets[b] = (int32_t)((number + b) % 3);
    }
    return a;
}

/* `a` with `n` tokens a sequence. */
#define BATCH_OF(c, a, n)                                                                                              \
    &SLUICE_INIT(sluice_batch, .tokens = (a).tokens, .types = (c)->types ? (a).types : NULL,                           \
                 .attention_mask = (a).mask, .targets = (a).targets, .length = (n))

static test_model create(const sluice_model_config *c, uint32_t length, uint32_t step)
{
    sluice_config config;
    sluice_config_init(&config);
    config.schedule = "serial";
    config.micro_batches = MICRO_BATCHES;
    config.adamw.epsilon = 1e-4;
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = length, .length_step = step);
    const test_model t = test_model_open(&config, c, &options);
    works(sluice_model_init(t.model, 7));
    return t;
}

static double evaluate(test_model *t, const sluice_model_config *c, uint64_t number, uint32_t longest, uint32_t length,
                       float *logits)
{
    const arrays a = make(c, number, longest, length ? length : longest);
    double loss;
    works(sluice_model_evaluate(t->model, BATCH_OF(c, a, length), &loss, logits));
    return loss;
}

static void each_length_is_as_in_a_model_of_that_length(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        const sluice_model_config *c = &kinds[k].config;
        test_model several = create(c, LONGEST, STEP);
        for (uint32_t length = STEP; length <= LONGEST; length += STEP) {
            static float got[BATCH * LONGEST * VOCABULARY], want[BATCH * LONGEST * VOCABULARY];
            test_model one = create(c, length, 0);
            const double loss = evaluate(&several, c, length, length, length, got);
            assert_true(loss > 0);
            assert_true(loss == evaluate(&one, c, length, length, 0, want));
            const size_t count = c->head == SLUICE_HEAD_CLASSES ? BATCH * 3 : (size_t)BATCH * length * VOCABULARY;
            assert_memory_equal(got, want, count * sizeof *got);
            test_model_destroy(&one);
        }
        test_model_destroy(&several);
    }
}

static void train(test_model *t, const sluice_model_config *c, bool padded, double losses[STEPS])
{
    for (uint32_t s = 0; s < STEPS; s++) {
        works(sluice_step_begin(t->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3)));
        for (uint32_t m = 0; m < MICRO_BATCHES; m++) {
            const uint32_t number = s * MICRO_BATCHES + m, length = padded ? LONGEST : lengths[number];
            const arrays a = make(c, number, lengths[number], length);
            works(sluice_model_forward(t->model, BATCH_OF(c, a, length)));
            works(sluice_model_backward(t->model, NULL));
        }
        works(sluice_step_end(t->rt, NULL));
        works(sluice_model_loss(t->model, &losses[s]));
    }
    works(sluice_runtime_sync(t->rt));
}

static double weights_apart(test_model *a, test_model *b)
{
    double most = 0;
    for (uint32_t i = 0; i < sluice_runtime_param_count(a->rt); i++) {
        sluice_param *one = sluice_runtime_param(a->rt, i), *other = sluice_runtime_param(b->rt, i);
        const uint64_t count = sluice_param_count(one);
        float *x = malloc(count * sizeof *x), *y = malloc(count * sizeof *y);
        assert_true(x && y);
        works(sluice_param_read(one, 0, count, x));
        works(sluice_param_read(other, 0, count, y));
        for (uint64_t e = 0; e < count; e++) most = fmax(most, fabs((double)x[e] - y[e]));
        free(x);
        free(y);
    }
    return most;
}

static void shorter_batches_train_as_padded_ones(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        const sluice_model_config *c = &kinds[k].config;
        double losses[STEPS], padded_losses[STEPS];
        test_model several = create(c, LONGEST, STEP), padded = create(c, LONGEST, 0);
        train(&several, c, false, losses);
        train(&padded, c, true, padded_losses);
        for (uint32_t s = 0; s < STEPS; s++) assert_true(fabs(losses[s] - padded_losses[s]) < 1e-5);
        const double apart = weights_apart(&several, &padded);
        print_message("%s: weights apart by %.1e\n", kinds[k].name, apart);
        assert_true(apart < 1e-5);
        test_model_destroy(&several);
        test_model_destroy(&padded);
    }
}

enum { SHORT = 4, FOLDED = BATCH * (LONGEST / SHORT) };

static test_model create_folding(const sluice_model_config *c, bool folds)
{
    sluice_config config;
    sluice_config_init(&config);
    config.schedule = folds ? "serial" : "one_ahead";
    const sluice_model_options folding = SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = LONGEST + 3,
                                                     .length_step = STEP, .folds = true, .dropout_seed = 5),
                               made = SLUICE_INIT(sluice_model_options, .batch = FOLDED, .length = SHORT,
                                                  .dropout_seed = 5);
    const test_model t = test_model_open(&config, c, folds ? &folding : &made);
    works(sluice_model_init(t.model, 7));
    return t;
}

static double train_folded(test_model *t, const sluice_model_config *c, bool folds)
{
    double loss = 0;
    for (uint32_t s = 0; s < STEPS; s++) {
        const arrays a = make(c, s, LONGEST, LONGEST); /* whose order of tokens is no matter */
        int32_t classes[FOLDED];
        for (uint32_t i = 0; i < FOLDED; i++) classes[i] = (int32_t)((s + i) % 3);
        const sluice_batch batch = SLUICE_INIT(sluice_batch, .tokens = a.tokens, .types = c->types ? a.types : NULL,
                                               .targets = c->head == SLUICE_HEAD_CLASSES ? classes : a.targets,
                                               .length = folds ? SHORT : 0, .sequences = folds ? FOLDED : 0);
        works(sluice_step_begin(t->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3)));
        works(sluice_model_forward(t->model, &batch));
        works(sluice_model_backward(t->model, &loss));
        works(sluice_step_end(t->rt, NULL));
    }
    works(sluice_runtime_sync(t->rt));
    return loss;
}

static void folded_batches_train_as_a_model_of_their_shape(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        sluice_model_config c = kinds[k].config;
        c.dropout = 0.1;
        test_model folding = create_folding(&c, true), made = create_folding(&c, false);
        assert_true(train_folded(&folding, &c, true) == train_folded(&made, &c, false));
        assert_true(weights_apart(&folding, &made) == 0);
        test_model_destroy(&folding);
        test_model_destroy(&made);
    }
}

static void other_lengths_are_refused(void **state)
{
    (void)state;
    const sluice_model_config *c = &kinds[0].config;
    static const uint32_t wrong[] = {2, 6, 20};
    const arrays a = make(c, 1, 4, 4);
    test_model several = create(c, LONGEST, STEP), one = create(c, LONGEST, 0);
    double loss;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fails(sluice_model_evaluate(several.model, BATCH_OF(c, a, wrong[i]), &loss, NULL), SLUICE_ERR_ARGUMENT,
              "multiple of 4");
        fails(sluice_model_evaluate(one.model, BATCH_OF(c, a, wrong[i]), &loss, NULL), SLUICE_ERR_ARGUMENT,
              "length_step");
    }
    /* Between a forward and its backward. */
    works(sluice_step_begin(several.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3)));
    works(sluice_model_forward(several.model, BATCH_OF(c, a, 4)));
    fails(sluice_model_forward(several.model, BATCH_OF(c, a, 6)), SLUICE_ERR_ARGUMENT, "multiple of 4");
    works(sluice_model_backward(several.model, &loss));
    assert_true(loss > 0 && loss < 10);
    test_model_destroy(&several);

    sluice_batch more = *BATCH_OF(c, a, 4);
    more.sequences = BATCH + 1;
    fails(sluice_model_evaluate(one.model, BATCH_OF(c, a, 4), &loss, NULL), SLUICE_ERR_ARGUMENT, "length_step");
    more.length = LONGEST;
    fails(sluice_model_evaluate(one.model, &more, &loss, NULL), SLUICE_ERR_ARGUMENT,
          "4 sequences of 16 tokens; it must have 3");

    sluice_model *model;
    const sluice_model_options cached =
        SLUICE_INIT(sluice_model_options, .batch = 1, .length = 8, .cache_tokens = 8, .length_step = 4);
    sluice_runtime *rt;
    sluice_config config;
    sluice_config_init(&config);
    works(sluice_runtime_create(one.world, &config, &rt));
    fails(sluice_model_create(rt, c, &cached, &model), SLUICE_ERR_ARGUMENT, "length_step");
    sluice_model_options wrong_options = SLUICE_INIT(sluice_model_options, .batch = 1, .length = 8, .folds = true);
    fails(sluice_model_create(rt, c, &wrong_options, &model), SLUICE_ERR_ARGUMENT, "folds goes with length_step");
    wrong_options.length_step = 4;
    wrong_options.length_least = 6;
    fails(sluice_model_create(rt, c, &wrong_options, &model), SLUICE_ERR_ARGUMENT,
          "length_least is 6; it must be a multiple of 4");
    wrong_options.length_least = 12;
    fails(sluice_model_create(rt, c, &wrong_options, &model), SLUICE_ERR_ARGUMENT, "at most 8");
    sluice_runtime_destroy(rt);
    test_model_destroy(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_length_is_as_in_a_model_of_that_length),
        cmocka_unit_test(shorter_batches_train_as_padded_ones),
        cmocka_unit_test(folded_batches_train_as_a_model_of_their_shape),
        cmocka_unit_test(other_lengths_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
