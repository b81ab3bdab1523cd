/* Finds fields of sluice_config in error lines. tests/command/mistakes_test.sh covers this file. */
#include "bench/cli/error_line.h"

#include "bench/cli/exit_codes.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- Fields and options ---- */

static const struct {
    const char *field, *option;
} options[] = {
    {"budget_bytes", "--budget"},
    {"block_bytes", "--block"},
    {"strategy", "--strategy"},
    {"schedule", "--schedule"},
    {"recompute", "--recompute"},
    {"micro_batches", "--micro-batches"},
    {"threads", "--threads"},
    {"device", "--device"},
    {"precision", "--precision"},
    {"wire", "--wire"},
    {"accumulate", "--accumulate"},
    {"tied", "--tied"},
    {"clip", "--clip"},
    {"nan", "--nan"},
    {"optimizer_name", "--optimizer"},
    {"plan_file", "--plan"},
};

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static const char *option_of(const char *field, size_t length)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strlen(options[i].field) == length && !strncmp(options[i].field, field, length)) return options[i].option;
    return NULL;
}

/* `config.nan = skip` becomes `--nan skip`, and `config.nan` becomes `--nan`; a field without an option stays. */
void slc_error_in_options(const char *line, char *out, size_t bytes)
{
    static const char begin[] = "config.", equals[] = " = ";
    size_t used = 0;
    for (const char *at = line; *at && used + 1 < bytes;) {
        size_t length = 0;
        const char *option = NULL, *field = at + sizeof begin - 1;
        if (!strncmp(at, begin, sizeof begin - 1) && (at == line || !is_name(at[-1]))) {
            while (is_name(field[length])) length++;
            option = option_of(field, length);
        }
        if (!option) {
            out[used++] = *at++;
            continue;
        }
        at = field + length;
        bool value = !strncmp(at, equals, sizeof equals - 1);
        if (value) at += sizeof equals - 1;
        used += (size_t)snprintf(out + used, bytes - used, "%s%s", option, value ? " " : "");
    }
    out[used < bytes ? used : bytes - 1] = 0;
}

void slc_print_error(const char *who, const char *line)
{
    char words[2048];
    slc_error_in_options(line, words, sizeof words);
    fprintf(stderr, "%s: %s\n", who, words);
}

/* ---- Exit codes ---- */

int slc_exit_code(sluice_status status)
{
    switch (status) {
    case SLUICE_ERR_ARGUMENT:
    case SLUICE_ERR_BUDGET:
    case SLUICE_ERR_FORMAT:
    case SLUICE_ERR_MISMATCH:
    case SLUICE_ERR_PATH:
    case SLUICE_ERR_UNSUPPORTED: return EXIT_USAGE;
    case SLUICE_ERR_INTERRUPTED: return EXIT_INTERRUPTED;
    default: return EXIT_FAILED;
    }
}
