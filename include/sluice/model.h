/* Bundled models: GPT-2, BERT with norms behind or before its branches, ViT and BEiT. Each is a client of the hook API,
 * as a user's own program is: it registers its layers on a runtime and computes between the hooks. On the device "cpu",
 * matrix products are oneDNN's.
 *
 *   gpt2  Radford et al., "Language models are unsupervised multitask learners", 2019: GPT2LMHeadModel
 *   bert  Devlin et al., arXiv 1810.04805: BertForMaskedLM, BertForSequenceClassification
 *   roberta-prelayernorm  BERT with norms before its branches, as Ott et al., arXiv 1904.01038, have it:
 *         RobertaPreLayerNormForMaskedLM, RobertaPreLayerNormForSequenceClassification
 *   vit   Dosovitskiy et al., arXiv 2010.11929: ViTForImageClassification
 *   beit  Bao et al., arXiv 2106.08254: BeitForImageClassification, BeitForMaskedImageModeling
 *
 * Layers: "embed", "h.0" .. "h.(L-1)", "head". Parameters have Hugging Face's names after the layer's:
 * "embed.wte.weight", "h.0.attn.c_attn.weight", "h.1.attention.attention.query.bias", "head.classifier.weight"; shapes
 * and orientation are those of Hugging Face (GPT-2's matrices [inputs][outputs], all others' [outputs][inputs]).
 *
 * Threads: one thread calls a model at a time, the one that calls its runtime; what takes no model may be called from
 * any thread. After a failure the runtime can only be destroyed, and so can the model.
 *
 * Errors that are every function's and are not repeated: MEMORY, ARGUMENT for a pointer that is NULL if nothing says
 * that it may be, and with a model those that sluice/runtime.h gives to all functions. Functions that return no status
 * return 0 or NULL for it, or do nothing. */
#ifndef SLUICE_MODEL_H
#define SLUICE_MODEL_H

#include <sluice/dtype.h>
#include <sluice/init.h>
#include <sluice/runtime.h>
#include <sluice/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The list of the bundled families: FAMILY(the enumerator, the name, with _ for -) for each. */
#define SLUICE_MODEL_FAMILY_LIST(FAMILY)                                                                               \
    FAMILY(SLUICE_GPT2, gpt2)                                                                                          \
    FAMILY(SLUICE_BERT, bert)                                                                                          \
    FAMILY(SLUICE_VIT, vit) FAMILY(SLUICE_BEIT, beit) FAMILY(SLUICE_ROBERTA_PRELAYERNORM, roberta_prelayernorm)
/* The inside of sluice_model_family. */
#define SLUICE_MODEL_FAMILY_ENUMERATOR(enumerator, name) enumerator,
/* The bundled families, as SLUICE_MODEL_FAMILY_LIST has them. */
typedef enum { SLUICE_MODEL_FAMILY_LIST(SLUICE_MODEL_FAMILY_ENUMERATOR) SLUICE_MODEL_FAMILIES } sluice_model_family;

/* The last layer answers with a token at every position (gpt2: the next one; bert: the one that was masked; beit: the
 * visual token of a masked patch), or with one class for the whole input (bert, vit, beit). */
typedef enum { SLUICE_HEAD_TOKENS, SLUICE_HEAD_CLASSES } sluice_model_head;

