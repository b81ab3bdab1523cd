/* A text's tokens are made once: a second reader has them from the folder, whatever either was. A file that is damaged,
 * of another text or another tokenizer is not taken, and no failure of the folder is one of the text. */
#include "tests/support/base/folder.h"

#include "lib/base/status.h"
#include "lib/data/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPEATS = 300, READERS = 4, PATH_ROOM = 2 * PATH_MAX };

static char folder[PATH_ROOM];
static slc_text_cache cache = {.folder = folder, .limit_bytes = 1 << 20};

static slc_tokenizer *open_golden(const char *name)
{
    char path[PATH_ROOM + 256];
    slc_tokenizer *tokenizer = NULL;
    snprintf(path, sizeof path, "%s/%s", SLUICE_GOLDEN_DIR, name);
    works(slc_tokenizer_open(path, &tokenizer));
    return tokenizer;
}

static sluice_status count_calls(uint64_t done, uint64_t bytes, void *context)
{
    (void)done, (void)bytes;
    ++*(uint64_t *)context;
    return SLUICE_OK;
}

/* Returns how often the encoding has told how far it is: 0 if it found the tokens. */
static uint64_t encode(const char *const *paths, size_t count, const slc_tokenizer *tokenizer, int32_t between,
                       slc_text **out)
{
    uint64_t calls = 0;
    const slc_text_encoding how = {
        .tokenizer = tokenizer, .between = between, .progress = count_calls, .context = &calls, .cache = &cache};
    works(slc_text_open(paths, count, out));
    works(slc_text_encode(*out, &how));
    return calls;
}

static void are_equal(const slc_text *a, const slc_text *b)
{
    assert_int_equal(slc_text_tokens(a), slc_text_tokens(b));
    assert_int_equal(slc_text_vocabulary(a), slc_text_vocabulary(b));
    assert_int_equal(slc_text_fingerprint(a), slc_text_fingerprint(b));
    const uint64_t count = slc_text_tokens(a);
    int32_t *x = malloc(count * sizeof *x), *y = malloc(count * sizeof *y);
    assert_true(x && y);
    works(slc_text_read(a, 0, count, x));
    works(slc_text_read(b, 0, count, y));
    assert_memory_equal(x, y, count * sizeof *x);
    slc_text_range of_a, of_b;
    for (size_t i = 0; slc_text_file(a, i, &of_a); i++) {
        assert_true(slc_text_file(b, i, &of_b));
        assert_int_equal(of_a.first, of_b.first);
        assert_int_equal(of_a.tokens, of_b.tokens);
    }
    free(x);
    free(y);
}

static char text_path[2][PATH_MAX];
static const char *const texts[2] = {text_path[0], text_path[1]};

static void make_texts(void)
{
    char bytes[REPEATS * 16];
    for (int i = 0; i < 2; i++) {
        size_t used = 0;
        for (int r = 0; r < REPEATS; r++) used += (size_t)sprintf(bytes + used, "word %d, ", (r * (i + 7)) % 1000);
        snprintf(text_path[i], sizeof text_path[i], "%s", write_file(i ? "second" : "first", bytes, used));
    }
    snprintf(folder, sizeof folder, "%s/cache", test_folder());
    cache.limit_bytes = 1 << 20;
    cache.least_bytes = 0;
}

/* The only file in the folder, or the number of files. */
static int list(char path[PATH_ROOM + 256])
{
    int count = 0;
    DIR *open = opendir(folder);
    for (const struct dirent *entry; open && (entry = readdir(open));) {
        if (entry->d_name[0] == '.') continue;
        if (path) snprintf(path, PATH_ROOM + 256, "%s/%.200s", folder, entry->d_name);
        count++;
    }
    if (open) closedir(open);
    return count;
}

static void empty(void)
{
    char path[PATH_ROOM + 256];
    while (list(path)) assert_int_equal(unlink(path), 0);
}

static void tokens_are_made_once(void **state)
{
    (void)state;
    slc_text *made, *found, *plain;
    slc_tokenizer *tokenizer = open_golden("tokenizer_bpe");
    make_texts();
    assert_true(encode(texts, 2, tokenizer, 3, &made) > 0);
    assert_int_equal(list(NULL), 1);
    assert_int_equal(encode(texts, 2, tokenizer, 3, &found), 0);
    cache.least_bytes = 1 << 20; /* it is too short to be kept */
    assert_true(encode(texts, 2, tokenizer, 3, &plain) > 0);
    are_equal(made, found);
    are_equal(made, plain);
    assert_int_equal(list(NULL), 1);
    slc_text_close(made);
    slc_text_close(found);
    slc_text_close(plain);
    slc_tokenizer_close(tokenizer);
    empty();
}

static void others_are_not_taken(void **state)
{
    (void)state;
    slc_text *text;
    slc_tokenizer *bpe = open_golden("tokenizer_bpe"), *other = open_golden("tokenizer_wordpiece");
    const char *const turned[2] = {texts[1], texts[0]};
    make_texts();
    assert_true(encode(texts, 2, bpe, 3, &text) > 0);
    slc_text_close(text);
    assert_true(encode(texts, 2, bpe, -1, &text) > 0);
    slc_text_close(text);
    assert_true(encode(texts, 2, other, 3, &text) > 0);
    slc_text_close(text);
    assert_true(encode(turned, 2, bpe, 3, &text) > 0);
    slc_text_close(text);
    assert_true(encode(texts, 1, bpe, 3, &text) > 0);
    slc_text_close(text);
    assert_int_equal(list(NULL), 5);
    const int file = open(texts[1], O_WRONLY);
    assert_int_equal(pwrite(file, "W", 1, 1000), 1); /* the length is as it was */
    close(file);
    assert_true(encode(texts, 2, bpe, 3, &text) > 0);
    slc_text_close(text);
    slc_tokenizer_close(bpe);
    slc_tokenizer_close(other);
    empty();
}

