/* Launchers: the one place that knows the variables by which they tell a process its rank. */
#ifndef SLC_COMM_LAUNCHER_H
#define SLC_COMM_LAUNCHER_H

enum { SLC_RANKS_MOST = 4095, SLC_PORT_LAST = 65535 }; /* the most ranks of a world, the last port of a rendezvous */

/* The name, for people to read, of the launcher whose variables make this process a rank; NULL: none started it. Any
 * thread, as long as nobody changes the environment. */
const char *slc_launcher_name(void);

#endif
