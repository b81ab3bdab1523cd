/* Reads the two variables by which batch systems and users say how many threads a process should have. */
#include "bench/cli/default_threads.h"

#include "lib/base/status.h"

#include <sluice/world.h>
#include <stdlib.h>

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

/* Reads a count from a variable. OMP_NUM_THREADS may be a list with a number for each level of nested parallelism; ours
 * is the first. */
static sluice_status read_count(const char *name, char after, uint64_t *out)
{
    const char *text = variable(name);
    char *end;
    const unsigned long count = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || (*end && *end != after) || count < 1 || count > SLC_THREADS_MOST)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s=%s: it is no number of threads from 1 to %d; set it, or give --threads", name, text,
                         SLC_THREADS_MOST);
    *out = count;
    return SLUICE_OK;
}

/* Limits the threads to this rank's share of the node. Slurm counts CPUs for a task; if a launcher inside the task
 * starts several ranks, they share the node's CPUs. */
static sluice_status share_node(uint64_t *threads)
{
    sluice_world_config config;
    uint64_t node = 0;
    sluice_status status = sluice_world_config_init(&config);
    if (status || config.local_size < 2 || !variable("SLURM_CPUS_ON_NODE")) return status;
    status = read_count("SLURM_CPUS_ON_NODE", 0, &node);
    if (status) return status;
    const uint64_t share = node / (uint64_t)config.local_size;
    if (*threads > share) *threads = share ? share : 1;
    return SLUICE_OK;
}

sluice_status slc_fill_threads(uint64_t *threads)
{
    if (*threads) return SLUICE_OK;
    *threads = 1;
    if (variable("SLURM_CPUS_PER_TASK")) {
        sluice_status status = read_count("SLURM_CPUS_PER_TASK", 0, threads);
        return status ? status : share_node(threads);
    }
    return variable("OMP_NUM_THREADS") ? read_count("OMP_NUM_THREADS", ',', threads) : SLUICE_OK;
}
