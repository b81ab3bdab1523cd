/* Reads the arguments as getopt_long will, but before it does, because only then can a mistake be answered with a
 * suggestion.
 * option_test.c covers this file. */
#include "bench/cli/options/parse.h"

#include "bench/cli/command.h"
#include "bench/cli/help/page.h"
#include "bench/cli/rank_report.h"
#include "lib/base/text/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The options of a parser that a word of the command line may mean. */
typedef struct {
    const struct argp_option *option; /* NULL: none has this name */
    unsigned matches;                 /* options that the word abbreviates */
    bool exact;                       /* `option` has this name, and is not only abbreviated */
    slc_nearest nearest;
} meaning;

/* Every command has these; slc_parse answers them itself. */
static const struct argp_option own_options[] = {{.name = "help"}, {.name = "help-all"}, {.name = "usage"}, {0}};

static void compare(const struct argp_option *rows, const char *word, size_t length, meaning *out)
{
    for (const struct argp_option *o = rows; o && !slc_help_ends(o); o++) {
        if (!o->name) continue;
        slc_nearest_offer(&out->nearest, word, length, o->name);
        if (strncmp(o->name, word, length)) continue;
        if (!o->name[length]) out->nearest = (slc_nearest){o->name, 0};
        if (!out->exact) out->option = o;
        out->exact |= !o->name[length];
        out->matches++;
    }
}

static void look_up(const struct argp *parser, const char *word, size_t length, meaning *out)
{
    compare(parser->options, word, length, out);
    for (const struct argp_child *c = parser->children; c && c->argp; c++) look_up(c->argp, word, length, out);
}

static const struct argp_option *find_key(const struct argp *parser, int key)
{
    for (const struct argp_option *o = parser->options; o && !slc_help_ends(o); o++)
        if (o->key == key) return o;
    for (const struct argp_child *c = parser->children; c && c->argp; c++) {
        const struct argp_option *found = find_key(c->argp, key);
        if (found) return found;
    }
    return NULL;
}

static bool wants_value(const struct argp_option *o)
{
    return o && o->arg && !(o->flags & OPTION_ARG_OPTIONAL);
}

/* ---- Help ---- */

/* Returns the name of the option for help that the word abbreviates, or NULL. */
static const char *own_option(const char *word, size_t length)
{
    for (const struct argp_option *o = own_options; o->name; o++)
        if (length && !strncmp(o->name, word, length)) return o->name;
    return NULL;
}

/* `form` is what follows in "--help=man"; NULL: nothing. */
static void print_help(const struct argp *parser, const char *program, const char *option, const char *form)
{
    static const struct {
        const char *name;
        slc_help_format format;
    } forms[] = {
        {"all", SLC_HELP_ALL}, {"man", SLC_HELP_MAN}, {"markdown", SLC_HELP_MARKDOWN}, {"bash", SLC_HELP_BASH}};
    enum { FORMS = sizeof forms / sizeof *forms };
    slc_help_format format = !strcmp(option, "help")    ? SLC_HELP_SHORT
                             : !strcmp(option, "usage") ? SLC_HELP_USAGE
                                                        : SLC_HELP_ALL;
    size_t i = 0;
    while (form && i < FORMS && strcmp(forms[i].name, form)) i++;
    if (i == FORMS) {
        fprintf(stderr, "%s: --help=%s: use all, man, markdown or bash\n", program, form);
        exit(EXIT_USAGE);
    }
    if (form) format = forms[i].format;
    if (!slc_help_print(parser, program, format, stdout)) exit(0);
    fprintf(stderr, "%s: out of memory\n", program);
    exit(EXIT_FAILED);
}

/* ---- Going through the arguments ---- */

/* Names of options in other programs, each with the option that does the same here: the first word. Words that follow
 * the option's value are advice. Dashes and underscores are the same. */
