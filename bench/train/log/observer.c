/* All layers of a step are one piece of the file, so that gnuplot finds a layer's rows by counting lines.
 * tests/command/train/observe_test.sh covers this file. */
#include "bench/train/log/observer.h"

#include "bench/cli/output/gnuplot.h"
#include "bench/cli/output/growing_file.h"
#include "bench/train/log/kept_lines.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char head[] = "step,layer,norm_ratio,cosine,variance_norm,variance_largest\n";
static const char state[] = "exp_avg_sq";
enum { NAME_BYTES = 24, LINE_BYTES = 160 };

/* The figures that one rank has of a layer. */
typedef struct {
    double ratio, cosine, ranks; /* sums over the ranks that have the block */
    double squares, largest;     /* of the second moment */
} figures;

struct slc_training_observer {
    slc_training_observed of;
    uint64_t every;
    uint32_t layers;    /* blocks, and the embedding and the head around them */
    figures *own, *all; /* [layers], [ranks][layers] */
    bool has_variance;
    char path[PATH_MAX];
    slc_growing_file file; /* rank 0 */
    char *piece;           /* of a step's lines */
};

static bool writes(const slc_training_observer *o)
{
    return sluice_world_rank(o->of.world) == 0;
}

/* ---- Opening ---- */

/* Opens the file without the rows of steps after the last one that the run goes on with. */
static sluice_status open_file(slc_training_observer *o)
{
    uint64_t kept = 0;
    const int length = snprintf(o->path, sizeof o->path, "%s/observed.csv", o->of.options->log);
    if (length < 0 || length >= (int)sizeof o->path)
        return slc_error(SLUICE_ERR_ARGUMENT, "--log %s: the path is too long", o->of.options->log);
    const uint64_t last = o->of.steps_before;
    sluice_status status = last ? slc_training_kept_lines(o->path, head, last, &kept) : SLUICE_OK;
    if (!status) status = slc_growing_file_open(o->path, kept, &o->file);
    if (!status && !kept) slc_growing_file_put(&o->file, head, sizeof head - 1);
    return status;
}

sluice_status slc_training_observer_open(const slc_training_observed *of, slc_training_observer **out)
{
    *out = NULL;
    if (!of->options->observe) return SLUICE_OK;
    slc_training_observer *o = calloc(1, sizeof *o);
    if (!o) return slc_error(SLUICE_ERR_MEMORY, "--observe");
    o->of = *of;
    o->every = of->options->observe;
    o->layers = sluice_model_get_config(of->model)->layers + 2;
    o->file = SLC_GROWING_FILE_NONE;
    o->own = calloc(o->layers, sizeof *o->own);
    o->all = calloc((size_t)sluice_world_size(of->world) * o->layers, sizeof *o->all);
    o->piece = malloc((size_t)o->layers * LINE_BYTES);
    o->has_variance = sluice_param_state_count(sluice_runtime_param(of->rt, 0), state) > 0;
    *out = o;
    if (!o->own || !o->all || !o->piece) return slc_error(SLUICE_ERR_MEMORY, "--observe of %u layers", o->layers);
    return writes(o) ? open_file(o) : SLUICE_OK;
}

void slc_training_observer_close(slc_training_observer *o)
{
    if (!o) return;
    slc_growing_file_close(&o->file);
    free(o->own);
    free(o->all);
    free(o->piece);
    free(o);
}

/* ---- A step ---- */

static bool is_observed(const slc_training_observer *o, uint64_t step)
{
    return o && step % o->every == 0;
}

sluice_status slc_training_observer_begin(slc_training_observer *o, uint64_t step)
{
    return o ? sluice_model_observe(o->of.model, is_observed(o, step)) : SLUICE_OK;
}

static void name_layer(const slc_training_observer *o, uint32_t layer, char name[NAME_BYTES])
{
    if (layer && layer + 1 < o->layers)
        snprintf(name, NAME_BYTES, "h.%u", layer - 1);
    else
        snprintf(name, NAME_BYTES, "%s", layer ? "head" : "embed");
}

/* The layer whose name is the beginning of the parameter's. */
static uint32_t layer_of(const slc_training_observer *o, const sluice_param *param)
{
    const char *name = sluice_param_name(param);
    if (!strncmp(name, "h.", 2)) return 1 + (uint32_t)strtoul(name + 2, NULL, 10);
    return strncmp(name, "embed.", 6) ? o->layers - 1 : 0;
}

static sluice_status take_blocks(slc_training_observer *o)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t block = 0; !status && block + 2 < o->layers; block++) {
        figures *f = &o->own[block + 1];
        status = sluice_model_observed(o->of.model, block, &f->ratio, &f->cosine);
        f->ranks = !isnan(f->ratio);
        if (isnan(f->ratio)) f->ratio = f->cosine = 0; /* another stage's */
    }
    return status;
}

