/* A program of subcommands, as its table has them. */
#pragma once

typedef struct {
    const char *name;
    const char *summary;               /* one line for `sluice --help` */
    int (*run)(int argc, char **argv); /* argv[0] is "sluice NAME"; returns the exit code */
} sluice_command;

typedef struct {
    const char *name, *summary;            /* the summary begins with the subject: "Sluice trains ..." */
    const sluice_command *const *commands; /* ends with NULL */
} slc_tool;
