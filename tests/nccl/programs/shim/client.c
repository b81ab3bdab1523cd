/* A program that uses NCCL in the way its first argument says, for shim_test.c. It is linked to no NCCL: what is linked
 * is calls_module, in the same way as by a program's own libraries. Its exit status is 0 if all calls answered as they
 * should. */
#include "plugins/nccl/shim/profiler_v5.h"
#include "tests/nccl/programs/shim/echo_nccl.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* NCCL's functions as a program has them that looks for them by name. */
static struct {
#define MEMBER(result, name, parameters, arguments) result(*name) parameters;
    SLC_NCCL_FUNCTIONS(MEMBER, MEMBER)
} nccl;

static void find_functions(void *handle)
{
#define FIND(result, name, parameters, arguments) *(void **)&nccl.name = dlsym(handle, "nccl" #name);
    SLC_NCCL_FUNCTIONS(FIND, FIND)
}

static void need(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "client: %s\n", what);
    _exit(2);
}

static ncclComm_t make_comm(int rank, int size)
{
    ncclUniqueId id;
    ncclComm_t comm;
    memset(&id, 7, sizeof id);
    need(!nccl.CommInitRank(&comm, size, id, rank), "init");
    return comm;
}

static void all_reduce(ncclComm_t comm, int times)
{
    static char data[64];
    for (int i = 0; i < times; i++)
        need(!nccl.AllReduce(data, data, 100, ncclFloat32, ncclSum, comm, NULL), "all-reduce");
}

/* Three all-reduces on a communicator that is made and destroyed. */
static void three(void)
{
    ncclComm_t comm = make_comm(0, 1);
    all_reduce(comm, 3);
    need(!nccl.CommDestroy(comm), "destroy");
}

static int module_in(const char *path)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    need(module != NULL, "module");
    int (*calls)(int);
    *(void **)&calls = dlsym(module, "module_calls");
    return calls(3);
}

/* Collectives, groups, split, point to point, one refused call, nothing destroyed in an orderly way but the child. */
static void everything(void)
{
    ncclComm_t comm = make_comm(1, 2), child, none;
    char data[8] = {0};
    need(!nccl.Bcast(data, 8, ncclInt8, 1, comm, NULL), "broadcast");
    need(!nccl.GroupStart(), "group");
    need(!nccl.Send(data, 5, ncclInt8, 0, comm, NULL), "send");
    need(!nccl.Recv(data, 6, ncclInt8, 0, comm, NULL), "receive");
    need(!nccl.GroupEnd(), "end of group");
    need(!nccl.CommSplit(comm, 4, 9, &child, NULL), "split");
    need(!nccl.CommSplit(comm, NCCL_SPLIT_NOCOLOR, 9, &none, NULL) && !none, "split without a colour");
    need(!nccl.AllReduce(data, data, 0, ncclFloat32, ncclSum, comm, NULL), "nothing");
    need(!nccl.AllReduce(data, data, 2, ncclFloat32, (ncclRedOp_t)17, child, (cudaStream_t)0x1234), "custom");
    need(nccl.AllReduce(data, data, ECHO_REFUSED, ncclFloat32, ncclAvg, comm, NULL) == ncclInvalidArgument, "refused");
    need(!nccl.CommDestroy(child), "destroy");
}

/* Prints what NCCL answers if there is no GPU, to be compared with and without the shim. */
static void answers(void)
{
    int version = 0;
    ncclUniqueId id;
    ncclComm_t comms[2] = {NULL, NULL};
    char data[8];
    int result = nccl.GetVersion(&version);
    printf("version %d %d\n", result, version);
    printf("id %d\n", nccl.GetUniqueId(&id));
    printf("init all %d\n", nccl.CommInitAll(comms, 2, NULL));
    printf("group %d\n", nccl.GroupStart());
    printf("all-reduce of nothing %d\n", nccl.AllReduce(data, data, 2, ncclFloat32, ncclSum, NULL, NULL));
    printf("end of group %d\n", nccl.GroupEnd());
    printf("end of no group %d\n", nccl.GroupEnd());
    for (int i = 0; i <= ncclNumResults; i++) printf("error %d: %s\n", i, nccl.GetErrorString((ncclResult_t)i));
    printf("last error: %s\n", nccl.GetLastError ? nccl.GetLastError(NULL) : "");
}

