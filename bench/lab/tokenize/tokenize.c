/* `sluice-lab tokenize`: encodes and decodes texts, for comparison with other tokenizers.
 * tests/command/output_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/options/command_line.h"
#include "lib/base/status.h"
#include "lib/tokenizer/tokenizer.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
    bool special, times;
    const char *path;
} tokenize_options;

static const slc_option option_rows[] = {
    {"special", NULL, 0, SLC_OPTION_FLAG, SLC_OPTION_FIELD(tokenize_options, special), NULL, 0,
     "Add the special tokens of a text, and keep special tokens where text is decoded", .letter = 's'},
    {"time", NULL, 0, SLC_OPTION_FLAG, SLC_OPTION_FIELD(tokenize_options, times), NULL, 0,
     "Print what encoding took of the processor to standard error", .letter = 't'},
    {0},
};

static const char doc[] =
    "Reads texts from standard input, each as its number of bytes, a line feed and the bytes. Writes two lines for "
    "each to standard output: its tokens' numbers, and the number of bytes of what these decode to; that text and a "
    "line feed follow.\v"
    "TOKENIZER is a tokenizer.json of Hugging Face, or a folder that holds one.\n"
    "Examples:\n"
    "  { wc -c <book.txt; cat book.txt; } | sluice-lab tokenize --special bert/\n"
    "  { wc -c <book.txt; cat book.txt; } | sluice-lab tokenize --time gpt2/ >/dev/null";

/* Reads the next text; *text is NULL at the end. */
static sluice_status read_record(char **text, size_t *bytes)
{
    *text = NULL;
    int found = scanf("%zu", bytes);
    if (found == EOF) return SLUICE_OK;
    if (found != 1 || getchar() != '\n' || *bytes > SIZE_MAX / 2)
        return slc_error(SLUICE_ERR_FORMAT,
                         "standard input: a number of bytes and a line feed must come before a text");
    char *out = malloc(*bytes + 1);
    if (!out) return slc_error(SLUICE_ERR_MEMORY, "text of %zu bytes", *bytes);
    if (fread(out, 1, *bytes, stdin) != *bytes) {
        free(out);
        return slc_error(SLUICE_ERR_FORMAT, "standard input ends inside a text of %zu bytes", *bytes);
    }
    *text = out;
    return SLUICE_OK;
}

static sluice_status answer(const slc_tokenizer *tokenizer, const slc_token_list *list, bool special)
{
    char *text;
    size_t bytes;
    sluice_status status = slc_tokenizer_decode(tokenizer, list->tokens, list->count, !special, &text, &bytes);
    if (status) return status;
    for (size_t i = 0; i < list->count; i++) printf(i ? " %d" : "%d", list->tokens[i]);
    printf("\n%zu\n", bytes);
    fwrite(text, 1, bytes, stdout);
    putchar('\n');
    free(text);
    return SLUICE_OK;
}

static sluice_status tokenize(const tokenize_options *o, const slc_tokenizer *tokenizer)
{
    slc_token_list list = {0};
    sluice_status status = SLUICE_OK;
    size_t all = 0, tokens = 0;
    double seconds = 0;
    while (!status) {
        char *text;
        size_t bytes;
        status = read_record(&text, &bytes);
        if (status || !text) break;
        list.count = 0;
        clock_t begin = clock();
        status = slc_tokenizer_encode(tokenizer, text, bytes, o->special, &list);
        seconds += (double)(clock() - begin) / CLOCKS_PER_SEC;
        free(text);
        all += bytes;
        tokens += list.count;
        if (!status) status = answer(tokenizer, &list, o->special);
    }
    free(list.tokens);
    if (!status && o->times)
        fprintf(stderr, "%zu bytes, %zu tokens in %.3f s: %.1f MB/s\n", all, tokens, seconds,
                (double)all / seconds / 1e6);
    return status;
}

static int run_tokenize(int argc, char **argv)
{
    const slc_command_line line = {
        .rows = option_rows, .arguments = "TOKENIZER", .argument = offsetof(tokenize_options, path), .doc = doc};
    tokenize_options o = {0};
    slc_tokenizer *tokenizer = NULL;
    slc_command_line_parse(&line, argc, argv, &o);
    sluice_status status = slc_tokenizer_open(o.path, &tokenizer);
    if (!status) status = tokenize(&o, tokenizer);
    slc_tokenizer_close(tokenizer);
    return status ? slc_fail("sluice-lab tokenize") : 0;
}

const sluice_command slc_command_tokenize = {"tokenize", "encodes and decodes texts with a tokenizer.json",
                                             run_tokenize};
