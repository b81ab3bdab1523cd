/* The pace of an imagined rank's compute and link, from which an estimate's times come. Bytes depend on none
 * of it. */
#pragma once

#include "lib/plan/profile.h"

#include <sluice/model.h>

typedef struct {
    double flops;                 /* floating-point operations a second that a rank reaches in matrix products */
    double bytes_per_s;           /* that its compute moves through memory, in all other operations and in updates */
    double link_bytes_per_s;      /* of a rank's link, in both directions */
    double link_latency_s;        /* of a message */
    double kappa, sigma;          /* slc_link */
    bool thread_moves;            /* slc_link */
    uint32_t ranks;               /* that the machines have; 0: nothing says how many */
    char compute[120], link[120]; /* where the figures come from, for people to read */
} slc_pace;

/* Measures products of 512 x 512 matrices of this type and updates of 4 MiB on this machine, a tenth of a second each.
 * The link stays as it is. Errors: UNSUPPORTED (a build without oneDNN), MEMORY. */
sluice_status slc_pace_measure(sluice_dtype dtype, uint32_t threads, slc_pace *pace);
/* Measures the first half of what slc_pace_measure does: FLOP/s in products. Errors: as above. */
sluice_status slc_pace_measure_products(sluice_dtype dtype, uint32_t threads, double *flops);
/* FLOPs of the matrix products in forward and backward of a micro-batch: three times those that slc_pace_set_times
 * counts for the forward. */
double slc_pace_model_flops(const sluice_model_config *model, uint32_t batch, uint32_t length);
/* Sets the compute part from "100gflops,20GB". Errors: ARGUMENT. */
sluice_status slc_pace_parse(const char *text, slc_pace *pace);
/* Sets all of it from a cluster of `sluice profile --made`. Errors: ARGUMENT (the error names all clusters). */
sluice_status slc_pace_of_cluster(const char *name, slc_pace *pace);
/* Sets the link from a throttle such as "1gbit,50us". Without a throttle, ranks that all share a host get the link of
 * the host's memory. Errors: ARGUMENT (ranks of several hosts, and nothing says how fast the network is). */
sluice_status slc_pace_link(const char *throttle, bool one_host, slc_pace *pace);

/* Replaces a profile's times. A layer's forward takes its matrix products' FLOPs (2 for each parameter and row; for
 * attention 4 s d a row, half of that if it is causal) at the pace of products, and moves the activations that it
 * keeps twice through memory; its backward takes twice that. */
void slc_pace_set_times(const slc_pace *pace, const sluice_model_config *model, uint32_t batch, uint32_t length,
                        slc_profile *profile);
/* Sets only the times of slots and recomputations, for a micro-batch that fills the share `filled` of the job's
 * activations. */
void slc_pace_set_slots(const slc_pace *pace, const sluice_model_config *model, uint32_t batch, uint32_t length,
                        double filled, const slc_job *job, slc_times *times);
