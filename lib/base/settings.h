/* Settings from the environment: each is a row of its part's table, {name, default, type, doc}. Help and docs are made
 * from the rows. Any thread, as long as nobody changes the environment. */
#ifndef SLC_BASE_SETTINGS_H
#define SLC_BASE_SETTINGS_H

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum { SLC_SETTING_TEXT, SLC_SETTING_SWITCH, SLC_SETTING_SECONDS, SLC_SETTING_COUNT } slc_setting_type;

typedef struct {
    const char *name;     /* of the variable: SLUICE_SECTION_KEY */
    const char *fallback; /* the value when it is not set or empty */
    slc_setting_type type;
    const char *doc; /* one line */
} slc_setting;

typedef struct {
    const char *section; /* heading in the docs: "communication" */
    const slc_setting *rows;
    size_t count;
} slc_settings;

/* What lib/base itself reads, and what only passes through the environment. */
extern const slc_settings slc_base_settings;

/* The value of a row, by its name; its fallback when it is not set. Never NULL; the row must exist. */
const char *slc_setting_text(const slc_settings *table, const char *name);

/* Errors: ARGUMENT names the variable and what it may be. Switch: on, off and their kin; seconds: more than 0. */
sluice_status slc_setting_switch(const slc_settings *table, const char *name, bool *out);
sluice_status slc_setting_seconds(const slc_settings *table, const char *name, double *out);
sluice_status slc_setting_count(const slc_settings *table, const char *name, unsigned *out);

/* Warns once a process about each variable that begins with SLUICE_ and is in no table, naming the nearest that is. */
void slc_settings_warn_unknown(const slc_settings *const *tables, size_t count);

/* The tables as a page of Markdown. */
void slc_settings_print(const slc_settings *const *tables, size_t count, FILE *out);

#endif
