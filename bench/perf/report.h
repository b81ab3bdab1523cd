/* The report of measured collectives, which rank 0 prints as nccl-tests' table and writes as JSON (docs/formats.md). */
#pragma once

#include "bench/cli/output/result_file.h"
#include "bench/perf/measure.h"
#include "bench/perf/options.h"

typedef struct {
    const slc_perf_options *options;
    FILE *table;
    slc_result_file file;
    json_t *rows;
    double bus_sum_bytes_per_s; /* of all rows */
    uint64_t row_count, wrong;  /* elements of all rows */
    bool unread;                /* the table's reader has left */
} slc_perf_report;

/* Opens the file at once. The caller closes the report, also after an error. Errors: PATH, IO, MEMORY. */
sluice_status slc_perf_report_open(const slc_perf_options *options, slc_perf_report *out);
void slc_perf_report_close(slc_perf_report *report);

void slc_perf_report_begin(slc_perf_report *report, const sluice_world *world);
/* Errors: MEMORY. */
sluice_status slc_perf_report_row(slc_perf_report *report, const slc_perf_config *config, const slc_perf_row *row);
/* The two lines with which nccl-tests ends, for scripts that look for them. */
void slc_perf_report_end(slc_perf_report *report);
/* Errors: MEMORY, PATH, IO. */
sluice_status slc_perf_report_write(slc_perf_report *report, const sluice_world *world);
