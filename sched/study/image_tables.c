/* Models for images, layer by layer, from the papers that published them. A convolution of k x k numbers from `in` to
 * `out` channels at s x s places has k k in out weights and takes 2 k k in out s s operations; with a batch norm there
 * are 2 out parameters more, else out biases. The input of a norm or an activation function is kept for its backward.
 * published_test.c covers this file. */
#include "sched/study/layer_table.h"

#include <stdio.h>

/* A layer that is being put together from convolutions. */
typedef struct {
    slc_table_layer layer;
    double size; /* of a side of what it gives */
} block;

static block begin(const char *format, int number, double size)
{
    block b = {.size = size};
    snprintf(b.layer.name, sizeof b.layer.name, format, number);
    return b;
}

/* Adds a convolution of `height` x `width` numbers and no biases. */
static void add_weights(block *b, double in, double out, double height, double width)
{
    double weights = height * width * in * out, places = b->size * b->size;
    b->layer.parameters += weights;
    b->layer.flops += 2 * weights * places;
    b->layer.kept += out * places;
}

static void add_biased(block *b, double in, double out, double kernel)
{
    add_weights(b, in, out, kernel, kernel);
    b->layer.parameters += out;
}

static void add_normed(block *b, double in, double out, double height, double width)
{
    add_weights(b, in, out, height, width);
    b->layer.parameters += 2 * out;
}

static slc_table_layer *end(slc_layer_table *table, block *b, double channels, double size)
{
    b->layer.output = channels * size * size;
    return slc_layer_table_add(table, &b->layer);
}

/* A layer of one convolution; behind it a pooling may leave fewer places. */
static void convolution(slc_layer_table *table, int number, double in, double out, double kernel, double size,
                        double pooled)
{
    block b = begin("conv.%d", number, size);
    add_biased(&b, in, out, kernel);
    end(table, &b, out, pooled);
}

static void dense(slc_layer_table *table, int number, double in, double out)
{
    block b = begin("fc.%d", number, 1);
    add_biased(&b, in, out, 1);
    end(table, &b, out, 1);
}

/* Krizhevsky, Sutskever, Hinton 2012, figure 2: layers 2, 4 and 5 see half of the channels each. */
static void alexnet(slc_layer_table *table)
{
    static const double rows[][5] = {
        {3, 96, 11, 55, 27}, {48, 256, 5, 27, 13}, {256, 384, 3, 13, 13}, {192, 384, 3, 13, 13}, {192, 256, 3, 13, 6}};
    for (int i = 0; i < 5; i++) convolution(table, i, rows[i][0], rows[i][1], rows[i][2], rows[i][3], rows[i][4]);
    dense(table, 5, 256 * 36, 4096);
    dense(table, 6, 4096, 4096);
    dense(table, 7, 4096, 1000);
}

/* Simonyan and Zisserman 2014, table 1, column D. */
static void vgg16(slc_layer_table *table)
{
    static const int stages[][2] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};
    double in = 3, size = 224;
    int number = 0;
    for (int s = 0; s < 5; s++, size /= 2)
        for (int i = 0; i < stages[s][0]; i++, number++) {
            bool last = i == stages[s][0] - 1;
            convolution(table, number, in, stages[s][1], 3, size, last ? size / 2 : size);
            in = stages[s][1];
        }
    dense(table, number, 512 * 49, 4096);
    dense(table, number + 1, 4096, 4096);
    dense(table, number + 2, 4096, 1000);
}

/* He et al. 2015, table 1: blocks of 1 x 1, 3 x 3 and 1 x 1 convolutions; `wide` times the channels of the middle one
 * (Zagoruyko and Komodakis 2016). */
static void residual_network(slc_layer_table *table, const int blocks[4], double wide)
{
    block stem = begin("stem", 0, 112);
    add_normed(&stem, 3, 64, 7, 7);
    end(table, &stem, 64, 56);
    double in = 64, size = 56;
    int number = 0;
    for (int s = 0; s < 4; s++, size /= 2)
        for (int i = 0; i < blocks[s]; i++, number++) {
            double out = 256 << s, middle = wide * (64 << s);
            block b = begin("block.%d", number, size);
            add_normed(&b, in, middle, 1, 1);
            add_normed(&b, middle, middle, 3, 3);
            add_normed(&b, middle, out, 1, 1);
            if (!i) add_normed(&b, in, out, 1, 1);
            bool halves = i == blocks[s] - 1 && s < 3;
            end(table, &b, out, halves ? size / 2 : size);
            in = out;
        }
    dense(table, 0, 2048, 1000);
}

static void resnet50(slc_layer_table *table)
{
    residual_network(table, (const int[]){3, 4, 6, 3}, 1);
}

