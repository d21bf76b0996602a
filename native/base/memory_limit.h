/* memory_limit.h - how much memory this process may take: the machine's, or what its container leaves of it.
 *
 *     /proc/self/cgroup      0::/kubepods/pod7           v2   /sys/fs/cgroup/kubepods/pod7/memory.max, and those of all folders above
 *                            9:memory:/docker/ab         v1   /sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes, likewise
 *
 * Inside a container the named folder is often not there, but the mount's own is: the folders above are looked at in any case.
 * Source: cgroups(7); Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of Linux.
 */
#ifndef RONDO_BASE_MEMORY_LIMIT_H
#define RONDO_BASE_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes; `machine` where no group says less. `root` is put before the paths above: "" but in tests. */
uint64_t memory_limit_under(const char *root, uint64_t machine);

/* Of this process: the machine's memory, or less. */
uint64_t memory_limit(void);

/* "6000000", "500M", "8G", "8GiB": bytes, of 2^10, 2^20, 2^30 or 2^40 with a letter K, M, G or T. False for anything else, for 0 and for more
 * than 2^63. */
bool memory_size_read(const char *text, uint64_t *bytes);

/* Bytes that each of so many workers on this machine may take: what the operator gave for one (RONDO_MEMORY), else its part of three
 * quarters of what this process may have. */
uint64_t memory_allowance(unsigned workers);

#endif