/* The configuration of a model. Fields that a family does not have are 0. roberta-prelayernorm has those of bert. */
typedef struct {
    size_t struct_size; /* of this struct; SLUICE_INIT sets it */
    sluice_model_family family;
    sluice_model_head head;
    uint32_t layers, channels, heads; /* channels is a multiple of heads */
    uint32_t hidden;                  /* width of the MLP */
    uint32_t vocabulary;              /* gpt2, bert: tokens; beit with SLUICE_HEAD_TOKENS: visual tokens */
    uint32_t context;                 /* gpt2, bert: positions that there are */
    uint32_t types;                   /* bert: token types */
    /* The number of the padding token. bert: looking up its row gives no gradient; a number beyond the vocabulary means
     * that there is none. roberta-prelayernorm needs one: its table of positions has context + padding + 1 rows, and
     * the row of the first position is padding + 1. */
    uint32_t padding;
    uint32_t image_size, patch_size; /* vit, beit: pixels a side; image_size is a multiple of patch_size */
    uint32_t image_channels;         /* vit, beit */
    uint32_t classes;                /* with SLUICE_HEAD_CLASSES */
    double epsilon;                  /* of the norms, > 0 */
    double dropout; /* of embeddings, attention probabilities and residual branches, in training; in [0, 1) */
    /* beit */
    bool mask_token;         /* masked patches are replaced (needed with SLUICE_HEAD_TOKENS) */
    bool absolute_positions; /* as vit has them */
    bool relative_positions; /* a table of biases in every block */
    bool shared_positions;   /* ... or one for all blocks */
    bool no_qkv_bias;        /* also vit */
    bool first_row_pooling;  /* classes from the first row after a norm, not from the mean of the patches */
    double layer_scale;      /* first value of lambda_1 and lambda_2; 0: there are none */
    bool gelu_tanh;          /* the tanh form; gpt2 always */
    /* gpt2, bert: the tokens that begin and end a text, plus 1; 0: none. Nothing is computed with them: config.json
     * names them (bos_token_id, eos_token_id). */
    uint64_t begin_token, end_token;
    /* Stochastic depth, in training: each of the two branches of block i of L, from 0, is left out for a sequence with
     * probability p = drop_path i / (L - 1), independently of the other branch, and is otherwise multiplied by 1 / (1 -
     * p). In [0, 1). */
    double drop_path;
} sluice_model_config;

/* Gives a configuration by name. nano and mini are for bytes (vocabulary 256; bert's 264, with room for special tokens
 * from 256 on) and for small grey images. gpt2: nano, mini, small, medium, large, xl; bert, roberta-prelayernorm: nano,
 * mini, base, large; vit: nano, mini, tiny, small, base, large, huge; beit: nano, mini, base, large. head:
 * SLUICE_HEAD_TOKENS for models of text, SLUICE_HEAD_CLASSES (1000) for vit and beit; change it afterwards. *out is
 * begun with SLUICE_INIT. Errors: ARGUMENT lists the names. */
SLUICE_API sluice_status sluice_model_config_named(const char *family, const char *size, sluice_model_config *out);
/* The names above, one by one from 0; NULL after the last, and for a family that there is not. Constants. */
SLUICE_API const char *sluice_model_family_name(uint32_t family);
SLUICE_API const char *sluice_model_size_name(sluice_model_family family, uint32_t index);
/* Checks that there can be such a model. Errors: ARGUMENT says which field cannot be. */
SLUICE_API sluice_status sluice_model_config_check(const sluice_model_config *config);

/* sluice_model_param_count, _tokens and _targets take a configuration that sluice_model_config_check accepts. */

/* Returns the elements of all parameters, a shared one counted once; 0 for a struct without its size. */
SLUICE_API uint64_t sluice_model_param_count(const sluice_model_config *config);
/* Returns how many rows a sequence of `length` tokens has: `length`; patches and one for vit and beit. */
SLUICE_API uint32_t sluice_model_tokens(const sluice_model_config *config, uint32_t length);
/* Returns how many targets a sequence has: `length` for gpt2 and bert, patches for beit with SLUICE_HEAD_TOKENS, 1 for
 * classes. */
SLUICE_API uint32_t sluice_model_targets(const sluice_model_config *config, uint32_t length);

typedef struct sluice_model sluice_model; /* a model, registered on a runtime */

