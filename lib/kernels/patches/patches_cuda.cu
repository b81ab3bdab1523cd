/* Unfolding and the embedding's forward take eight elements a thread. In backward a thread has a channel of one place
 * and goes through the batch in its order; the mask token's gradient, which has places for terms, is one thread's a
 * channel. Sums have the host's order. */
#include "lib/kernels/patches/patches_cuda.h"

#include "lib/kernels/gpu.cuh"

template <class T> struct unfold_elements {
    slc_patch_shape s;
    const float *pixels;
    T *columns;
    __device__ void operator()(uint64_t first, uint64_t left) const
    {
        const uint64_t down = s.height / s.patch, across = s.width / s.patch;
        for (uint64_t i = first; i < first + left && i < first + GPU_EACH; i++) {
            uint64_t rest = i;
            const uint64_t x = rest % s.patch, y = (rest /= s.patch) % s.patch;
            const uint64_t c = (rest /= s.patch) % s.image_channels, px = (rest /= s.image_channels) % across;
            const uint64_t py = (rest /= across) % down, b = rest / down;
            const uint64_t line = ((b * s.image_channels + c) * down + py) * s.patch + y;
            columns[i] = gpu_round<T>(pixels[line * s.width + px * s.patch + x]);
        }
    }
};

template <class T>
static sluice_status unfold(sluice_stream *stream, const slc_patch_shape *s, const float *pixels, void *columns)
{
    const unfold_elements<T> elements = {*s, pixels, (T *)columns};
    return gpu_launch_each(stream, "patches_unfold", s->batch * s->image_channels * s->height * s->width, elements);
}

sluice_status slc_patches_unfold_cuda(sluice_stream *stream, sluice_dtype dtype, const slc_patch_shape *shape,
                                      const float *pixels, void *columns)
{
    return GPU_BY_TYPE(dtype, unfold, stream, shape, pixels, columns);
}

template <class T> struct patch_elements {
    uint64_t patches, channels;
    const T *x, *cls, *mask_token, *position; /* mask_token and position may be NULL */
    const uint8_t *masked;
    T *out;
    __device__ void operator()(uint64_t first, uint64_t left) const
    {
        for (uint64_t i = first; i < first + left && i < first + GPU_EACH; i++) {
            const uint64_t row = i / channels, c = i % channels, place = row % (1 + patches);
            const uint64_t patch = row / (1 + patches) * patches + place - 1; /* used if place is not 0 */
            float sum;
            if (!place)
                sum = gpu_widen(cls[c]);
            else
                sum = gpu_widen(masked && masked[patch] ? mask_token[c] : x[patch * channels + c]);
            if (position) sum += gpu_widen(position[place * channels + c]);
            out[i] = gpu_round<T>(sum);
        }
    }
};

template <class T>
static sluice_status forward(sluice_stream *stream, uint64_t batch, uint64_t patches, uint64_t channels, const void *x,
                             const void *cls, const void *mask_token, const uint8_t *masked, const void *position,
                             void *out)
{
    const patch_elements<T> elements = {
        patches, channels, (const T *)x, (const T *)cls, (const T *)mask_token, (const T *)position, masked, (T *)out};
    return gpu_launch_each(stream, "patch_embedding_forward", batch * (1 + patches) * channels, elements);
}

sluice_status slc_patch_embedding_forward_cuda(sluice_stream *stream, sluice_dtype dtype, uint64_t batch,
                                               uint64_t patches, uint64_t channels, const void *x, const void *cls,
                                               const void *mask_token, const uint8_t *masked, const void *position,
                                               void *out)
{
    return GPU_BY_TYPE(dtype, forward, stream, batch, patches, channels, x, cls, mask_token, masked, position, out);
}

template <class T, class G> struct patch_gradients {
    uint64_t batch, patches, channels;
    const T *dout;
    const uint8_t *masked;
    T *dx;
    G *dcls, *dposition; /* dposition may be NULL */
    bool fresh;
    __device__ static void put(G *to, float sum, bool fresh)
    {
        *to = gpu_round<G>(fresh ? sum : gpu_widen(*to) + sum);
    }
    __device__ void operator()(uint64_t first, uint64_t left) const /* elements of dposition */
    {
        for (uint64_t i = first; i < first + left && i < first + GPU_EACH; i++) {
            const uint64_t place = i / channels, c = i % channels;
            float sum = 0;
            for (uint64_t b = 0; b < batch; b++) {
                const uint64_t patch = b * patches + place - 1; /* used if place is not 0 */
                const float d = gpu_widen(dout[(b * (1 + patches) + place) * channels + c]);
                sum += d;
                if (place) dx[patch * channels + c] = gpu_round<T>(masked && masked[patch] ? 0.0f : d);
            }
            if (dposition) put(&dposition[i], sum, fresh);
            if (!place) put(&dcls[c], sum, fresh);
        }
    }
};

template <class T, class G> struct mask_gradients {
    uint64_t batch, patches, channels;
    const T *dout;
    const uint8_t *masked;
    G *dmask_token;
    bool fresh;
    __device__ void operator()(uint64_t first, uint64_t left) const
    {
        for (uint64_t c = first; c < first + left && c < first + GPU_EACH; c++) {
            float sum = 0;
            for (uint64_t place = 1; place <= patches; place++)
                for (uint64_t b = 0; b < batch; b++)
                    if (masked[b * patches + place - 1])
                        sum += gpu_widen(dout[(b * (1 + patches) + place) * channels + c]);
            patch_gradients<T, G>::put(&dmask_token[c], sum, fresh);
        }
    }
};

template <class T, class G>
static sluice_status backward(sluice_stream *stream, uint64_t batch, uint64_t patches, uint64_t channels,
                              const void *dout, const uint8_t *masked, void *dx, void *dcls, void *dmask_token,
                              void *dposition, bool fresh)
{
    const patch_gradients<T, G> all = {batch,     patches,        channels, (const T *)dout, masked, (T *)dx,
                                       (G *)dcls, (G *)dposition, fresh};
    const mask_gradients<T, G> hidden = {batch, patches, channels, (const T *)dout, masked, (G *)dmask_token, fresh};
    sluice_status status = gpu_launch_each(stream, "patch_embedding_backward", (1 + patches) * channels, all);
    if (status || !masked) return status;
    return gpu_launch_each(stream, "patch_embedding_backward (mask)", channels, hidden);
}

template <class T>
static sluice_status backward_of(sluice_stream *stream, sluice_dtype gradient, uint64_t batch, uint64_t patches,
                                 uint64_t channels, const void *dout, const uint8_t *masked, void *dx, void *dcls,
                                 void *dmask_token, void *dposition, bool fresh)
{
    return gradient == SLUICE_BF16 ? backward<T, gpu_bf16>(stream, batch, patches, channels, dout, masked, dx, dcls,
                                                           dmask_token, dposition, fresh)
                                   : backward<T, float>(stream, batch, patches, channels, dout, masked, dx, dcls,
                                                        dmask_token, dposition, fresh);
}

sluice_status slc_patch_embedding_backward_cuda(sluice_stream *stream, sluice_dtype dtype, sluice_dtype gradient,
                                                uint64_t batch, uint64_t patches, uint64_t channels, const void *dout,
                                                const uint8_t *masked, void *dx, void *dcls, void *dmask_token,
                                                void *dposition, int fresh)
{
    return GPU_BY_TYPE(dtype, backward_of, stream, gradient, batch, patches, channels, dout, masked, dx, dcls,
                       dmask_token, dposition, fresh != 0);
}
