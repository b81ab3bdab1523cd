#include "tests/nccl/transport/rank_end.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* ---- The host ---- */

static _Thread_local char line_told[ERROR_BYTES] = "none";

const char *last_error(void)
{
    return line_told;
}

static void host_log(void *context, int level, const char *line)
{
    (void)context, (void)level, (void)line;
}

static sluice_status host_error(void *context, sluice_status status, const char *line)
{
    (void)context;
    snprintf(line_told, sizeof line_told, "%s", line);
    return status;
}

static const char *host_setting(void *context, const char *name)
{
    const rank_end *end = context;
    return strcmp(name, "nccl.library") == 0 ? end->library : NULL;
}

static sluice_status host_load(void *context, const char *name, const sluice_transport_v1 **table)
{
    (void)context, (void)name, (void)table;
    return SLUICE_ERR_UNSUPPORTED;
}

static void host_peer_lost(void *context, int rank, const char *why)
{
    (void)context, (void)rank, (void)why;
}

/* ---- Ends ---- */

sluice_status end_open(rank_end *end, int rank, int size, const char *library)
{
    void *plugin = dlopen(TRANSPORT_NCCL, RTLD_NOW | RTLD_LOCAL);
    const sluice_transport_v2 *table = plugin ? dlsym(plugin, SLUICE_TRANSPORT_V2_SYMBOL) : NULL;
    if (!table) fprintf(stderr, "%s\n", dlerror());
    CHECK(table && table->abi == SLUICE_TRANSPORT_ABI_V2 && table->size == sizeof *table);
    CHECK(table->collectives && !table->base.send && !table->base.recv);
    *end = (rank_end){
        .base = &table->base, .collectives = table->collectives, .rank = rank, .size = size, .library = library};
    end->host = (sluice_transport_host_v1){.abi = SLUICE_TRANSPORT_ABI_V1,
                                           .size = sizeof end->host,
                                           .context = end,
                                           .rank = rank,
                                           .world_size = size,
                                           .log = host_log,
                                           .error = host_error,
                                           .setting = host_setting,
                                           .load = host_load,
                                           .peer_lost = host_peer_lost};
    return end->base->open(&end->host, &end->self);
}

void ends_open(rank_end *ends, int size)
{
    const void *blobs[RANKS_MOST];
    size_t bytes[RANKS_MOST];
    CHECK(size <= RANKS_MOST);
    for (int r = 0; r < size; r++) {
        CHECK(end_open(&ends[r], r, size, NULL) == SLUICE_OK);
        CHECK(ends[r].base->address(ends[r].self, &blobs[r], &bytes[r]) == SLUICE_OK);
    }
    for (int r = 0; r < size; r++)
        for (int other = 0; other < size; other++)
            if (other != r) CHECK(ends[r].base->connect(ends[r].self, other, blobs[other], bytes[other]) == SLUICE_OK);
}

void ends_close(rank_end *ends, int size)
{
    for (int r = 0; r < size; r++)
        if (ends[r].self) ends[r].base->close(ends[r].self, 1000000000u);
}

