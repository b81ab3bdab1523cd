/* Rates must be transformers' (tests/golden/lr_schedules.json, made by make_lr_schedules.py), the default's those of
 * before there was a choice, and a function of the clock alone; settings that do not fit together are refused. */
#include "bench/train/options/lr_schedule.h"

// clang-format off
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include "bench/train/options/options.h"
#include "tests/support/without_fma.h"

#include <math.h>
#include <string.h>

static slc_training_options options_of(const char *const (*pairs)[2], size_t count)
{
    slc_training_options o;
    slc_training_options_init(&o);
    o.optimizer = "adamw";
    for (size_t i = 0; i < count; i++)
        assert_int_equal(slc_training_option_set(&o, pairs[i][0], pairs[i][1]), SLUICE_OK);
    return o;
}
#define OPTIONS(...)                                                                                                   \
    options_of((const char *const[][2]){__VA_ARGS__}, sizeof((const char *const[][2]){__VA_ARGS__}) / sizeof(char *[2]))

static slc_lr_schedule made(const slc_training_options *o, uint64_t tokens_per_step)
{
    slc_lr_schedule s;
    sluice_status status = slc_lr_schedule_make(o, tokens_per_step, &s);
    if (status) print_error("%s\n", sluice_last_error());
    assert_int_equal(status, SLUICE_OK);
    return s;
}

static double rate_at(const slc_lr_schedule *s, double before)
{
    return slc_recipe_rate_at(&s->rate, before, before + s->stride);
}

/* ---- Against transformers ---- */

static void compare_case(const json_t *one)
{
    const char *name;
    json_t *value, *step, *rates = json_object_get(one, "rates"), *steps = json_object_get(one, "steps");
    size_t i;
    slc_training_options o = OPTIONS({"seed", "1"});
    json_object_foreach (json_object_get((json_t *)one, "options"), name, value)
        assert_int_equal(slc_training_option_set(&o, name, json_string_value(value)), SLUICE_OK);
    slc_lr_schedule s = made(&o, (uint64_t)json_integer_value(json_object_get(one, "tokens_per_step")));
    assert_int_equal(json_array_size(rates), json_array_size(steps));
    assert_true(json_array_size(rates) > 0);
    json_array_foreach (steps, i, step) {
        double wanted = json_real_value(json_array_get(rates, i));
        double got = rate_at(&s, (double)(json_integer_value(step) - 1) * s.stride);
        if (fabs(got - wanted) <= 1e-12 * o.learning_rate) continue;
        print_error("%s, step %lld: %.17g, transformers has %.17g\n", o.lr_schedule, json_integer_value(step), got,
                    wanted);
        fail();
    }
}

static void rates_are_those_of_transformers(void **state)
{
    (void)state;
    json_error_t error;
    json_t *cases = json_load_file(SLUICE_GOLDEN_DIR "/lr_schedules.json", 0, &error), *one;
    size_t i;
    assert_non_null(cases);
    assert_int_equal(json_array_size(cases), 20);
    json_array_foreach (cases, i, one) compare_case(one);
    json_decref(cases);
}

/* ---- Properties ---- */

static void the_default_is_as_it_always_was(void **state)
{
    (void)state;
    for (uint64_t warmup = 0; warmup < 200; warmup++) {
        slc_training_options o = OPTIONS({"lr", "0.0007"});
        o.warmup = warmup;
        slc_lr_schedule s = made(&o, 12345);
        for (uint64_t step = 0; step < 300; step++) {
            double was = step < warmup ? o.learning_rate * (double)(step + 1) / (double)warmup : o.learning_rate;
            assert_true(rate_at(&s, (double)step) == was);
        }
    }
}

/* Over 10^5 steps, against the formula in float64; before and after it, the schedule's bits. */
static void a_second_warm_up_multiplies_the_schedule(void **state)
{
    (void)state;
    static const char *const kinds[] = {"constant", "linear", "cosine", "inverse_sqrt", "wsd"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        slc_training_options o = OPTIONS({"steps", "100000"}, {"warmup", "100"}, {"lr-schedule", kinds[k]});
        const slc_lr_schedule plain = made(&o, 0);
        o.warmup_again = 3000, o.warmup_again_at = 20000;
        const slc_lr_schedule again = made(&o, 0);
        for (int step = 0; step < 100000; step++) {
            const double factor = step >= 20000 && step < 23000 ? (step + 1 - 20000) / 3000.0 : 1;
            const double was = rate_at(&plain, step), is = rate_at(&again, step);
            assert_true(factor == 1 ? is == was : fabs(is - was * factor) <= 1e-12 * o.learning_rate);
        }
    }
}

/* With all times on the clock multiplied by a power of two nothing is rounded otherwise. */
static void tokens_are_steps_on_another_clock(void **state)
{
    (void)state;
    static const char *const kinds[] = {"constant", "linear", "cosine", "inverse_sqrt", "wsd"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        slc_training_options o = OPTIONS({"steps", "100"}, {"warmup", "10"}, {"lr-schedule", kinds[k]});
        bool ends = slc_lr_schedule_horizon(&o) > 0;
        o.lr_horizon = ends ? 100 : 0;
        slc_lr_schedule steps = made(&o, 0);
        o.lr_over = "tokens", o.lr_horizon *= 2048, o.warmup *= 2048;
        o.lr_decay = k == 4 ? 10 * 2048 : 0;
        slc_lr_schedule tokens = made(&o, 2048);
        for (uint64_t i = 0; i < 100; i++)
            assert_true(rate_at(&steps, (double)i) == rate_at(&tokens, (double)i * 2048));
    }
}

