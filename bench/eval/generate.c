/* `sluice generate`: goes on with a prompt, token by token, and writes the text as it is made. The prompt goes through
 * the model in one pass; each further token is computed alone, next to a cache of keys and values.
 * tests/command/weights/generate_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/default_threads.h"
#include "bench/cli/options/command_line.h"
#include "bench/cli/path_hints.h"
#include "bench/cli/rank_report.h"
#include "bench/cli/output/result_file.h"
#include "bench/eval/sampling.h"
#include "bench/eval/token_text.h"
#include "lib/base/clock.h"
#include "lib/base/file/file.h"
#include "lib/base/status.h"
#include "lib/weights/family.h"

#include <errno.h>
#include <inttypes.h>
#include <sluice/model.h>
#include <sluice/world.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *weights, *tokenizer, *prompt, *prompt_file, *prompt_tokens, *precision, *device, *json;
    uint64_t budget_bytes; /* 0: none */
    uint32_t tokens, ranks;
    uint64_t threads; /* 0 until the environment has said how many */
    slc_sampling sampling;
} generate_options;

typedef struct {
    const generate_options *options;
    sluice_model_config config;
    slc_token_text *text;
    slc_token_list prompt, made;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
    float *logits; /* after the last token */
    bool ended;    /* by a token that ends texts */
    double prompt_s, made_s;
} generation;

/* ---- The prompt ---- */

static sluice_status read_prompt_file(generation *g)
{
    slc_file file;
    char *text = NULL;
    sluice_status status = slc_file_open(g->options->prompt_file, &file);
    if (status) return slc_error_context(status, "--prompt-file");
    text = malloc(file.bytes + 1);
    if (!text) status = slc_error(SLUICE_ERR_MEMORY, "--prompt-file: %" PRIu64 " bytes", file.bytes);
    if (!status) status = slc_file_read(&file, 0, file.bytes, text);
    if (!status) status = slc_token_text_encode(g->text, text, file.bytes, &g->prompt);
    free(text);
    slc_file_close(&file);
    return status;
}

/* Reads numbers with commas between them. */
static sluice_status read_prompt_tokens(generation *g)
{
    const char *list = g->options->prompt_tokens;
    size_t count = 1;
    for (const char *c = list; *c; c++) count += *c == ',';
    g->prompt.tokens = malloc(count * sizeof *g->prompt.tokens);
    if (!g->prompt.tokens) return slc_error(SLUICE_ERR_MEMORY, "--prompt-tokens: %zu of them", count);
    g->prompt.room = count;
    for (const char *from = list; g->prompt.count < count;) {
        char *end;
        errno = 0;
        const unsigned long token = strtoul(from, &end, 10);
        if (*from < '0' || *from > '9' || errno || (*end && *end != ',') || token >= g->config.vocabulary)
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "--prompt-tokens: \"%.*s\" is no number of a token; give whole numbers below %u with "
                             "commas between them",
                             (int)strcspn(from, ","), from, g->config.vocabulary);
        g->prompt.tokens[g->prompt.count++] = (int32_t)token;
        from = end + 1;
    }
    return SLUICE_OK;
}

static sluice_status read_prompt(generation *g)
{
    const generate_options *o = g->options;
    sluice_status status = o->prompt_tokens ? read_prompt_tokens(g)
                           : o->prompt_file ? read_prompt_file(g)
                                            : slc_token_text_encode(g->text, o->prompt, strlen(o->prompt), &g->prompt);
    if (status) return status;
    if (!g->prompt.count)
        return slc_error(SLUICE_ERR_ARGUMENT, "the prompt is empty; give it at least one character to go on from");
    const uint64_t all = (uint64_t)g->prompt.count + o->tokens;
    if (all <= g->config.context) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "the prompt's %zu tokens and --tokens %u are %" PRIu64
                     ", and the model's context is %u; shorten the "
                     "prompt, or give %s",
                     g->prompt.count, o->tokens, all, g->config.context,
                     g->prompt.count < g->config.context ? "fewer --tokens" : "a model with a longer context");
}

/* ---- The model ---- */

