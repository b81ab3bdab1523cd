/* Each launcher's environment gives the right rank, size, address, port and token. */
#include "tests/support/comm/forked_ranks.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static const char *const known[] = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "SLUICE_JOB_TOKEN",
    "TORCHELASTIC_USE_AGENT_STORE",
    "TORCHELASTIC_RUN_ID",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMIX_NAMESPACE",
    "OMPI_MCA_ess_base_jobid",
    "PMI_RANK",
    "PMI_SIZE",
    "PMI_JOBID",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "PMIX_RANK",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_LOCALID",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_STEP_NODELIST",
    "SLURMD_NODENAME",
    "SLUICE_COMM_THROTTLE",
    "SLUICE_COMM_DIRECT",
    "SLUICE_COMM_TIMEOUT",
};

static int clear(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) unsetenv(known[i]);
    return 0;
}

static sluice_world_config read_config(void)
{
    sluice_world_config config;
    assert_int_equal(sluice_world_config_init(&config), SLUICE_OK);
    return config;
}

static void test_alone(void **state)
{
    (void)state;
    sluice_world_config config = read_config();
    assert_int_equal(config.rank, 0);
    assert_int_equal(config.size, 1);
    assert_string_equal(config.transport, "ucx");
    assert_true(config.timeout_s == 0); /* 0 means the defaults, so that a limit which is set can be told from them */
    assert_true(config.direct);
}

static void test_sluice_run(void **state)
{
    (void)state;
    setenv("RANK", "3", 1);
    setenv("WORLD_SIZE", "4", 1);
    setenv("LOCAL_RANK", "1", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "10.0.0.1", 1);
    setenv("MASTER_PORT", "4711", 1);
    setenv("SLUICE_JOB_TOKEN", "secret", 1);
    sluice_world_config config = read_config();
    assert_int_equal(config.rank, 3);
    assert_int_equal(config.size, 4);
    assert_int_equal(config.local_rank, 1);
    assert_int_equal(config.local_size, 2);
    assert_string_equal(config.master_addr, "10.0.0.1");
    assert_int_equal(config.master_port, 4711);
    assert_string_equal(config.job_token, "secret");
}

static void test_torchrun(void **state)
{
    (void)state;
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", "29500", 1);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    setenv("TORCHELASTIC_RUN_ID", "job7", 1);
    sluice_world_config config = read_config();
    assert_int_equal(config.master_port, 29501); /* the agent listens on the port before */
    assert_non_null(strstr(config.job_token, "job7"));
}

static void test_slurm(void **state)
{
    (void)state;
    setenv("SLURM_PROCID", "5", 1);
    setenv("SLURM_NTASKS", "8", 1);
    setenv("SLURM_LOCALID", "1", 1);
    setenv("SLURM_JOB_ID", "1234", 1);
    assert_int_equal(read_config().size, 1); /* a batch script that runs without srun */
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_STEP_NODELIST", "node[07-09,12],other3", 1);
    sluice_world_config config = read_config();
    assert_int_equal(config.rank, 5);
    assert_int_equal(config.size, 8);
    assert_string_equal(config.master_addr, "node07");
    assert_string_equal(config.job_token, "1234.0");
    int port = config.master_port;
    assert_true(port >= 1024);
    setenv("SLURM_JOB_ID", "1235", 1);
    assert_int_not_equal(read_config().master_port, port); /* two jobs on one host do not meet */
    setenv("SLURM_STEP_NODELIST", "alpha,beta", 1);
    assert_string_equal(read_config().master_addr, "alpha");
}

static void test_slurm_puts_task_0_elsewhere(void **state)
{
    (void)state;
    sluice_world_config config;
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_NTASKS", "2", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_STEP_NODELIST", "node[07-08]", 1);
    setenv("SLURMD_NODENAME", "node07", 1);
    assert_string_equal(read_config().master_addr, "node07");
    setenv("SLURMD_NODENAME", "node08", 1);
    assert_int_equal(sluice_world_config_init(&config), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "task 0 on node08, but the list of hosts begins with node07"));
    assert_non_null(strstr(sluice_last_error(), "export MASTER_ADDR=node08"));
    setenv("MASTER_ADDR", "node08", 1);
    assert_string_equal(read_config().master_addr, "node08");
    unsetenv("MASTER_ADDR");
    setenv("SLURM_PROCID", "1", 1);
    assert_string_equal(read_config().master_addr, "node07");
}

static void test_open_mpi(void **state)
{
    (void)state;
    setenv("SLURM_PROCID", "0", 1); /* mpirun inherits this from an allocation */
    setenv("SLURM_NTASKS", "1", 1);
    setenv("SLURM_STEP_ID", "1", 1);
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    setenv("PMIX_RANK", "1", 1);
    setenv("PMIX_NAMESPACE", "4026597377", 1);
    sluice_world_config config = read_config();
    assert_int_equal(config.rank, 1);
    assert_int_equal(config.size, 2);
    assert_string_equal(config.master_addr, "127.0.0.1"); /* all ranks are on this host */
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1", 1);
    assert_int_equal(sluice_world_config_init(&config), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "MASTER_ADDR"));
}

