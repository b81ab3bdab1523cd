/* bench/train/train_run_test.c covers this file. */
#include "bench/train/options/choices.h"

#include "bench/cli/options/option.h"
#include "bench/train/options/onebit_options.h"
#include "lib/optim/optimizers.h"
#include "lib/weights/family.h"
#include "sched/planner.h"
#include "sched/scheduler.h"

#include <sluice/model.h>
#include <stdio.h>
#include <string.h>

static void append(char *list, size_t bytes, const char *between, const char *name)
{
    size_t used = strlen(list);
    snprintf(list + used, bytes - used, "%s%s", used ? between : "", name);
}

/* Schedules that choose strategies too come last. */
static void list_schedules(slc_training_choices *c)
{
    char plain[256] = "", measured[256] = "";
    for (int joint = 0; joint <= 1; joint++) {
        const slc_scheduler *s = NULL;
        for (size_t i = 0; s != &slc_scheduler_portfolio; i++) {
            s = slc_scheduler_at(i);
            if (!s) s = &slc_scheduler_portfolio;
            if (slc_scheduler_is_joint(s) != joint) continue;
            append(c->schedules, sizeof c->schedules, ",", s->name);
            append(s->wants_times ? measured : plain, sizeof plain, s == &slc_scheduler_portfolio ? " and " : ", ",
                   s->name);
        }
    }
    snprintf(c->schedule_doc, sizeof c->schedule_doc,
             "Order of communication: %s; %s begin with serial, measure, and plan again after the third step", plain,
             measured);
}

static void list_optimizers(slc_training_choices *c)
{
    char compressed[256] = "", plain[256] = "";
    for (size_t i = 0; slc_optimizer_at(i); i++) {
        const slc_optimizer_row *row = slc_optimizer_at(i);
        append(c->optimizers, sizeof c->optimizers, ",", row->name);
        append(row->compressed ? compressed : plain, sizeof plain, ", ", row->name);
        if (row->doc) append(row->compressed ? compressed : plain, sizeof plain, " (", row->doc);
        if (row->doc) append(row->compressed ? compressed : plain, sizeof plain, ")", "");
    }
    snprintf(c->optimizer_doc, sizeof c->optimizer_doc,
             "Optimizer: %s; %s (compressed: after a warm-up ranks exchange one bit an element); none: %s, or %s where "
             "onebit is asked for or allowed",
             plain, compressed, slc_training_optimizer_usual(false), slc_training_optimizer_usual(true));
}

/* Adds a family's sizes to the help; to the choices it adds those that no family before had. */
static void list_sizes(slc_training_choices *c, sluice_model_family family)
{
    const char *size;
    append(c->size_doc, sizeof c->size_doc, family ? "; " : ": ", slc_family_of(family)->name);
    for (uint32_t i = 0; (size = sluice_model_size_name(family, i)) != NULL; i++) {
        append(c->size_doc, sizeof c->size_doc, i ? ", " : ": ", size);
        if (slc_option_place(c->size_argument + strlen("NAME="), size) < 0)
            append(c->size_argument, sizeof c->size_argument, c->size_argument[strlen("NAME=")] ? "," : "", size);
    }
}

static void list_models(slc_training_choices *c)
{
    char tokens[256] = "", classes[256] = "";
    for (uint32_t f = 0; f < SLUICE_MODEL_FAMILIES; f++) {
        const slc_family *family = slc_family_of((sluice_model_family)f);
        append(c->models, sizeof c->models, ",", family->name);
        list_sizes(c, (sluice_model_family)f);
        if (family->classes[SLUICE_HEAD_CLASSES]) append(classes, sizeof classes, ", ", family->name);
        if (!family->classes[SLUICE_HEAD_TOKENS]) continue;
        append(tokens, sizeof tokens, ", ", family->name);
        append(tokens, sizeof tokens, "", family->sees ? ": masked patches" : family->masks ? ": masked tokens" : "");
    }
    char names[160];
    snprintf(c->model_doc, sizeof c->model_doc, "Model: %s", slc_family_names(names, sizeof names));
    snprintf(c->head_doc, sizeof c->head_doc,
             "Kind of answer: tokens (%s) or classes (%s); none: tokens of text, classes of images", tokens, classes);
}

void slc_training_choices_list(slc_training_choices *c)
{
    *c = (slc_training_choices){.size_argument = "NAME=", .size_doc = "Size"};
    list_schedules(c);
    list_optimizers(c);
    list_models(c);
}