/* The shape of a micro-batch, and what is a setting of this model and not of the runtime. */
typedef struct {
    size_t struct_size; /* of this struct; SLUICE_INIT sets it */
    uint32_t batch;     /* sequences (images) of a micro-batch */
    uint32_t length;    /* gpt2, bert: tokens a sequence, <= context; vit, beit: 0 */
    /* Types of values and gradients of single layers, if they are not the runtime's: "head=fp32,h.0=bf16"; NULL.
     * GPT-2's and BERT's head has the embedding's, whose table it shares. */
    const char *precision;
    uint64_t dropout_seed; /* dropout and drop_path are functions of it, the step, the sequence and the place */
    /* The share of each target that is spread over other answers, in [0, 1); 0: none. Training gives each target the
     * weight 1 - label_smoothing and spreads the rest evenly over all classes, as PyTorch's
     * CrossEntropyLoss(label_smoothing=) does; sluice_model_backward and sluice_model_loss give the loss with it, and
     * sluice_model_evaluate gives the plain loss. */
    double label_smoothing;
    /* The model is not trained: its parameters are frozen, so that neither gradients nor optimizer states nor what
     * backward would read takes memory. sluice_model_forward is then UNSUPPORTED. */
    bool evaluates_only;
    /* gpt2 with SLUICE_HEAD_TOKENS, on "cpu": > 0 makes a model for sluice_model_extend, with a cache of keys and
     * values for so many tokens, <= context. `batch` is then 1, `length` the most tokens of one pass, and the model
     * evaluates_only, whatever that field says. The cache counts in the budget: 8 bytes a layer, channel and token,
     * with tokens rounded up to 128 and channels a head to 16 (for its values). */
    uint32_t cache_tokens;
    /* gpt2, bert: > 0 lets sluice_batch.length say that a micro-batch is shorter, in multiples of this. `length` is
     * then the longest, which the plan has room for; making the model takes longer, because every length is asked for
     * its scratch. Not with a cache. 0: every micro-batch is of `length`. */
    uint32_t length_step;
    /* > 0: sluice_model_step runs so many micro-batches a step, those of sluice_config.micro_batches. On "cpu" the
     * model keeps targets and losses of all of them, which count in the budget. 0: one is kept. */
    uint32_t micro_batches;
    /* The least tokens of a sequence, with length_step: no micro-batch is shorter, so that the model is made sooner. A
     * multiple of length_step, <= length. 0: length_step. */
    uint32_t length_least;
    /* Lets a micro-batch of L tokens a sequence, with length_step, have batch * floor(length / L) sequences, as many as
     * have the tokens of a whole one (sluice_batch.sequences). */
    bool folds;
    /* Lets sluice_model_observe note how much blocks change their inputs. It needs 8 bytes a block and row of the
     * host's memory, which count in the budget on "cpu", and scratch for one block. false: nothing is noted. */
    bool observe;
    /* The lengths for which the model registers shapes of the runtime (sluice_activation_shape), with length_step and
     * without folds. They fall, and each is a multiple of length_step, at least length_least and below `length`. Shape
     * k is for micro-batches of shape_lengths[k - 1] tokens a sequence, or fewer: a step may have it if no micro-batch
     * is longer on any rank (sluice_model_shape). At most SLUICE_SHAPES_MOST; copied. */
    const uint32_t *shape_lengths;
    uint64_t shape_count;
    /* gpt2, vit, beit, roberta-prelayernorm: 1 lets sluice_model_scale_branches be called. */
    uint64_t scales_branches;
} sluice_model_options;

/* Registers the model on `rt`, before commit. The runtime must outlive the model's use; the caller destroys the model.
 * `config` and `options` are copied. Groups of parameters (sluice_param_desc.group): 0 the embedding, 1 to L the L
 * layers, L + 1 the head and, in a BEiT, the table of positions that all layers share. Errors: ARGUMENT (the
 * configuration; batch, length, precision or label_smoothing; what registration refuses, as a layer name that is there
 * already; a cache that the model cannot have), ORDER (after commit), UNSUPPORTED ("cpu" in a build without oneDNN;
 * "cuda" without cublasLt, or with a cache; a cache in a world of several ranks; scales_branches where norms come after
 * the branches). After an error the runtime may hold some of the layers and can only be destroyed. */
SLUICE_API sluice_status sluice_model_create(sluice_runtime *rt, const sluice_model_config *config,
                                             const sluice_model_options *options, sluice_model **out);
