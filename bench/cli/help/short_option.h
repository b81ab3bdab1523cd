/* The options of the short help. */
#ifndef SLC_BENCH_SHORT_OPTION_H
#define SLC_BENCH_SHORT_OPTION_H

/* A flag of argp_option, which argp ignores: a newcomer needs this option. */
enum { SLC_OPTION_SHORT = 0x10000 };

#endif
