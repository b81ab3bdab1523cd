/* Finds this process's rank, the number of ranks and where rank 0 listens, from the environment that a launcher made.
 * Each launcher is a row of names of variables; the first whose rank is set wins. */

#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/comm/settings.h"

#include <sluice/world.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PORT = 20000, PORTS = 10000, DEFAULT_PORT = 29500 };

typedef struct {
    const char *rank, *size, *local_rank, *local_size; /* names of variables */
    const char *job[2];                                /* the launcher's job id, in parts */
    const char *name;
} launcher;

/* Open MPI and PMIx come before Slurm, whose variables leak into what mpirun starts inside an allocation. */
static const launcher launchers[] = {
    {"RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     {"TORCHELASTIC_RUN_ID", NULL},
     "sluice run, or another that sets RANK"},
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
     "Open MPI"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {"PMI_JOBID", NULL}, "PMI"},
    {"PMIX_RANK", "WORLD_SIZE", NULL, NULL, {"PMIX_NAMESPACE", NULL}, "PMIx"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL, {"SLURM_JOB_ID", "SLURM_STEP_ID"}, "Slurm"},
};

static const char *environment(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

static sluice_status read_number(const char *name, int low, int high, int *out)
{
    const char *text = environment(name);
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < low || value > high)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s=%s: expected a number from %d to %d", name, text, low, high);
    *out = (int)value;
    return SLUICE_OK;
}

static const launcher *find_launcher(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const launcher *row = &launchers[i];
        if (!environment(row->rank)) continue;
        /* A batch script that runs without srun sees SLURM_PROCID too, but it is not in a step. */
        if (!strcmp(row->rank, "SLURM_PROCID") && !environment("SLURM_STEP_ID")) continue;
        return row;
    }
    return NULL;
}

const char *sluice_launcher_name(void)
{
    const launcher *found = find_launcher();
    if (found == &launchers[0] && environment(found->job[0])) return "torchrun";
    return found ? found->name : NULL;
}

/* Returns the first host of a list, on which Slurm puts task 0: "node[03-07,11],other" -> "node03". */
static const char *first_host(const char *list)
{
    static _Thread_local char host[256];
    size_t used = 0;
    bool bracket = false;
    for (const char *c = list; *c && used + 1 < sizeof host; c++) {
        if (*c == '[') {
            bracket = true;
            continue;
        }
        if (*c == ',' || *c == ']' || (bracket && *c == '-')) break;
        host[used++] = *c;
    }
    host[used] = '\0';
    return host;
}

/* Refuses on task 0 to run on another host than the first of the list, where the other ranks look for it. Slurm may put
 * it there (--distribution=arbitrary), and the environment tells that host to nobody but task 0. */
static sluice_status check_first_host(const sluice_world_config *config)
{
    const char *here = environment("SLURMD_NODENAME");
    if (config->rank || !here || !strcmp(here, config->master_addr)) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "Slurm runs task 0 on %s, but the list of hosts begins with %s, where the other ranks look for it: "
        "export MASTER_ADDR=%s for all, or leave --distribution=arbitrary out",
        here, config->master_addr, here);
}

static sluice_status find_master(sluice_world_config *config)
{
    const char *nodes = environment("SLURM_STEP_NODELIST");
    config->master_addr = environment("MASTER_ADDR");
    if (config->master_addr) return SLUICE_OK;
    if (config->size == 1 || config->local_size == config->size)
        config->master_addr = "127.0.0.1";
    else if (nodes && environment("SLURM_STEP_ID")) {
        config->master_addr = first_host(nodes);
        return check_first_host(config);
    } else
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "MASTER_ADDR is not set: %d ranks need the address of rank 0's host (mpirun: -x MASTER_ADDR)",
                         config->size);
    return SLUICE_OK;
}

