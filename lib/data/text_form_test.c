/* Text is passed; what only seems to be text is refused with its line and the way out; files of a dataset are known by
 * what is in them. */
#include "tests/support/base/folder.h"

#include "lib/base/numbers/random.h"
#include "lib/data/dataset.h"
#include "lib/data/text_form.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static sluice_status check(const void *text, size_t bytes)
{
    slc_file file;
    works(slc_file_open(write_file("form", text, bytes), &file));
    sluice_status status = slc_text_form_check(&file);
    slc_file_close(&file);
    return status;
}

static void text_is_passed(void **state)
{
    (void)state;
    static char long_text[(1 << 20) + 8];
    works(check("plain\ntext\n", 11));
    works(check("\xef\xbb\xbfmarked", 9));
    works(check("", 0));
    /* A character lies on the border of what is looked at. */
    for (size_t i = 0; i + 2 < sizeof long_text; i += 2) memcpy(long_text + i, "\xc3\xa9", 2);
    memmove(long_text + 1, long_text, sizeof long_text - 2);
    long_text[0] = long_text[sizeof long_text - 1] = '.';
    works(check(long_text, sizeof long_text));
}

static void other_encodings_are_named(void **state)
{
    (void)state;
    const char *words = "Words of a text, in two bytes a letter each,\nthat no mark begins.\n";
    unsigned char little[200], big[200], four[300];
    const size_t count = strlen(words);
    memset(four, 0, sizeof four);
    for (size_t i = 0; i < count; i++) {
        little[2 * i] = big[2 * i + 1] = four[4 * i] = (unsigned char)words[i];
        little[2 * i + 1] = big[2 * i] = 0;
    }
    fails(check(little, 2 * count), SLUICE_ERR_FORMAT, "iconv -f UTF-16LE -t UTF-8");
    fails(check(big, 2 * count), SLUICE_ERR_FORMAT, "iconv -f UTF-16BE -t UTF-8");
    fails(check(four, 4 * count), SLUICE_ERR_FORMAT, "iconv -f UTF-32LE -t UTF-8");
    fails(check("one\ntwo caf\xe9 three\n", 19), SLUICE_ERR_FORMAT, "line 2: byte 0xe9 at byte 12 is no UTF-8");
    assert_non_null(strstr(sluice_last_error(), "iconv -f LATIN1"));
    assert_non_null(strstr(sluice_last_error(), "--data-type text"));
    fails(check("one\ntwo\nth\0ree\n", 15), SLUICE_ERR_FORMAT, "line 3: has a NUL");
}

/* Words come as Zipf's law has them, as tokens do. */
static void tokens_without_a_header_are_named(void **state)
{
    (void)state;
    enum { TOKENS = 20000 };
    static uint16_t tokens[TOKENS];
    for (uint64_t i = 0; i < TOKENS; i++)
        tokens[i] = (uint16_t)exp((double)slc_random_below(1, 2, i, 1u << 30) / (1u << 30) * log(50256.));
    fails(check(tokens, sizeof tokens), SLUICE_ERR_FORMAT, "--data-type uint16");
    /* nanoGPT's characters of Shakespeare are numbers below 65. */
    for (uint64_t i = 0; i < TOKENS; i++) tokens[i] = (uint16_t)slc_random_below(1, 3, i, 65);
    fails(check(tokens, sizeof tokens), SLUICE_ERR_FORMAT, "--data-type uint16");
    /* Noise is no tokens. */
    for (uint64_t i = 0; i < TOKENS; i++) tokens[i] = (uint16_t)slc_random_below(1, 4, i, 65536);
    assert_int_equal(check(tokens, sizeof tokens), SLUICE_ERR_FORMAT);
    assert_null(strstr(sluice_last_error(), "uint16"));
}

/* ---- Sets of files ---- */

static const char *put(const char *name, const char *text)
{
    return write_file(name, text, strlen(text));
}

static void semicolons_stand_between_names(void **state)
{
    (void)state;
    slc_field_names names;
    slc_data_type type;
    slc_field_names_init(&names);
    static const char *const tables[] = {"text;label\na;1\n", "\"id\";\"text\"\n1;a\n", "id;text;\n1;a;\n"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const char *table = put("table.txt", tables[i]);
        fails(slc_dataset_type(&table, 1, SLC_DATA_AUTO, &names, &type), SLUICE_ERR_FORMAT,
              "semicolons between its fields");
    }
    const char *prose = put("prose.txt", "text; and after it a sentence, as in prose\n");
    works(slc_dataset_type(&prose, 1, SLC_DATA_AUTO, &names, &type));
    assert_int_equal(type, SLC_DATA_TEXT);
}

static void files_are_what_is_in_them(void **state)
{
    (void)state;
    slc_field_names names;
    slc_data_type type;
    char folder[PATH_MAX];
    slc_field_names_init(&names);
    const char *text = put("words.txt", "words\n"), *false_name = put("words.jsonl", "words\n"),
               *records = put("records.txt", "{\"text\": \"a\"}\n");
    works(slc_dataset_type(&text, 1, SLC_DATA_AUTO, &names, &type));
    assert_int_equal(type, SLC_DATA_TEXT);
    works(slc_dataset_type(&records, 1, SLC_DATA_AUTO, &names, &type));
    assert_int_equal(type, SLC_DATA_JSON);
    fails(slc_dataset_type(&false_name, 1, SLC_DATA_AUTO, &names, &type), SLUICE_ERR_FORMAT,
          "its first line is no object");
    works(slc_dataset_type(&false_name, 1, SLC_DATA_TEXT, &names, &type));
    assert_int_equal(type, SLC_DATA_TEXT);
    const char *both[] = {text, records};
    fails(slc_dataset_type(both, 2, SLC_DATA_AUTO, &names, &type), SLUICE_ERR_ARGUMENT, "give files of one kind");
    works(slc_dataset_type(both, 2, SLC_DATA_TEXT, &names, &type));
    assert_int_equal(type, SLC_DATA_TEXT);
    const char *none = "/nowhere";
    fails(slc_dataset_type(&none, 1, SLC_DATA_AUTO, &names, &type), SLUICE_ERR_PATH, "/nowhere");

    snprintf(folder, sizeof folder, "%s", path_of("shards"));
    mkdir(folder, 0777);
    put("shards/1.csv", "text,label\na,1\n");
    put("shards/2.csv", "text,label\nb,1\n");
    write_file("shards/picture.png", "\x89PNG\r\n\x1a\n", 8);
    put("shards/empty", "");
    const char *path = folder;
    works(slc_dataset_type(&path, 1, SLC_DATA_AUTO, &names, &type));
    assert_int_equal(type, SLC_DATA_JSON);
    assert_int_equal(slc_dataset_form(SLC_DATA_AUTO), SLC_RECORDS_NONE);
    assert_int_equal(slc_dataset_form(SLC_DATA_TSV), SLC_RECORDS_TSV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_passed),
        cmocka_unit_test(other_encodings_are_named),
        cmocka_unit_test(tokens_without_a_header_are_named),
        cmocka_unit_test(semicolons_stand_between_names),
        cmocka_unit_test(files_are_what_is_in_them),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
