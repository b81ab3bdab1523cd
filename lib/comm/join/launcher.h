/* Launchers and what they may say. This is the one place that knows their variables. */
#ifndef SLC_COMM_LAUNCHER_H
#define SLC_COMM_LAUNCHER_H

enum { SLC_RANKS_MOST = 4095, SLC_PORT_LAST = 65535 }; /* of a world; of a rendezvous */

/* The launcher whose variables make this process a rank, for people to read; NULL: none started it. Any thread that
 * does not change the environment. */
const char *slc_launcher_name(void);

#endif