static void what_is_damaged_is_made_anew(void **state)
{
    (void)state;
    char path[PATH_ROOM + 256];
    slc_text *whole, *text;
    struct stat info;
    slc_tokenizer *tokenizer = open_golden("tokenizer_bpe");
    make_texts();
    encode(texts, 2, tokenizer, 3, &whole);
    assert_int_equal(list(path), 1);
    assert_int_equal(stat(path, &info), 0);
    for (off_t at = 0; at < info.st_size; at += at < 100 ? 1 : 97) {
        char byte;
        const int file = open(path, O_RDWR);
        assert_int_equal(pread(file, &byte, 1, at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(file, &byte, 1, at), 1);
        close(file);
        assert_true(encode(texts, 2, tokenizer, 3, &text) > 0);
        are_equal(whole, text);
        slc_text_close(text);
    }
    assert_int_equal(truncate(path, info.st_size - 1), 0);
    assert_true(encode(texts, 2, tokenizer, 3, &text) > 0);
    slc_text_close(text);
    assert_int_equal(encode(texts, 2, tokenizer, 3, &text), 0);
    slc_text_close(text);
    slc_text_close(whole);
    slc_tokenizer_close(tokenizer);
    empty();
}

/* The one that was used longest ago goes. */
static void the_folder_holds_no_more_than_it_may(void **state)
{
    (void)state;
    char path[PATH_ROOM + 256];
    slc_text *text;
    struct stat info;
    slc_tokenizer *tokenizer = open_golden("tokenizer_bpe");
    make_texts();
    encode(&texts[0], 1, tokenizer, 3, &text);
    slc_text_close(text);
    assert_int_equal(list(path), 1);
    assert_int_equal(stat(path, &info), 0);
    cache.limit_bytes = (uint64_t)info.st_size * 5 / 2;
    const struct timespec hours_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, path, hours_ago, 0), 0);
    encode(&texts[1], 1, tokenizer, 3, &text);
    slc_text_close(text);
    usleep(20000); /* times of files are as coarse as the system's clock */
    assert_int_equal(encode(&texts[0], 1, tokenizer, 3, &text), 0); /* now it is the latest */
    slc_text_close(text);
    usleep(20000);
    assert_true(encode(&texts[1], 1, tokenizer, 4, &text) > 0); /* a third one: the second is the oldest */
    slc_text_close(text);
    assert_int_equal(list(NULL), 2);
    assert_int_equal(encode(&texts[0], 1, tokenizer, 3, &text), 0);
    slc_text_close(text);
    assert_true(encode(&texts[1], 1, tokenizer, 3, &text) > 0);
    slc_text_close(text);
    encode(texts, 2, tokenizer, -1, &text); /* takes all of the room */
    slc_text_close(text);
    assert_int_equal(list(NULL), 1);
    cache.limit_bytes = 10;
    assert_true(encode(texts, 2, tokenizer, 5, &text) > 0); /* nothing fits, and nothing is an error */
    assert_int_equal(list(NULL), 1);
    slc_text_close(text);
    slc_tokenizer_close(tokenizer);
    empty();
}

static void readers_wait_for_one(void **state)
{
    (void)state;
    slc_tokenizer *tokenizer = open_golden("tokenizer_bpe");
    slc_text *whole, *text;
    make_texts();
    cache.least_bytes = 1 << 20;
    encode(texts, 2, tokenizer, 3, &whole);
    cache.least_bytes = 0;
    fflush(NULL);
    for (int i = 0; i < READERS; i++)
        if (fork() == 0) {
            encode(texts, 2, tokenizer, 3, &text);
            _exit(slc_text_tokens(text) != slc_text_tokens(whole));
        }
    for (int i = 0, code; i < READERS; i++) {
        assert_true(wait(&code) > 0);
        assert_int_equal(code, 0);
    }
    assert_int_equal(list(NULL), 1);
    assert_int_equal(encode(texts, 2, tokenizer, 3, &text), 0);
    are_equal(whole, text);
    slc_text_close(text);
    slc_text_close(whole);
    slc_tokenizer_close(tokenizer);
    empty();
}

static void a_folder_that_cannot_be_is_none(void **state)
{
    (void)state;
    slc_tokenizer *tokenizer = open_golden("tokenizer_bpe");
    slc_text *text;
    make_texts();
    snprintf(folder, sizeof folder, "%s/below", texts[0]);
    assert_true(encode(texts, 2, tokenizer, 3, &text) > 0);
    slc_text_close(text);
    snprintf(folder, sizeof folder, "/proc/nowhere");
    assert_true(encode(texts, 2, tokenizer, 3, &text) > 0);
    slc_text_close(text);
    slc_tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_made_once),         cmocka_unit_test(others_are_not_taken),
        cmocka_unit_test(what_is_damaged_is_made_anew), cmocka_unit_test(the_folder_holds_no_more_than_it_may),
        cmocka_unit_test(readers_wait_for_one),         cmocka_unit_test(a_folder_that_cannot_be_is_none),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