void end_attach(rank_end *end)
{
    CHECK(cudaStreamCreateWithFlags(&end->stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(end->collectives->attach(end->self, end->stream) == SLUICE_OK);
}

void end_detach(rank_end *end)
{
    if (end->self) CHECK(end->collectives->attach(end->self, NULL) == SLUICE_OK);
    CHECK(cudaStreamDestroy(end->stream) == cudaSuccess);
}

sluice_status end_await(rank_end *end, sluice_status group_end)
{
    while (group_end == SLUICE_IN_PROGRESS) {
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        group_end = end->collectives->launched(end->self);
    }
    CHECK(end->base->timer(end->self) == UINT64_MAX); /* nothing is to be asked for */
    return group_end;
}

void end_group(rank_end *end)
{
    CHECK(end_await(end, end->collectives->group_end(end->self)) == SLUICE_OK);
    CHECK(cudaStreamSynchronize(end->stream) == cudaSuccess);
    CHECK(end->collectives->health(end->self) == SLUICE_OK);
}

/* ---- Ranks as threads ---- */

typedef struct {
    rank_end *end;
    rank_body *body;
} started;

static void *communicate(void *argument)
{
    const started *s = argument;
    CHECK(cudaSetDevice(s->end->rank) == cudaSuccess);
    s->body(s->end);
    return NULL;
}

static void *attach_and_run(void *argument)
{
    const started *s = argument;
    pthread_t thread;
    CHECK(cudaSetDevice(s->end->rank) == cudaSuccess);
    end_attach(s->end);
    CHECK(pthread_create(&thread, NULL, communicate, argument) == 0);
    pthread_join(thread, NULL);
    end_detach(s->end);
    return NULL;
}

void ends_run(int size, rank_body *body, const void *argument)
{
    rank_end ends[RANKS_MOST];
    pthread_t threads[RANKS_MOST];
    started all[RANKS_MOST];
    ends_open(ends, size);
    for (int r = 0; r < size; r++) {
        ends[r].argument = argument;
        all[r] = (started){.end = &ends[r], .body = body};
        CHECK(pthread_create(&threads[r], NULL, attach_and_run, &all[r]) == 0);
    }
    for (int r = 0; r < size; r++) pthread_join(threads[r], NULL);
    ends_close(ends, size);
}

/* ---- Ranks as processes ---- */

enum { LIMIT_S = 300, BLOB_MOST = 1024 };
static rank_body *const *known;

static int start_process(int rank, int size, int body, const char *blob)
{
    char program[512], numbers[3][16];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    CHECK(length > 0);
    program[length] = 0;
    snprintf(numbers[0], sizeof *numbers, "%d", rank);
    snprintf(numbers[1], sizeof *numbers, "%d", size);
    snprintf(numbers[2], sizeof *numbers, "%d", body);
    int pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(program, program, "--rank", numbers[0], numbers[1], numbers[2], blob, (char *)NULL);
        _exit(127);
    }
    return pid;
}

void ends_start(rank_end *own, int size, rank_body *body, int pids[RANKS_MOST])
{
    const void *blob;
    size_t bytes;
    char digits[2 * BLOB_MOST + 1];
    int number = 0;
    while (known[number] && known[number] != body) number++;
    CHECK(known[number]);
    CHECK(end_open(own, 0, size, NULL) == SLUICE_OK);
    CHECK(own->base->address(own->self, &blob, &bytes) == SLUICE_OK && bytes <= BLOB_MOST);
    for (size_t i = 0; i < bytes; i++) snprintf(digits + 2 * i, 3, "%02x", ((const unsigned char *)blob)[i]);
    for (int r = 1; r < size; r++) pids[r] = start_process(r, size, number, digits);
}

void ends_enter(int argc, char **argv, rank_body *const *bodies)
{
    unsigned char blob[BLOB_MOST];
    rank_end end;
    known = bodies;
    alarm(LIMIT_S); /* a hang ends the test */
    if (argc != 6 || strcmp(argv[1], "--rank") != 0) return;
    const size_t bytes = strlen(argv[5]) / 2;
    CHECK(bytes <= sizeof blob);
    for (size_t i = 0; i < bytes; i++) {
        char digits[3] = {argv[5][2 * i], argv[5][2 * i + 1], 0};
        blob[i] = (unsigned char)strtol(digits, NULL, 16);
    }
    CHECK(end_open(&end, atoi(argv[2]), atoi(argv[3]), NULL) == SLUICE_OK);
    CHECK(end.base->connect(end.self, 0, blob, bytes) == SLUICE_OK);
    bodies[atoi(argv[4])](&end);
    exit(0);
}

/* ---- Memory and time ---- */

void *device_copy(const void *from, size_t bytes)
{
    void *memory = NULL;
    CHECK(cudaMalloc(&memory, bytes) == cudaSuccess);
    CHECK(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice) == cudaSuccess);
    return memory;
}

void device_read(void *to, const void *from, size_t bytes)
{
    CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
}

void device_move(void *to, const void *from, size_t bytes)
{
    CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess); /* CUDA does not wait for such a copy */
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
