/* Blocks, and the threads of a block as fibers. Each stream's thread runs the blocks of its launches in turn. A fiber
 * runs until it waits at a meeting point of its warp or at __syncthreads; then another one that can go on is taken, in
 * ascending order or in one drawn from the seed. A thread that could go on for ever alone is the only thing that is not
 * found, so no kernel may spin on another block.
 *
 * To the thread sanitizer each fiber is a thread of its own, and switching between them orders nothing: only
 * __syncthreads, __syncwarp, fences and the begin and end of a launch do. Blocks of one launch are not ordered with
 * each other, so that a race between two of them shows too, unless it is between threads with the same place in their
 * blocks, which are one fiber. */
#include "tests/cuda_emulated/runtime.h"

#include <numeric>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cuda_runtime.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

__thread emulated_fiber *emulated_thread;
__thread emulated_place emulated_where;

enum { LANES = EMULATED_LANES, WARPS = 32, PAGE = 4096, STACK = 64 << 10, SHARED_MOST = 227 << 10 };

namespace {
struct warp { /* sets of lanes as bits */
    uint32_t live, runnable, meeting, at_barrier;
    uint32_t masks[LANES];
    emulated_operation *operations[LANES];
    void *operands[LANES];
    const char *what[LANES];
    emulated_place_of places[LANES];
    char arrived[LANES], left[LANES]; /* for order_before and order_after */
};

/* A thread of the host that runs blocks. */
struct runner {
    emulated_fiber *fibers[WARPS * LANES];
    emulated_fiber host; /* where run_block goes on */
    warp warps[WARPS];
    uint32_t warp_count, at_barrier, live;
    uint32_t opened;         /* how often threads have left a __syncthreads */
    emulated_place_of place; /* of the __syncthreads that threads wait at */
    const emulated_grid *grid;
    const void *arguments;
    uint64_t random;
    unsigned char *shared;
    char barriers[2], begin, end; /* what order_before and order_after are called with */
};
} // namespace
static __thread runner *own __attribute__((tls_model("initial-exec")));
static char fence_order;

void emulated_stop(const char *why)
{
    fprintf(stderr, "emulated CUDA: %s", why);
    if (emulated_thread && emulated_thread->stack)
        fprintf(stderr, ", in %s: thread (%u,%u,%u) of block (%u,%u,%u)", own->grid->name, threadIdx.x, threadIdx.y,
                threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z);
    fprintf(stderr, "\n");
    _exit(EMULATED_EXIT_CODE);
}

/* ---- Switching ---- */

/* Saves the registers that a call must keep and the stack pointer, and goes on where `to` did so. */
extern "C" void emulated_switch(void **from, void *to);
asm(R"(
    .text
    .globl emulated_switch
    .hidden emulated_switch
    .type emulated_switch, @function
emulated_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emulated_switch, . - emulated_switch
)");

static void switch_to(emulated_fiber *to)
{
    emulated_fiber *from = emulated_thread;
    emulated_thread = to;
#if defined(__SANITIZE_ADDRESS__)
    void *fake = NULL;
    __sanitizer_start_switch_fiber(&fake, to->stack, to->stack_bytes);
    emulated_switch(&from->stack_pointer, to->stack_pointer);
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#else
#if defined(EMULATED_THREAD_SANITIZER)
    __tsan_switch_to_fiber(to->sanitizer, 1); /* 1: the switch orders nothing */
#endif
    emulated_switch(&from->stack_pointer, to->stack_pointer);
#endif
}

/* Returns the next fiber that can go on, NULL if there is none. */
static emulated_fiber *pick_runnable(runner *r, uint32_t from_warp, uint32_t from_lane)
{
    const bool drawn = emulated_seed() != 0;
    uint32_t start = drawn ? (uint32_t)(emulated_draw(&r->random) % r->warp_count) : from_warp;
    for (uint32_t i = 0; i < r->warp_count; i++) {
        uint32_t w = (start + i) % r->warp_count, ready = r->warps[w].runnable;
        if (!ready) continue;
        uint32_t turn = 0;
        if (drawn)
            turn = (uint32_t)(emulated_draw(&r->random) % LANES);
        else if (w == from_warp)
            turn = (from_lane + 1) % LANES;
        uint32_t turned = turn ? ready >> turn | ready << (LANES - turn) : ready;
        return r->fibers[w * LANES + (turn + (uint32_t)__builtin_ctz(turned)) % LANES];
    }
    return NULL;
}