SLUICE_API void sluice_model_destroy(sluice_model *model); /* NULL is allowed; touches no runtime */
/* Returns the highest shape (sluice_step_options.shape) that holds micro-batches of `length` tokens a sequence; 0 for
 * those that need the whole model, and for NULL. */
SLUICE_API uint32_t sluice_model_shape(const sluice_model *model, uint32_t length);
/* Returns the configuration, valid as long as the model; NULL for NULL. */
SLUICE_API const sluice_model_config *sluice_model_get_config(const sluice_model *model);

/* Writes first values as the papers have them, after commit: normal with deviation .02 (GPT-2's projections onto the
 * residual stream .02/sqrt(2L), section 2.3 of its paper and Hugging Face's initializer_range), biases 0, norms 1,
 * layer_scale if there is one. A function of `seed` alone, not of the world. Local: every rank calls it alike. Errors:
 * as sluice_param_write. */
SLUICE_API sluice_status sluice_model_init(sluice_model *model, uint64_t seed);

/* ---- Weights: Hugging Face's files ---- */

/* Reads the configuration of a folder as Hugging Face lays it out (config.json next to model.safetensors or its index),
 * or of an llm.c checkpoint of GPT-2. Dropout is left 0. That of a trunk without head (GPT2Model, BertModel, ViTModel,
 * BeitModel) has the head that sluice_model_config_named gives. *out is begun with SLUICE_INIT. Errors: PATH (not
 * there, or no permission), IO (unreadable), FORMAT (not what it should be, or with layers that the weights lack),
 * UNSUPPORTED (says what Sluice cannot do), ARGUMENT (a model that cannot be, as sluice_model_config_check says). */
SLUICE_API sluice_status sluice_model_config_read(const char *path, sluice_model_config *out);

/* Reads values from such a folder or file, after commit, between steps. Collective: every rank reads the files itself,
 * and what they have read is compared before anything is changed, since one path may lead to another file on each host
 * (MISMATCH: the rank and the file). Every parameter must be there under Hugging Face's name, with the model's shape
 * and finite values, and nothing else may be there but equal copies of a token table that the head shares, buffers, and
 * the parts of pre-training that Hugging Face drops too. Either the table or its copy is enough. Where the blocks of a
 * BEiT have tables of positions of their own and those of the file share one, each begins as a copy of that.
 *
 * new_head: if the file's configuration has another head or another number of classes than the model, or is of a trunk
 * without head, parameters of the head keep the values that they have if the file lacks them, or has them for another
 * number of classes; all others are read. Tensors of other heads in the file are passed over.
 *
 * Errors: FORMAT and NON_FINITE (name the tensor), UNSUPPORTED (a head that does not share the token table; what the
 * configuration asks for), PATH, IO: with these nothing has been changed. Errors while values are written: those of
 * sluice_param_write, and IO. */
SLUICE_API sluice_status sluice_model_load(sluice_model *model, const char *path, bool new_head);
/* Hugging Face's names of the parameters that the last sluice_model_load left as they were, one by one from 0; NULL
 * after the last. Valid until the next load. */
SLUICE_API const char *sluice_model_new_param(const sluice_model *model, uint32_t index);
/* Gives these parameters the first values that sluice_model_init gives them: then nothing has to be drawn that a file
 * overwrites. Local: every rank calls it alike. Errors: as sluice_param_write. */
SLUICE_API sluice_status sluice_model_init_new(sluice_model *model, uint64_t seed);

/* Writes config.json and model.safetensors (fp32) into the folder, which must exist. Collective, between steps; rank 0
 * writes. transformers' from_pretrained and sluice_model_load read them. Each file takes its place when it is whole.
 * Errors: PATH and IO (rank 0 cannot write; other ranks get IO), ARGUMENT (rank 0: the path is too long); as
 * sluice_param_read. */
SLUICE_API sluice_status sluice_model_save(sluice_model *model, const char *folder);

