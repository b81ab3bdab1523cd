/* The descriptors that a transport uses: it offers few to poll, but those are epoll sets as a rule, which watch its
 * sockets. */
#pragma once

/* Calls visit(context, fd) for `fd`; if `fd` is an epoll set, first for every descriptor that the set watches, sets
 * among them. Allocates nothing and takes no lock. If the kernel does not list a set's descriptors (no /proc), only the
 * set itself is visited. */
void slc_watched_visit(int fd, void (*visit)(void *context, int fd), void *context);
