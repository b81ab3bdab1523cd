/* The descriptors behind a transport's: it offers few to poll, but those are epoll sets as a rule, and what they watch
 * are its sockets. */
#ifndef SLC_COMM_WATCHED_H
#define SLC_COMM_WATCHED_H

/* Calls `visit` for `fd` and, where it is an epoll set, before that for all that the set watches, sets among them.
 * Allocates nothing and takes no lock. A set that the kernel does not tell about (no /proc) is visited alone. */
void slc_watched_visit(int fd, void (*visit)(int fd));

#endif
