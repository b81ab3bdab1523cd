/* The line of a step tells the latest steps' pace, and a time left that goes down with the clock. */
#include "bench/train/words/progress.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 1000, TOKENS = 64 };

static slc_training_step make_step(uint64_t number, double step_s, uint32_t plan)
{
    return (slc_training_step){.step = number,
                               .share = 1,
                               .loss = 2.5,
                               .smoothed_loss = 2,
                               .step_s = step_s,
                               .tokens = number * TOKENS,
                               .plan = plan,
                               .evaluation_loss = NAN,
                               .accuracy = NAN,
                               .passes = NAN};
}

/* Each fortieth step takes ten times as long, and each hundredth is followed by an evaluation of three seconds. */
static void the_time_left_does_not_jump(void **state)
{
    (void)state;
    slc_training_time_left left = {0};
    double before = 0, worst = 0;
    for (uint64_t i = 1; i <= STEPS; i++) {
        const double step_s = i % 40 == 39 ? 5 : 0.5, interval_s = step_s + (i % 100 == 1 && i > 1 ? 3 : 0);
        const slc_training_step step = make_step(i, step_s, 1);
        const double now = slc_training_time_left_after(&left, &step, i > 1 ? interval_s : 0, STEPS - i);
        if (i > 50 && i < STEPS - 50) worst = fmax(worst, fabs(now - (before - interval_s)) / before);
        if (i > 50) assert_true(fabs(now - (STEPS - (double)i) * 0.53) < 0.1 * (STEPS - (double)i) * 0.53 + 5);
        before = now;
    }
    print_message("the time left leaves the clock by %.1f %% of itself at most\n", 100 * worst);
    assert_true(worst < 0.03);
    assert_true(left.left_s == 0);
}

/* Planning is neither a step nor something that comes again. */
static void planning_is_no_step(void **state)
{
    (void)state;
    slc_training_time_left left = {0};
    double now = 0;
    for (uint64_t i = 1; i <= 20; i++) {
        slc_training_step step = make_step(i, 1, i <= 3 ? 1 : 2);
        step.planning_s = i == 3 ? 60 : 0;
        now = slc_training_time_left_after(&left, &step, i > 1 ? 1 + step.planning_s : 0, 100 - i);
    }
    assert_true(fabs(slc_training_latest_step_s(&left) - 1) < 1e-9);
    assert_true(fabs(slc_training_latest_tokens(&left) - TOKENS) < 1e-9);
    assert_true(fabs(now - 80) < 8);
}

static void line_of(slc_training_progress *progress, const slc_training_step *step, char *line)
{
    slc_training_time_left_after(&progress->left, step, 0, progress->steps - step->step);
    slc_training_progress_line(progress, step, line);
}

static void lines(void **state)
{
    (void)state;
    char line[SLC_TRAINING_SHOWN_BYTES];
    slc_training_progress progress = {.steps = STEPS};
    slc_training_step step = make_step(1, 0.5, 1);
    line_of(&progress, &step, line);
    assert_string_equal(line, "step 1/1000  loss 2.5000  smoothed 2.0000  128 tokens/s  left 8:20");
    progress = (slc_training_progress){
        .steps = STEPS, .language = true, .verbose = true, .peak_step_s = 0.125, .left = {.tokens = 0}};
    step.passes = 0.25;
    step.evaluation_loss = 3;
    step.accuracy = 0.5;
    step.skipped = true;
    step.exposed_s = 0.001;
    step.peak_bytes = 1 << 20;
    line_of(&progress, &step, line);
    assert_string_equal(line, "step 1/1000  loss 2.5000  smoothed 2.0000  perplexity 7.389  held-out 3.0000, accuracy "
                              "50.00 %  pass 0.25  128 tokens/s  25 % of peak  exposed 1.0 ms  memory 1.0 MiB  left "
                              "8:20  skipped");
    progress = (slc_training_progress){.steps = STEPS, .images = 8};
    step = make_step(1, 0.5, 1);
    step.loss = step.smoothed_loss = NAN;
    line_of(&progress, &step, line);
    assert_string_equal(line, "step 1/1000  loss not finite  16 images/s  left 8:20");
}

static void times(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0:00"}, {61.4, "1:01"}, {3599, "59:59"}, {3723, "1:02:03"}, {172800, "2 d 0 h"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        slc_training_format_time(cases[i].seconds, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_left_does_not_jump),
        cmocka_unit_test(planning_is_no_step),
        cmocka_unit_test(lines),
        cmocka_unit_test(times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