/* A micro-batch in host memory, row-major; read before the call returns, on every device. */
typedef struct {
    size_t struct_size;            /* of this struct; SLUICE_INIT sets it */
    const int32_t *tokens;         /* gpt2, bert: batch x length, each below the vocabulary */
    const int32_t *types;          /* bert: batch x length, each below config.types; NULL: all 0 */
    const uint8_t *attention_mask; /* gpt2, bert: batch x length, 0: padding, which nothing looks at; NULL: none */
    const float *pixels;           /* vit, beit: batch x image_channels x image_size x image_size */
    const uint8_t *masked_patches; /* beit: batch x patches, not 0: replaced by the mask token; NULL: none */
    const int32_t *targets;        /* batch x sluice_model_targets; -1: counts neither in the loss nor in the gradient;
                                      NULL in sluice_model_evaluate: no loss is wanted */
    /* > 0: the loss is the sum over the targets divided by this; 0: by their number. Ranks or micro-batches whose
     * numbers of targets differ all give T/(N*M), T targets of the whole step, N ranks and M micro-batches: the step's
     * loss and gradient are then means over all T targets, however the step is split. Its inverse must be a normal
     * float. */
    double loss_divisor;
    /* gpt2, bert: tokens a sequence of this micro-batch, which is what `length` means above: a multiple of
     * sluice_model_options.length_step, or all of its length. Each rank and micro-batch may have its own. 0: the
     * model's. */
    uint32_t length;
    /* gpt2, bert: sequences of this micro-batch, which is what `batch` means above: the model's, or with
     * sluice_model_options.folds batch * floor(the model's length / length). 0: the model's. */
    uint64_t sequences;
} sluice_batch;

/* Runs the forward of a micro-batch, between sluice_step_begin and _end; sluice_model_backward follows. Errors:
 * ARGUMENT (no targets; a token, type, target or loss_divisor out of its range; arrays that the family lacks or needs):
 * nothing has happened; as sluice_forward_begin; what `check` returned (below). */
SLUICE_API sluice_status sluice_model_forward(sluice_model *model, const sluice_batch *batch);
/* Adds the gradient of the loss of this micro-batch and gives that loss, of this rank, for which it waits: the mean
 * over its targets (cross-entropy, in nats), or their sum over loss_divisor. A micro-batch whose targets are all -1
 * adds zero, and its loss is 0. loss NULL: it does not wait for the device, which may be at work when it returns.
 * Errors: as sluice_backward_begin; what `check` returned; SYSTEM (the device failed). */
SLUICE_API sluice_status sluice_model_backward(sluice_model *model, double *loss);
/* Gives the mean of the losses of this rank's micro-batches that went through sluice_model_backward in this step, and
 * waits for them. These are all micro-batches since the number of updates changed, or since the first
 * sluice_model_forward after the last call of this function, whichever was later; so one call a step gives the loss of
 * that step, also if it was skipped. May be called, more than once, from a backward until the next
 * sluice_model_forward, also after sluice_step_end, when there is nothing left to wait for. Errors: ORDER (at another
 * time), SYSTEM (the device failed). */
SLUICE_API sluice_status sluice_model_loss(sluice_model *model, double *loss);

/* Returns the layer of a block, for sluice_step_options.layers_left_out, so that a step can leave blocks out
 * (progressive layer dropping); NULL for a block that there is not. The model's calls then leave these blocks out, in
 * training alone. sluice_model_forward and _step refuse that (UNSUPPORTED) for a model whose norms come after the
 * branches, and next to layers of another precision. Local, any time. */
SLUICE_API const sluice_layer *sluice_model_block(const sluice_model *model, uint32_t block);
/* Sets the factor by which training multiplies both branches of a block, from the next micro-batch until the next call;
 * it is 1 at first. Evaluations use 1. The matrix product at the end of a branch applies it, so that it costs no pass
 * over memory. Local, between steps. Errors: ARGUMENT (no such block; a factor that as a float is not above 0 and
 * finite), UNSUPPORTED (a model made without scales_branches). */
