/* A setting that is not in this text may differ between ranks; a setting that may not differ is added to
 * slc_settings_text. All settings in the table of optimizers are in it. */
#include "lib/engine/model/settings_text.h"

#include "lib/base/hash/fnv.h"
#include "lib/optim/optimizers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char *bytes;
    size_t used;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...)
{
    va_list args;
    size_t room = SLC_SETTINGS_BYTES - t->used;
    va_start(args, format);
    int length = vsnprintf(t->bytes + t->used, room, format, args);
    va_end(args);
    if (length > 0) t->used += (size_t)length < room ? (size_t)length : room - 1;
}

static void add_name(text *t, const char *setting, const char *name)
{
    const char *value = name ? name : "";
    size_t length = strlen(value), line = strcspn(value, "\n"), shown = line < 120 ? line : 120;
    if (shown == length)
        add(t, "%s \"%s\"\n", setting, value);
    else
        add(t, "%s \"%.*s\"... (hash %016llx)\n", setting, (int)shown, value,
            (unsigned long long)slc_fnv(SLC_FNV_START, value, length));
}

static void add_real(text *t, const char *setting, double value)
{
    add(t, "%s %.17g\n", setting, value);
}

static void add_number(text *t, const char *setting, uint64_t value)
{
    add(t, "%s %llu\n", setting, (unsigned long long)value);
}

static void add_choice(text *t, const char *setting, const char *const *words, size_t count, unsigned choice)
{
    if (choice < count)
        add(t, "%s %s\n", setting, words[choice]);
    else
        add_number(t, setting, choice);
}

#define CHOICE(t, setting, choice, ...)                                                                                \
    add_choice(t, setting, (const char *const[]){__VA_ARGS__},                                                         \
               sizeof(const char *const[]){__VA_ARGS__} / sizeof(char *), (unsigned)(choice))

/* All settings of all optimizers, whichever runs. */
static void list_optimizers(text *t, const sluice_config *c)
{
    const slc_optimizer_group *group;
    for (size_t g = 0; (group = slc_optimizer_group_at(g)) != NULL; g++)
        for (uint32_t i = 0; i < group->count; i++) {
            const slc_optimizer_setting *s = &group->settings[i];
            const void *field = (const char *)c + s->offset;
            char name[64];
            snprintf(name, sizeof name, "%s.%s", group->name, s->name);
            if (s->type == SLC_OPTIMIZER_REAL)
                add_real(t, name, *(const double *)field);
            else if (s->type == SLC_OPTIMIZER_WHOLE)
                add_number(t, name, *(const uint64_t *)field);
            else
                CHOICE(t, name, *(const bool *)field, "false", "true");
        }
}

void slc_settings_text(const sluice_runtime *rt, char out[SLC_SETTINGS_BYTES])
{
    const sluice_config *c = &rt->config;
    text t = {.bytes = out};
    memset(out, 0, SLC_SETTINGS_BYTES);
    add_name(&t, "strategy", rt->planning.strategy);
    add_name(&t, "schedule", rt->planning.schedule);
    CHOICE(&t, "recompute", c->recompute, "auto", "none", "all");
    add_name(&t, "optimizer", rt->optimizer.name);
    add_number(&t, "optimizer.state_count", rt->optimizer.state_count);
    list_optimizers(&t, c);
    add_real(&t, "clip", c->clip);
    CHOICE(&t, "nan", c->nan, "stop", "skip");
    CHOICE(&t, "accumulate", c->accumulate, "last", "each");
    CHOICE(&t, "tied", c->tied, "joint", "split");
    CHOICE(&t, "sums", c->sums, "ordered", "nccl");
    CHOICE(&t, "measure_norm", c->measure_norm, "false", "true");
    add_name(&t, "device", c->device);
    add(&t, "precision %s\n", sluice_dtype_name(c->precision));
    add(&t, "wire %s\n", sluice_dtype_name(c->wire));
    add_number(&t, "micro_batches", c->micro_batches);
    add_number(&t, "block_bytes", c->block_bytes);
    add_number(&t, "pipeline", c->pipeline);
    add_number(&t, "pipeline_chunks", c->pipeline_chunks);
    add_name(&t, "pipeline_schedule", rt->stage.schedule);
    add_name(&t, "pipeline_cuts", rt->stage.cuts);
    CHOICE(&t, "plan_file", rt->planning.kept != NULL, "not given", "given");
    if (rt->planning.fuse_bytes == SLC_FUSE_AUTO)
        add(&t, "fuse auto\n");
    else
        add_number(&t, "fuse", rt->planning.fuse_bytes);
}

/* Cuts "NAME VALUE" at its blank; the line's end ends it too. */
static void cut_line(const char *line, slc_settings_difference *out, char *value, size_t room)
{
    size_t name = strcspn(line, " \n"), length = strcspn(line, "\n");
    snprintf(out->name, sizeof out->name, "%.*s", (int)name, line);
    snprintf(value, room, "%.*s", (int)(length > name ? length - name - 1 : 0),
             line[name] == ' ' ? line + name + 1 : "");
}

uint32_t slc_settings_differ(const char *first, const char *second, slc_settings_difference *out)
{
    uint32_t count = 0;
    while (*first && *second) {
        size_t a = strcspn(first, "\n"), b = strcspn(second, "\n");
        if ((a != b || memcmp(first, second, a)) && !count++) {
            cut_line(second, out, out->second, sizeof out->second);
            cut_line(first, out, out->first, sizeof out->first);
        }
        first += a + (first[a] == '\n');
        second += b + (second[b] == '\n');
    }
    return count;
}
