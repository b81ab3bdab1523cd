/* Steps of shapes that the model registers end with the weights of a run that has none, to the bit, whatever the plans
 * and whatever comes in between; a shape takes no more than the plan of the whole model, keeps to the budget, and comes
 * back to the plan that it had. What does not fit is refused, and ranks that ask for different shapes are told so. */
#include "tests/support/model/lone_model.h"
#include "tests/support/ranks.h"

#include "lib/base/numbers/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, LONGEST = 32, STEP = 4, VOCABULARY = 61, STEPS = 14, SHAPES = 2 };

#define SMALL                                                                                                          \
    .struct_size = sizeof(sluice_model_config), .layers = 3, .channels = 32, .heads = 2, .hidden = 64,                 \
    .vocabulary = VOCABULARY, .context = 40, .epsilon = 1e-5, .dropout = 0.1

static const struct {
    const char *name;
    sluice_model_config config;
} kinds[] = {
    {"gpt2", {SMALL, .family = SLUICE_GPT2, .gelu_tanh = true}},
    {"masked bert", {SMALL, .family = SLUICE_BERT, .types = 2}},
    {"bert with classes", {SMALL, .family = SLUICE_BERT, .types = 2, .head = SLUICE_HEAD_CLASSES, .classes = 3}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const uint32_t shape_lengths[SHAPES] = {16, 8};
static const uint32_t lengths[STEPS] = {8, 4, 8, 12, 16, 16, 16, 32, 24, 32, 8, 32, 16, 20};

static test_model create(const sluice_model_config *c, const char *schedule, sluice_recompute recompute,
                         uint64_t budget, bool shapes)
{
    sluice_config config;
    sluice_config_init(&config);
    config.schedule = schedule;
    config.recompute = recompute;
    config.budget_bytes = budget;
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = LONGEST, .length_step = STEP, .dropout_seed = 5,
                    .shape_lengths = shapes ? shape_lengths : NULL, .shape_count = shapes ? SHAPES : 0);
    const test_model t = test_model_open(&config, c, &options);
    works(sluice_model_init(t.model, 7));
    return t;
}

typedef struct {
    int32_t tokens[BATCH * LONGEST], targets[BATCH * LONGEST];
} arrays;

static sluice_batch draw_batch(const sluice_model_config *c, uint64_t number, uint32_t length, arrays *a)
{
    for (uint32_t i = 0; i < BATCH * length; i++) {
        a->tokens[i] = (int32_t)slc_random_below(2, number, i, VOCABULARY);
        a->targets[i] = (int32_t)slc_random_below(3, number, i, c->classes ? c->classes : VOCABULARY);
    }
    return SLUICE_INIT(sluice_batch, .tokens = a->tokens, .targets = a->targets, .length = length);
}

static void step(test_model *t, const sluice_model_config *c, uint32_t number, sluice_step_report *report)
{
    arrays a;
    double loss;
    const sluice_batch batch = draw_batch(c, number, lengths[number], &a);
    const uint32_t shape = sluice_model_shape(t->model, lengths[number]);
    works(sluice_step_begin(t->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3, .shape = shape)));
    assert_int_equal(sluice_runtime_shape(t->rt), shape);
    works(sluice_model_forward(t->model, &batch));
    works(sluice_model_backward(t->model, &loss));
    works(sluice_step_end(t->rt, report));
}

static void evaluate(test_model *t, const sluice_model_config *c, double *loss)
{
    arrays a;
    const sluice_batch batch = draw_batch(c, 99, LONGEST, &a);
    works(sluice_model_evaluate(t->model, &batch, loss, NULL));
    assert_int_equal(sluice_runtime_shape(t->rt), 0);
}

/* Trains, with evaluations in between. planned[s]: the most bytes that a plan of shape s took. */
static void train(test_model *t, const sluice_model_config *c, double *loss, uint64_t planned[SHAPES + 1],
                  char hash[65])
{
    uint32_t plans[SHAPES + 1] = {0}, again = 0;
    memset(planned, 0, (SHAPES + 1) * sizeof *planned);
    for (uint32_t s = 0; s < STEPS; s++) {
        sluice_step_report report = SLUICE_INIT(sluice_step_report);
        sluice_plan_report plan = SLUICE_INIT(sluice_plan_report);
        step(t, c, s, &report);
        const uint32_t shape = sluice_runtime_shape(t->rt);
        works(sluice_runtime_plan(t->rt, &plan));
        if (plan.planned_bytes > planned[shape]) planned[shape] = plan.planned_bytes;
        again += plans[shape] == report.plan;
        plans[shape] = report.plan;
        if (s % 5 == 1) evaluate(t, c, loss);
    }
    assert_true(again > 0);
    evaluate(t, c, loss);
    works(sluice_runtime_weights_sha256(t->rt, hash));
}

static uint64_t budget_of(const sluice_model_config *c)
{
    sluice_plan_report plan = SLUICE_INIT(sluice_plan_report);
    test_model t = create(c, "serial", SLUICE_RECOMPUTE_AUTO, 0, false);
    works(sluice_runtime_plan(t.rt, &plan));
    test_model_destroy(&t);
    return plan.planned_bytes;
}

