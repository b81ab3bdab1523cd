/* Steps are found in sequences of calls, by what repeats and by the pauses between. */
#include "tests/support/base/folder.h"

#include "bench/nccl/steps/steps.h"
#include "tests/support/draw.h"

enum { MOST = 400 };

typedef struct {
    slc_nccl_entry entries[MOST];
    slc_record_communicator row;
    slc_nccl_process process;
} program;

/* A call for each letter: its count is the letter; a blank before it is a pause. */
static program *of_text(const char *text)
{
    program *p = calloc(1, sizeof *p);
    assert_non_null(p);
    int64_t now = 1000;
    for (; *text; text++) {
        now += *text == ' ' ? 500000 : 1000;
        if (*text == ' ') continue;
        p->entries[p->process.entry_count++] = (slc_nccl_entry){
            .operation = SLC_RECORD_ALL_REDUCE, .dtype = 7, .count = (uint64_t)*text, .time_ns = now, .peer = -1};
    }
    p->row = (slc_record_communicator){.size = 2, .device = 3};
    p->process.entries = p->entries;
    p->process.communicators = &p->row;
    p->process.header.communicators = 1;
    return p;
}

static void found(const char *text, size_t length, size_t first, size_t count)
{
    program *p = of_text(text);
    slc_nccl_steps steps;
    works(slc_nccl_steps_find(&p->process, 3, &steps));
    if (steps.length != length || steps.first != first || steps.count != count)
        fail_msg("%s: %zu calls, %zu times from %zu on", text, steps.length, steps.count, steps.first);
    slc_nccl_steps_free(&steps);
    free(p);
}

static void periods_of_sequences(void **state)
{
    (void)state;
    found("", 0, 0, 0);
    found("abcdef", 0, 0, 0);
    found("ababa", 0, 0, 0); /* twice is no step */
    found("aaaa", 1, 0, 4);
    found("abcabcabc", 3, 0, 3);
    found("xyabc abc abc abc q", 3, 2, 4);        /* warm-up and tail */
    found("aaab aaab aaab aaab", 4, 0, 4);        /* runs inside a step */
    found("bc abc abc abc abc ab", 3, 2, 4);      /* the pause says where a step begins */
    found("qq aab aab aab qqq aab aab", 3, 2, 3); /* the longest stretch */
}

/* Layers that are alike make the shortest period shorter than a step; pauses tell. */
static void pauses_divide_what_is_alike(void **state)
{
    (void)state;
    found("ababab ababab ababab ababab ababab", 6, 0, 5);
    found("aaaa aaaa aaaa aaaa aa", 4, 0, 4);
    found("ab ab ab ab ab ab", 2, 0, 6);                     /* every period has its pause */
    found("abab ab ababab ab ababababab ab abab", 2, 0, 15); /* no regular distance */
    found("xx aaa aaa aaa aaa aaa y", 3, 2, 5);
}

static void bytes_and_times_of_a_step(void **state)
{
    (void)state;
    slc_nccl_steps steps;
    program *p = of_text("ab ab ab ab");
    works(slc_nccl_steps_find(&p->process, 3, &steps));
    assert_int_equal(steps.bytes, 4 * ('a' + 'b'));
    assert_true(steps.period_s > 501.9e-6 && steps.period_s < 502.1e-6);
    slc_nccl_steps_free(&steps);
    works(slc_nccl_steps_find(&p->process, 4, &steps)); /* another device */
    assert_int_equal(steps.call_count, 0);
    slc_nccl_steps_free(&steps);
    p->entries[4].flags = SLC_RECORD_FAILED;
    works(slc_nccl_steps_find(&p->process, 3, &steps));
    assert_int_equal(steps.call_count, 7);
    slc_nccl_steps_free(&steps);
    assert_int_equal(slc_nccl_device(&p->process, 0), 3);
    assert_int_equal(slc_nccl_device(&p->process, 1), -1);
    free(p);
}

/* Any step that is called often enough, with a pause before it, is found after a warm-up and before a tail. */
static void any_step_is_found(void **state)
{
    (void)state;
    uint64_t draws = 16;
    for (unsigned trial = 0; trial < 2000; trial++) {
        char text[2 * MOST], step[16];
        size_t written = 0, warm_up = draw(&draws, 20), length = 1 + draw(&draws, 12), repeats = 8 + draw(&draws, 20);
        for (size_t i = 0; i < length; i++) step[i] = (char)('a' + draw(&draws, 3));
        for (size_t i = 0; i < warm_up; i++) text[written++] = (char)('p' + i);
        for (size_t i = 0; i < repeats; i++) {
            text[written++] = ' ';
            memcpy(text + written, step, length);
            written += length;
        }
        for (size_t i = draw(&draws, length); i--;) text[written++] = (char)('A' + i);
        text[written] = 0;
        found(text, length, warm_up, repeats);
    }
}

/* The step of a long program repeats from its beginning on. */
static void long_programs(void **state)
{
    (void)state;
    enum { CALLS = 50000 };
    slc_nccl_entry *entries = calloc(CALLS, sizeof *entries);
    assert_non_null(entries);
    for (unsigned i = 0; i < CALLS; i++)
        entries[i] = (slc_nccl_entry){.operation = SLC_RECORD_ALL_REDUCE, .dtype = 7, .count = i % 50, .time_ns = i};
    slc_record_communicator row = {.size = 2};
    slc_nccl_process process = {
        .header = {.communicators = 1}, .communicators = &row, .entries = entries, .entry_count = CALLS};
    slc_nccl_steps steps;
    works(slc_nccl_steps_find(&process, 0, &steps));
    assert_int_equal(steps.first, 0);
    assert_int_equal(steps.length, 50);
    assert_int_equal(steps.count, CALLS / 50);
    slc_nccl_steps_free(&steps);
    free(entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(periods_of_sequences),
        cmocka_unit_test(pauses_divide_what_is_alike),
        cmocka_unit_test(bytes_and_times_of_a_step),
        cmocka_unit_test(any_step_is_found),
        cmocka_unit_test(long_programs),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
