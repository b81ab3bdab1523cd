/* A step's lines hold its numbers, and a log that goes on keeps the whole lines up to a step. */
#include "bench/train/log/step_line.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const slc_training_line_times times = {1.7e9 + 0.125, 12.5};

static slc_training_step make_step(uint64_t number)
{
    return (slc_training_step){.step = number,
                               .loss = 1.0 / 3,
                               .smoothed_loss = 0.5,
                               .learning_rate = 1e-3,
                               .step_s = 0.25,
                               .gradient_norm = NAN,
                               .tokens = 640,
                               .passes = NAN,
                               .evaluation_loss = NAN,
                               .accuracy = NAN};
}

static json_t *parse(const char *line, size_t bytes)
{
    assert_true(bytes > 1 && line[bytes - 1] == '\n' && !memchr(line, '\n', bytes - 1));
    json_t *object = json_loadb(line, bytes, 0, NULL);
    assert_true(json_is_object(object));
    return object;
}

static void json_lines(void **state)
{
    (void)state;
    char line[SLC_TRAINING_LINE_BYTES];
    slc_training_step step = make_step(7);
    json_t *object = parse(line, slc_training_json_line(&step, &times, line));
    assert_int_equal(json_integer_value(json_object_get(object, "step")), 7);
    assert_true(fabs(json_number_value(json_object_get(object, "loss")) - 1.0 / 3) < 1e-9);
    assert_true(json_number_value(json_object_get(object, "time")) == times.time_s);
    assert_int_equal(json_integer_value(json_object_get(object, "tokens")), 640);
    assert_true(json_is_null(json_object_get(object, "gradient_norm")));
    assert_null(json_object_get(object, "evaluation_loss"));
    json_decref(object);
    step.loss = INFINITY;
    step.evaluation_loss = 2.5;
    step.accuracy = 0.75;
    object = parse(line, slc_training_json_line(&step, &times, line));
    assert_true(json_is_null(json_object_get(object, "loss")));
    assert_true(json_number_value(json_object_get(object, "evaluation_loss")) == 2.5);
    assert_true(json_number_value(json_object_get(object, "evaluation_accuracy")) == 0.75);
    json_decref(object);
    object = parse(line, slc_training_json_end_line(&step, 1, line));
    assert_int_equal(json_object_size(object), 4);
    json_decref(object);
}

/* The longest numbers that there are fit. */
static void longest_line(void **state)
{
    (void)state;
    char line[SLC_TRAINING_LINE_BYTES];
    const double most = -1e308;
    const slc_training_step step = {INT64_MAX,
                                    .loss = most,
                                    .learning_rate = most,
                                    .gradient_norm = most,
                                    .peak_bytes = INT64_MAX,
                                    .bytes_sent = INT64_MAX,
                                    .evaluation_loss = most,
                                    .accuracy = most,
                                    .tokens = INT64_MAX,
                                    .passes = most,
                                    .smoothed_loss = most};
    json_decref(parse(line, slc_training_json_line(&step, &times, line)));
}

static size_t count(const char *text, size_t bytes, char of)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) n += text[i] == of;
    return n;
}

static void csv_lines_have_a_column_each(void **state)
{
    (void)state;
    char line[SLC_TRAINING_LINE_BYTES];
    slc_training_step step = make_step(7);
    const size_t columns = count(slc_training_csv_head, strlen(slc_training_csv_head), ',');
    assert_int_equal(count(line, slc_training_csv_line(&step, &times, line), ','), columns);
    step.evaluation_loss = 2.5;
    assert_int_equal(count(line, slc_training_csv_end_line(&step, 1, line), ','), columns);
    assert_memory_equal(line, "7,,,,,,,,,2.5,,,", 16);
}

static size_t write_log(char *text, uint64_t steps, bool csv)
{
    size_t used = 0;
    char line[SLC_TRAINING_LINE_BYTES];
    if (csv) used = (size_t)sprintf(text, "%s", slc_training_csv_head);
    for (uint64_t i = 1; i <= steps; i++) {
        const slc_training_step step = make_step(i);
        const size_t bytes = (csv ? slc_training_csv_line : slc_training_json_line)(&step, &times, line);
        memcpy(text + used, line, bytes);
        used += bytes;
    }
    return used;
}

/* Wherever a log was cut, what is kept ends with a whole line, and is of no step beyond the last. */
static void whole_lines_are_kept(void **state)
{
    (void)state;
    enum { STEPS = 12 };
    static char text[STEPS * SLC_TRAINING_LINE_BYTES];
    size_t ends[STEPS + 1];
    for (int csv = 0; csv <= 1; csv++) {
        for (uint64_t i = 0; i <= STEPS; i++) ends[i] = write_log(text, i, csv);
        for (uint64_t last = 0; last <= STEPS + 1; last++)
            for (size_t bytes = 0; bytes <= ends[STEPS]; bytes++) {
                size_t expected = 0;
                for (uint64_t i = 0; i <= STEPS && i <= last; i++)
                    if (ends[i] <= bytes) expected = ends[i];
                assert_int_equal(slc_training_lines_until(text, bytes, last), expected);
            }
    }
}

static void other_files_are_not_kept(void **state)
{
    (void)state;
    static const char other[] = "time,step\n1,2\n", zero[] = "{\"step\":0,\"loss\":1}\n";
    assert_int_equal(slc_training_lines_until(other, sizeof other - 1, 100), 0);
    assert_int_equal(slc_training_lines_until(zero, sizeof zero - 1, 100), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_lines),
        cmocka_unit_test(longest_line),
        cmocka_unit_test(whole_lines_are_kept),
        cmocka_unit_test(csv_lines_have_a_column_each),
        cmocka_unit_test(other_files_are_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