static void test_pmix(void **state)
{
    (void)state;
    sluice_world_config config;
    setenv("PMIX_RANK", "1", 1);
    setenv("MASTER_ADDR", "10.0.0.1", 1);
    assert_int_equal(sluice_world_config_init(&config), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "WORLD_SIZE"));
    setenv("WORLD_SIZE", "3", 1);
    assert_int_equal(read_config().size, 3);
    setenv("SLURM_NTASKS", "4", 1);
    unsetenv("WORLD_SIZE");
    assert_int_equal(read_config().size, 4); /* srun --mpi=pmix */
}

static void test_pmi(void **state)
{
    (void)state;
    setenv("PMI_RANK", "2", 1);
    setenv("PMI_SIZE", "4", 1);
    setenv("PMI_JOBID", "77", 1);
    setenv("MPI_LOCALRANKID", "2", 1);
    setenv("MPI_LOCALNRANKS", "4", 1);
    sluice_world_config config = read_config();
    assert_int_equal(config.rank, 2);
    assert_int_equal(config.size, 4);
    assert_int_equal(config.local_rank, 2);
    assert_string_equal(config.master_addr, "127.0.0.1");
    assert_non_null(strstr(config.job_token, "77"));
}

/* sluice_launcher_name finds a launcher exactly when the world's configuration does. */
static void test_names(void **state)
{
    static const struct {
        const char *variable, *also, *name;
    } rows[] = {
        {"RANK", NULL, "sluice run, or another that sets RANK"},
        {"RANK", "TORCHELASTIC_RUN_ID", "torchrun"},
        {"OMPI_COMM_WORLD_RANK", NULL, "Open MPI"},
        {"PMI_RANK", NULL, "PMI"},
        {"PMIX_RANK", NULL, "PMIx"},
        {"SLURM_PROCID", "SLURM_STEP_ID", "Slurm"},
        {"SLURM_PROCID", NULL, NULL},        /* a batch script */
        {"TORCHELASTIC_RUN_ID", NULL, NULL}, /* no variable gives the rank */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        clear(state);
        setenv(rows[i].variable, "0", 1);
        if (rows[i].also) setenv(rows[i].also, "1", 1);
        const char *name = sluice_launcher_name();
        sluice_world_config config;
        bool refused = sluice_world_config_init(&config) != SLUICE_OK; /* the size is missing */
        assert_int_equal(refused, rows[i].name != NULL);
        if (rows[i].name)
            assert_string_equal(name, rows[i].name);
        else
            assert_null(name);
    }
    clear(state);
    setenv("PMI_RANK", "", 1); /* an empty variable counts as not set */
    assert_null(sluice_launcher_name());
}

static void test_limits(void **state)
{
    (void)state;
    sluice_world_config config;
    setenv("RANK", "4094", 1);
    setenv("WORLD_SIZE", "4095", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", "65535", 1);
    assert_int_equal(read_config().master_port, SLUICE_PORT_LAST);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    assert_int_equal(sluice_world_config_init(&config), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "no port after it"));
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
    setenv("WORLD_SIZE", "4096", 1);
    assert_int_equal(sluice_world_config_init(&config), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "1 to 4095"));
}

static void test_errors(void **state)
{
    (void)state;
    sluice_world_config config;
    setenv("RANK", "4", 1);
    setenv("WORLD_SIZE", "4", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    assert_int_equal(sluice_world_config_init(&config), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "RANK=4"));
    setenv("RANK", "x", 1);
    assert_int_equal(sluice_world_config_init(&config), SLUICE_ERR_ARGUMENT);
    setenv("RANK", "1", 1);
    setenv("MASTER_PORT", "70000", 1);
    assert_int_equal(sluice_world_config_init(&config), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "MASTER_PORT"));
    setenv("MASTER_PORT", "7000", 1);
    setenv("SLUICE_COMM_DIRECT", "maybe", 1);
    assert_int_equal(sluice_world_config_init(&config), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "SLUICE_COMM_DIRECT"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_alone, clear),
        cmocka_unit_test_setup(test_sluice_run, clear),
        cmocka_unit_test_setup(test_torchrun, clear),
        cmocka_unit_test_setup(test_slurm, clear),
        cmocka_unit_test_setup(test_slurm_puts_task_0_elsewhere, clear),
        cmocka_unit_test_setup(test_open_mpi, clear),
        cmocka_unit_test_setup(test_pmix, clear),
        cmocka_unit_test_setup(test_pmi, clear),
        cmocka_unit_test_setup(test_names, clear),
        cmocka_unit_test_setup(test_limits, clear),
        cmocka_unit_test_setup(test_errors, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