static sluice_status take_variances(slc_training_observer *o)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && o->has_variance && i < sluice_runtime_param_count(o->of.rt); i++) {
        sluice_param *param = sluice_runtime_param(o->of.rt, i);
        figures *f = &o->own[layer_of(o, param)];
        double squares, largest;
        status = sluice_param_state_extent(param, state, &squares, &largest);
        if (status) break;
        f->squares += squares;
        f->largest = fmax(f->largest, largest);
    }
    return status;
}

static figures join_ranks(const slc_training_observer *o, uint32_t layer)
{
    figures sum = {0};
    for (int r = 0; r < sluice_world_size(o->of.world); r++) {
        const figures *f = &o->all[(size_t)r * o->layers + layer];
        sum.ratio += f->ratio, sum.cosine += f->cosine, sum.ranks += f->ranks, sum.squares += f->squares;
        sum.largest = fmax(sum.largest, f->largest);
    }
    return sum;
}

static int put_line(const slc_training_observer *o, uint64_t step, uint32_t layer, char *line)
{
    const figures f = join_ranks(o, layer);
    char name[NAME_BYTES];
    name_layer(o, layer, name);
    int used = snprintf(line, LINE_BYTES, "%" PRIu64 ",%s,", step, name);
    if (f.ranks > 0)
        used += snprintf(line + used, (size_t)(LINE_BYTES - used), "%.9g,%.9g,", f.ratio / f.ranks, f.cosine / f.ranks);
    else
        used += snprintf(line + used, (size_t)(LINE_BYTES - used), ",,");
    if (o->has_variance)
        used += snprintf(line + used, (size_t)(LINE_BYTES - used), "%.9g,%.9g\n", sqrt(f.squares), f.largest);
    else
        used += snprintf(line + used, (size_t)(LINE_BYTES - used), ",\n");
    return used;
}

static void write_step(slc_training_observer *o, uint64_t step)
{
    size_t used = 0;
    for (uint32_t layer = 0; layer < o->layers; layer++) used += (size_t)put_line(o, step, layer, o->piece + used);
    if (!slc_growing_file_put(&o->file, o->piece, used))
        slc_log(SLC_LOG_WARN, "cannot write %s: %s; the run goes on", o->path, strerror(o->file.why));
}

sluice_status slc_training_observer_end(slc_training_observer *o, uint64_t step)
{
    if (!is_observed(o, step)) return SLUICE_OK;
    memset(o->own, 0, o->layers * sizeof *o->own);
    sluice_status status = take_blocks(o);
    if (!status) status = take_variances(o);
    if (!status) status = sluice_world_all_gather(o->of.world, o->own, o->layers * sizeof *o->own, o->all);
    if (!status && writes(o)) write_step(o, step);
    return status;
}

/* ---- The picture ---- */

typedef struct {
    const char *title;
    int column;
    bool of_blocks, logarithmic;
} panel;

static void put_panel(FILE *file, const slc_training_observer *o, const panel *p)
{
    const uint32_t first = p->of_blocks ? 1 : 0, last = p->of_blocks ? o->layers - 2 : o->layers - 1;
    fprintf(file, "  set title '%s'\n  %s logscale y\n  plot \\\n", p->title, p->logarithmic ? "set" : "unset");
    for (uint32_t layer = first; layer <= last; layer++) {
        char name[NAME_BYTES];
        name_layer(o, layer, name);
        fprintf(file, "     data skip 1 every %u::%u using 1:%d with lines lw 1.5 lc palette frac %.3f title '%s'%s\n",
                o->layers, layer, p->column, last > first ? (double)(layer - first) / (last - first) : 0.5, name,
                layer < last ? ", \\" : "");
    }
}

static void put_script(FILE *file, const void *what)
{
    const slc_training_observer *o = what;
    static const panel panels[] = {{"norm of a block''s output over that of its input", 3, true, false},
                                   {"cosine between a block''s input and output", 4, true, false},
                                   {"norm of the second moment", 5, false, true},
                                   {"largest element of the second moment", 6, false, true}};
    const int count = o->has_variance ? 4 : 2;
    slc_gnuplot_begin(file, "observed", 1200, 400 * (count / 2));
    fprintf(file,
            "  data = folder.'observed.csv'\n  set datafile separator ','\n  set multiplot layout %d,2\n"
            "  set key outside right top font ',8'\n  set xlabel 'step'\n  set palette rgbformulae 33,13,10\n"
            "  unset colorbox\n",
            count / 2);
    for (int i = 0; i < count; i++) put_panel(file, o, &panels[i]);
    fputs("  unset multiplot\n  unset output\n}\n", file);
}

sluice_status slc_training_observer_draw(slc_training_observer *o, FILE *out)
{
    if (!o || !writes(o) || o->file.bytes <= sizeof head) return SLUICE_OK;
    const char *folder = o->of.options->log;
    sluice_status status = slc_gnuplot_write(folder, "observed.gp", put_script, o);
    return status ? status : slc_gnuplot_draw(folder, "observed", out);
}
