/* A TCP port for a world of a test, which no other test gets. The kernel could give a port that it chose away again
 * between its release here and the moment when a rank listens on it. So these ports lie below the range from which the
 * kernel chooses (Linux: from 32768), and an abstract socket with the port's number in its name keeps other tests that
 * run at the same time from it, as long as this process, or one that it forked, lives and asks for fewer than KEPT
 * more.
 */
#pragma once

/* Returns the descriptor of the socket that keeps the port, or -1 if another test has it. */
int keep_port(int port);

/* Returns a free port, or -1 when all are taken. */
int free_port(void);
