/* Bytes and seconds as people read them. */
#ifndef SLC_BENCH_PLAN_QUANTITIES_H
#define SLC_BENCH_PLAN_QUANTITIES_H

/* Write "157.6 MiB" or "1.2 ms". `text` has room for 24; it is returned. */
char *slc_plan_bytes(double bytes, char *text);
char *slc_plan_seconds(double s, char *text);

#endif
