/* Open MPI's collectives, measured as `sluice perf` measures ours: iterations back to back, fp32 sums, the mean over
 * iterations and ranks, and nccl-tests' bus bandwidth. Built by bench/compare/networks/openmpi.sh with mpicc.
 *   openmpi_perf OPERATION ITERATIONS WARM_UP SIZE...      prints "size busbw_in_bytes_per_s wrong" a size
 * tests/command/measure/peers_test.sh covers this file. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, UNKNOWN } operation;

typedef struct {
    operation operation;
    int rank, ranks, iterations, warm_up;
    float *whole, *other; /* of the largest size each */
} job;

static operation operation_named(const char *name)
{
    if (!strcmp(name, "all_reduce")) return ALL_REDUCE;
    if (!strcmp(name, "reduce_scatter")) return REDUCE_SCATTER;
    if (!strcmp(name, "all_gather")) return ALL_GATHER;
    return UNKNOWN;
}

static void run_once(const job *j, int elements)
{
    int part = elements / j->ranks;
    switch (j->operation) {
    case ALL_REDUCE: MPI_Allreduce(j->whole, j->other, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter_block(j->whole, j->other, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    default: MPI_Allgather(j->whole, part, MPI_FLOAT, j->other, part, MPI_FLOAT, MPI_COMM_WORLD);
    }
}

static float value_of(int rank, int element)
{
    return (float)((element % 251 * 31 + rank * 17) % 251 - 100);
}

static float expected(const job *j, int elements, int k)
{
    int part = elements / j->ranks;
    if (j->operation == ALL_GATHER) return value_of(k / part, k % part);
    float sum = 0;
    for (int r = 0; r < j->ranks; r++) sum += value_of(r, j->operation == ALL_REDUCE ? k : j->rank * part + k);
    return sum;
}

static double count_wrong(const job *j, int elements)
{
    int results = j->operation == REDUCE_SCATTER ? elements / j->ranks : elements;
    double wrong = 0, all;
    for (int k = 0; k < results; k++) wrong += !(j->other[k] == expected(j, elements, k));
    MPI_Allreduce(&wrong, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static double time_once(const job *j, int elements)
{
    for (int i = 0; i < j->warm_up; i++) run_once(j, elements);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < j->iterations; i++) run_once(j, elements);
    double mean = (MPI_Wtime() - start) / j->iterations, sum;
    MPI_Allreduce(&mean, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum / j->ranks;
}

/* Measures one size. Returns 1 if a result was wrong. */
static int measure(const job *j, long bytes)
{
    int elements = (int)(bytes / (long)sizeof(float) / j->ranks * j->ranks);
    for (int i = 0; i < elements; i++) j->whole[i] = value_of(j->rank, i);
    memset(j->other, 0xff, (size_t)elements * sizeof(float));
    double seconds = time_once(j, elements), wrong = count_wrong(j, elements);
    double factor = (j->operation == ALL_REDUCE ? 2.0 : 1.0) * (j->ranks - 1) / j->ranks;
    double size = (double)elements * sizeof(float);
    if (j->rank == 0) printf("%.0f %.0f %.0f\n", size, size / seconds * factor, wrong);
    return wrong > 0;
}

int main(int argc, char **argv)
{
    job j;
    int failed = 0;
    long most = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &j.ranks);
    j.operation = argc > 4 ? operation_named(argv[1]) : UNKNOWN;
    if (j.operation == UNKNOWN) {
        fprintf(stderr, "usage: openmpi_perf all_reduce|reduce_scatter|all_gather ITERATIONS WARM_UP SIZE...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    j.iterations = atoi(argv[2]);
    j.warm_up = atoi(argv[3]);
    for (int i = 4; i < argc; i++) most = atol(argv[i]) > most ? atol(argv[i]) : most;
    j.whole = aligned_alloc(4096, (size_t)(most + 4095) / 4096 * 4096);
    j.other = aligned_alloc(4096, (size_t)(most + 4095) / 4096 * 4096);
    if (j.iterations < 1 || !j.whole || !j.other) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 4; i < argc; i++) failed |= measure(&j, atol(argv[i]));
    MPI_Finalize();
    return failed;
}