static const char *const by_habit[][2] = {
    {"learning-rate", "lr X"},
    {"bf16", "precision bf16"},
    {"fp16", "precision bf16"},
    {"num-train-epochs", "epochs X"},
    {"num-epochs", "epochs X"},
    {"max-steps", "steps N"},
    {"max-iters", "steps N"},
    {"epoch", "epochs X"},
    {"fp32", "precision fp32"},
    {"dtype", "precision NAME"},
    {"mixed-precision", "precision bf16"},
    {"warmup-steps", "warmup N"},
    {"warmup-iters", "warmup N"},
    {"warmup-ratio", "warmup N, in steps"},
    {"num-warmup-steps", "warmup N"},
    {"lr-scheduler-type", "lr-schedule NAME"},
    {"batch-size", "batch N"},
    {"train-batch-size", "batch N"},
    {"per-device-train-batch-size", "batch N"},
    {"gradient-accumulation-steps", "micro-batches N"},
    {"grad-accum", "micro-batches N"},
    {"max-grad-norm", "clip X"},
    {"grad-clip", "clip X"},
    {"max-length", "context N"},
    {"max-seq-length", "context N"},
    {"block-size", "context N"},
    {"seq-len", "context N"},
    {"model-name-or-path", "weights PATH"},
    {"pretrained", "weights PATH"},
    {"train-file", "data PATH"},
    {"dataset", "data PATH"},
    {"dataset-name", "data PATH, a file or a folder"},
    {"dataset-path", "data PATH"},
    {"text-column", "fields text=NAME"},
    {"text-column-name", "fields text=NAME"},
    {"dataset-text-field", "fields text=NAME"},
    {"label-column", "fields label=NAME"},
    {"label-column-name", "fields label=NAME"},
    {"train-data", "data PATH"},
    {"validation-file", "eval-data PATH"},
    {"validation-data", "eval-data PATH"},
    {"val-data", "eval-data PATH"},
    {"tokenizer-name", "tokenizer PATH"},
    {"output-dir", "save-weights DIR, and --save DIR for checkpoints"},
    {"out-dir", "save-weights DIR, and --save DIR for checkpoints"},
    {"save-steps", "save-every N"},
    {"eval-steps", "eval-every N"},
    {"eval-strategy", "eval-every N"},
    {"evaluation-strategy", "eval-every N"},
    {"logging-steps", "log DIR, which has every step"},
    {"logging-dir", "log DIR"},
    {"log-dir", "log DIR"},
    {"report-to", "log DIR, which TensorBoard reads"},
    {"overwrite-output-dir", "overwrite"},
    {"resume-from-checkpoint", "resume DIR"},
    {"optim", "optimizer NAME"},
    {"adam-beta1", "beta1 X"},
    {"adam-beta2", "beta2 X"},
    {"adam-epsilon", "epsilon X"},
    {"label-smoothing-factor", "label-smoothing X"},
    {"nproc-per-node", "ranks N"},
    {"num-processes", "ranks N"},
    {"num-gpus", "ranks N"},
    {"gpus", "ranks N"},
    {"gpu", "device cuda"},
    {"cuda", "device cuda"},
    {"cpu", "device cpu"},
    {"use-cpu", "device cpu"},
    {"no-cuda", "device cpu"},
    {"num-threads", "threads N"},
    {"num-workers", "threads N"},
    {"dataloader-num-workers", "threads N"},
    {"gradient-checkpointing", "recompute all; the planner recomputes by itself where a --budget asks for it"},
    {"fsdp", "strategy fsdp; with a --budget the planner shards by itself"},
    {"zero-stage", "strategy oss, sdp or fsdp; with a --budget the planner shards by itself"},
    {"deepspeed", "budget SIZE, from which the planner shards by itself"},
    {"memory", "budget SIZE"},
    {"max-memory", "budget SIZE"},
    {"memory-limit", "budget SIZE"},
    {"max-new-tokens", "tokens N"},
};

/* Names of options of other programs that have no counterpart here, each with what to do instead. */
static const char *const absent[][2] = {
    {"lora", "all parameters are trained; merge adapters into the weights first"},
    {"peft", "all parameters are trained; merge adapters into the weights first"},
    {"load-in-8bit", "weights are trained in fp32 or bf16 (--precision)"},
    {"load-in-4bit", "weights are trained in fp32 or bf16 (--precision)"},
    {"do-train", "`sluice train` trains; leave it out"},
    {"do-eval", "held-out data are evaluated at the end; --eval-every N does it on the way"},
    {"streaming", "data are read while training goes on; leave it out"},
    {"compile", "there is nothing to compile; leave it out"},
};

static bool same_name(const char *word, size_t length, const char *name)
{
    for (size_t i = 0; i < length; i++)
        if ((word[i] == '_' ? '-' : word[i]) != name[i]) return false;
    return !name[length];
}

/* Returns the advice for an option whose name users know from other programs, as --learning-rate: the command's own
 * option that does the same. NULL if the word is no such name, or if the command lacks that option. */
static const char *find_habit(const struct argp *parser, const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof by_habit / sizeof *by_habit; i++) {
        meaning m = {0};
        if (!same_name(word, length, by_habit[i][0])) continue;
        look_up(parser, by_habit[i][1], strcspn(by_habit[i][1], " "), &m);
        return m.exact ? by_habit[i][1] : NULL;
    }
    return NULL;
}