SLUICE_API sluice_status sluice_model_scale_branches(sluice_model *model, uint32_t block, double factor);

/* Runs all micro-batches of a step, between sluice_step_begin and _end, in the order of sluice_step_next, so in a
 * pipeline too. `batches` has sluice_model_options.micro_batches elements, which must stay until the call returns; each
 * rank gives its own, in a pipeline those of its replica, and a rank reads of them only what its own layers need. *here
 * says whether this rank holds the last layer: if so, sluice_model_loss gives the loss, else it returns ORDER. Errors:
 * as sluice_model_forward and _backward. */
SLUICE_API sluice_status sluice_model_step(sluice_model *model, const sluice_batch *batches, bool *here);

/* Switches whether training's forwards note how much each block changes its input, which changes no weight. Local;
 * takes effect with the next forward. Errors: UNSUPPORTED (the model was made without sluice_model_options.observe). */
SLUICE_API sluice_status sluice_model_observe(sluice_model *model, bool on);
/* Gives two means for block `block`, from 0, over the rows (tokens, patches, padding too) of the last micro-batch of
 * this rank that was observed, with the block's input x and output y: of |y| / |x|, and of the cosine of the angle
 * between them. Both are NaN if this rank's stage has not the block, or nothing was observed. Call it after
 * sluice_step_end. Local. Errors: ARGUMENT (no such block), UNSUPPORTED (as sluice_model_observe). */
SLUICE_API sluice_status sluice_model_observed(sluice_model *model, uint32_t block, double *norm_ratio, double *cosine);

/* Runs the forward of a batch without dropout, between steps. It brackets itself with sluice_evaluate_begin and _end,
 * so every rank calls it equally often. *loss: this rank's mean over the targets, or their sum over loss_divisor; NaN
 * if `targets` is NULL, and for the mean over none, and on ranks of a pipeline that do not hold the last layer, whose
 * logits are not written either. logits: NULL or fp32, host memory: batch x tokens x vocabulary (beit: the patches'
 * rows), or batch x classes. Errors: as sluice_model_forward and sluice_evaluate_begin. */
SLUICE_API sluice_status sluice_model_evaluate(sluice_model *model, const sluice_batch *batch, double *loss,
                                               float *logits);

/* ---- One sequence, a few tokens at a time: models with cache_tokens ---- */

/* Appends `count` tokens to the sequence that the cache holds and computes them alone, without dropout; what came
 * before is read from the cache. logits: NULL, or fp32, host memory, vocabulary: those after the last of these tokens.
 * They are what sluice_model_evaluate gives at that position for the whole sequence, but for the roundings of matrix
 * products of another size (oneDNN's sums depend on the number of rows). Tokens go through the model in passes of
 * `length`, then of smaller powers of two. After an error the cache is as before the call, if the runtime has not
 * failed. Errors: ARGUMENT (no tokens, a token beyond the vocabulary, more tokens than the cache has room for),
 * UNSUPPORTED (a model without a cache); as sluice_evaluate_begin; what `check` returned. */
SLUICE_API sluice_status sluice_model_extend(sluice_model *model, const int32_t *tokens, uint32_t count, float *logits);
/* Returns how many tokens the cache holds; 0 for a model without one. */
SLUICE_API uint32_t sluice_model_cached(const sluice_model *model);
/* Keeps the first `tokens` tokens of the cache and forgets the others; 0 begins a new sequence. Errors: ARGUMENT (the
 * cache holds fewer), UNSUPPORTED (a model without a cache). */
SLUICE_API sluice_status sluice_model_rewind(sluice_model *model, uint32_t tokens);

/* Sets a function that is called before each layer, in the thread that runs the model. If `check` does not return
 * SLUICE_OK, the micro-batch ends and its call returns that status; then the runtime can only be destroyed. NULL: none.
 * It lets a second Ctrl-C, say, end a step that takes minutes. */
SLUICE_API void sluice_model_check(sluice_model *model, sluice_status (*check)(void *context), void *context);

#ifdef __cplusplus
}
#endif
#endif