static sluice_status read_config(generation *g)
{
    g->config = SLUICE_INIT(sluice_model_config);
    sluice_status status =
        slc_hint_weights(sluice_model_config_read(g->options->weights, &g->config), g->options->weights);
    if (status) return slc_error_context(status, "--weights");
    if (slc_family_of(g->config.family)->causal) return SLUICE_OK;
    const bool text = !slc_family_of(g->config.family)->sees;
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "--weights %s: %s %s; only models that answer with the next token, as gpt2, go on with a text "
                     "(`sluice eval` runs the others)",
                     g->options->weights, sluice_model_family_name((uint32_t)g->config.family),
                     text ? "sees the tokens on both sides of the one it fills in" : "looks at images");
}

/* Makes the model and its cache. The model never computes on the last token that is made, so the cache has no room for
 * it. */
static sluice_status create(generation *g)
{
    const generate_options *o = g->options;
    const uint32_t prompt = (uint32_t)g->prompt.count;
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = 1, .length = prompt, .cache_tokens = prompt + o->tokens - 1);
    sluice_config config;
    sluice_config_init(&config);
    config.budget_bytes = o->budget_bytes;
    config.strategy = "dp";
    config.schedule = "serial";
    config.threads = (uint32_t)o->threads;
    config.device = o->device;
    config.precision = !strcmp(o->precision, "bf16") ? SLUICE_BF16 : SLUICE_FP32;
    sluice_status status = sluice_world_create(NULL, &g->world);
    if (status) return status;
    if (sluice_world_size(g->world) > 1)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "one rank generates; start it without a launcher");
    status = sluice_runtime_create(g->world, &config, &g->rt);
    if (!status) status = sluice_model_create(g->rt, &g->config, &options, &g->model);
    if (!status) status = sluice_runtime_commit(g->rt);
    if (!status) status = sluice_model_load(g->model, o->weights, false);
    if (status) return status;
    g->logits = malloc(g->config.vocabulary * sizeof *g->logits);
    g->made.tokens = malloc(o->tokens * sizeof *g->made.tokens);
    return g->logits && g->made.tokens ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%u tokens", o->tokens);
}

/* ---- Going on ---- */

static FILE *text_file(const generation *g)
{
    return slc_is_standard_output(g->options->json) ? stderr : stdout;
}

/* Writes a piece of the text. An error of writing is reported later, when standard output is closed. */
static void show_piece(const generation *g, slc_text_piece piece)
{
    fwrite(piece.at, 1, piece.bytes, text_file(g));
    fflush(text_file(g));
}

static sluice_status add_token(generation *g)
{
    int32_t token;
    slc_text_piece piece = {0};
    sluice_status status =
        slc_sample_token(&g->options->sampling, g->logits, g->config.vocabulary, g->made.count, &token);
    if (status) return status;
    g->made.tokens[g->made.count++] = token;
    g->ended = slc_token_text_ends(g->text, token);
    if (g->ended) return SLUICE_OK;
    status = slc_token_text_add(g->text, token, &piece);
    if (!status) show_piece(g, piece);
    return status;
}

static sluice_status go_on(generation *g)
{
    uint64_t start = slc_clock_ns();
    sluice_status status = sluice_model_extend(g->model, g->prompt.tokens, (uint32_t)g->prompt.count, g->logits);
    g->prompt_s = slc_seconds(slc_clock_ns() - start);
    start = slc_clock_ns();
    if (!status) status = add_token(g);
    while (!status && !g->ended && g->made.count < g->options->tokens) {
        status = sluice_model_extend(g->model, &g->made.tokens[g->made.count - 1], 1, g->logits);
        if (!status) status = add_token(g);
    }
    g->made_s = slc_seconds(slc_clock_ns() - start);
    return status;
}

/* ---- The report ---- */

static json_t *tokens_json(const slc_token_list *list)
{
    json_t *tokens = json_array();
    for (size_t i = 0; tokens && i < list->count; i++) json_array_append_new(tokens, json_integer(list->tokens[i]));
    return tokens;
}

/* Returns the pace of the tokens after the first one, which came out of the prompt's pass. */
static double tokens_per_s(const generation *g)
{
    return g->made.count > 1 ? (double)(g->made.count - 1) / g->made_s : 0;
}

