/* The training options as one table, whose rows the parser, the defaults and the help walk; values.c walks them for all
 * else. bench/train/train_run_test.c covers this file. */
#include "bench/train/options/options.h"

#include "bench/cli/default_threads.h"
#include "bench/cli/options/config_file.h"
#include "bench/train/options/choices.h"
#include "bench/train/options/recipe_file.h"
#include "bench/train/options/optimizer_options.h"
#include "lib/base/text/list_item.h"
#include "lib/base/status.h"
#include "lib/data/dataset.h"
#include "lib/plan/strategy_names.h"
#include "lib/tokenizer/tokenizer.h"
#include "lib/weights/family.h"
#include "sched/planner.h"
#include "sched/scheduler.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TEXT SLC_OPTION_TEXT
#define COUNT SLC_OPTION_COUNT
#define REAL SLC_OPTION_REAL
#define FLAG SLC_OPTION_FLAG
#define PATHS SLC_OPTION_SET
#define ENUMERATOR SLC_ENUMERATOR

typedef enum { MODEL = 1, TRAINING, COMPRESSED, RESOURCES, OUTPUT } option_group;
static const char *const headings[] = {
    [MODEL] = "Model and data:",
    [TRAINING] = "Training:",
    [COMPRESSED] = "Compressed optimizers:",
    [RESOURCES] = "Memory, communication, ranks:",
    [OUTPUT] = "Evaluation, checkpoints, results:",
};

#define FIELD(name) SLC_OPTION_FIELD(slc_training_options, name)
#define CONFIG(name) .config = offsetof(sluice_config, name)
static const double MOST = 4294967295.0, MOST_TOKENS = 0x1p53;

#define EXACT_NAMES SLC_EXACT_NAMES(", ")

static slc_training_choices choices; /* made by make_tables */

/* Marks the place where the settings of optimizers go, whose rows are made from the table of optimizers. */
#define OPTIMIZER_SETTINGS offsetof(slc_training_options, optimizer_settings)

static sluice_status add_paths(void *options, const slc_option *row, char *list);
static sluice_status take_config(void *options, const slc_option *row, char *path);
static sluice_status take_recipe(void *options, const slc_option *row, char *path);

/* The order is that of a report's settings and of the warnings when a run is resumed; the help sorts by group and
 * name. */
