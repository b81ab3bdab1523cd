/* The result that a user waits for stands first; the planner's words and the kinds of memory follow on request.
 * tests/command/train/train_test.sh covers this file. */
#include "bench/train/words/ending.h"

#include "bench/train/options/onebit_options.h"
#include "bench/train/words/progress.h"
#include "bench/train/words/stages.h"
#include "lib/base/text/shell_word.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void print_phase(FILE *file, const char *name, const slc_training_phase *phase)
{
    if (!phase->steps) return;
    fprintf(file, "  %-22s steps %" PRIu64 "-%" PRIu64 ": ", name, phase->first, phase->first + phase->steps - 1);
    if (isnan(phase->step_s))
        fputs("too few for a median, ", file);
    else
        fprintf(file, "%.1f ms, exposed %.1f ms, ", phase->step_s * 1e3, phase->exposed_s * 1e3);
    fprintf(file, "%.2f MB sent\n", phase->bytes_sent / 1e6);
}

/* Prints the step time of each phase of a compressed optimizer. */
static void print_phases(FILE *file, const slc_training_options *o, const slc_training_result *r)
{
    if (!slc_training_is_compressed(o->optimizer)) return;
    print_phase(file, "warm-up", &r->warm_up);
    print_phase(file, "compressed", &r->compressed);
    if (r->ranks == 1)
        fprintf(file, "  nothing was compressed: one rank has nobody to exchange with\n");
    else if (!r->compressed.steps)
        fprintf(file, "  nothing was compressed: all steps were warm-up (--freeze-step)\n");
}

/* Prints how the prediction compares. The rank that computes longest may have other medians than the line above, which
 * is rank 0's. */
static void print_prediction(FILE *file, const sluice_prediction *p)
{
    const double predicted_ms = 1e3 * p->predicted.step_s, measured_ms = 1e3 * p->measured.step_s;
    if (!(predicted_ms > 0) || !(measured_ms > 0)) return;
    fprintf(file,
            "predicted %.1f ms, measured %.1f ms (%+.1f %%): compute %+.1f ms, transfers %+.1f ms, waiting %+.1f ms, "
            "outside of slots %+.1f ms",
            predicted_ms, measured_ms, 100 * (measured_ms / predicted_ms - 1), 1e3 * p->miss.compute_s,
            1e3 * p->miss.transfer_s, 1e3 * p->miss.waiting_s, 1e3 * p->miss.outside_s);
    if (p->anew_s > 0) fprintf(file, "; from these steps' own times it would be %.1f ms", 1e3 * p->anew_s);
    fputc('\n', file);
}

/* Says where the run stopped, after Ctrl-C or because its time was over, and how it goes on. A save that failed has its
 * own line at the end. */
static void print_stop(FILE *file, const slc_training_options *o, const slc_training_result *r, const char *why)
{
    fprintf(file, "stopped at step %" PRIu64 " of %" PRIu64, r->steps_before + r->step_count, o->steps);
    if (r->out_of_time) fprintf(file, " to be in time (%s)", why);
    if (r->saved.latest && o->go_on)
        fprintf(file, ", saved to %s: the same command goes on\n", o->save);
    else if (r->saved.latest)
        fprintf(file, ", saved to %s: go on with --resume %s\n", o->save, slc_shell_word_of(o->save).text);
    else
        fprintf(file, ", not saved%s\n", o->save ? "" : ": there was no --save");
}

/* Prints the first and the last loss. There may be none that is finite, because those of skipped steps need not be. */
static void print_losses(FILE *file, const slc_training_result *r)
{
    if (isfinite(r->first_loss))
        fprintf(file, ", loss %.4f -> %.4f", r->first_loss, r->last_loss);
    else
        fputs(", no loss that is finite", file);
    if (r->skipped) fprintf(file, ", %" PRIu64 " of the steps skipped, because a gradient was not finite", r->skipped);
}

static void print_trained(FILE *file, const slc_training_options *o, const slc_training_result *r)
{
    fprintf(file, "trained %s %s", o->model, o->size);
    if (r->memory.pinned_bytes) fprintf(file, " on %s", r->device);
    fprintf(file, ", %" PRIu64 " parameters: %" PRIu64 " steps", r->parameters, r->step_count);
    print_losses(file, r);
    if (isfinite(r->evaluation_loss)) fprintf(file, ", held-out %.4f", r->evaluation_loss);
    if (r->evaluation_loss < SLC_TRAINING_MOST_LOSS && slc_training_speaks(o))
        fprintf(file, ", perplexity %.4g", exp(r->evaluation_loss));
    if (!isnan(r->accuracy)) fprintf(file, ", accuracy %.2f %%", 100 * r->accuracy);
    fputc('\n', file);
}

static void print_time(FILE *file, const slc_training_result *r)
{
    const bool images = r->images_per_step > 0;
    char all[32];
    slc_training_format_time(r->train_s, all);
    fprintf(file, "time    %s in steps", all);
    if (isnan(r->step_s))
        fprintf(file,
                ", too few for a median (its median takes %" PRIu64
                " steps: two under the plan do not count, and three must)\n",
                r->steps_wanted);
    else
        fprintf(file, ", %.1f ms each, %.0f %s/s\n", r->step_s * 1e3, images ? r->images_per_s : r->tokens_per_s,
                images ? "images" : "tokens");
}