static unsigned hash_text(const char *text)
{
    unsigned hash = 2166136261u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

static sluice_status find_port(sluice_world_config *config)
{
    config->master_port = *config->job_token ? FIRST_PORT + (int)(hash_text(config->job_token) % PORTS) : DEFAULT_PORT;
    if (!environment("MASTER_PORT")) return SLUICE_OK;
    sluice_status status = read_number("MASTER_PORT", 1, SLUICE_PORT_LAST, &config->master_port);
    if (status) return status;
    const char *agent = environment("TORCHELASTIC_USE_AGENT_STORE");
    if (!agent || strcmp(agent, "True")) return SLUICE_OK;
    if (config->master_port == SLUICE_PORT_LAST)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "MASTER_PORT=%d: torchrun's agent listens there, and there is no port "
                         "after it for the ranks; give --rdzv-endpoint or --master-port a lower one",
                         SLUICE_PORT_LAST);
    config->master_port++; /* torchrun's agent listens on MASTER_PORT itself */
    return SLUICE_OK;
}

static const char *find_token(const launcher *from)
{
    static _Thread_local char token[256];
    const char *own = environment("SLUICE_JOB_TOKEN");
    if (own) return own;
    const char *first = environment(from->job[0]), *second = environment(from->job[1]);
    if (!first && !second) return "";
    snprintf(token, sizeof token, "%s.%s", first ? first : "", second ? second : "");
    return token;
}

static sluice_status read_launcher(const launcher *from, sluice_world_config *config)
{
    const char *size = from->size;
    if (!environment(size) && environment("SLURM_NTASKS")) size = "SLURM_NTASKS"; /* srun, also with --mpi=pmix */
    if (!environment(size))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s is set but %s is not: set it to the number of ranks", from->rank,
                         size);
    sluice_status status = read_number(size, 1, SLUICE_RANKS_MOST, &config->size);
    if (!status) status = read_number(from->rank, 0, config->size - 1, &config->rank);
    if (!status && environment(from->local_rank))
        status = read_number(from->local_rank, 0, SLUICE_RANKS_MOST - 1, &config->local_rank);
    if (!status && environment(from->local_size))
        status = read_number(from->local_size, 1, SLUICE_RANKS_MOST, &config->local_size);
    if (status) return status;
    config->job_token = find_token(from);
    status = find_master(config);
    return status ? status : find_port(config);
}

static sluice_status read_settings(sluice_world_config *config)
{
    bool direct;
    config->transport = slc_setting_text(&slc_comm_settings, "SLUICE_COMM_TRANSPORT");
    config->throttle = slc_setting_text(&slc_comm_settings, "SLUICE_COMM_THROTTLE");
    sluice_status status = slc_settings_check(&slc_comm_settings);
    if (!status) status = slc_setting_switch(&slc_comm_settings, "SLUICE_COMM_DIRECT", &direct);
    if (status) return status;
    config->direct = direct;
    status = slc_setting_seconds(&slc_comm_settings, "SLUICE_COMM_JOIN_TIMEOUT", &config->join_timeout_s);
    if (status || !*slc_setting_text(&slc_comm_settings, "SLUICE_COMM_TIMEOUT")) return status; /* the defaults */
    return slc_setting_seconds(&slc_comm_settings, "SLUICE_COMM_TIMEOUT", &config->timeout_s);
}

sluice_status sluice_world_config_init_sized(sluice_world_config *config, size_t struct_size)
{
    sluice_world_config found = {.size = 1,
                                 .local_rank = -1,
                                 .local_size = -1,
                                 .master_addr = "127.0.0.1",
                                 .master_port = DEFAULT_PORT,
                                 .job_token = ""};
    sluice_status status = slc_sized_begin("sluice_world_config", &found, sizeof found, config, struct_size);
    if (status) return status;
    status = read_settings(&found);
    const launcher *from = find_launcher();
    if (!status && from) status = read_launcher(from, &found);
    slc_sized_write(&found, sizeof found, config);
    return status;
}