/* Two copies of NCCL: a module is linked to one, this program has found the other one by name. */
static void two_copies(const char *module_path, const char *other_path)
{
    void *module = dlopen(module_path, RTLD_NOW | RTLD_LOCAL), *other = dlopen(other_path, RTLD_NOW | RTLD_LOCAL);
    need(module && other, "both are opened");
    int (*calls)(int), version = 0;
    long (*of_linked)(void), (*of_other)(void);
    *(void **)&calls = dlsym(module, "module_calls");
    *(void **)&of_linked = dlsym(module, "echo_calls");
    *(void **)&of_other = dlsym(other, "echo_calls");
    need(!calls(3), "the module's calls");
    find_functions(other);
    long before_linked = of_linked(), before_other = of_other();
    need(!nccl.GetVersion(&version) && version == ECHO_OTHER_VERSION, "version");
    ncclComm_t comm = make_comm(0, 1);
    need(!nccl.GroupStart(), "group");
    all_reduce(comm, 3);
    need(!nccl.GroupEnd(), "end of group");
    need(!nccl.CommDestroy(comm), "destroy");
    need(of_other() == before_other + 8, "calls of the copy that was found by name");
    need(of_linked() == before_linked + 2, "the other copy saw the group alone");
    need(!calls(3) && of_other() == before_other + 8, "the module's calls stay with its copy");
}

/* Does what NCCL does with a profiler plugin: an all-reduce, a send, and an all-to-all, which is made of sends. */
static void profiled(const char *path)
{
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL), *comm, *call, *p2p;
    need(plugin != NULL, "the plugin is opened");
    const slc_shim_profiler_v5 *profiler = dlsym(plugin, "ncclProfiler_v5");
    int mask = -1;
    need(profiler && !profiler->init(&comm, 77, &mask, "name", 1, 2, 1, NULL), "init");
    printf("mask %x\n", (unsigned)mask);
    if (!mask) return;
    slc_shim_profiler_event event = {.type = SLC_SHIM_PROFILE_COLL_API, .rank = 1};
    event.collective.function = "AllReduce";
    event.collective.count = 5;
    event.collective.type = "ncclBfloat16";
    event.collective.captured = true;
    need(!profiler->start_event(comm, &call, &event) && call && !profiler->stop_event(call), "all-reduce");
    event.collective.function = "AlltoAll";
    need(!profiler->start_event(comm, &call, &event) && call, "all-to-all");
    slc_shim_profiler_event send = {.type = SLC_SHIM_PROFILE_P2P, .rank = 1};
    send.p2p.function = "Send";
    send.p2p.count = 6;
    send.p2p.type = "ncclInt8";
    need(!profiler->start_event(comm, &p2p, &send) && !p2p, "a send that is part of it");
    need(!profiler->stop_event(call), "end of all-to-all");
    event.type = SLC_SHIM_PROFILE_P2P_API;
    need(!profiler->start_event(comm, &call, &event) && call && !profiler->stop_event(call), "call of send");
    send.parent = call;
    need(!profiler->start_event(comm, &p2p, &send) && p2p && !profiler->stop_event(p2p), "send");
    need(!profiler->record_event_state(p2p, 0, NULL) && !profiler->finalize(comm), "finalize");
    dlclose(plugin);
}

static void steady_round(ncclComm_t comm)
{
    static char data[64];
    need(!nccl.GroupStart(), "group");
    all_reduce(comm, 3);
    need(!nccl.Send(data, 5, ncclInt8, 0, comm, NULL) && !nccl.Recv(data, 5, ncclInt8, 0, comm, NULL), "to itself");
    need(!nccl.GroupEnd(), "end of group");
    all_reduce(comm, 3);
}

/* Once each kind of call has been made, no call takes memory any more. */
static void steady(void)
{
    ncclComm_t comm = make_comm(0, 1);
    for (int i = 0; i < 10; i++) steady_round(comm);
#if __GLIBC_PREREQ(2, 33) /* which has mallinfo2 */
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 20000; i++) steady_round(comm);
    need(mallinfo2().uordblks == before, "a steady state takes no memory");
#endif
    need(!nccl.CommDestroy(comm), "destroy");
}

static void *loop(void *unused)
{
    ncclComm_t comm = make_comm(0, 1);
    for (;;) { /* at a pace at which the ring does not come round while a thread is interrupted */
        all_reduce(comm, 100);
        usleep(1000);
    }
    return unused;
}

static void *open_module(void *path)
{
    need(dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL, "the module is opened");
    return NULL;
}

static void *use_three(void *unused)
{
    three();
    return unused;
}

static void expect_end_of(pid_t child, const char *what)
{
    int status;
    need(waitpid(child, &status, 0) == child && !status, what);
}

