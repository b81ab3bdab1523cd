/* mma.m16n8k16 on what all lanes of a warp brought. Products are exact in fp32; sums of sixteen are rounded as fp32
 * sums are (a GPU truncates a little more). */
#include <emulated_gpu.h>

static float bf16(uint32_t bits)
{
    return __uint_as_float(bits << 16);
}

static float fp16(uint32_t bits)
{
    const uint32_t sign = (bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31) return __uint_as_float(sign | 0x7f800000u | fraction << 13);
    float size = exponent ? __uint_as_float((exponent + 112) << 23 | fraction << 13) : (float)fraction * 0x1p-24f;
    return __uint_as_float(__float_as_uint(size) | sign);
}

template <float VALUE(uint32_t)> static void multiply(void *const *lanes)
{
    float a[16][16], b[16][8], c[16][8];
    for (int l = 0; l < EMULATED_LANES; l++) {
        const emulated_mma *m = (const emulated_mma *)lanes[l];
        const int group = l >> 2, pair = 2 * (l & 3);
        for (int i = 0; i < 4; i++) {
            const int row = group + 8 * (i & 1), column = pair + 8 * (i >> 1);
            a[row][column] = VALUE(m->a[i] & 0xffff), a[row][column + 1] = VALUE(m->a[i] >> 16);
            c[group + 8 * (i >> 1)][pair + (i & 1)] = m->c[i];
        }
        for (int i = 0; i < 2; i++) {
            b[pair + 8 * i][group] = VALUE(m->b[i] & 0xffff);
            b[pair + 8 * i + 1][group] = VALUE(m->b[i] >> 16);
        }
    }
    for (int i = 0; i < 16; i++) {
        float sum[8] = {};
        for (int k = 0; k < 16; k++)
            for (int j = 0; j < 8; j++) sum[j] += a[i][k] * b[k][j];
        for (int j = 0; j < 8; j++) c[i][j] += sum[j];
    }
    for (int l = 0; l < EMULATED_LANES; l++) {
        const emulated_mma *m = (const emulated_mma *)lanes[l];
        for (int i = 0; i < 4; i++) m->c[i] = c[(l >> 2) + 8 * (i >> 1)][2 * (l & 3) + (i & 1)];
    }
}

void emulated_mma_bf16(void *const *lanes, uint32_t)
{
    multiply<bf16>(lanes);
}

void emulated_mma_fp16(void *const *lanes, uint32_t)
{
    multiply<fp16>(lanes);
}