static const slc_option fixed_rows[] = {
    {"model", "NAME", MODEL, TEXT, FIELD(model), "gpt2", SLC_SAVED | SLC_EQUAL | SLC_MEASURED, choices.model_doc,
     .choices = choices.models},
    {"size", choices.size_argument, MODEL, TEXT, FIELD(size), "nano", SLC_SAVED | SLC_EQUAL | SLC_OWN | SLC_MEASURED,
     choices.size_doc},
    {"head", "WHAT", MODEL, TEXT, FIELD(head), "", SLC_SAVED | SLC_EQUAL | SLC_MEASURED, choices.head_doc,
     .choices = "tokens,classes"},
    {"norm", "WHERE", MODEL, TEXT, FIELD(norm), "", SLC_MEASURED,
     "Norms of a bert: after its branches, or before them, as transformers' RobertaPreLayerNorm has them; not given: "
     "as "
     "the weights have them, else after",
     .choices = "after,before"},
    {"positions", "WHOSE", MODEL, TEXT, FIELD(positions), "", SLC_MEASURED,
     "BEiT's tables of relative positions: own: each block has one, which begins as a copy where --weights share one; "
     "shared: all blocks have one; not given: as the weights have them, shared with --head tokens, else own",
     .choices = "own,shared"},
    {"weights", "PATH", MODEL, TEXT, FIELD(weights), NULL, SLC_OWN | SLC_MEASURED,
     "Begin with these weights, and with the model that they are of: a folder with Hugging Face's config.json and "
     "model.safetensors, or an llm.c checkpoint; none: first values"},
    {"data", "PATH", MODEL, PATHS, FIELD(data), NULL, SLC_OWN | SLC_MEASURED,
     "Training data, known by their content: text, JSON lines, CSV, TSV, llm.c's token files, images; a file or a "
     "folder; may be repeated, or a list with commas (\\, is a comma of a name); none: the system's licences, or "
     "scikit-learn's handwritten digits",
     .set = add_paths},
    {"eval-data", "PATH", MODEL, PATHS, FIELD(eval_data), NULL, SLC_OWN | SLC_MEASURED,
     "Evaluate on these data, of the same kind, and train on all of --data; none: a tenth of --data is held out",
     .set = add_paths},
    {"data-type", "TYPE", MODEL, TEXT, FIELD(data_type), "auto", SLC_SAVED | SLC_MEASURED,
     "Type of --data: auto: what their content says; text; jsonl, csv, tsv: records; uint16: tokens of 2 bytes "
     "without "
     "a header, as nanoGPT's train.bin",
     .choices = SLC_DATA_TYPE_NAMES},
    {"fields", "LIST", MODEL, TEXT, FIELD(fields), NULL, SLC_SAVED | SLC_MEASURED,
     "Names of the records' fields, where they are others than text, text_pair, label and messages: "
     "text=body,label=stars"},
    {"data-index", "DIR", MODEL, TEXT, FIELD(data_index), NULL, SLC_OWN,
     "Keep where the records of large files begin in this folder; none: beside each file"},
    {"sequences", "HOW", MODEL, TEXT, FIELD(sequences), "auto", SLC_SAVED | SLC_MEASURED,
     "windows: consecutive tokens from drawn places; documents: one record a sequence, padded to the longest of its "
     "micro-batch; auto: documents for classes and conversations, else windows",
     .choices = "auto,windows,documents"},
    {"too-long", "HOW", MODEL, TEXT, FIELD(too_long), "cut", SLC_SAVED | SLC_MEASURED,
     "A record that is longer than --context: cut: its end is left out; skip: another one takes its place",
     .choices = "cut,skip"},
    {"pad-to", "N", MODEL, COUNT, FIELD(pad_to), "0", SLC_MEASURED,
     "Lengths of micro-batches of records are multiples of N; 0: such that there are at most 32", 0, MOST},
    {"length-groups", "N", MODEL, COUNT, FIELD(length_groups), "50", SLC_SAVED | SLC_MEASURED,
     "Steps whose records are sorted by length together, so that micro-batches are of like length and little is "
     "padded; "
     "1: records come as they are drawn",
     1, 100000},
    {"chat-template", "NAME", MODEL, TEXT, FIELD(chat_template), NULL, SLC_SAVED | SLC_MEASURED,
     "Template that makes text of conversations: chatml, zephyr, llama-2, plain; none: as the tokenizer says, if that "
     "is one of "
     "these"},
    {"image-draft", NULL, MODEL, FLAG, FIELD(image_draft), NULL, SLC_SAVED | SLC_MEASURED,
     "Decode JPEG files at 1/2, 1/4 or 1/8 of their size where that is enough for the model: faster; pixels differ a "
     "little"},
    {"visual-tokens", "FILE", MODEL, TEXT, FIELD(visual_tokens), NULL, SLC_OWN | SLC_MEASURED,
     "The tokens that BEiT with --head tokens guesses: safetensors with \"codebook\", or with \"tokens\" of the images "
     "of --data; "
     "none: the codebook of --weights, or one made of the images"},
    {"tokenizer", "PATH", MODEL, TEXT, FIELD(tokenizer), NULL, SLC_OWN | SLC_MEASURED,
     "Read text with this tokenizer.json, or that of this folder; none: that of --weights, or each byte a token. A "
     "model "
     "with first values gets its vocabulary"},
    {"token-cache", "SIZE", MODEL, SLC_OPTION_SIZE, FIELD(token_cache), "4GiB", SLC_OWN,
     "Keep the tokens of texts of 1 MiB and more in the user's cache folder, up to so many bytes; 0: keep none"},
    {"precision", "NAME", TRAINING, TEXT, FIELD(precision), "fp32", SLC_SAVED | SLC_MEASURED | ENUMERATOR,
     "Type of values, gradients and activations: fp32, or bf16 with an fp32 master copy", .choices = "fp32,bf16",
     .later = "fp16", CONFIG(precision)},
    {"wire", "NAME", TRAINING, TEXT, FIELD(wire), "bf16", SLC_SAVED | SLC_MEASURED | ENUMERATOR,
     "Type of bf16 layers' gradients, in memory and between ranks: bf16, fp32", .choices = "fp32,bf16", CONFIG(wire)},
    {"layer-precision", "LIST", TRAINING, TEXT, FIELD(layer_precision), NULL, SLC_SAVED | SLC_MEASURED,
     "Layers that differ, as h.0=fp32,h.1=fp32"},
    {"batch", "N", TRAINING, COUNT, FIELD(batch), "4", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Sequences (images) a rank and micro-batch", 1, MOST},
    {"context", "N", TRAINING, COUNT, FIELD(context), "0", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Tokens a sequence; 0: the model's, at most 256", 0, MOST},
    {"micro-batches", "N", TRAINING, COUNT, FIELD(micro_batches), "1", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Micro-batches a step", 1, 65536, CONFIG(micro_batches)},
    {"micro-batches-from", "N", TRAINING, COUNT, FIELD(micro_batches_from), "0",
     SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Begin with N micro-batches a step, which grow evenly to --micro-batches; 0: all steps have as many", 0, 65536},
    {"micro-batches-over", "N", TRAINING, COUNT, FIELD(micro_batches_over), "0",
     SLC_SAVED | SLC_REPORTED | SLC_MEASURED, "Steps over which micro-batches grow", 0, MOST},
    {"ranks", "N", RESOURCES, COUNT, FIELD(ranks), NULL, SLC_SAVED | SLC_OWN, "Start N ranks on this machine", 1,
     SLUICE_RANKS_MOST, .letter = 'n'},
    {"threads", "N", RESOURCES, COUNT, FIELD(threads), NULL, SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Compute threads a rank; not given: SLURM_CPUS_PER_TASK, else OMP_NUM_THREADS, else 1", 1, SLC_THREADS_MOST,
     CONFIG(threads)},
    {"steps", "N", TRAINING, COUNT, FIELD(steps), "100", SLC_MEASURED,
     "Steps to train, counted from the very beginning", 1, MOST},
    {"epochs", "X", TRAINING, REAL, FIELD(epochs), "0", SLC_MEASURED,
     "Instead of --steps: go X times through the training data, as 3 or 0.5; 0: --steps says", 0, 1e9},
    {"seed", "N", TRAINING, COUNT, FIELD(seed), "1", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Start of the random numbers that draw the first values, the data and dropout", 0, MOST},
    {"optimizer", "NAME", TRAINING, TEXT, FIELD(optimizer), "", SLC_SAVED | SLC_EQUAL | SLC_REPORTED | SLC_MEASURED,
     choices.optimizer_doc, .choices = choices.optimizers, CONFIG(optimizer_name)},
    {"lr", "X", TRAINING, REAL, FIELD(learning_rate), "0.001", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Learning rate; where it is not given, 0.00005 with --weights", 0, 1e6},
    {"warmup", "N", TRAINING, COUNT, FIELD(warmup), "0", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Steps N over which the learning rate grows: step k has k / N of --lr", 0, MOST_TOKENS},
    {"warmup-again", "N", TRAINING, COUNT, FIELD(warmup_again), "0", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Steps N of a second warm-up, in which the learning rate grows again, from 0 to that of the schedule; 0: none", 0,
     MOST_TOKENS},
    {"warmup-again-at", "N", TRAINING, COUNT, FIELD(warmup_again_at), "0", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Steps, from the very beginning, after which the second warm-up begins", 0, MOST_TOKENS},
    {"lr-schedule", "NAME", TRAINING, TEXT, FIELD(lr_schedule), "constant", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Course of the learning rate after --warmup: constant; linear, cosine: it falls to --lr-min; inverse_sqrt: it "
     "falls as 1/sqrt(step); wsd: it stays, and falls at the end",
     .choices = "constant,linear,cosine,inverse_sqrt,wsd"},
    {"lr-min", "X", TRAINING, REAL, FIELD(lr_min), "0", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Learning rate at the end of the schedule", 0, 1e6},
    {"lr-horizon", "N", TRAINING, COUNT, FIELD(lr_horizon), "0", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Steps, from the very beginning, after which linear, cosine and wsd have come to --lr-min; 0: --steps", 0,
     MOST_TOKENS},
    {"lr-decay", "N", TRAINING, COUNT, FIELD(lr_decay), "0", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "The last steps of wsd, in which the rate falls; 0: a tenth of the schedule", 0, MOST_TOKENS},
    {"lr-timescale", "N", TRAINING, COUNT, FIELD(lr_timescale), "0", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Steps S of inverse_sqrt: after three S beyond the warm-up the rate is half of --lr; 0: --warmup, or 10000 "
     "without",
     0, MOST_TOKENS},
    {"lr-over", "UNIT", TRAINING, TEXT, FIELD(lr_over), "steps", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Unit of --warmup, --warmup-again, --warmup-again-at, --lr-horizon, --lr-decay and --lr-timescale: steps, or "
     "tokens of all ranks",
     .choices = "steps,tokens"},
    {"lr-rule", "RULE", TRAINING, TEXT, FIELD(lr_rule), "none", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "The learning rate follows the sequences S of a step: linear: it is multiplied by S / --lr-batch; sqrt: by the "
     "square root of that; none: it does not",
     .choices = "none,linear,sqrt"},
    {"lr-batch", "N", TRAINING, COUNT, FIELD(lr_batch), "0", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Sequences of a step, of all ranks, for which --lr was found", 0, MOST},
    {"recipe", "FILE", TRAINING, PATHS, FIELD(recipe), NULL, SLC_OWN,
     "Read rates, batches and depth from this JSON file, as {\"version\": 1, \"rate\": {\"peak\": 6e-4}}; options of "
     "the "
     "command line come before it",
     .set = take_recipe},
    {"new-recipe", NULL, TRAINING, FLAG, FIELD(new_recipe), NULL, 0,
     "With --resume: go on with another recipe (rates, batches, lengths, depth) than the saved run had, which is "
     "refused without it"},
    {"layer-decay", "X", TRAINING, REAL, FIELD(layer_decay), "1", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "The learning rate of each layer is X times that of the layer above it; the head has all of it, the embedding the "
     "least; 1: all have it",
     0.001, 1},
    {"pld", "THETA", TRAINING, TEXT, FIELD(pld), "", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Progressive layer dropping: steps leave layers out, the more the higher they are, so that in the end the last "
     "one "
     "is kept with a probability next to THETA, from 0 to 1; THETA,GAMMA: with this rate of the fall, 0.001"},
    {"pld-compat", NULL, TRAINING, FLAG, FIELD(pld_compat), NULL, SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "With --pld: scale a layer's branches by the probability of the layer above it, as DeepSpeed does"},
    {"curriculum", "LENGTHS", TRAINING, TEXT, FIELD(curriculum), "", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Train on short sequences first: MIN:MAX:STEPS[:ROOT[:MULTIPLE]]: they grow from MIN to MAX tokens in the first "
     "STEPS steps, by the root of degree ROOT (1), in multiples of MULTIPLE (8); or by steps, as 128@9000,512"},
    {"curriculum-batch", "WHAT", TRAINING, TEXT, FIELD(curriculum_batch), "fixed",
     SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "A short step of --curriculum: fixed: has as many sequences as a long one, the beginnings of its windows; tokens: "
     "has as many tokens: each window is folded into as many sequences as it holds",
     .choices = "fixed,tokens"},
    {.field = OPTIMIZER_SETTINGS},
    {"label-smoothing", "X", TRAINING, REAL, FIELD(label_smoothing), "0", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Share of each target that is spread over all tokens or classes alike; evaluations are without it; 0: none", 0,
     0.999},
    {"clip", "X", TRAINING, REAL, FIELD(clip), "0", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Clip the gradient's global norm; 0: do not", 0, 1e30, CONFIG(clip)},
    {"dropout", "X", TRAINING, REAL, FIELD(dropout), "0", SLC_SAVED | SLC_MEASURED,
     "Share of embeddings, attention probabilities and branches that a step leaves out; 0: none", 0, 0.99},
    {"drop-path", "X", TRAINING, REAL, FIELD(drop_path), "0", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "Share of sequences for which a branch of the last block is left out; blocks before it have less, evenly from 0 "
     "at the first; 0: none",
     0, 0.99},
    {"nan", "WHAT", TRAINING, TEXT, FIELD(nan), "stop", SLC_SAVED | SLC_REPORTED | SLC_MEASURED | ENUMERATOR,
     "A gradient that is not finite: stop, or skip the step", .choices = "stop,skip", CONFIG(nan)},
    {"nan-limit", "N", TRAINING, COUNT, FIELD(nan_limit), "10", SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
     "With --nan skip: so many skipped steps in a row end the run with an error", 1, MOST},
    {"accumulate", "WHEN", TRAINING, TEXT, FIELD(accumulate), "last",
     SLC_SAVED | SLC_REPORTED | SLC_MEASURED | ENUMERATOR, "Reduce gradients after the last micro-batch, or after each",
     .choices = "last,each", CONFIG(accumulate)},
    {"tied", "HOW", TRAINING, TEXT, FIELD(tied), "joint", SLC_SAVED | SLC_MEASURED | ENUMERATOR,
     "A token table that is the head's matrix too: joint: one gradient of both uses; split: the rows that are looked "
     "up are gathered and reduced by themselves, so that a step neither begins nor ends with all of the table",
     .choices = "joint,split", CONFIG(tied)},
    {"sums", "HOW", TRAINING, TEXT, FIELD(sums), "ordered", SLC_SAVED | SLC_MEASURED | ENUMERATOR,
     "With several GPUs: ordered: gradients are added in the order of the ranks, so that weights are the same under "
     "any "
     "strategy; nccl: as NCCL's collectives add them, which is the same in every run of one plan",
     .choices = "ordered,nccl", CONFIG(sums)},
    {"freeze-step", "N", COMPRESSED, COUNT, FIELD(freeze_step), "0", SLC_SAVED_COMPRESSED | SLC_MEASURED,
     "Last step of the warm-up, when the variance is frozen; 0: a fifth of --steps, at least 5, not before --warmup is "
     "over, and 5 steps after the end of --curriculum",
     0, MOST},
    {"freeze-change", "X", COMPRESSED, REAL, FIELD(freeze_change), "0", SLC_SAVED_COMPRESSED | SLC_MEASURED,
     "Instead: freeze when the variance's norm changes by no more than this share, as 0.04; 0: at a step", 0, 0.999},
    {"onebit-compat", NULL, COMPRESSED, FLAG, FIELD(onebit_compat), NULL, SLC_SAVED_COMPRESSED | SLC_MEASURED,
     "To the letter as DeepSpeed executes them: no bias correction, the first step discarded, LAMB in one buffer"},
    {"onebit", "LIST", COMPRESSED, TEXT, FIELD(onebit), NULL, SLC_SAVED_COMPRESSED | SLC_MEASURED,
     "Their other settings, as factor_max=2,factor_min=0.5 (a wrong name lists all)"},
    {"strategy", "NAME=auto," SLC_STRATEGY_NAMES(",") ",mixed", RESOURCES, TEXT, FIELD(strategy), "auto",
     SLC_SAVED_COMPRESSED | SLC_MEASURED,
     "Sharding: auto (with ilp and portfolio: each unit by itself), " EXACT_NAMES
     ", mixed, random:SEED, or a JSON file; onebit: nothing, and momentum is exchanged compressed",
     CONFIG(strategy)},
    {"lossy", "WHAT", RESOURCES, TEXT, FIELD(lossy), "none", SLC_MEASURED,
     "onebit: auto, random:SEED and files may choose onebit for some layers; a compressed --optimizer says so too",
     .choices = "none,onebit"},
    {"schedule", "NAME", RESOURCES, TEXT, FIELD(schedule), slc_schedule_default, SLC_MEASURED, choices.schedule_doc,
     .choices = choices.schedules, CONFIG(schedule)},
    {"recompute", "WHICH", RESOURCES, TEXT, FIELD(recompute), "auto", SLC_MEASURED | ENUMERATOR,
     "Layers that run their forward again in backward: none, all that can, auto: as the planner chooses",
     .choices = "auto,none,all", CONFIG(recompute)},
    {"pipeline", "P", RESOURCES, TEXT, FIELD(pipeline), "off", SLC_SAVED | SLC_REPORTED,
     "Cut the model into P stages, through which micro-batches go; N ranks are N/P replicas of each. off: every rank "
     "has "
     "all layers"},
    {"pipeline-schedule", "NAME", RESOURCES, TEXT, FIELD(pipeline_schedule), "1f1b", SLC_REPORTED,
     "Order of the stages' forwards and backwards: 1f1b, gpipe, interleaved", .choices = "gpipe,1f1b,interleaved",
     .later = "zero_bubble,pipedream,2bw", CONFIG(pipeline_schedule)},
    {"pipeline-chunks", "V", RESOURCES, COUNT, FIELD(pipeline_chunks), "0", SLC_REPORTED,
     "Pieces of the model that each stage holds; 0: 2 with interleaved, else 1", 0, 8, CONFIG(pipeline_chunks)},
    {"pipeline-cuts", "LIST", RESOURCES, TEXT, FIELD(pipeline_cuts), "auto", SLC_REPORTED,
     "First layer of each piece but the first, as h.4,h.8,head, or a file with such names; auto: by measured times",
     CONFIG(pipeline_cuts)},
    {"plan", "FILE", RESOURCES, TEXT, FIELD(plan), NULL, SLC_REPORTED | SLC_MEASURED,
     "Run this plan, which --plan-out or sluice plan has written, instead of making one", CONFIG(plan_file)},
    {"time-limit", "S", RESOURCES, REAL, FIELD(time_limit_s), "0", SLC_OWN | SLC_MEASURED,
     "Take the best plan that planning has after so many seconds; 0: planning ends by itself", 0, 1e9,
     CONFIG(plan_time_limit_s)},
    {"replan-trials", "N", RESOURCES, COUNT, FIELD(replan_trials), "3", SLC_OWN | SLC_MEASURED,
     "Try so many other plans for a few steps each, where the steps that are left can pay for it, and keep the "
     "fastest; "
     "weights do not change. 0: none",
     0, SLC_TRAINING_TRIALS - 1, CONFIG(replan_trials)},
    {"block", "BYTES", RESOURCES, TEXT, FIELD(block), "auto", SLC_REPORTED | SLC_MEASURED,
     "Base block of communication; fixes who owns what. auto: 1MiB; on a GPU 64MiB, on several what "
     "their link needs, from 16 to 64MiB, or 16MiB with --budget"},
    {"throttle", "RATE", RESOURCES, TEXT, FIELD(throttle), "", SLC_REPORTED | SLC_OWN | SLC_MEASURED,
     "Slow the network down, as 1gbit,50us"},
    {"budget", "SIZE", RESOURCES, TEXT, FIELD(budget), "", SLC_REPORTED | SLC_OWN | SLC_MEASURED,
     "Memory a rank may use, as 900MiB, or 60% of the least that dp works in; none: what the plan needs"},
    {"device", "NAME", RESOURCES, TEXT, FIELD(device), "cpu", SLC_OWN | SLC_MEASURED,
     "Device: cpu, or cuda: a GPU for each rank", .choices = "cpu,cuda", CONFIG(device)},
    {"timeout", "S", RESOURCES, REAL, FIELD(timeout_s), "0", SLC_OWN,
     "A rank that is silent or absent this long is an error; 0: as settings say", 0, 1e9},
    {"eval-every", "N", OUTPUT, COUNT, FIELD(eval_every), "0", 0, "Evaluate every N steps; 0: only at the end", 0,
     MOST},
    {"eval-batches", "N", OUTPUT, COUNT, FIELD(eval_batches), "4", 0,
     "Micro-batches of held-out data that a rank takes in an evaluation, no image twice; 0: never evaluate", 0, 65536},
    {"save", "DIR", OUTPUT, TEXT, FIELD(save), NULL, 0,
     "Save checkpoints to this folder: at the end, when Ctrl-C stops the run, and as --save-every says; the last two "
     "stay"},
    {"save-every", "N", OUTPUT, COUNT, FIELD(save_every), "0", 0, "Save every N steps too; 0: not in between", 0, MOST},
    {"on-save-error", "WHAT", OUTPUT, TEXT, FIELD(on_save_error), "stop", 0,
     "A checkpoint that cannot be saved, tried once more: stop ends the run with an error and all its other outputs; "
     "warn goes on, with an error at the end if the last one failed",
     .choices = "stop,warn"},
    {"resume", "DIR", OUTPUT, TEXT, FIELD(resume), NULL, 0,
     "Go on from the latest checkpoint in this folder; --steps counts from the very beginning"},
    {"go-on", "DIR", OUTPUT, TEXT, FIELD(go_on), NULL, 0,
     "Save to this folder, and go on from the latest checkpoint in it if there is one: the same line begins a run and "
     "goes on with it, as a job that is requeued needs"},
    {"stop-after", "TIME", OUTPUT, TEXT, FIELD(stop_after), NULL, 0,
     "End, saved and with exit code 75, before so much time has passed, as 50min or 23.5h; a run with --save or "
     "--go-on "
     "also ends before Slurm's job does (SLURM_JOB_END_TIME)"},
    {"save-weights", "DIR", OUTPUT, TEXT, FIELD(save_weights), NULL, 0,
     "At the end write config.json and model.safetensors as Hugging Face has them into this folder"},
    {"first-batch", "FILE", OUTPUT, TEXT, FIELD(first_batch), NULL, 0,
     "Write the tokens that all ranks train on in this run's first step, and their targets, as JSON"},
    {"first-batches", "N", OUTPUT, COUNT, FIELD(first_batches), "1", 0,
     "Steps that --first-batch gets; more than 1 make a list of them", 1, 1e6},
    {"trace", "FILE", OUTPUT, TEXT, FIELD(trace), NULL, 0,
     "Record, and write the last steps' timeline of all ranks for Perfetto; '-': standard output"},
    {"plan-out", "FILE", OUTPUT, TEXT, FIELD(plan_out), NULL, SLC_OWN,
     "Write the plan as JSON: for --plan, sluice sim, check and trace; '-': standard output"},
    {"profile-out", "FILE", OUTPUT, TEXT, FIELD(profile_out), NULL, SLC_OWN,
     "Write the profile that the plan was made from: for sluice plan, sim, check and trace; '-': standard output"},
    {"json", "FILE", OUTPUT, TEXT, FIELD(json), NULL, SLC_OWN, "Write the results as JSON; '-': standard output"},
    {"csv", "FILE", OUTPUT, TEXT, FIELD(csv), NULL, SLC_OWN, "Write a table as CSV; '-': standard output"},
    {"log", "DIR", OUTPUT, TEXT, FIELD(log), NULL, 0,
     "Write each step into this folder when it ends: metrics.jsonl, metrics.csv and TensorBoard's events; and run.json "
     "and options.json, which repeat the run"},
    {"observe", "N", OUTPUT, COUNT, FIELD(observe), "0", 0,
     "Every N steps write into the folder of --log how much each block changes its input, and the norm and the largest "
     "element of each layer's second moment; 0: never",
     0, MOST},
    {"overwrite", NULL, OUTPUT, FLAG, FIELD(overwrite), NULL, 0,
     "Replace what --log and --save-weights find in their folders"},
    {"config", "FILE", OUTPUT, PATHS, FIELD(config), NULL, SLC_OWN,
     "Read options from this JSON file, as {\"steps\": 200}; those of the command line come before them. --log writes "
     "such a file",
     .set = take_config},
    {"sample-every", "N", OUTPUT, COUNT, FIELD(sample_every), "0", 0,
     "Let a GPT-2 go on with --prompt every N steps, by the weights that it has then; 0: never", 0, MOST},
    {"prompt", "TEXT", OUTPUT, TEXT, FIELD(prompt), NULL, 0, "The text that --sample-every goes on with"},
    {"no-hash", NULL, OUTPUT, FLAG, FIELD(no_hash), NULL, 0,
     "End without the hash of all weights, which takes half a second for a gigabyte"},
    {"verbose", NULL, OUTPUT, FLAG, FIELD(verbose), NULL, SLC_OWN,
     "At the end also show the prediction, each kind of memory and the weights' hash; in the line of a step the wait "
     "for communication and the memory"},
};
enum { FIXED_ROWS = sizeof fixed_rows / sizeof *fixed_rows };
static slc_option rows[SLC_TRAINING_OPTIONS_MAX + 1]; /* one without a name comes last */
static int row_count;                                 /* 0: they are not made yet */

/* The options that a newcomer needs: the short help has these, and those that a command describes in its own words. */
static const char *const short_help[] = {
    "model",      "size", "weights",     "data",   "precision", "batch",        "context",  "steps",
    "optimizer",  "lr",   "lr-schedule", "warmup", "budget",    "ranks",        "strategy", "throttle",
    "eval-every", "save", "save-every",  "resume", "go-on",     "save-weights", "json",     "log",
};

/* Appends the row of an optimizer's setting. Its help lies in static memory, as all help does. */
static bool append_setting(size_t i)
{
    static struct {
        char name[32], doc[192];
    } texts[SLC_TRAINING_SETTINGS_MAX];
    const slc_optimizer_setting *setting = slc_training_optimizer_setting(i);
    if (!setting) return false;
    const bool is_switch = setting->type == SLC_OPTIMIZER_SWITCH;
    char fallback[128];
    assert(i < SLC_TRAINING_SETTINGS_MAX && setting->type != SLC_OPTIMIZER_WHOLE && (!is_switch || !setting->fallback));
    slc_training_optimizer_default(i, fallback, sizeof fallback);
    snprintf(texts[i].name, sizeof texts[i].name, "%s", setting->name);
    for (char *dash; (dash = strchr(texts[i].name, '_'));) *dash = '-';
    snprintf(texts[i].doc, sizeof texts[i].doc, is_switch ? "%s" : "%s; not given: %s", setting->doc, fallback);
    rows[row_count++] = (slc_option){.name = texts[i].name,
                                     .argument = is_switch ? NULL : "X",
                                     .group = TRAINING,
                                     .type = is_switch ? FLAG : REAL,
                                     .field = OPTIMIZER_SETTINGS + i * sizeof(slc_training_setting),
                                     .bytes = sizeof(slc_training_setting),
                                     .flags = SLC_SAVED | SLC_REPORTED | SLC_MEASURED,
                                     .doc = texts[i].doc,
                                     .least = setting->least,
                                     .most = setting->most};
    return true;
}

static void make_rows(void)
{
    if (row_count) return;
    for (size_t r = 0; r < FIXED_ROWS; r++) {
        const bool here = fixed_rows[r].field == OPTIMIZER_SETTINGS;
        assert(row_count + SLC_TRAINING_SETTINGS_MAX < SLC_TRAINING_OPTIONS_MAX);
        for (size_t i = 0; here && append_setting(i); i++) {
        }
        if (!here) rows[row_count++] = fixed_rows[r];
    }
}

const slc_option *slc_training_rows(void)
{
    make_rows();
    return rows;
}

static const slc_option *find_row(const char *name)
{
    return slc_option_find(slc_training_rows(), name);
}

/* ---- A command's differences ---- */

static slc_option own_rows[SLC_TRAINING_OPTIONS_MAX + 1]; /* the table with a command's differences */
static const slc_option *taken = rows;                    /* by this process: the table, or own_rows */

static slc_training_difference difference_of(const slc_option *row, const slc_training_difference *differences)
{
    for (const slc_training_difference *d = differences; d && d->name; d++)
        if (slc_option_place(d->name, row->name) >= 0) return *d;
    return (slc_training_difference){0};
}

static bool is_short(const slc_option *row, const slc_training_difference *own)
{
    for (size_t i = 0; i < sizeof short_help / sizeof *short_help; i++)
        if (!strcmp(short_help[i], row->name)) return true;
    return own->doc && !own->seldom;
}

static slc_option own_row(const slc_option *row, const slc_training_difference *differences)
{
    const slc_training_difference own = difference_of(row, differences);
    slc_option out = *row;
    if (own.fallback) out.fallback = own.fallback;
    if (own.argument) out.argument = own.argument;
    if (own.doc) out.doc = own.doc;
    if (is_short(row, &own)) out.flags |= SLC_OPTION_SHORT;
    out.refused = own.refused;
    out.list = own.list;
    return out;
}

/* ---- Parsing ---- */

/* Adds the paths of a list; a repeated --data adds to the earlier ones. The list is cut up in a copy, because a
 * launcher hands its arguments on as they were typed. */
static sluice_status add_paths(void *options, const slc_option *row, char *list)
{
    slc_training_options *o = options;
    const bool evaluates = row->field == offsetof(slc_training_options, eval_data);
    const char **paths = evaluates ? o->eval_data : o->data;
    uint64_t *count = evaluates ? &o->eval_data_count : &o->data_count;
    char *rest = slc_option_keep(list), *path;
    if (!rest) return slc_error(SLUICE_ERR_MEMORY, "--%s", row->name);
    if (o->data_of_config) o->data_count = 0;
    o->data_of_config = false;
    while ((path = slc_next_item(&rest)) != NULL) {
        if (!*path) continue;
        if (*count == SLC_TRAINING_DATA_MAX)
            return slc_error(SLUICE_ERR_ARGUMENT, "--%s: more than %d paths; put the files in one folder", row->name,
                             SLC_TRAINING_DATA_MAX);
        paths[(*count)++] = path;
    }
    return SLUICE_OK;
}

/* Reads the options of a file. If --data follows on the command line, it replaces the file's. */
static sluice_status take_config(void *options, const slc_option *row, char *path)
{
    slc_training_options *o = options;
    const bool has_data = o->data_count > 0;
    (void)row;
    o->config = path;
    sluice_status status = slc_config_file_read(path, rows, o, o->typed);
    o->data_of_config = !has_data && o->data_count > 0;
    return status;
}

static sluice_status take_recipe(void *options, const slc_option *row, char *path)
{
    slc_training_options *o = options;
    (void)row;
    o->recipe = path;
    return slc_option_find(taken, "recipe")->list ? SLUICE_OK : slc_training_recipe_read(path, rows, o);
}

sluice_status slc_training_recipe_take(const char *path, slc_training_options *options)
{
    options->recipe = path;
    return slc_training_recipe_read(path, rows, options);
}

sluice_status slc_training_option_set(slc_training_options *options, const char *name, const char *text)
{
    const slc_option *row = find_row(name);
    options->typed[row - rows] = text;
    return slc_option_set(row, options, (char *)text);
}

bool slc_training_option_given(const slc_training_options *options, const char *name)
{
    return slc_training_option_typed(options, name) != NULL;
}

const char *slc_training_option_typed(const slc_training_options *options, const char *name)
{
    return slc_option_typed(rows, options->typed, name);
}

bool slc_training_option_must_equal(const char *name)
{
    const slc_option *row = find_row(name);
    return row && (row->flags & SLC_EQUAL);
}

static void make_tables(void)
{
    if (!*choices.models) slc_training_choices_list(&choices);
    make_rows();
}

void slc_training_options_init(slc_training_options *options)
{
    *options = (slc_training_options){0};
    make_tables();
    for (int i = 0; i < row_count; i++)
        if (rows[i].type == REAL) memcpy((char *)options + rows[i].field, &(double){NAN}, sizeof(double));
    slc_option_defaults(taken, options);
}

static void begin_options(void *options)
{
    slc_training_options_init(options);
}

const slc_command_line *slc_training_command_line(const slc_training_difference *differences)
{
    static const slc_command_line line = {.rows = own_rows,
                                          .headings = headings,
                                          .hint = "text to train on, for one, is --data FILE",
                                          .typed = offsetof(slc_training_options, typed),
                                          .begin = begin_options};
    make_tables();
    for (size_t i = 0; i < sizeof short_help / sizeof *short_help; i++) assert(find_row(short_help[i]));
    for (int i = 0; i < row_count; i++) own_rows[i] = own_row(&rows[i], differences);
    taken = own_rows;
    return &line;
}

const char *slc_training_tokenizer(const slc_training_options *o)
{
    if (o->tokenizer) return o->tokenizer;
    return o->weights && slc_tokenizer_exists(o->weights) ? o->weights : NULL;
}

bool slc_training_speaks(const slc_training_options *o)
{
    const int family = slc_option_place(choices.models, o->model);
    const bool tokens =
        !*o->head || !strcmp(o->head, "tokens"); /* a model of text has that head unless another is given */
    return family >= 0 && !slc_family_of((sluice_model_family)family)->sees && tokens;
}
