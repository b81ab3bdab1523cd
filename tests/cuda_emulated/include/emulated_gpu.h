/* The emulation's forms of what lib/kernels/gpu.cuh writes in PTX for a GPU, under the same names: tensor cores,
 * ldmatrix, asynchronous copies, launches and shared memory. */
#pragma once

#include <cuda_runtime.h>

struct emulated_mma {
    float *c;
    const uint32_t *a, *b;
};
void emulated_mma_bf16(void *const *lanes, uint32_t mask);
void emulated_mma_fp16(void *const *lanes, uint32_t mask);

/* The place of these functions' calls, as their last argument. */
#define EMULATED_CALLER                                                                                                \
    emulated_place_of                                                                                                  \
    {                                                                                                                  \
        0, __builtin_FILE(), __builtin_LINE()                                                                          \
    }

/* c += a b for 16 x 16 and 16 x 8 tiles in a warp's registers (PTX: mma.sync.aligned.m16n8k16.row.col). */
static inline void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2],
                            emulated_place_of place = EMULATED_CALLER)
{
    emulated_mma own = {c, a, b};
    emulated_meet(~0u, emulated_mma_bf16, &own, "mma.m16n8k16", place);
}
static inline void mma_fp16(float c[4], const uint32_t a[4], const uint32_t b[2],
                            emulated_place_of place = EMULATED_CALLER)
{
    emulated_mma own = {c, a, b};
    emulated_meet(~0u, emulated_mma_fp16, &own, "mma.m16n8k16", place);
}

struct emulated_ldmatrix {
    uint16_t row[8];
    uint32_t out[4];
};
template <bool TRANSPOSED> EMULATED_OPERATION emulated_ldmatrix_give(void *const *lanes, uint32_t)
{
    for (int m = 0; m < 4; m++)
        for (int l = 0; l < EMULATED_LANES; l++) {
            uint32_t two[2];
            for (int i = 0; i < 2; i++) {
                int row = TRANSPOSED ? 2 * (l & 3) + i : l >> 2, column = TRANSPOSED ? l >> 2 : 2 * (l & 3) + i;
                two[i] = ((const emulated_ldmatrix *)lanes[8 * m + row])->row[column];
            }
            ((emulated_ldmatrix *)lanes[l])->out[m] = two[0] | two[1] << 16;
        }
}
/* Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8. */
template <bool TRANSPOSED>
static inline void ldmatrix_x4(uint32_t out[4], const void *row, emulated_place_of place = EMULATED_CALLER)
{
    emulated_ldmatrix own = {};
    if ((uintptr_t)row % 16) emulated_stop("ldmatrix: a row is not 16-byte aligned");
    for (int i = 0; i < 8; i++) own.row[i] = ((const uint16_t *)row)[i];
    emulated_meet(~0u, emulated_ldmatrix_give<TRANSPOSED>, &own, "ldmatrix", place);
    for (int i = 0; i < 4; i++) out[i] = own.out[i];
}

/* The bytes arrive where they are waited for; until then they are NaN. With `valid` false, zeros arrive. */
static inline void cp_async_16(void *to, const void *from, bool valid = true)
{
    emulated_fiber *f = emulated_thread;
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16) emulated_stop("cp.async: an address is not 16-byte aligned");
    if (f->pending_count == EMULATED_PENDING) emulated_stop("cp.async: more than 64 copies of a thread are under way");
    *(uint4 *)to = {~0u, ~0u, ~0u, ~0u};
    f->pending[f->pending_count++] = {to, valid ? from : NULL, 16, f->groups};
}
static inline void cp_async_commit()
{
    emulated_thread->groups++;
}
/* Waits for all but the last GROUPS groups of this thread. */
template <int GROUPS> static inline void cp_async_wait_but()
{
    emulated_fiber *f = emulated_thread;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->pending_count; i++) {
        emulated_pending p = f->pending[i];
        if (p.group + GROUPS < f->groups)
            *(uint4 *)p.to = p.from ? *(const uint4 *)p.from : uint4{0, 0, 0, 0};
        else
            f->pending[kept++] = p;
    }
    f->pending_count = kept;
}

static inline void gpu_clear_flag(bool *flag)
{
    __atomic_store_n(flag, false, __ATOMIC_RELAXED);
}

#define GPU_QUEUE(kernel, grid, threads, shared, stream, ...)                                                          \
    emulated_launch(#kernel, kernel, grid, threads, shared, stream, __VA_ARGS__)
#define SLC_SHARED(type, name) type &name = *(type *)emulated_where.shared
