#include "tests/nccl/bed/hostnccl/support/ranks.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 16 };

typedef struct {
    test_rank rank;
    rank_body *body;
    const ncclUniqueId *id;
} started;

static void run_rank(test_rank *rank, rank_body *body, const ncclUniqueId *id)
{
    CHECK(cudaSetDevice(rank->rank) == cudaSuccess);
    CHECK(ncclCommInitRank(&rank->comm, rank->size, *id, rank->rank) == ncclSuccess);
    CHECK(cudaStreamCreate(&rank->stream) == cudaSuccess);
    body(rank);
    CHECK(ncclCommDestroy(rank->comm) == ncclSuccess);
    CHECK(cudaStreamDestroy(rank->stream) == cudaSuccess);
}

static void *thread_main(void *argument)
{
    started *s = argument;
    run_rank(&s->rank, s->body, s->id);
    return NULL;
}

void ranks_run_threads(int size, rank_body *body, const void *argument)
{
    pthread_t threads[MOST];
    started all[MOST];
    ncclUniqueId id;
    CHECK(size <= MOST);
    CHECK(ncclGetUniqueId(&id) == ncclSuccess);
    for (int r = 0; r < size; r++) {
        all[r] = (started){.rank = {.rank = r, .size = size, .argument = argument}, .body = body, .id = &id};
        CHECK(pthread_create(&threads[r], NULL, thread_main, &all[r]) == 0);
    }
    for (int r = 0; r < size; r++) pthread_join(threads[r], NULL);
}

static rank_body *const *known;

int ranks_start_process(const ncclUniqueId *id, int rank, int size, rank_body *body)
{
    char program[512], rank_text[16], size_text[16], body_text[16], id_text[2 * sizeof id->internal + 1];
    int number = 0;
    while (known[number] && known[number] != body) number++;
    CHECK(known[number]);
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    CHECK(length > 0);
    program[length] = 0;
    snprintf(rank_text, sizeof rank_text, "%d", rank);
    snprintf(size_text, sizeof size_text, "%d", size);
    snprintf(body_text, sizeof body_text, "%d", number);
    for (size_t i = 0; i < sizeof id->internal; i++)
        snprintf(id_text + 2 * i, 3, "%02x", (unsigned char)id->internal[i]);
    int pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execl(program, program, "--rank", rank_text, size_text, body_text, id_text, (char *)NULL);
        _exit(127);
    }
    return pid;
}

void ranks_run_processes(int size, rank_body *body)
{
    int pids[MOST];
    ncclUniqueId id;
    CHECK(size <= MOST);
    CHECK(ncclGetUniqueId(&id) == ncclSuccess);
    for (int r = 0; r < size; r++) pids[r] = ranks_start_process(&id, r, size, body);
    for (int r = 0; r < size; r++) {
        int status = -1;
        CHECK(waitpid(pids[r], &status, 0) == pids[r]);
        CHECK(status == 0);
    }
}

void ranks_enter(int argc, char **argv, rank_body *const *bodies)
{
    known = bodies;
    alarm(600); /* a hang ends the test */
    if (argc != 6 || strcmp(argv[1], "--rank") != 0) return;
    ncclUniqueId id;
    for (size_t i = 0; i < sizeof id.internal; i++) {
        char digits[3] = {argv[5][2 * i], argv[5][2 * i + 1], 0};
        id.internal[i] = (char)strtol(digits, NULL, 16);
    }
    test_rank rank = {.rank = atoi(argv[2]), .size = atoi(argv[3])};
    run_rank(&rank, bodies[atoi(argv[4])], &id);
    exit(0);
}

void *device_copy(const void *from, size_t bytes)
{
    void *memory = NULL;
    CHECK(cudaMalloc(&memory, bytes ? bytes : 1) == cudaSuccess);
    if (bytes) CHECK(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice) == cudaSuccess);
    return memory;
}

void device_read(void *to, const void *from, size_t bytes)
{
    if (bytes) CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
}

void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

double clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}