static void rates_stay_between_their_bounds(void **state)
{
    (void)state;
    static const char *const kinds[] = {"linear", "cosine", "inverse_sqrt", "wsd"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        slc_training_options o =
            OPTIONS({"lr", "0.5"}, {"lr-min", "0.25"}, {"steps", "400"}, {"warmup", "13"}, {"lr-schedule", kinds[k]});
        o.lr_horizon = slc_lr_schedule_horizon(&o) ? 300 : 0;
        slc_lr_schedule s = made(&o, 0);
        double before = 1;
        for (uint64_t i = 12; i < 400; i++) {
            double rate = rate_at(&s, (double)i);
            assert_true(rate <= 0.5 && rate >= 0.25 && rate <= before);
            before = rate;
        }
        assert_true(before == 0.25);
    }
}

/* ---- Refusals ---- */

static void refused(const char *words, slc_training_options o, uint64_t tokens_per_step)
{
    slc_lr_schedule s;
    assert_int_equal(slc_lr_schedule_make(&o, tokens_per_step, &s), SLUICE_ERR_ARGUMENT);
    if (!strstr(sluice_last_error(), words)) print_error("\"%s\" lacks \"%s\"\n", sluice_last_error(), words);
    assert_non_null(strstr(sluice_last_error(), words));
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    refused("--lr-min 0.1 is above --lr", OPTIONS({"lr-schedule", "cosine"}, {"lr-min", "0.1"}), 0);
    refused("never falls", OPTIONS({"lr-min", "0.0001"}), 0);
    refused("has no end", OPTIONS({"lr-schedule", "inverse_sqrt"}, {"lr-horizon", "9"}), 0);
    refused("only the schedule wsd", OPTIONS({"lr-schedule", "linear"}, {"lr-decay", "9"}), 0);
    refused("only the schedule inverse_sqrt", OPTIONS({"lr-schedule", "wsd"}, {"lr-timescale", "9"}), 0);
    refused("ends after 100 steps (--steps)", OPTIONS({"lr-schedule", "linear"}, {"warmup", "100"}), 0);
    refused("(--lr-horizon)", OPTIONS({"lr-schedule", "wsd"}, {"warmup", "60"}, {"lr-horizon", "50"}), 0);
    refused("give 80 at most", OPTIONS({"lr-schedule", "wsd"}, {"warmup", "20"}, {"lr-decay", "81"}), 0);
    refused("--steps goes on", OPTIONS({"lr-schedule", "cosine"}, {"lr-horizon", "99"}), 0);
    refused("--lr-horizon 3e9", OPTIONS({"lr-schedule", "cosine"}, {"lr-over", "tokens"}), 0);
    refused("--lr-timescale 1e8", OPTIONS({"lr-schedule", "inverse_sqrt"}, {"lr-over", "tokens"}), 0);
    refused("--warmup-again: give --warmup-again-at too", OPTIONS({"warmup-again", "5"}), 0);
    refused("--warmup-again-at: give --warmup-again too", OPTIONS({"warmup-again-at", "5"}), 0);
    refused("--warmup-again-at 5 lies inside the first warm-up of 9 steps",
            OPTIONS({"warmup", "9"}, {"warmup-again", "5"}, {"warmup-again-at", "5"}), 0);
    refused("goes on beyond 100, where the schedule cosine ends",
            OPTIONS({"lr-schedule", "cosine"}, {"warmup-again", "5"}, {"warmup-again-at", "96"}), 0);
    refused("a step takes 64 tokens", OPTIONS({"lr-over", "tokens"}, {"warmup", "63"}), 64);
}

static void a_schedule_has_words(void **state)
{
    (void)state;
    char text[200];
    slc_training_options o = OPTIONS({"lr-schedule", "cosine"}, {"warmup", "10"}, {"lr-min", "0.0001"});
    slc_lr_schedule s = made(&o, 0);
    slc_lr_schedule_words(&s, text, sizeof text);
    assert_string_equal(text, "0.001 after a warm-up over 10 steps, then cosine to 0.0001 at step 100");
    slc_lr_schedule_words(&s, text, 12); /* is cut, and ends */
    assert_string_equal(text, "0.001 after");
    o = OPTIONS({"lr", "0.5"}, {"warmup-again", "3"}, {"warmup-again-at", "7"});
    s = made(&o, 0);
    slc_lr_schedule_words(&s, text, sizeof text);
    assert_string_equal(text, "0.5, with a second warm-up from step 7 over 3 steps");
    o = OPTIONS({"lr", "0.5"});
    s = made(&o, 0);
    slc_lr_schedule_words(&s, text, sizeof text);
    assert_string_equal(text, "0.5");
}

/* Every rank computes the rate for itself. */
static uint64_t bits_of_rates(void)
{
    uint64_t hash = SLC_FNV_START;
    slc_training_options o = OPTIONS({"lr-schedule", "cosine"}, {"steps", "50000"});
    slc_lr_schedule s = made(&o, 0);
    for (int step = 0; step < 50000; step++) {
        const double rate = rate_at(&s, step);
        hash = slc_fnv(hash, &rate, sizeof rate);
    }
    return hash;
}

static void rates_are_the_same_without_fma(void **state)
{
    (void)state;
    same_bits_without_fma(bits_of_rates());
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc == 2) return print_bits(bits_of_rates());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_those_of_transformers),
        cmocka_unit_test(the_default_is_as_it_always_was),
        cmocka_unit_test(a_second_warm_up_multiplies_the_schedule),
        cmocka_unit_test(tokens_are_steps_on_another_clock),
        cmocka_unit_test(rates_stay_between_their_bounds),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_schedule_has_words),
        cmocka_unit_test(rates_are_the_same_without_fma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