/* Says what of the records was cut or left out, and what was computed for nothing. */
static void print_examples(FILE *file, const slc_training_data_counts *counts)
{
    if (!counts->examples) return;
    fprintf(file, "%" PRIu64 " examples of %.1f tokens, padding %.1f %%", counts->examples,
            (double)counts->tokens / (double)counts->examples,
            100 * (1 - (double)counts->tokens / (double)counts->places));
    if (counts->cut) fprintf(file, ", %" PRIu64 " cut to --context", counts->cut);
    if (counts->replaced) fprintf(file, ", %" PRIu64 " too long and replaced", counts->replaced);
    fputc('\n', file);
}

static void print_memory(FILE *file, const slc_training_result *r)
{
    fprintf(file, "memory  %.1f MiB a rank at the peak", (double)r->memory.peak_bytes / 0x1p20);
    if (r->memory.budget_bytes) fprintf(file, ", of a budget of %.1f MiB", (double)r->memory.budget_bytes / 0x1p20);
    fprintf(file, "; resident set %.1f MiB", (double)r->memory.rss_bytes / 0x1p20);
    if (r->memory.pinned_bytes) fprintf(file, ", pinned for copies %.1f MiB", (double)r->memory.pinned_bytes / 0x1p20);
    fputc('\n', file);
}

/* Prints a command that uses the saved weights, as the user can type it. */
static void print_use(FILE *file, const slc_training_options *o)
{
    const slc_shell_word folder = slc_shell_word_of(o->save_weights);
    if (slc_training_speaks(o) && !strcmp(o->model, "gpt2"))
        fprintf(file, "sluice generate --weights %s --prompt \"...\"\n", folder.text);
    else if (o->data_count)
        fprintf(file, "sluice eval --weights %s --data %s\n", folder.text, slc_shell_word_of(o->data[0]).text);
    else
        fprintf(file, "sluice eval --weights %s\n", folder.text);
}

/* Prints how many saves there were, the longest time that one held a step, and how long the last one took. */
static void print_saves(FILE *file, const slc_training_saved *saved)
{
    if (!saved->count) return;
    fprintf(file, "%" PRIu64 " save%s", saved->count, saved->count > 1 ? "s" : "");
    if (saved->held_s > 0) fprintf(file, ", each held a step for %.3f s at most", saved->held_s);
    if (saved->last_s > 0) fprintf(file, ", the last one took %.2f s", saved->last_s);
    fputc('\n', file);
}

static void print_places(FILE *file, const slc_training_options *o, const slc_training_result *r)
{
    if (r->saved.latest && !r->interrupted)
        fprintf(file, "saved to %s: go on with --%s %s --steps N, N more than %" PRIu64 "\n", o->save,
                o->go_on ? "go-on" : "resume", slc_shell_word_of(o->save).text, r->steps_before + r->step_count);
    if (o->save_weights && r->weights_saved) {
        fprintf(file, "weights in %s: ", o->save_weights);
        print_use(file, o);
    } else if (!o->save_weights && !o->save) {
        fprintf(file, "weights are not kept: --save-weights DIR writes them, --save DIR checkpoints\n");
    }
    if (o->log)
        fprintf(file, "log in %s: metrics.jsonl, metrics.csv, or tensorboard --logdir %s\n", o->log,
                slc_shell_word_of(o->log).text);
}

static void print_tables(FILE *file, const slc_training_result *r)
{
    if (!isnan(r->step_s)) fprintf(file, "exposed %.1f ms of a step\n", r->exposed_s * 1e3);
    print_prediction(file, &r->prediction);
    fprintf(file, "activations and workspaces: %.1f MiB packed, %.1f MiB side by side, %.1f MiB live at most\n",
            (double)r->memory.activation_packed_bytes / 0x1p20, (double)r->memory.activation_sum_bytes / 0x1p20,
            (double)r->memory.activation_bound_bytes / 0x1p20);
    fprintf(file, "memory by kind, of %.1f MiB planned:\n", (double)r->memory.planned_bytes / 0x1p20);
    for (uint32_t i = 0; i < r->memory.category_count; i++)
        fprintf(file, "  %-22s %10.1f MiB\n", r->memory.categories[i].name,
                (double)r->memory.categories[i].peak_bytes / 0x1p20);
    if (*r->weights_sha256) fprintf(file, "weights sha256 %s\n", r->weights_sha256);
}

void slc_training_print_end(FILE *file, const slc_training_options *o, const slc_training_result *r,
                            const char *why_late)
{
    if (r->step_count == 0) {
        fprintf(file,
                "nothing to train: %s is at step %" PRIu64 " of %" PRIu64 "; --steps N, N more than that, goes on\n",
                o->resume, r->steps_before, o->steps);
        return;
    }
    if (r->interrupted) print_stop(file, o, r, why_late);
    print_trained(file, o, r);
    print_time(file, r);
    print_examples(file, &r->examples);
    print_memory(file, r);
    slc_training_print_stages(file, r->pipeline, r->step_s);
    print_phases(file, o, r);
    print_saves(file, &r->saved);
    print_places(file, o, r);
    if (o->verbose) print_tables(file, r);
}
