/* Text as bytes: windows across files, the dependence of windows on seed and number alone, and what must be refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/base/folder.h"
#include "lib/data/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static slc_text *open_all(const char *const *paths, size_t count)
{
    slc_text *text = NULL;
    sluice_status status = slc_text_open(paths, count, &text);
    if (status) fail_msg("%s", sluice_last_error());
    return text;
}

static void refused(const char *path, sluice_status expected, const char *why)
{
    slc_text *text = NULL;
    assert_int_equal(slc_text_open(&path, 1, &text), expected);
    assert_null(text);
    assert_non_null(strstr(sluice_last_error(), why));
    assert_non_null(strstr(sluice_last_error(), path));
}

static void files_are_one_text(void **state)
{
    (void)state;
    const char *paths[] = {write_file("one", "abc", 3), write_file("two", "\xff\0defghij", 9)};
    slc_text *text = open_all(paths, 2);
    assert_int_equal(slc_text_tokens(text), 12);
    int32_t all[12];
    assert_int_equal(slc_text_read(text, 0, 12, all), SLUICE_OK);
    const int32_t expected[12] = {'a', 'b', 'c', 255, 0, 'd', 'e', 'f', 'g', 'h', 'i', 'j'};
    assert_memory_equal(all, expected, sizeof all);
    for (uint64_t first = 0; first < 12; first++) {
        int32_t one;
        assert_int_equal(slc_text_read(text, first, 1, &one), SLUICE_OK);
        assert_int_equal(one, expected[first]);
    }
    uint64_t fingerprint = slc_text_fingerprint(text);
    slc_text_close(text);

    paths[0] = write_file("one", "abC", 3);
    text = open_all(paths, 2);
    assert_true(slc_text_fingerprint(text) != fingerprint);
    slc_text_close(text);
}

/* The fingerprint of a text must change with any byte, the first and the last of a piece too, in a file of bytes and in
 * one of tokens. */
static void the_content_is_all_of_it(void **state)
{
    (void)state;
    enum { BYTES = (1 << 20) + 40000, HEADER = 1024 };
    static unsigned char bytes[BYTES];
    static const size_t places[] = {HEADER + 4096, (1 << 20) - 1, 1 << 20, BYTES - 1};
    for (int tokens = 0; tokens < 2; tokens++) {
        memset(bytes, 0, sizeof bytes);
        const int32_t head[3] = {20240520, 1, (BYTES - HEADER) / 2};
        if (tokens) memcpy(bytes, head, sizeof head);
        uint64_t seen[5];
        for (size_t i = 0; i < 5; i++) {
            if (i) bytes[places[i - 1]] ^= 1;
            const char *path = write_file("all", bytes, sizeof bytes);
            slc_text *text = open_all(&path, 1);
            assert_int_equal(slc_text_tokens(text), tokens ? (BYTES - HEADER) / 2 : BYTES);
            assert_int_equal(slc_text_content(text, &seen[i]), SLUICE_OK);
            for (size_t k = 0; k < i; k++) assert_true(seen[k] != seen[i]);
            slc_text_close(text);
            if (i) bytes[places[i - 1]] ^= 1;
        }
    }
}

