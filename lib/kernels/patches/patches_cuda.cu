/* A thread takes eight elements: of the result in unfolding and in the embedding's forward, and of a gradient in
 * backward. For each element of the gradient of positions it goes through the batch in order; for each of the mask
 * token's it adds up all masked places. Sums have the host's order. */
#include "lib/kernels/patches/patches.h"

#include "lib/kernels/gpu.cuh"

template <class T> struct unfold_elements {
    slc_patches_unfold_args a;
    __device__ void operator()(uint64_t first, uint64_t left) const
    {
        const slc_patch_shape &s = a.shape;
        const uint64_t down = s.height / s.patch, across = s.width / s.patch;
        for (uint64_t i = first; i < first + left && i < first + GPU_EACH; i++) {
            uint64_t rest = i;
            const uint64_t x = rest % s.patch, y = (rest /= s.patch) % s.patch;
            const uint64_t c = (rest /= s.patch) % s.image_channels, px = (rest /= s.image_channels) % across;
            const uint64_t py = (rest /= across) % down, b = rest / down;
            const uint64_t line = ((b * s.image_channels + c) * down + py) * s.patch + y;
            ((T *)a.columns)[i] = gpu_round<T>(((const float *)a.pixels)[line * s.width + px * s.patch + x]);
        }
    }
};

template <class T> static sluice_status unfold(sluice_stream *stream, const slc_patches_unfold_args *args)
{
    const slc_patch_shape *s = &args->shape;
    const unfold_elements<T> elements = {*args};
    return gpu_launch_each(stream, "patches_unfold", s->batch * s->image_channels * s->height * s->width, elements);
}

GPU_KERNEL(slc_patches_unfold, slc_patches_unfold_args, dtype, unfold)

template <class T> struct patch_elements {
    slc_patch_embedding_forward_args a;
    __device__ void operator()(uint64_t first, uint64_t left) const
    {
        const uint64_t channels = a.channels, patches = a.patches;
        const T *const x = (const T *)a.x, *const position = (const T *)a.position;
        const T *const cls = (const T *)a.cls, *const mask_token = (const T *)a.mask_token;
        for (uint64_t i = first; i < first + left && i < first + GPU_EACH; i++) {
            const uint64_t row = i / channels, c = i % channels, place = row % (1 + patches);
            const uint64_t patch = row / (1 + patches) * patches + place - 1; /* used if place is not 0 */
            float sum;
            if (!place)
                sum = gpu_widen(cls[c]);
            else
                sum = gpu_widen(a.masked && a.masked[patch] ? mask_token[c] : x[patch * channels + c]);
            if (position) sum += gpu_widen(position[place * channels + c]);
            ((T *)a.out)[i] = gpu_round<T>(sum);
        }
    }
};

template <class T> static sluice_status forward(sluice_stream *stream, const slc_patch_embedding_forward_args *args)
{
    const patch_elements<T> elements = {*args};
    return gpu_launch_each(stream, "patch_embedding_forward", args->batch * (1 + args->patches) * args->channels,
                           elements);
}

GPU_KERNEL(slc_patch_embedding_forward, slc_patch_embedding_forward_args, dtype, forward)

template <class T, class G> struct patch_gradients {
    slc_patch_embedding_backward_args a;
    __device__ void put(void *to, uint64_t i, float sum) const
    {
        G *at = (G *)to + i;
        *at = gpu_round<G>(a.fresh ? sum : gpu_widen(*at) + sum);
    }
    __device__ float slope(uint64_t b, uint64_t place, uint64_t c) const
    {
        return gpu_widen(((const T *)a.dout)[(b * (1 + a.patches) + place) * a.channels + c]);
    }
    __device__ void operator()(uint64_t first, uint64_t left) const /* elements of dposition */
    {
        for (uint64_t i = first; i < first + left && i < first + GPU_EACH; i++) {
            const uint64_t place = i / a.channels, c = i % a.channels;
            float sum = 0;
            for (uint64_t b = 0; b < a.batch; b++) {
                const uint64_t patch = b * a.patches + place - 1; /* used if place is not 0 */
                const float d = slope(b, place, c);
                sum += d;
                if (!place) continue;
                ((T *)a.dx)[patch * a.channels + c] = gpu_round<T>(a.masked && a.masked[patch] ? 0.0f : d);
            }
            if (a.dposition) put(a.dposition, i, sum);
            if (!place) put(a.dcls, c, sum);
        }
    }
};

template <class T, class G> struct mask_gradients {
    patch_gradients<T, G> of;
    __device__ void operator()(uint64_t first, uint64_t left) const
    {
        const slc_patch_embedding_backward_args &a = of.a;
        for (uint64_t c = first; c < first + left && c < first + GPU_EACH; c++) {
            float sum = 0;
            for (uint64_t place = 1; place <= a.patches; place++)
                for (uint64_t b = 0; b < a.batch; b++)
                    if (a.masked[b * a.patches + place - 1]) sum += of.slope(b, place, c);
            of.put(a.dmask_token, c, sum);
        }
    }
};

template <class T, class G>
static sluice_status backward(sluice_stream *stream, const slc_patch_embedding_backward_args *args)
{
    const patch_gradients<T, G> all = {*args};
    const mask_gradients<T, G> hidden = {all};
    sluice_status status =
        gpu_launch_each(stream, "patch_embedding_backward", (1 + args->patches) * args->channels, all);
    if (status || !args->masked) return status;
    return gpu_launch_each(stream, "patch_embedding_backward (mask)", args->channels, hidden);
}

GPU_KERNEL_OF_TYPES(slc_patch_embedding_backward, slc_patch_embedding_backward_args, dtype, gradient, backward)
