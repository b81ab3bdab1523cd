/* Settings from the environment. Each is a row of its part's table: {name, default, type, doc}. Help and docs are made
 * from the rows. Any thread, as long as nobody changes the environment. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum { SLC_SETTING_TEXT, SLC_SETTING_SWITCH, SLC_SETTING_SECONDS, SLC_SETTING_COUNT } slc_setting_type;

typedef struct {
    const char *name;     /* the variable's name: SLUICE_SECTION_KEY */
    const char *fallback; /* the value if the variable is not set or is empty */
    slc_setting_type type;
    const char *doc; /* one line; "tests: ..." if only tests need it */
} slc_setting;

typedef struct {
    const char *section; /* heading in the docs: "communication" */
    const slc_setting *rows;
    size_t count;
} slc_settings;

/* The settings that lib/base itself reads, and those that only pass through the environment. */
extern const slc_settings slc_base_settings;

/* Returns the value of the row with this name; its fallback if the variable is not set. Never NULL; the row must
 * exist. */
const char *slc_setting_text(const slc_settings *table, const char *name);

/* Read a row as a switch (on, off and their synonyms), as seconds (more than 0) or as a count. Errors: ARGUMENT names
 * the variable and the values that are allowed. */
sluice_status slc_setting_switch(const slc_settings *table, const char *name, bool *out);
sluice_status slc_setting_seconds(const slc_settings *table, const char *name, double *out);
sluice_status slc_setting_count(const slc_settings *table, const char *name, unsigned *out);

/* Checks every row that is set: a switch, seconds or a count must read as one. Errors: as above, for the first row that
 * does not. */
sluice_status slc_settings_check(const slc_settings *table);

/* Warns, once in a process, about each variable that begins with SLUICE_ but is in no table, and names the nearest one
 * that is. SLUICE_ROOT, SLUICE_DIR and their like cause no warning: they say where the library lies. */
void slc_settings_warn_unknown(const slc_settings *const *tables, size_t count);

/* Prints the tables as a page of Markdown. Rows whose doc begins with "tests: " come last, under a heading of their
 * own. */
void slc_settings_print(const slc_settings *const *tables, size_t count, FILE *out);
