/* The servers' part of a compressed exchange in stream order, between the group that brings packets and the one that
 * spreads results. Private to lib/comm. */
#pragma once

#include "lib/comm/comm.h"

/* Averages and compresses this rank's chunk of every tensor of the operation, from its own packets and those that have
 * arrived, into its own place among the results. Issues kernels alone. Errors: those of slc_compress_server_many. */
sluice_status slc_exchange_serve(sluice_stream *stream, const slc_op *op, int rank);