static json_t *report_json(const generation *g, const sluice_memory_report *memory)
{
    const generate_options *o = g->options;
    const slc_text_piece text = slc_token_text_all(g->text);
    const double rate = tokens_per_s(g);
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:s%, s:s, s:f, s:f, s:o, s:o, s:I, s:I, s:{s:f, s:I, s:I, s:s, s:I, s:s}}", "weights",
        o->weights, "tokenizer", slc_token_text_kind(g->text), "prompt_tokens", tokens_json(&g->prompt), "new_tokens",
        tokens_json(&g->made), "text", text.at, text.bytes, "stopped_by", g->ended ? "end token" : "--tokens",
        "prompt_s", g->prompt_s, "prompt_tokens_per_s", (double)g->prompt.count / g->prompt_s, "tokens_per_s",
        rate > 0 ? json_real(rate) : json_null(), "budget_bytes",
        memory->budget_bytes ? json_integer((json_int_t)memory->budget_bytes) : json_null(), "planned_bytes",
        (json_int_t)memory->planned_bytes, "peak_bytes", (json_int_t)memory->peak_bytes, "settings", "temperature",
        o->sampling.temperature, "top_k", (json_int_t)o->sampling.top_k, "seed", (json_int_t)o->sampling.seed,
        "precision", o->precision, "threads", (json_int_t)o->threads, "device", sluice_runtime_device(g->rt));
}

static sluice_status report(generation *g)
{
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    sluice_status status = sluice_runtime_memory(g->rt, &memory);
    if (status) return status;
    show_piece(g, slc_token_text_finish(g->text));
    show_piece(g, (slc_text_piece){"\n", 1});
    fprintf(stderr, "prompt: %zu tokens, %.0f a second; new: %zu tokens", g->prompt.count,
            (double)g->prompt.count / g->prompt_s, g->made.count);
    if (tokens_per_s(g) > 0) fprintf(stderr, ", %.1f a second", tokens_per_s(g));
    fprintf(stderr, "%s; memory %.1f MiB\n", g->ended ? ", ended by the end token" : "",
            (double)memory.peak_bytes / 0x1p20);
    if (!g->options->json) return SLUICE_OK;
    return slc_result_file_write_json(g->options->json, report_json(g, &memory));
}

static sluice_status generate(generation *g)
{
    sluice_status status = slc_error_context(slc_result_file_probe(g->options->json), "--json");
    if (!status) status = read_config(g);
    if (!status) status = slc_token_text_open(g->options->weights, g->options->tokenizer, &g->config, &g->text);
    if (!status && slc_token_text_note(g->text)) fprintf(stderr, "sluice generate: %s\n", slc_token_text_note(g->text));
    if (!status) status = read_prompt(g);
    if (!status) status = create(g);
    if (!status) status = go_on(g);
    return status ? status : report(g);
}

/* ---- The command ---- */

#define FIELD(name) SLC_OPTION_FIELD(generate_options, name)
static const double MOST = UINT32_MAX;