static void a_directory_is_its_files(void **state)
{
    (void)state;
    const char *directory = path_of("many");
    assert_int_equal(mkdir(directory, 0700), 0);
    refused(directory, SLUICE_ERR_ARGUMENT, "no regular file");
    write_file("many/b", "22", 2);
    write_file("many/a", "111", 3);
    write_file("many/empty", "", 0);
    assert_int_equal(symlink("a", path_of("many/c")), 0);
    directory = path_of("many");
    slc_text *text = open_all(&directory, 1);
    int32_t all[5];
    assert_int_equal(slc_text_tokens(text), 5);
    assert_int_equal(slc_text_read(text, 0, 5, all), SLUICE_OK);
    assert_int_equal(all[2], '1');
    assert_int_equal(all[3], '2');
    slc_text_close(text);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    slc_text *text = NULL;
    assert_int_equal(slc_text_open(NULL, 0, &text), SLUICE_ERR_ARGUMENT);
    refused(path_of("nowhere"), SLUICE_ERR_PATH, "No such file");
    refused(write_file("nothing", "", 0), SLUICE_ERR_ARGUMENT, "empty");
    refused("/dev/null", SLUICE_ERR_ARGUMENT, "regular");
    const char *pipe = path_of("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    refused(pipe, SLUICE_ERR_ARGUMENT, "regular");

    const char *path = write_file("short", "0123456789", 10);
    text = open_all(&path, 1);
    slc_text_range train, held_out;
    assert_int_equal(slc_text_split(text, 1, &train, &held_out), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "too short"));
    int32_t byte;
    assert_int_equal(truncate(path, 5), 0);
    assert_int_equal(slc_text_read(text, 7, 1, &byte), SLUICE_ERR_IO);
    assert_non_null(strstr(sluice_last_error(), "shorter"));
    slc_text_close(text);
}

static void windows_depend_on_seed_and_sequence_alone(void **state)
{
    (void)state;
    enum { BYTES = 1000, TOKENS = 16, BATCH = 60 };
    char content[BYTES];
    for (int i = 0; i < BYTES; i++) content[i] = (char)(i * 7 + i / 256);
    const char *path = write_file("long", content, BYTES);
    slc_text *text = open_all(&path, 1);
    slc_text_range train, held_out;
    assert_int_equal(slc_text_split(text, TOKENS, &train, &held_out), SLUICE_OK);
    assert_int_equal(train.tokens, 900);
    assert_int_equal(held_out.first, 900);

    static int32_t inputs[2][BATCH * TOKENS], targets[2][BATCH * TOKENS];
    assert_int_equal(slc_text_windows(text, train, 5, 100, BATCH, TOKENS, inputs[0], targets[0]), SLUICE_OK);
    for (uint32_t b = 0; b < BATCH; b++)
        assert_int_equal(
            slc_text_windows(text, train, 5, 100 + b, 1, TOKENS, inputs[1] + b * TOKENS, targets[1] + b * TOKENS),
            SLUICE_OK);
    assert_memory_equal(inputs[0], inputs[1], sizeof inputs[0]);
    assert_memory_equal(targets[0], targets[1], sizeof targets[0]);
    for (uint32_t b = 0; b < BATCH; b++)
        assert_memory_equal(inputs[0] + b * TOKENS + 1, targets[0] + b * TOKENS, (TOKENS - 1) * sizeof(int32_t));

    assert_int_equal(slc_text_windows(text, train, 6, 100, BATCH, TOKENS, inputs[1], targets[1]), SLUICE_OK);
    assert_true(memcmp(inputs[0], inputs[1], sizeof inputs[0]) != 0);
    slc_text_close(text);
}

static void every_window_of_the_range_can_come(void **state)
{
    (void)state;
    const char *path = write_file("digits", "abcdefghijklmnopqrst", 20);
    slc_text *text = open_all(&path, 1);
    const slc_text_range range = {.first = 5, .tokens = 4}; /* f g h i: the windows are fg, gh, hi */
    int seen[3] = {0};
    for (uint64_t i = 0; i < 300; i++) {
        int32_t input, target;
        assert_int_equal(slc_text_windows(text, range, 1, i, 1, 1, &input, &target), SLUICE_OK);
        assert_int_equal(target, input + 1);
        assert_true(input >= 'f' && input <= 'h');
        seen[input - 'f']++;
    }
    for (int i = 0; i < 3; i++) assert_true(seen[i] > 50);
    slc_text_close(text);
}

/* ---- Token files ---- */

static const char *write_tokens(const char *name, int32_t magic, int32_t version, int32_t said, size_t width,
                                size_t count, const uint32_t *tokens)
{
    char content[1024 + 256] = {0};
    const int32_t words[3] = {magic, version, said};
    memcpy(content, words, sizeof words);
    for (size_t i = 0; i < count; i++) memcpy(content + 1024 + i * width, &tokens[i], width);
    return write_file(name, content, 1024 + width * count);
}