static void shapes_change_no_bit(void **state)
{
    (void)state;
    static const struct {
        const char *schedule;
        sluice_recompute recompute;
        bool budget;
    } ways[] = {{"serial", SLUICE_RECOMPUTE_NONE, false},
                {"one_ahead", SLUICE_RECOMPUTE_ALL, true},
                {"priority", SLUICE_RECOMPUTE_AUTO, true}};
    for (size_t k = 0; k < KINDS; k++) {
        const sluice_model_config *c = &kinds[k].config;
        const uint64_t least = budget_of(c);
        char whole[65], shaped[65];
        double loss, shaped_loss;
        uint64_t planned[SHAPES + 1];
        test_model one = create(c, "serial", SLUICE_RECOMPUTE_NONE, 0, false);
        train(&one, c, &loss, planned, whole);
        test_model_destroy(&one);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            const uint64_t budget = ways[w].budget ? least + least / 8 : 0;
            test_model several = create(c, ways[w].schedule, ways[w].recompute, budget, true);
            train(&several, c, &shaped_loss, planned, shaped);
            assert_string_equal(shaped, whole);
            assert_true(shaped_loss == loss);
            assert_true(planned[1] < planned[0] && planned[2] < planned[1]);
            if (budget) assert_true(planned[0] <= budget);
            test_model_destroy(&several);
        }
    }
}

static void wrong_shapes_are_refused(void **state)
{
    (void)state;
    const sluice_model_config *c = &kinds[0].config;
    test_model t = create(c, "serial", SLUICE_RECOMPUTE_NONE, 0, true);
    arrays a;
    double loss;
    const sluice_batch longer = draw_batch(c, 1, 12, &a);
    fails(sluice_step_begin(t.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1, .shape = 3)),
          SLUICE_ERR_ARGUMENT, "shape 3");
    const double wrong_extents[] = {-0.5, 1.5, NAN};
    for (int i = 0; i < 3; i++)
        fails(sluice_step_begin(t.rt, &SLUICE_INIT(sluice_step_options, .shape = 2, .extent = wrong_extents[i])),
              SLUICE_ERR_ARGUMENT, "give a share of the longest");
    works(sluice_step_begin(t.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3, .shape = 2)));
    fails(sluice_model_forward(t.model, &longer), SLUICE_ERR_ARGUMENT,
          "12 tokens a sequence in a step of shape 2, which has 8");
    const sluice_batch fits = draw_batch(c, 1, 8, &a);
    works(sluice_model_forward(t.model, &fits));
    works(sluice_model_backward(t.model, &loss));
    works(sluice_step_end(t.rt, NULL));
    assert_int_equal(sluice_model_shape(t.model, 8), 2);
    assert_int_equal(sluice_model_shape(t.model, 9), 1);
    assert_int_equal(sluice_model_shape(t.model, 17), 0);
    assert_int_equal(sluice_model_shape(NULL, 4), 0);
    test_model_destroy(&t);

    static const uint32_t wrong[][SHAPES] = {{16, 16}, {6, 4}, {32, 8}, {8, 0}};
    works(sluice_world_create(NULL, &t.world));
    for (size_t i = 0; i <= sizeof wrong / sizeof *wrong; i++) {
        const bool folds = i == sizeof wrong / sizeof *wrong;
        sluice_config config;
        sluice_model *model;
        sluice_config_init(&config);
        works(sluice_runtime_create(t.world, &config, &t.rt));
        const sluice_model_options options =
            SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = LONGEST, .length_step = STEP, .folds = folds,
                        .shape_lengths = folds ? shape_lengths : wrong[i], .shape_count = SHAPES);
        fails(sluice_model_create(t.rt, c, &options, &model), SLUICE_ERR_ARGUMENT,
              folds ? "without folds" : "must be a multiple of 4");
        sluice_runtime_destroy(t.rt);
    }
    sluice_world_destroy(t.world);
}

static int ask_for_other_shapes(int rank, int size, void *context)
{
    (void)size, (void)context;
    test_model t = create(&kinds[0].config, "one_ahead", SLUICE_RECOMPUTE_NONE, 0, true);
    const uint64_t shape = 1 + (uint64_t)rank;
    RANK_CHECK(sluice_step_begin(t.rt, &SLUICE_INIT(sluice_step_options, .shape = shape)) == SLUICE_ERR_MISMATCH);
    RANK_CHECK(strstr(sluice_last_error(), "shape 1") && strstr(sluice_last_error(), "shape 2"));
    sluice_model_destroy(t.model);
    sluice_runtime_destroy(t.rt);
    sluice_world_destroy(t.world);
    return 0;
}

static void other_shapes_of_ranks_are_refused(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, ask_for_other_shapes, NULL, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes_change_no_bit),
                                       cmocka_unit_test(wrong_shapes_are_refused),
                                       cmocka_unit_test(other_shapes_of_ranks_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