static void resnet152(slc_layer_table *table)
{
    residual_network(table, (const int[]){3, 8, 36, 3}, 1);
}

static void wide_resnet50(slc_layer_table *table)
{
    residual_network(table, (const int[]){3, 4, 6, 3}, 2);
}

/* ---- Szegedy et al. 2015, "Rethinking the Inception architecture", without the second classifier ---- */

static void inception_stem(slc_layer_table *table)
{
    static const double rows[][5] = {
        {3, 32, 3, 149, 149}, {32, 32, 3, 147, 147}, {32, 64, 3, 147, 73}, {64, 80, 1, 73, 73}, {80, 192, 3, 71, 35}};
    for (int i = 0; i < 5; i++) {
        block b = begin("stem.%d", i, rows[i][3]);
        add_normed(&b, rows[i][0], rows[i][1], rows[i][2], rows[i][2]);
        end(table, &b, rows[i][1], rows[i][4]);
    }
}

/* Figure 5: branches of 1 x 1, of 5 x 5, of two 3 x 3, and of a pooling. */
static void inception_a(slc_layer_table *table, int number, double in, double pooled)
{
    block b = begin("a.%d", number, 35);
    add_normed(&b, in, 64, 1, 1);
    add_normed(&b, in, 48, 1, 1);
    add_normed(&b, 48, 64, 5, 5);
    add_normed(&b, in, 64, 1, 1);
    add_normed(&b, 64, 96, 3, 3);
    add_normed(&b, 96, 96, 3, 3);
    add_normed(&b, in, pooled, 1, 1);
    end(table, &b, 64 + 64 + 96 + pooled, 35);
}

static void inception_to_17(slc_layer_table *table)
{
    block b = begin("to.%d", 17, 17);
    add_normed(&b, 288, 384, 3, 3);
    add_normed(&b, 288, 64, 1, 1);
    add_normed(&b, 64, 96, 3, 3);
    add_normed(&b, 96, 96, 3, 3);
    end(table, &b, 768, 17);
}

/* Figure 6: one branch of 1 x 1, one of a pair and one of two pairs of 1 x 7 and 7 x 1, and a pooling. */
static void inception_c(slc_layer_table *table, int number, double middle)
{
    block b = begin("c.%d", number, 17);
    add_normed(&b, 768, 192, 1, 1);
    add_normed(&b, 768, middle, 1, 1);
    add_normed(&b, middle, middle, 1, 7);
    add_normed(&b, middle, 192, 7, 1);
    add_normed(&b, 768, middle, 1, 1);
    for (int i = 0; i < 3; i++) add_normed(&b, middle, middle, 7, 1);
    add_normed(&b, middle, 192, 1, 7);
    add_normed(&b, 768, 192, 1, 1);
    end(table, &b, 768, 17);
}

static void inception_to_8(slc_layer_table *table)
{
    block b = begin("to.%d", 8, 8);
    add_normed(&b, 768, 192, 1, 1);
    add_normed(&b, 192, 320, 3, 3);
    add_normed(&b, 768, 192, 1, 1);
    add_normed(&b, 192, 192, 1, 7);
    add_normed(&b, 192, 192, 7, 1);
    add_normed(&b, 192, 192, 3, 3);
    end(table, &b, 1280, 8);
}

/* Figure 7. */
static void inception_e(slc_layer_table *table, int number, double in)
{
    block b = begin("e.%d", number, 8);
    add_normed(&b, in, 320, 1, 1);
    add_normed(&b, in, 384, 1, 1);
    add_normed(&b, in, 448, 1, 1);
    add_normed(&b, 448, 384, 3, 3);
    for (int i = 0; i < 2; i++) {
        add_normed(&b, 384, 384, 1, 3);
        add_normed(&b, 384, 384, 3, 1);
    }
    add_normed(&b, in, 192, 1, 1);
    end(table, &b, 2048, 8);
}

static void inception3(slc_layer_table *table)
{
    static const double of_a[][2] = {{192, 32}, {256, 64}, {288, 64}}, of_c[] = {128, 160, 160, 192};
    inception_stem(table);
    for (int i = 0; i < 3; i++) inception_a(table, i, of_a[i][0], of_a[i][1]);
    inception_to_17(table);
    for (int i = 0; i < 4; i++) inception_c(table, i, of_c[i]);
    inception_to_8(table);
    inception_e(table, 0, 1280);
    inception_e(table, 1, 2048);
    dense(table, 0, 2048, 1000);
}

/* ---- Models whose layers are read far away ---- */

