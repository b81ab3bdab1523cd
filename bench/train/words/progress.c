#include "bench/train/words/progress.h"

#include "bench/cli/output/terminal.h"
#include "lib/base/clock.h"
#include "lib/base/numbers/median.h"
#include "lib/base/text/text_line.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const uint64_t TERMINAL_NS = 100000000;

/* ---- The time left ---- */

static const double FOLLOWS = 0.1; /* the part of the way to a new guess that one step goes */

static uint64_t kept_steps(const slc_training_time_left *left)
{
    return left->known < SLC_TRAINING_LATEST ? left->known : SLC_TRAINING_LATEST;
}

static double mean(const double *values, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += values[i];
    return sum / (double)count;
}

double slc_training_latest_step_s(const slc_training_time_left *left)
{
    return mean(left->latest_s, kept_steps(left));
}

double slc_training_latest_tokens(const slc_training_time_left *left)
{
    return mean(left->latest_tokens, kept_steps(left));
}

static double median_step_s(const slc_training_time_left *left)
{
    double values[SLC_TRAINING_LATEST];
    memcpy(values, left->latest_s, sizeof values);
    return slc_median(values, kept_steps(left));
}

double slc_training_time_left_after(slc_training_time_left *left, const slc_training_step *step, double interval_s,
                                    uint64_t steps_left)
{
    const double between_s = interval_s - step->step_s - step->planning_s;
    if (left->plan != step->plan) left->known = 0;
    left->plan = step->plan;
    const uint64_t at = left->known++ % SLC_TRAINING_LATEST;
    left->latest_s[at] = step->step_s;
    left->latest_tokens[at] = (double)(step->tokens - left->tokens);
    left->tokens = step->tokens;
    if (left->shown++ && between_s > 0) left->between_s += between_s;
    const double each_s = median_step_s(left) + left->between_s / (double)left->shown;
    const double guess_s = each_s * (double)steps_left, way = 1 / (double)left->shown;
    left->left_s = fmax(left->left_s - interval_s, 0);
    left->left_s += (guess_s - left->left_s) * fmax(way, FOLLOWS);
    if (!steps_left) left->left_s = 0;
    return left->left_s;
}

void slc_training_format_time(double seconds, char out[32])
{
    const uint64_t s = (uint64_t)(seconds + 0.5);
    if (s >= 48 * 3600)
        snprintf(out, 32, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s / 3600 % 24);
    else if (s >= 3600)
        snprintf(out, 32, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 32, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
}

/* ---- The line ---- */

void slc_training_progress_init(slc_training_progress *progress, uint64_t steps, uint64_t images)
{
    *progress =
        (slc_training_progress){.out = stderr, .terminal = isatty(STDERR_FILENO), .steps = steps, .images = images};
}

static void put_losses(slc_text_line *l, const slc_training_progress *progress, const slc_training_step *step)
{
    if (isfinite(step->loss))
        slc_text_line_add(l, "  loss %.4f", step->loss);
    else
        slc_text_line_add(l, "  loss not finite");
    if (isfinite(step->smoothed_loss)) slc_text_line_add(l, "  smoothed %.4f", step->smoothed_loss);
    if (step->smoothed_loss < SLC_TRAINING_MOST_LOSS && progress->language)
        slc_text_line_add(l, "  perplexity %.4g", exp(step->smoothed_loss));
    if (!isnan(step->evaluation_loss)) slc_text_line_add(l, "  held-out %.4f", step->evaluation_loss);
    if (!isnan(step->accuracy)) slc_text_line_add(l, ", accuracy %.2f %%", 100 * step->accuracy);
}

void slc_training_progress_line(const slc_training_progress *progress, const slc_training_step *step, char *out)
{
    const double step_s = slc_training_latest_step_s(&progress->left);
    char left[32];
    slc_text_line l = {out, SLC_TRAINING_SHOWN_BYTES, 0};
    slc_text_line_add(&l, "step %" PRIu64 "/%" PRIu64, step->step, progress->steps);
    put_losses(&l, progress, step);
    if (isfinite(step->passes)) slc_text_line_add(&l, "  pass %.2f", step->passes);
    slc_text_line_add(
        &l, "  %.0f %s/s",
        (progress->images ? step->share * (double)progress->images : slc_training_latest_tokens(&progress->left)) /
            step_s,
        progress->images ? "images" : "tokens");
    if (progress->peak_step_s > 0)
        slc_text_line_add(&l, "  %.0f %% of peak", 100 * step->share * progress->peak_step_s / step_s);
    if (progress->verbose)
        slc_text_line_add(&l, "  exposed %.1f ms  memory %.1f MiB", step->exposed_s * 1e3,
                          (double)step->peak_bytes / 0x1p20);
    slc_training_format_time(progress->left.left_s, left);
    slc_text_line_add(&l, "  left %s%s", left, step->skipped ? "  skipped" : "");
}

/* On a terminal the next step rewrites the line; but a line with an evaluation stays, and so does that of the last
 * step. */
void slc_training_progress_show(slc_training_progress *progress, const slc_training_step *step)
{
    const uint64_t now = slc_clock_ns();
    const double interval_s = progress->before_ns ? slc_seconds(now - progress->before_ns) : 0;
    const bool stays = step->step == progress->steps || !isnan(step->evaluation_loss);
    char text[SLC_TRAINING_SHOWN_BYTES];
    slc_training_time_left_after(&progress->left, step, interval_s, progress->steps - step->step);
    progress->before_ns = now;
    if (progress->terminal && !stays && progress->shown_ns && now - progress->shown_ns < TERMINAL_NS) return;
    progress->shown_ns = now;
    slc_training_progress_line(progress, step, text);
    if (progress->terminal)
        slc_terminal_rewrite(progress->out, text);
    else
        fprintf(progress->out, "%s\n", text);
    fflush(progress->out);
    progress->line_open = progress->terminal;
    if (stays) slc_training_progress_end(progress);
}

void slc_training_progress_end(slc_training_progress *progress)
{
    if (progress->line_open) fputc('\n', progress->out);
    progress->line_open = false;
}
