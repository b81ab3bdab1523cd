/* Trains a model of text on given padded batches: sluice run -n N -- padded_training WEIGHTS BATCHES LENGTH SEQUENCES
 * MICRO_BATCHES STRATEGY OUT.
 *
 * WEIGHTS is a folder as transformers writes it; its head is trained. BATCHES holds int32, for each step SEQUENCES x
 * LENGTH tokens, as many words of the mask (0: padding) and the targets (-1: none). Ranks and micro-batches share a
 * step's sequences; the step's loss and gradient are means over all of its targets. Rank 0 prints the losses, and the
 * weights go to the folder OUT. tests/command/measure/peers_test.sh covers this file. */
#include <sluice/sluice.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if (call) exit((fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, sluice_last_error()), 1));                  \
    } while (0)

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
    uint32_t length, sequences, micro_batches;
    size_t words, targets_each; /* of a step's tokens; of a sequence */
    int32_t *tokens, *mask, *targets;
    uint8_t *mask_bytes;
} training;

static uint32_t rank_count(const training *t)
{
    return (uint32_t)sluice_world_size(t->world);
}

static void begin_training(training *t, const char *weights, const char *strategy)
{
    sluice_config config;
    sluice_model_config model = SLUICE_INIT(sluice_model_config, .family = SLUICE_GPT2);
    const uint32_t batch = t->sequences / (rank_count(t) * t->micro_batches);
    sluice_config_init(&config);
    config.strategy = strategy;
    config.schedule = "one_ahead";
    config.micro_batches = t->micro_batches;
    config.adamw.epsilon = 1e-4;
    CHECK(sluice_model_config_read(weights, &model));
    CHECK(sluice_runtime_create(t->world, &config, &t->rt));
    CHECK(sluice_model_create(t->rt, &model, &SLUICE_INIT(sluice_model_options, .batch = batch, .length = t->length),
                              &t->model));
    CHECK(sluice_runtime_commit(t->rt));
    CHECK(sluice_model_load(t->model, weights, false));
    t->words = (size_t)t->sequences * t->length;
    t->targets_each = (size_t)sluice_model_targets(&model, t->length);
    t->tokens = malloc(t->words * sizeof *t->tokens);
    t->mask = malloc(t->words * sizeof *t->mask);
    t->targets = malloc(t->words * sizeof *t->targets);
    t->mask_bytes = malloc(t->words);
    if (!t->tokens || !t->mask || !t->targets || !t->mask_bytes) exit(1);
}

/* Returns whether there is another step. */
static int read_step(training *t, FILE *batches)
{
    const size_t targets = t->sequences * t->targets_each;
    if (fread(t->tokens, sizeof *t->tokens, t->words, batches) < t->words) return 0;
    if (fread(t->mask, sizeof *t->mask, t->words, batches) < t->words) exit((fputs("BATCHES ends early\n", stderr), 1));
    if (fread(t->targets, sizeof *t->targets, targets, batches) < targets) exit((fputs("no targets\n", stderr), 1));
    for (size_t i = 0; i < t->words; i++) t->mask_bytes[i] = t->mask[i] != 0;
    return 1;
}

static double train_step(training *t)
{
    const uint32_t parts = rank_count(t) * t->micro_batches, batch = t->sequences / parts;
    double asked = 0, loss;
    for (size_t i = 0; i < t->sequences * t->targets_each; i++) asked += t->targets[i] >= 0;
    CHECK(sluice_step_begin(t->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3)));
    for (uint32_t m = 0; m < t->micro_batches; m++) {
        const size_t first = (size_t)(m * rank_count(t) + (uint32_t)sluice_world_rank(t->world)) * batch;
        const sluice_batch part = SLUICE_INIT(
            sluice_batch, .tokens = t->tokens + first * t->length, .attention_mask = t->mask_bytes + first * t->length,
            .targets = t->targets + first * t->targets_each, .loss_divisor = asked / parts);
        CHECK(sluice_model_forward(t->model, &part));
        CHECK(sluice_model_backward(t->model, NULL));
    }
    CHECK(sluice_step_end(t->rt, NULL));
    CHECK(sluice_model_loss(t->model, &loss));
    CHECK(sluice_world_all_reduce(t->world, &loss, 1));
    return loss / rank_count(t);
}

int main(int argc, char **argv)
{
    training t = {0};
    if (argc != 8) exit((fputs("WEIGHTS BATCHES LENGTH SEQUENCES MICRO_BATCHES STRATEGY OUT\n", stderr), 2));
    FILE *batches = fopen(argv[2], "rb");
    if (!batches) exit((perror(argv[2]), 1));
    t.length = (uint32_t)strtoul(argv[3], NULL, 10);
    t.sequences = (uint32_t)strtoul(argv[4], NULL, 10);
    t.micro_batches = (uint32_t)strtoul(argv[5], NULL, 10);
    CHECK(sluice_world_create(NULL, &t.world));
    begin_training(&t, argv[1], argv[6]);
    while (read_step(&t, batches)) {
        const double loss = train_step(&t);
        if (sluice_world_rank(t.world) == 0) printf("%.17g\n", loss);
    }
    CHECK(sluice_model_save(t.model, argv[7]));
    sluice_model_destroy(t.model);
    sluice_runtime_destroy(t.rt);
    sluice_world_destroy(t.world);
    free(t.tokens), free(t.mask), free(t.targets), free(t.mask_bytes);
    fclose(batches);
    return 0;
}
