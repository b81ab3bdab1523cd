/* A file without text is refused by its content, and passed over in a folder; a text that begins as another kind of
 * file may begin is read. */
#include "tests/support/base/folder.h"

#include "lib/data/text.h"

#include <string.h>
#include <sys/stat.h>

static const struct {
    const char *bytes;
    size_t count;
    const char *kind;
} files[] = {
#define FILE_OF(text, kind)                                                                                            \
    {                                                                                                                  \
        text, sizeof text - 1, kind                                                                                    \
    }
    FILE_OF("\x02\0\0\0\0\0\0\0{}", "a safetensors file"),
    FILE_OF("\x0d\0\0\0\0\0\0\0{\"a\":{\"x\":1}}----", "a safetensors file"),
    FILE_OF("{\n  \"architectures\": [\"GPT2LMHeadModel\"]}", "settings of a model"),
    FILE_OF("{\"version\": \"1.0\", \"added_tokens\": []}", "settings of a model or a tokenizer"),
    FILE_OF("\x89PNG\r\n\x1a\n....", "a PNG image"),
    FILE_OF("\xff\xd8\xff\xe0....", "a JPEG image"),
    FILE_OF("\x1f\x8b\x08\0....", "gunzip"),
    FILE_OF("PK\x03\x04....", "a zip archive"),
    FILE_OF("\x7f"
            "ELF\x02\x01",
            "a program or library"),
    FILE_OF("%PDF-1.7", "a PDF document"),
    FILE_OF("BZh91AY&SY....", "bunzip2"),
    FILE_OF("RIFF\x10\0\0\0WEBPVP8 ....", "a WebP image"),
    FILE_OF("PAR1\x15\x04\x15", "a Parquet table"),
    FILE_OF("GGUF\x03\0\0\0", "a GGUF file"),
    FILE_OF("\xff\xfeH\0i\0", "iconv -f UTF-16"),
    FILE_OF("\x80\x04\x95\x10", "a Python pickle"),
    FILE_OF("P5\n# by a scanner, 2 x 2\n2 2\n255\nabcd", "a PGM image"),
    FILE_OF("P5 1 2 65535 abcd", "a PGM image"),
    FILE_OF("P6 2 1 7\n\1\2\3\4\5\6", "a PPM image"),
};
static const struct {
    const char *bytes;
    size_t count;
} texts[] = {
#define TEXT_OF(text)                                                                                                  \
    {                                                                                                                  \
        text, sizeof text - 1                                                                                          \
    }
    TEXT_OF("a"),
    TEXT_OF("{\"text\": \"one line of JSON\"}\n"),
    TEXT_OF("\x7f"
            "EL"),
    TEXT_OF("\x89PNG"),
    TEXT_OF("\x50\0\0\0\0\0\0\0{\"a\":1}"), /* a header that is longer than the file */
    TEXT_OF("#!/bin/sh\n"),
    TEXT_OF("RIFFRAFF is what they called us.\n"),
    TEXT_OF("BZhang wrote:\n"),
    TEXT_OF("PAR1S, GGUF and OggS are words here\n"),
    TEXT_OF("P5 2 2 255 roads meet here"), /* more than the samples of an image */
    TEXT_OF("P6 2 1 7\n12345"),
    TEXT_OF("P5"),
    TEXT_OF("P6 0 0 0 "),
    TEXT_OF("P5 70000 1 9 a"),
    TEXT_OF("P6# 2 1 7"),
    TEXT_OF("The word \"model_type\" is no setting here."),
};
enum { FILES = sizeof files / sizeof *files, TEXTS = sizeof texts / sizeof *texts };

static void a_file_that_is_named_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        const char *path = write_file("file", files[i].bytes, files[i].count);
        slc_text *text = NULL;
        fails(slc_text_open(&path, 1, &text), SLUICE_ERR_ARGUMENT, files[i].kind);
        assert_non_null(strstr(sluice_last_error(), path));
        assert_null(text);
    }
}

static void text_is_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEXTS; i++) {
        const char *path = write_file("file", texts[i].bytes, texts[i].count);
        slc_text *text = NULL;
        works(slc_text_open(&path, 1, &text));
        assert_int_equal(slc_text_tokens(text), texts[i].count);
        assert_null(slc_text_passed_over(text));
        slc_text_close(text);
    }
}

static void a_folder_is_what_text_it_holds(void **state)
{
    (void)state;
    slc_text *text = NULL;
    const char *folder = path_of("folder");
    assert_int_equal(mkdir(folder, 0700), 0);
    write_file("folder/b.png", files[4].bytes, files[4].count);
    fails(slc_text_open(&folder, 1, &text), SLUICE_ERR_ARGUMENT, "holds no text; the first of its files is");
    folder = path_of("folder");
    write_file("folder/a", "text", 4);
    write_file("folder/c", "more", 4);
    works(slc_text_open(&folder, 1, &text));
    int32_t tokens[8];
    assert_int_equal(slc_text_tokens(text), 8);
    works(slc_text_read(text, 0, 8, tokens));
    assert_int_equal(tokens[4], 'm');
    assert_non_null(strstr(slc_text_passed_over(text), "b.png (it is a PNG image) holds no text"));
    slc_text_close(text);
    write_file("folder/d", files[7].bytes, files[7].count);
    folder = path_of("folder");
    works(slc_text_open(&folder, 1, &text));
    assert_non_null(strstr(slc_text_passed_over(text), "2 files hold no text and are passed over; the first is"));
    slc_text_close(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_named_is_refused),
        cmocka_unit_test(text_is_text),
        cmocka_unit_test(a_folder_is_what_text_it_holds),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