[[noreturn]] static void stop_for_ended_lanes()
{
    emulated_stop("a mask names lanes that have ended or do not exist");
}

static void stop_deadlocked(runner *r)
{
    bool ended = false;
    for (uint32_t w = 0; w < r->warp_count; w++) {
        const warp *stuck = &r->warps[w];
        if (!stuck->meeting) continue;
        uint32_t lane = (uint32_t)__builtin_ctz(stuck->meeting);
        fprintf(stderr, "warp %u: mask %08x, lanes at %s: %08x, at __syncthreads: %08x, ended: %08x\n", w,
                stuck->masks[lane], stuck->what[lane], stuck->meeting, stuck->at_barrier, ~stuck->live);
        ended = ended || (stuck->masks[lane] & ~stuck->live);
    }
    if (ended) stop_for_ended_lanes();
    emulated_stop("threads of a block wait for each other for ever");
}

static void open_barrier(runner *r)
{
    for (uint32_t w = 0; w < r->warp_count; w++) {
        r->warps[w].runnable |= r->warps[w].at_barrier;
        r->warps[w].at_barrier = 0;
    }
    r->at_barrier = 0;
    r->opened++;
}

/* Goes on with another fiber, or with the host when all have ended. */
static void give_way()
{
    runner *r = own;
    emulated_fiber *next = pick_runnable(r, emulated_thread->warp, emulated_thread->lane);
    if (!next && r->at_barrier && r->at_barrier == r->live) {
        open_barrier(r);
        next = pick_runnable(r, emulated_thread->warp, emulated_thread->lane);
    }
    if (!next && !r->live) next = &r->host;
    if (!next) stop_deadlocked(r);
    if (next != emulated_thread) switch_to(next);
}

/* ---- Fibers ---- */

/* A fiber runs its thread of one block after the other, and never returns. */
static void fiber_main()
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
    for (;;) {
        runner *r = own;
        order_after(&r->begin);
        r->grid->call(r->arguments);
        if (emulated_thread->pending_count)
            emulated_stop("cp.async: a thread ended with copies that nobody waited for");
        order_before(&r->end);
        warp *w = &r->warps[emulated_thread->warp];
        w->live &= ~(1u << emulated_thread->lane);
        w->runnable &= ~(1u << emulated_thread->lane);
        r->live--;
        give_way();
    }
}

static size_t stack_bytes()
{
#if defined(__SANITIZE_ADDRESS__) || defined(EMULATED_THREAD_SANITIZER)
    return 4 * STACK;
#else
    return STACK;
#endif
}

static emulated_fiber *make_fiber(uint32_t number)
{
    emulated_fiber *f = new emulated_fiber();
    const size_t bytes = stack_bytes();
    void *base = mmap(NULL, PAGE + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) emulated_stop("no memory for the stack of a thread");
    mprotect(base, PAGE, PROT_NONE);
    f->stack = (char *)base + PAGE, f->stack_bytes = bytes;
    f->lane = number % LANES, f->warp = number / LANES;
    void **top = (void **)((char *)f->stack + bytes - 64);
    *--top = NULL; /* where fiber_main would return to; the stack is aligned as after a call */
    *--top = (void *)fiber_main;
    for (int i = 0; i < 6; i++) *--top = NULL;
    f->stack_pointer = top;
#if defined(EMULATED_THREAD_SANITIZER)
    f->sanitizer = __tsan_create_fiber(0);
#endif
    return f;
}