/* Returns what to do instead of the other program's option that the word names; NULL if `absent` has no such name. */
static const char *find_absent(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (same_name(word, length, absent[i][0])) return absent[i][1];
    return NULL;
}

/* An option's name in the place of another one's value means that the value was forgotten. */
static void check_value(const struct argp *parser, const char *program, const char *argument, const char *value)
{
    meaning m = {0}, taken = {0};
    if (!value || strncmp(value, "--", 2)) return;
    look_up(parser, value + 2, strlen(value + 2), &m);
    if (!m.exact) return;
    look_up(parser, argument + 2, strlen(argument + 2), &taken);
    fprintf(stderr, "%s: %s needs %s, and the option %s follows it\n`%s --help` lists the options.\n", program,
            argument, taken.option->arg, value, program);
    exit(EXIT_USAGE);
}

/* Returns whether the next argument is this one's value; ends the process if no option has this name, and after help.
 */
static bool check_long(const struct argp *parser, const char *program, const char *argument)
{
    const char *word = argument + 2;
    const size_t length = strcspn(word, "=");
    meaning m = {0};
    look_up(parser, word, length, &m);
    const char *own = own_option(word, length);
    if (own && !m.matches) print_help(parser, program, own, word[length] ? word + length + 1 : NULL);
    if (m.matches) return !word[length] && wants_value(m.option);
    compare(own_options, word, length, &m);
    const char *near = slc_nearest_suggestion(&m.nearest, length), *habit = find_habit(parser, word, length);
    const char *lacking = find_absent(word, length);
    if (habit)
        fprintf(stderr, "%s: no option \"%.*s\"; here it is --%s\n", program, (int)length + 2, argument, habit);
    else if (lacking)
        fprintf(stderr, "%s: no option \"%.*s\": %s\n", program, (int)length + 2, argument, lacking);
    else
        fprintf(stderr, "%s: no option \"%.*s\"%s%s%s\n", program, (int)length + 2, argument,
                near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
    fprintf(stderr, "`%s --help` lists the options.\n", program);
    exit(EXIT_USAGE);
}

/* Checks short options as check_long checks a long one: "-abc" is letters up to the first that takes a value, which is
 * the rest of the argument or the next argument. */
static bool check_short(const struct argp *parser, const char *argument)
{
    for (const char *letter = argument + 1; *letter; letter++)
        if (wants_value(find_key(parser, (unsigned char)*letter))) return !letter[1];
    return false;
}

static void check_arguments(const struct argp *parser, int argc, char **argv, bool in_order)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--")) return;
        if (argv[i][0] != '-' || !argv[i][1]) {
            if (in_order) return; /* the rest is another program's */
            continue;
        }
        if ((!strcmp(argv[i], "-h") || !strcmp(argv[i], "-?")) && !find_key(parser, argv[i][1]))
            print_help(parser, argv[0], "help", NULL);
        const bool is_long = argv[i][1] == '-';
        const bool value = is_long ? check_long(parser, argv[0], argv[i]) : check_short(parser, argv[i]);
        if (is_long && value && i + 1 < argc) check_value(parser, argv[0], argv[i], argv[i + 1]);
        i += value;
    }
}

/* ---- One rank of several ---- */

static FILE *shown, *kept; /* standard error; what stands in for it while the arguments are read, NULL: nothing does */
static char *text;
static size_t text_bytes;

static void show_standard_error(void)
{
    if (!kept) return;
    stderr = shown;
    fclose(kept);
    kept = NULL;
}

/* Reports a wrong argument, which has ended the process, once: as a rule all ranks have the same arguments, and one
 * rank is enough to report it. */
static void tell_once(void)
{
    if (!kept) return;
    show_standard_error();
    if (text && *text) slc_rank_tell_usage(text);
}

static void keep_standard_error(void)
{
    if (!slc_is_one_of_several_ranks()) return;
    FILE *stream = open_memstream(&text, &text_bytes);
    if (!stream || atexit(tell_once)) return; /* each rank tells, then */
    shown = stderr;
    stderr = kept = stream;
}

void slc_parse(const struct argp *parser, int argc, char **argv, unsigned flags, void *input)
{
    argp_err_exit_status = EXIT_USAGE;
    keep_standard_error();
    check_arguments(parser, argc, argv, flags & ARGP_IN_ORDER);
    if (argp_parse(parser, argc, argv, flags | ARGP_NO_HELP, NULL, input)) exit(EXIT_USAGE);
    show_standard_error();
}