/* Huang et al. 2016, table 1, 121 layers, growth 32: every layer of a stage reads what all before it have given. */
static void densenet121(slc_layer_table *table)
{
    static const int stages[] = {6, 12, 24, 16};
    block stem = begin("stem", 0, 112);
    add_normed(&stem, 3, 64, 7, 7);
    end(table, &stem, 64, 56)->readers = (uint32_t)stages[0] + 1;
    double in = 64, size = 56;
    int number = 0;
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < stages[s]; i++, number++, in += 32) {
            block b = begin("dense.%d", number, size);
            add_normed(&b, in, 128, 1, 1);
            add_weights(&b, 128, 32, 3, 3);
            b.layer.parameters += 2 * in; /* the norm of all that it reads */
            end(table, &b, 32, size)->readers = (uint32_t)(stages[s] - i);
        }
        if (s == 3) break;
        block b = begin("to.%d", s, size);
        add_weights(&b, in, in / 2, 1, 1);
        b.layer.parameters += 2 * in;
        in /= 2;
        size /= 2;
        end(table, &b, in, size)->readers = (uint32_t)stages[s + 1] + 1;
    }
    dense(table, 0, 1024, 1000);
    table->layers[table->count - 1].parameters += 2048; /* the last norm */
}

static void two_convolutions(block *b, double in, double out)
{
    add_biased(b, in, out, 3);
    add_biased(b, out, out, 3);
}

/* Ronneberger et al. 2015, figure 1, with as many places behind a convolution as before it (512 x 512): what the way
 * down gives at a size is read again on the way up at that size. */
static void unet(slc_layer_table *table)
{
    double size = 512, in = 1;
    for (int d = 0; d < 5; d++, size /= 2) {
        double out = 64 << d;
        block b = begin("down.%d", d, size);
        two_convolutions(&b, in, out);
        end(table, &b, out, size)->readers = d < 4 ? (uint32_t)(8 - 2 * d) : 0;
        in = out;
    }
    size = 32;
    for (int u = 3; u >= 0; u--) {
        double out = 64 << u;
        size *= 2;
        block b = begin("up.%d", u, size);
        double weights = 4 * in * out; /* each place gives 2 x 2 */
        b.layer.parameters = weights + out;
        b.layer.flops = 2 * weights * size * size / 4;
        two_convolutions(&b, in, out);
        end(table, &b, out, size);
        in = out;
    }
    block b = begin("out", 0, size);
    add_biased(&b, 64, 2, 1);
    end(table, &b, 2, size);
}

/* ---- Models of patches ---- */

static void patches(slc_layer_table *table, double side, double channels, double tokens, double positions)
{
    double weights = 3 * side * side * channels;
    slc_table_layer layer = {"patches", weights + channels + positions, 2 * weights * tokens, channels * tokens, 0, 0,
                             false};
    slc_layer_table_add(table, &layer);
}

/* Dosovitskiy et al. 2020, table 1: ViT-Huge with patches of 14 x 14. */
static void vit_huge(slc_layer_table *table)
{
    double d = 1280, tokens = 257;
    patches(table, 14, d, tokens, tokens * d + d);
    for (int i = 0; i < 32; i++) {
        slc_table_layer layer = {.parameters = 12 * d * d + 13 * d,
                                 .flops = (24 * d * d + 4 * tokens * d) * tokens,
                                 .output = tokens * d,
                                 .kept = 15 * tokens * d};
        snprintf(layer.name, sizeof layer.name, "h.%d", i);
        slc_layer_table_add(table, &layer);
    }
    dense(table, 0, d, 1000);
    table->layers[table->count - 1].parameters += 2 * d;
}

/* Tolstikhin et al. 2021, table 1: MLP-Mixer L/16. */
static void mixer_large(slc_layer_table *table)
{
    double d = 1024, tokens = 196, across = 512, wide = 4096;
    patches(table, 16, d, tokens, 0);
    for (int i = 0; i < 24; i++) {
        slc_table_layer layer = {.parameters = 2 * tokens * across + across + tokens + 2 * d * wide + wide + d + 4 * d,
                                 .flops = 4 * tokens * across * d + 4 * d * wide * tokens,
                                 .output = tokens * d,
                                 .kept = 4 * tokens * d + 2 * across * d + 2 * wide * tokens};
        snprintf(layer.name, sizeof layer.name, "h.%d", i);
        slc_layer_table_add(table, &layer);
    }
    dense(table, 0, d, 1000);
    table->layers[table->count - 1].parameters += 2 * d;
}

const slc_layer_model slc_image_models[] = {
    {"alexnet", alexnet},
    {"vgg16", vgg16},
    {"resnet50", resnet50},
    {"resnet152", resnet152},
    {"wide-resnet50", wide_resnet50},
    {"inception3", inception3},
    {"densenet121", densenet121},
    {"unet", unet},
    {"vit-huge", vit_huge},
    {"mixer-large", mixer_large},
    {NULL, NULL},
};