static const slc_option option_rows[] = {
    {"weights", "DIR", 1, SLC_OPTION_TEXT, FIELD(weights), NULL, 0,
     "A GPT-2: a folder with config.json, model.safetensors and, unless its tokens are bytes, tokenizer.json",
     .letter = 'w'},
    {"tokenizer", "PATH", 1, SLC_OPTION_TEXT, FIELD(tokenizer), NULL, 0,
     "This tokenizer.json (default: that of --weights, or bytes)"},
    {"prompt", "TEXT", 1, SLC_OPTION_TEXT, FIELD(prompt), NULL, 0, "The text to go on with", .letter = 'p'},
    {"prompt-file", "FILE", 1, SLC_OPTION_TEXT, FIELD(prompt_file), NULL, 0, "The same, from a file"},
    {"prompt-tokens", "LIST", 1, SLC_OPTION_TEXT, FIELD(prompt_tokens), NULL, 0,
     "The same as numbers of tokens, as 464,3290: needs no tokenizer; without one, tokens that are not bytes are "
     "written as numbers"},
    {"tokens", "N", 1, SLC_OPTION_COUNT, FIELD(tokens), "64", 0, "Write at most N tokens", 1, MOST, .letter = 'k'},
    {"temperature", "T", 1, SLC_OPTION_REAL, FIELD(sampling.temperature), "0", 0,
     "0: always the likeliest token; T > 0: draw by softmax(logits / T)", 0, 1e6, .letter = 'T'},
    {"top-k", "K", 1, SLC_OPTION_COUNT, FIELD(sampling.top_k), "0", 0,
     "Draw among the K likeliest tokens; 0: among all", 0, MOST},
    {"seed", "S", 1, SLC_OPTION_COUNT, FIELD(sampling.seed), "1", 0, "Seed of the drawing", 0, MOST, .letter = 's'},
    {"precision", "NAME", 1, SLC_OPTION_WORD, FIELD(precision), "fp32", 0, "fp32 or bf16", .choices = "fp32,bf16",
     .letter = 'P'},
    {"threads", "N", 1, SLC_OPTION_COUNT, FIELD(threads), NULL, 0,
     "Compute threads (default: SLURM_CPUS_PER_TASK, else OMP_NUM_THREADS, else 1)", 1, SLC_THREADS_MOST,
     .letter = 't'},
    {"budget", "SIZE", 1, SLC_OPTION_SIZE, FIELD(budget_bytes), NULL, 0,
     "Memory it may use, as 900MiB; none: what it needs", 1},
    {"device", "NAME=cpu", 1, SLC_OPTION_TEXT, FIELD(device), "cpu", 0, "Device: cpu"},
    {"json", "FILE", 1, SLC_OPTION_TEXT, FIELD(json), NULL, 0,
     "Write tokens, text, speed and memory as JSON; '-': standard output", .letter = 'j'},
    {"ranks", "N", 1, SLC_OPTION_COUNT, FIELD(ranks), NULL, SLC_OPTION_HIDDEN, "", 1, MOST, .letter = 'n'},
    {0},
};

static sluice_status check_options(void *options)
{
    const generate_options *o = options;
    const int prompts = (o->prompt != NULL) + (o->prompt_file != NULL) + (o->prompt_tokens != NULL);
    if (strcmp(o->device, "cpu"))
        return slc_error(SLUICE_ERR_ARGUMENT, "--device %s: text is generated on the cpu alone; leave --device out",
                         o->device);
    if (o->ranks > 1)
        return slc_error(SLUICE_ERR_ARGUMENT, "-n %u: one rank generates; leave -n out", (unsigned)o->ranks);
    if (!o->weights) return slc_error(SLUICE_ERR_ARGUMENT, "--weights is needed: the folder of a GPT-2");
    if (prompts == 1) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "give one of --prompt, --prompt-file and --prompt-tokens");
}

static int run_generate(int argc, char **argv)
{
    generate_options options = {0};
    const slc_command_line line = {
        .rows = option_rows,
        .hint = "the prompt is --prompt TEXT",
        .check = check_options,
        .doc =
            "Goes on with a text by a GPT-2, and writes what follows the prompt to standard output.\v"
            "Examples:\n"
            "  sluice generate --weights gpt2/ --prompt \"The licence says\"\n"
            "  sluice generate --weights gpt2/ --prompt-file story.txt --tokens 200 --temperature 0.8 --top-k 50\n\n"
            "The same weights, prompt and options give the same text. It ends after --tokens, or before the token "
            "that ends texts (eos_token_id of generation_config.json or config.json). Prompt and new tokens together "
            "are no more than the model's context.\n"
            "More: docs/models.md",
    };
    slc_command_line_parse(&line, argc, argv, &options);
    if (slc_is_one_of_several_ranks()) {
        slc_error(SLUICE_ERR_UNSUPPORTED, "one rank generates; start it without a launcher");
        return slc_rank_refuse("sluice generate");
    }
    generation g = {.options = &options};
    sluice_status status = slc_fill_threads(&options.threads);
    if (!status) status = generate(&g);
    const int code = status ? slc_fail("sluice generate") : 0;
    sluice_model_destroy(g.model);
    sluice_runtime_destroy(g.rt);
    sluice_world_destroy(g.world);
    slc_token_text_close(g.text);
    free(g.prompt.tokens);
    free(g.made.tokens);
    free(g.logits);
    return code;
}

const sluice_command slc_command_generate = {"generate", "goes on with a text by given weights", run_generate};
