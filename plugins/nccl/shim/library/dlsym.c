/* dlsym, interposed: if a program asks a library for one of NCCL's functions by name, it gets ours. Every other
 * question leaves by a jump, not by a call, because RTLD_NEXT and RTLD_DEFAULT depend on the caller's address. With
 * these two handles the loader finds our functions by itself, because the shim was loaded first. A program that asks
 * RTLD_DEFAULT which functions its NCCL has would thus find all of ours, so a function that its NCCL lacks is looked
 * for behind the shim.
 *
 * Sanitizers ask for functions while they start, so this file and real_dlsym.c are compiled without them and call
 * nothing of theirs on that way. plugins/nccl/shim/shim_test.c covers this file. */
#include "plugins/nccl/shim/library/real.h"
#include "plugins/nccl/shim/library/real_dlsym.h"

#include <dlfcn.h>
#include <stddef.h>

#if defined(__x86_64__) || defined(__aarch64__)

static bool equal(const char *a, const char *b)
{
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

/* Our function of this name, NULL if we have none. */
static void *ours(const char *name)
{
    static const struct {
        const char *name;
        void *function;
    } exports[] = {
#define TWO(result, name, parameters, arguments)                                                                       \
    {"nccl" #name, (void *)nccl##name}, {"pnccl" #name, (void *)pnccl##name},
#define ONE(result, name, parameters, arguments) {"nccl" #name, (void *)nccl##name},
        SLC_NCCL_FUNCTIONS(TWO, ONE)
#undef TWO
#undef ONE
    };
    for (size_t i = 0; i < sizeof exports / sizeof *exports; i++)
        if (equal(exports[i].name, name)) return exports[i].function;
    return NULL;
}

static bool lies_in_nccl(const void *address)
{
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname) return false;
    const char *file = info.dli_fname, *wanted = "libnccl.so";
    for (const char *at = file; *at; at++)
        if (*at == '/') file = at + 1;
    while (*wanted && *wanted == *file) wanted++, file++;
    return !*wanted;
}

static void *dlsym_of_nccl(void *handle, const char *name)
{
    void *found = slc_shim_real_dlsym(handle, name), *own = ours(name);
    if (!found || found == own) return found;
    slc_shim_real_asked(found);
    return own;
}

/* Answers as the loader would without the shim. RTLD_NEXT is relative to the caller, so the call must not be a jump. */
static void *dlsym_behind_shim(void *handle, const char *name)
{
    (void)handle;
    void *found = slc_shim_libc_dlsym()(RTLD_NEXT, name);
    __asm__ volatile("" : "+r"(found));
    return found;
}

static bool is_nccls(const char *name)
{
    const char *at = name[0] == 'p' ? name + 1 : name;
    return at[0] == 'n' && at[1] == 'c' && at[2] == 'c' && at[3] == 'l' && ours(name);
}

/* Returns the function that dlsym jumps to. `caller` is the address to which dlsym will return. A library that calls
 * itself libnccl.so* and looks for another one gets that one. */
__attribute__((used, visibility("hidden"))) slc_shim_dlsym slc_dlsym_way(void *handle, const char *name,
                                                                         const void *caller);
slc_shim_dlsym slc_dlsym_way(void *handle, const char *name, const void *caller)
{
    if (name && handle != RTLD_NEXT && is_nccls(name) && !lies_in_nccl(caller)) {
        if (handle != RTLD_DEFAULT) return dlsym_of_nccl;
        if (!slc_shim_real_has(caller, name)) return dlsym_behind_shim;
    }
    return slc_shim_libc_dlsym();
}

#if defined(__x86_64__)
__asm__(".text\n.globl dlsym\n.type dlsym, @function\n.p2align 4\n"
        "dlsym:\n.cfi_startproc\nendbr64\n"
        "push %rdi\n.cfi_adjust_cfa_offset 8\n"
        "push %rsi\n.cfi_adjust_cfa_offset 8\n"
        "mov 16(%rsp), %rdx\n"
        "sub $8, %rsp\n.cfi_adjust_cfa_offset 8\n"
        "call slc_dlsym_way\n"
        "add $8, %rsp\n.cfi_adjust_cfa_offset -8\n"
        "pop %rsi\n.cfi_adjust_cfa_offset -8\n"
        "pop %rdi\n.cfi_adjust_cfa_offset -8\n"
        "jmp *%rax\n.cfi_endproc\n.size dlsym, . - dlsym\n");
#else
__asm__(".text\n.globl dlsym\n.type dlsym, %function\n.p2align 4\n"
        "dlsym:\n.cfi_startproc\nhint #34\n" /* bti c */
        "stp x29, x30, [sp, #-32]!\n.cfi_def_cfa_offset 32\n.cfi_offset 29, -32\n.cfi_offset 30, -24\n"
        "mov x29, sp\n"
        "stp x0, x1, [sp, #16]\n"
        "mov x2, x30\n"
        "bl slc_dlsym_way\n"
        "mov x16, x0\n"
        "ldp x0, x1, [sp, #16]\n"
        "ldp x29, x30, [sp], #32\n.cfi_restore 30\n.cfi_restore 29\n.cfi_def_cfa_offset 0\n"
        "br x16\n.cfi_endproc\n.size dlsym, . - dlsym\n");
#endif

#endif /* else: what is opened by dlopen and asked by dlsym is not caught */
