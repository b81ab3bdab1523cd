/* The lists from which options of training are chosen, and their help, are made from the tables of schedulers,
 * optimizers and families. Any thread. */
#pragma once

typedef struct {
    char schedules[256], schedule_doc[768], optimizers[256], optimizer_doc[768]; /* names with commas, and help */
    char models[256], model_doc[256], size_argument[256], size_doc[512], head_doc[768];
} slc_training_choices;

void slc_training_choices_list(slc_training_choices *out);
