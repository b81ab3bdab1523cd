/* SHA-256 must give the standard's examples, also when the text is added in pieces of any size, with the processor's
 * instructions (if it has them) and without. */
#include "lib/base/hash/sha256.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void assert_hash(const void *data, size_t bytes, const char *expected)
{
    for (int by_words = 0; by_words < 2; by_words++) {
        slc_sha256 hash;
        char hex[65];
        slc_sha256_init(&hash);
        hash.by_words = by_words;
        slc_sha256_add(&hash, data, bytes);
        slc_sha256_finish(&hash, hex);
        assert_string_equal(hex, expected);
    }
}

static void known_vectors(void **state)
{
    (void)state;
    const char *two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    assert_hash("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_hash("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_hash(two_blocks, 56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    static char many[1000000];
    memset(many, 'a', sizeof many);
    assert_hash(many, sizeof many, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void pieces_give_the_same(void **state)
{
    (void)state;
    unsigned char data[300];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 7);
    for (size_t length = 0; length <= sizeof data; length += 13) {
        char whole[65], parts[65];
        slc_sha256 hash;
        slc_sha256_init(&hash);
        slc_sha256_add(&hash, data, length);
        slc_sha256_finish(&hash, whole);
        for (size_t piece = 1; piece < 130; piece++) {
            slc_sha256_init(&hash);
            hash.by_words = piece % 2;
            for (size_t at = 0; at < length; at += piece)
                slc_sha256_add(&hash, data + at, piece < length - at ? piece : length - at);
            slc_sha256_finish(&hash, parts);
            assert_string_equal(parts, whole);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_vectors), cmocka_unit_test(pieces_give_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
