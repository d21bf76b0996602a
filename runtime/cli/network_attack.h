/* network_attack.h - who wastes a node's time: a process of its own that keeps connections open, idle or dribbling a header byte by byte,
 * and sends garbage on new ones at a rate. It speaks from other addresses of loopback than everybody else (127.0.1.x). */
#ifndef RONDO_CLI_NETWORK_ATTACK_H
#define RONDO_CLI_NETWORK_ATTACK_H

#include <sys/types.h>

/* `endpoint` is http://127.0.0.1:PORT. The process that was started, to be ended by a signal; -1: it could not be. */
pid_t network_attack_start(const char *endpoint, int connections, int garbage_per_second);

#endif
