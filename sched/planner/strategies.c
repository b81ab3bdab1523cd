/* Turns the user's strategy, which is a name, a seed, "mixed" or a file, into one for each unit.
 * planner_test.c covers this file. */
#include "sched/planner/parts.h"

#include "lib/base/file/file.h"
#include "lib/base/numbers/random.h"
#include "lib/base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char choices[] = "auto, dp, oss, sdp, fsdp, onebit, mixed, random:SEED, or the path of a JSON file";

enum { RANDOM_STREAM = 0x5354 }; /* a stream that no other use of the seed has */
enum { LARGEST_FILE = 16 << 20 };

static sluice_status parse_random(const slc_job *job, const char *spec, slc_strategy *out)
{
    const char *digits = spec + strlen("random:");
    char *end;
    errno = 0;
    unsigned long long seed = strtoull(digits, &end, 10);
    if (digits[0] < '0' || digits[0] > '9' || *end || errno)
        return slc_error(SLUICE_ERR_ARGUMENT, "strategy \"%s\": \"%s\" is no seed; give a whole number, as random:1",
                         spec, digits);
    for (uint32_t u = 0; u < job->unit_count; u++)
        out[u] = (slc_strategy)slc_random_below(seed, RANDOM_STREAM, u, (uint32_t)slc_job_strategies(job));
    return SLUICE_OK;
}

static sluice_status read_file(const char *path, char **out)
{
    slc_file file;
    char *text = NULL;
    sluice_status status = slc_file_open(path, &file);
    if (status == SLUICE_ERR_PATH)
        return slc_error(SLUICE_ERR_ARGUMENT, "strategy \"%s\" does not exist, nor a file of that name (%s); choose %s",
                         path, sluice_last_error(), choices);
    if (status) return slc_error_context(status, "strategy");
    size_t length = (size_t)file.bytes;
    if (file.bytes >= LARGEST_FILE)
        status = slc_error(SLUICE_ERR_FORMAT, "strategy file %s: larger than %d MiB", path, LARGEST_FILE >> 20);
    else if (!(text = malloc(length + 1)))
        status = slc_error(SLUICE_ERR_MEMORY, "strategy file %s", path);
    if (!status) status = slc_error_context(slc_file_read(&file, 0, length, text), "strategy file");
    if (!status && memchr(text, 0, length))
        status = slc_error(SLUICE_ERR_FORMAT, "strategy file %s: holds a zero byte; it must be JSON", path);
    slc_file_close(&file);
    if (status) {
        free(text);
        return status;
    }
    text[length] = 0;
    *out = text;
    return SLUICE_OK;
}

static sluice_status parse_spec(const slc_job *job, const char *spec, slc_strategy *out)
{
    slc_strategy all;
    if (!spec || !spec[0]) return slc_error(SLUICE_ERR_ARGUMENT, "no strategy given; choose %s", choices);
    if (!strncmp(spec, "random:", strlen("random:"))) return parse_random(job, spec, out);
    if (!strcmp(spec, "auto") || !strcmp(spec, "mixed"))
        all = SLC_STRATEGIES;
    else if (!slc_strategy_parse(spec, &all)) {
        char *text = NULL;
        sluice_status status = read_file(spec, &text);
        if (!status) status = slc_strategies_from_json(job, spec, text, out);
        free(text);
        return status;
    }
    for (uint32_t u = 0; u < job->unit_count; u++) out[u] = all;
    return SLUICE_OK;
}

/* Returns the strategy that was asked for if the unit may have it, else another. dp replaces onebit outside of the
 * compressed phase and for frozen units, because every rank has everything under dp too. */
static slc_strategy as_may_be(const slc_job *job, uint32_t u, slc_strategy asked)
{
    const slc_unit *unit = &job->units[u];
    return slc_unit_is_free(unit, asked) ? asked : slc_unit_strategy(job, unit, asked);
}

sluice_status slc_strategies_parse(const slc_job *job, const char *spec, slc_strategy *out)
{
    sluice_status status = parse_spec(job, spec, out);
    for (uint32_t u = 0; !status && u < job->unit_count; u++) {
        if (out[u] == SLC_ONEBIT && job->exact)
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "strategy \"%s\": onebit needs a compressed optimizer: onebit_adam, onebit_lamb or "
                             "zero_one_adam",
                             spec);
        out[u] = as_may_be(job, u, out[u]);
    }
    return status;
}

void slc_strategies_force(const slc_job *job, const slc_strategy *forced, slc_strategy *strategies)
{
    for (uint32_t u = 0; forced && u < job->unit_count; u++)
        if (forced[u] != SLC_STRATEGIES) strategies[u] = as_may_be(job, u, forced[u]);
}
