/* Special tokens by their names in Hugging Face's files: a text, or an object with "content". */
#include "lib/data/special_tokens.h"

#include "lib/base/file/json_file.h"
#include "lib/base/status.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* PATH/NAME, or the file NAME next to PATH where that is a file; malloc'ed. */
static char *file_next_to(const char *path, const char *name)
{
    struct stat info;
    char *full = NULL;
    const char *slash = strrchr(path, '/');
    bool folder = !stat(path, &info) && S_ISDIR(info.st_mode);
    int wrote = folder  ? asprintf(&full, "%s/%s", path, name)
                : slash ? asprintf(&full, "%.*s/%s", (int)(slash - path), path, name)
                        : asprintf(&full, "%s", name);
    return wrote < 0 ? NULL : full;
}

/* ---- Which tokens are special ---- */

static const struct {
    const char *key;
    size_t field;
    const char *usual[3]; /* the names that it has where no file says it */
} rows[] = {
    {"bos_token", offsetof(slc_special_tokens, begin), {"<|endoftext|>", "<s>"}},
    {"eos_token", offsetof(slc_special_tokens, end), {"<|endoftext|>", "</s>"}},
    {"cls_token", offsetof(slc_special_tokens, first), {"[CLS]"}},
    {"sep_token", offsetof(slc_special_tokens, last), {"[SEP]"}},
    {"mask_token", offsetof(slc_special_tokens, mask), {"[MASK]"}},
    {"pad_token", offsetof(slc_special_tokens, padding), {"[PAD]"}},
};

/* *names is the object in the file, or NULL where there is no such file. */
static sluice_status read_names(const char *path, const char *name, json_t **names)
{
    char *file = file_next_to(path, name), *text = NULL;
    size_t length;
    json_error_t error;
    sluice_status status = file ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%s", name);
    if (!status && !access(file, F_OK)) {
        status = slc_json_file_read(file, &text, &length);
        /* model_max_length is 10^30 where there is no limit, more than an integer holds. */
        if (!status && !(*names = json_loadb(text, length, JSON_DECODE_INT_AS_REAL, &error)))
            status = slc_error(SLUICE_ERR_FORMAT, "%s:%d:%d: %s", file, error.line, error.column, error.text);
    }
    free(text);
    free(file);
    return status;
}

static const char *named(const json_t *names, const char *key)
{
    const json_t *value = json_object_get(names, key);
    return json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
}

static sluice_status find_token(const slc_tokenizer *tokenizer, const char *path, json_t *const files[2], size_t row,
                                int32_t *out)
{
    const char *text = named(files[0], rows[row].key);
    if (!text) text = named(files[1], rows[row].key);
    *out = text ? slc_tokenizer_find(tokenizer, text) : -1;
    if (text && *out < 0)
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s: its tokenizer_config.json or special_tokens_map.json calls \"%s\" the %s, and its "
                         "tokenizer.json has no such token",
                         path, text, rows[row].key);
    for (size_t i = 0; *out < 0 && rows[row].usual[i]; i++) *out = slc_tokenizer_find(tokenizer, rows[row].usual[i]);
    return SLUICE_OK;
}

sluice_status slc_special_tokens_find(const slc_tokenizer *tokenizer, const char *path, slc_special_tokens *out)
{
    json_t *files[2] = {0};
    sluice_status status = read_names(path, "tokenizer_config.json", &files[0]);
    if (!status) status = read_names(path, "special_tokens_map.json", &files[1]);
    for (size_t i = 0; !status && i < sizeof rows / sizeof *rows; i++)
        status = find_token(tokenizer, path, files, i, (int32_t *)((char *)out + rows[i].field));
    json_decref(files[0]);
    json_decref(files[1]);
    return status;
}

/* ---- Copies ---- */

static bool same_folder(const char *path, const char *to)
{
    struct stat from, target;
    char *folder = file_next_to(path, ".");
    bool same = folder && !stat(folder, &from) && !stat(to, &target) && from.st_dev == target.st_dev &&
                from.st_ino == target.st_ino;
    free(folder);
    return same;
}

static sluice_status copy_file(const char *path, const char *to, const char *name)
{
    char *from = file_next_to(path, name), *target = NULL, *text = NULL;
    size_t length = 0;
    if (asprintf(&target, "%s/%s", to, name) < 0) target = NULL;
    sluice_status status = from && target ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%s", name);
    if (!status && !access(from, F_OK)) {
        status = slc_json_file_read(from, &text, &length);
        if (!status && memchr(text, 0, length))
            status = slc_error(SLUICE_ERR_FORMAT, "%s: it has a byte 0, so it is no text; it is not copied", from);
        if (!status) {
            text[length] = 0; /* there is room: files are read with one byte more */
            status = slc_json_file_write(target, text);
        }
    }
    free(text);
    free(target);
    free(from);
    return status;
}

sluice_status slc_tokenizer_files_copy(const char *path, const char *to)
{
    static const char *const names[] = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "vocab.txt",
                                        "merges.txt"};
    sluice_status status = SLUICE_OK;
    if (same_folder(path, to)) return status;
    for (size_t i = 0; !status && i < sizeof names / sizeof *names; i++) status = copy_file(path, to, names[i]);
    return status;
}