static void token_files_are_read_as_tokens(void **state)
{
    (void)state;
    const uint32_t tokens[] = {0, 255, 256, 50256, 7, 65534, 70000, 128255};
    const char *paths[] = {write_tokens("one", 20240520, 1, 4, 2, 4, tokens),
                           write_tokens("two", 20240520, 1, 5, 2, 5, tokens + 1)};
    slc_text *text = open_all(paths, 2);
    int32_t all[9];
    assert_int_equal(slc_text_tokens(text), 9);
    assert_int_equal(slc_text_vocabulary(text), 50257);
    assert_int_equal(slc_text_read(text, 0, 8, all), SLUICE_OK);
    for (int i = 0; i < 8; i++) assert_int_equal(all[i], tokens[i < 4 ? i : i - 3]);
    assert_int_equal(slc_text_read(text, 4, 5, all), SLUICE_ERR_FORMAT);
    assert_non_null(strstr(sluice_last_error(), "two: token 4 is 65534"));
    slc_text_limit(text, 65535);
    assert_int_equal(slc_text_read(text, 4, 5, all), SLUICE_OK);
    slc_text_limit(text, 256);
    assert_int_equal(slc_text_read(text, 0, 2, all), SLUICE_OK);
    assert_int_equal(slc_text_read(text, 2, 1, all), SLUICE_ERR_FORMAT);
    slc_text_close(text);

    paths[0] = write_tokens("one", 20240801, 7, 8, 4, 8, tokens);
    text = open_all(paths, 1);
    assert_int_equal(slc_text_read(text, 0, 8, all), SLUICE_OK);
    for (int i = 0; i < 8; i++) assert_int_equal(all[i], tokens[i]);
    slc_text_close(text);
    assert_int_equal(slc_text_open(paths, 2, &text), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "one kind"));
}

static void token_files_that_lie_are_refused(void **state)
{
    (void)state;
    const uint32_t tokens[8] = {1, 2, 3};
    refused(write_tokens("one", 20240520, 2, 4, 2, 4, tokens), SLUICE_ERR_FORMAT, "version 2");
    refused(write_tokens("one", 20240801, 1, 4, 4, 4, tokens), SLUICE_ERR_FORMAT, "version 1");
    refused(write_tokens("one", 20240520, 1, 5, 2, 4, tokens), SLUICE_ERR_FORMAT, "holds 5");
    refused(write_tokens("one", 20240520, 1, 3, 2, 4, tokens), SLUICE_ERR_FORMAT, "holds 3");
    refused(write_tokens("one", 20240520, 1, 0, 2, 0, tokens), SLUICE_ERR_FORMAT, "holds 0");
    refused(write_tokens("one", 20240520, 1, -1, 2, 4, tokens), SLUICE_ERR_FORMAT, "holds -1");
    refused(write_tokens("one", 20240801, 7, 2, 2, 5, tokens), SLUICE_ERR_FORMAT, "are 10 bytes");
    refused(write_tokens("one", 20240522, 1, 4, 2, 4, tokens), SLUICE_ERR_FORMAT, "evaluation set");
    refused(write_tokens("one", 20240326, 3, 4, 2, 4, tokens), SLUICE_ERR_FORMAT, "checkpoint");
    const int32_t words[3] = {20240520, 1, 1};
    refused(write_file("one", (const char *)words, sizeof words), SLUICE_ERR_FORMAT, "are 0 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_one_text),
        cmocka_unit_test(the_content_is_all_of_it),
        cmocka_unit_test(a_directory_is_its_files),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(windows_depend_on_seed_and_sequence_alone),
        cmocka_unit_test(every_window_of_the_range_can_come),
        cmocka_unit_test(token_files_are_read_as_tokens),
        cmocka_unit_test(token_files_that_lie_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