/* A module's constructor and two threads make their first call at the same time, and a child is forked meanwhile. */
static void constructed(char *path, int forks)
{
    int ends[2];
    char number[16], byte;
    pthread_t opening, calling;
    need(!pipe(ends), "pipe");
    snprintf(number, sizeof number, "%d", ends[1]);
    setenv("CONSTRUCTOR_PIPE", number, 1);
    alarm(60);
    pthread_create(&opening, NULL, open_module, path);
    need(read(ends[0], &byte, 1) == 1, "the constructor");
    pthread_create(&calling, NULL, use_three, NULL);
    if (forks) {
        usleep(100000);
        pid_t child = fork();
        if (!child) {
            alarm(60);
            three();
            exit(0);
        }
        expect_end_of(child, "the child");
    } else {
        three();
    }
    pthread_join(opening, NULL);
    pthread_join(calling, NULL);
}

/* A child that is made past the handlers of fork, as _Fork does, ends by exit; its parent is still there. */
static void cloned(void)
{
    three();
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (!child) exit(0);
    expect_end_of(child, "the clone");
    _exit(0);
}

static void without_memory(void)
{
    struct rlimit limit;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    need(file && fscanf(file, "%lu", &pages) == 1, "statm");
    fclose(file);
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * (unsigned long)getpagesize() + 65536;
    need(!setrlimit(RLIMIT_AS, &limit), "limit");
    three();
}

/* Calls from two modules of which the second one is loaded where the first one was. */
static void reloaded(const char *const paths[2])
{
    void *at[2];
    for (int i = 0; i < 2; i++) {
        void *module = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
        need(module != NULL, "module");
        int (*calls)(int);
        *(void **)&calls = at[i] = dlsym(module, "module_calls");
        need(!calls(3), "its calls");
        dlclose(module);
        usleep(1200000); /* the shim looks once a second */
    }
    printf("%s\n", at[0] == at[1] ? "same" : "moved");
}

/* Each thread's calls say in every argument which thread it is. */
static void *call_quickly(void *number)
{
    uintptr_t mine = (uintptr_t)number;
    ncclComm_t comm = make_comm((int)mine, 16);
    char *data = (char *)(mine << 12);
    for (int i = 0; i < 100000; i++)
        need(!nccl.AllReduce(data, data, mine, (ncclDataType_t)mine, ncclSum, comm, (cudaStream_t)(mine << 8)), "call");
    return NULL;
}

static void call_from_threads(void)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, call_quickly, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : "";
    if (!strcmp(way, "idle")) return 0;
    if (!strcmp(way, "module")) return module_in(path);
    if (!strcmp(way, "profiled")) {
        profiled(path);
        return 0;
    }
    if (!strcmp(way, "two")) {
        two_copies(path, argc > 3 ? argv[3] : "");
        return 0;
    }
    if (!strcmp(way, "default")) {
        need(dlopen(path, RTLD_NOW | RTLD_GLOBAL) != NULL, "opened for all");
        find_functions(RTLD_DEFAULT);
    } else {
        void *handle = dlopen(!strcmp(way, "soname") ? "libnccl.so.2" : path, RTLD_NOW | RTLD_LOCAL);
        need(handle != NULL, "opened");
        find_functions(handle);
    }
    need(nccl.AllReduce != NULL, "found");
    if (!strcmp(way, "fork")) {
        three();
        pid_t child = fork();
        if (!child) {
            three();
            three();
            exit(0); /* an orderly end, as of a process of its own */
        }
        expect_end_of(child, "the child");
    } else if (!strcmp(way, "constructor") || !strcmp(way, "constructor_fork")) {
        constructed(argv[3], !strcmp(way, "constructor_fork"));
    } else if (!strcmp(way, "clone")) {
        cloned();
    } else if (!strcmp(way, "leaves")) {
        all_reduce(make_comm(0, 2), 3);
    } else if (!strcmp(way, "without_memory")) {
        without_memory();
    } else if (!strcmp(way, "reloaded")) {
        reloaded((const char *const[]){argv[3], argv[4]});
    } else if (!strcmp(way, "quickly")) {
        call_from_threads();
    } else if (!strcmp(way, "exec")) {
        three();
        execl(argv[0], argv[0], "path", path, NULL);
        return 3;
    } else if (!strcmp(way, "everything")) {
        everything();
    } else if (!strcmp(way, "fails")) {
        three();
        return 5;
    } else if (!strcmp(way, "threads")) {
        pthread_t thread;
        all_reduce(make_comm(0, 1), 1); /* the record is there when "ready" is read */
        for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, loop, NULL);
        printf("ready\n");
        fflush(stdout);
        pause();
    } else if (!strcmp(way, "steady")) {
        steady();
    } else if (!strcmp(way, "answers")) {
        answers();
    } else if (!strcmp(way, "missing")) {
        need(nccl.CommRevoke == NULL, "a function that the library lacks is not found");
    } else {
        three();
    }
    return 0;
}