static runner *make_runner()
{
    runner *r = new runner();
    r->random = emulated_seed();
#if defined(EMULATED_THREAD_SANITIZER)
    r->host.sanitizer = __tsan_get_current_fiber();
#else
    r->shared = (unsigned char *)aligned_alloc(1024, SHARED_MOST);
    if (!r->shared) emulated_stop("no memory for shared memory");
#endif
#if defined(__SANITIZE_ADDRESS__)
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &r->host.stack, &r->host.stack_bytes);
    pthread_attr_destroy(&attributes);
#endif
    return r;
}

void emulated_end_fibers()
{
    runner *r = own;
    if (!r) return;
    for (emulated_fiber *f : r->fibers) {
        if (!f) continue;
#if defined(EMULATED_THREAD_SANITIZER)
        __tsan_destroy_fiber(f->sanitizer);
#endif
        ASAN_UNPOISON_MEMORY_REGION(f->stack, f->stack_bytes);
        munmap((char *)f->stack - PAGE, PAGE + f->stack_bytes);
        delete f;
    }
#if !defined(EMULATED_THREAD_SANITIZER)
    free(r->shared);
#endif
    delete r;
    own = NULL;
}

/* ---- Meeting points ---- */

static bool is_one_place(const emulated_place_of &one, const emulated_place_of &other)
{
    return one.number == other.number && one.line == other.line &&
           (one.file == other.file || !strcmp(one.file, other.file));
}

static void stop_at_different_places(const emulated_place_of &one, const emulated_place_of &other, const char *why)
{
    if (is_one_place(one, other)) return;
    fprintf(stderr, "%s:%d and %s:%d\n", one.file, one.line, other.file, other.line);
    emulated_stop(why);
}

void emulated_meet(uint32_t mask, emulated_operation *operation, void *operand, const char *what,
                   emulated_place_of place)
{
    warp *w = &own->warps[emulated_thread->warp];
    const uint32_t lane = emulated_thread->lane, bit = 1u << lane;
    if (!(mask & bit)) emulated_stop("a lane is not in its own mask");
    if (mask & ~w->live) stop_for_ended_lanes();
    w->masks[lane] = mask, w->operations[lane] = operation, w->operands[lane] = operand, w->what[lane] = what;
    w->places[lane] = place;
    w->meeting |= bit;
    if ((w->meeting & mask) != mask) {
        w->runnable &= ~bit;
        give_way();
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        int l = __builtin_ctz(left);
        if (w->masks[l] != mask || w->operations[l] != operation)
            emulated_stop("lanes of a warp meet with different masks or operations");
        stop_at_different_places(w->places[l], place, "lanes of a warp do an operation together at different places");
    }
    operation(w->operands, mask);
    w->meeting &= ~mask;
    w->runnable |= mask;
}

/* The last lane to come orders what the lanes of the mask did before they met with what they do after it. Accesses of a
 * lane after it must not be ordered with another lane that has met, but has not gone on yet, so each lane is told of
 * its own meetings alone. */
static void order_lanes(void *const *, uint32_t mask)
{
    warp *w = &own->warps[emulated_thread->warp];
    for (uint32_t lanes = mask; lanes; lanes &= lanes - 1) order_after(&w->arrived[__builtin_ctz(lanes)]);
    for (uint32_t lanes = mask; lanes; lanes &= lanes - 1) order_before(&w->left[__builtin_ctz(lanes)]);
}

void emulated_syncwarp(uint32_t mask, emulated_place_of place)
{
    warp *w = &own->warps[emulated_thread->warp];
    const uint32_t lane = emulated_thread->lane;
    order_before(&w->arrived[lane]);
    emulated_meet(mask, order_lanes, NULL, "__syncwarp", place);
    order_after(&w->left[lane]);
}

void emulated_syncthreads(emulated_place_of place)
{
    runner *r = own;
    warp *w = &r->warps[emulated_thread->warp];
    if (!r->at_barrier)
        r->place = place;
    else
        stop_at_different_places(r->place, place, "threads of a block wait at different __syncthreads");
    /* A thread may be at the next barrier before this one has gone on, so neighbouring barriers are two. */
    char *barrier = &r->barriers[r->opened % 2];
    order_before(barrier);
    w->at_barrier |= 1u << emulated_thread->lane;
    w->runnable &= ~(1u << emulated_thread->lane);
    r->at_barrier++;
    give_way();
    order_after(barrier);
}

