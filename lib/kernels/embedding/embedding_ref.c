/* Gather and scatter, one element at a time. embedding_test.c covers this file. */
#include "lib/kernels/embedding/embedding.h"

/* Finds the rows that place `row` takes from each table, by their first elements. */
static void rows_of(const slc_embedding_forward_args *a, uint64_t row, uint64_t at[3])
{
    at[0] = (uint64_t)a->tokens[row] * a->channels;
    at[1] = row % a->length * a->channels;
    at[2] = a->types ? (uint64_t)a->types[row] * a->channels : 0;
}

void slc_embedding_forward_ref(const slc_embedding_forward_args *args)
{
    const double *const tables[3] = {args->tables.token, args->tables.position, args->tables.type};
    double *out = args->out;
    for (uint64_t row = 0; row < args->batch * args->length; row++)
        for (uint64_t c = 0; c < args->channels; c++) {
            uint64_t at[3];
            rows_of(args, row, at);
            out[row * args->channels + c] = 0;
            for (int i = 0; i < 3; i++) out[row * args->channels + c] += tables[i] ? tables[i][at[i] + c] : 0;
        }
}

void slc_embedding_backward_ref(const slc_embedding_backward_args *args)
{
    const slc_embedding_gradients *g = &args->gradients;
    const slc_embedding_forward_args places = {
        .length = args->length, .channels = args->channels, .tokens = args->tokens, .types = args->types};
    double *const tables[3] = {g->token, g->position, g->type};
    const double *dout = args->dout;
    for (uint64_t row = 0; row < args->batch * args->length; row++)
        for (uint64_t c = 0; c < args->channels; c++) {
            uint64_t at[3];
            rows_of(&places, row, at);
            for (int i = 0; i < 3; i++)
                if (tables[i] && !(i == 0 && g->padded && args->tokens[row] == g->padding))
                    tables[i][at[i] + c] += dout[row * args->channels + c];
        }
}