/* Orders what is on either side of it with the fences of all other threads, as atomics between them do on a GPU. */
void emulated_fence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    order_before(&fence_order);
    order_after(&fence_order);
}

/* ---- Blocks ---- */

static void run_block(runner *r, unsigned char *shared)
{
    const uint3 threads = emulated_where.threads;
    const uint32_t count = threads.x * threads.y * threads.z;
    r->warp_count = (count + LANES - 1) / LANES, r->live = count, r->at_barrier = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!r->fibers[i]) r->fibers[i] = make_fiber(i);
        r->fibers[i]->thread = {i % threads.x, i / threads.x % threads.y, i / threads.x / threads.y};
        r->fibers[i]->groups = 0;
    }
    for (uint32_t w = 0; w < r->warp_count; w++) {
        uint32_t lanes = count - w * LANES >= LANES ? ~0u : (1u << (count - w * LANES)) - 1;
        r->warps[w].live = r->warps[w].runnable = lanes;
        r->warps[w].meeting = r->warps[w].at_barrier = 0;
    }
    memset(shared, 0xff, r->grid->shared);
    emulated_where.shared = shared;
    order_before(&r->begin); /* the host has learnt nothing from other blocks of this launch, so it passes nothing on */
    emulated_thread = &r->host;
    switch_to(pick_runnable(r, 0, LANES - 1));
    emulated_thread = NULL;
}

/* The thread sanitizer would take the shared memory of two blocks at one address for a race of the two. So with it each
 * block gets its own piece; `blocks` that have one are ordered before those that reuse it. */
static uint64_t blocks_with_own_shared(uint64_t blocks, size_t shared)
{
#if defined(EMULATED_THREAD_SANITIZER)
    const uint64_t most = shared ? (64 << 20) / shared : blocks;
    return blocks < most ? blocks : most;
#else
    (void)shared;
    return blocks;
#endif
}

void emulated_run_grid(const emulated_grid *grid, const void *arguments)
{
    if (!own) own = make_runner();
    runner *r = own;
    const dim3 g = grid->grid;
    const uint64_t blocks = (uint64_t)g.x * g.y * g.z, chunk = blocks_with_own_shared(blocks, grid->shared);
    r->grid = grid, r->arguments = arguments;
    emulated_where.threads = {grid->threads.x, grid->threads.y, grid->threads.z}, emulated_where.grid = {g.x, g.y, g.z};

    uint64_t stride = 1, block = 0; /* a drawn order: steps that have no factor in common with the number of blocks */
    if (emulated_seed()) {
        do stride = 1 + emulated_draw(&r->random) % blocks;
        while (std::gcd(stride, blocks) != 1);
        block = emulated_draw(&r->random) % blocks;
    }
    for (uint64_t first = 0; first < blocks; first += chunk) {
        const uint64_t last = first + chunk < blocks ? first + chunk : blocks;
#if defined(EMULATED_THREAD_SANITIZER)
        const size_t step = (grid->shared + 1023) / 1024 * 1024;
        unsigned char *shared = step ? (unsigned char *)aligned_alloc(1024, step * (last - first)) : NULL;
#else
        const size_t step = 0;
        unsigned char *shared = r->shared;
        ASAN_POISON_MEMORY_REGION(shared + grid->shared, SHARED_MOST - grid->shared);
#endif
        for (uint64_t i = first; i < last; i++, block = (block + stride) % blocks) {
            emulated_where.index = {(unsigned)(block % g.x), (unsigned)(block / g.x % g.y),
                                    (unsigned)(block / g.x / g.y)};
            run_block(r, shared + step * (i - first));
        }
        order_after(&r->end);
#if defined(EMULATED_THREAD_SANITIZER)
        free(shared);
#else
        ASAN_UNPOISON_MEMORY_REGION(shared, SHARED_MOST);
#endif
    }
}
