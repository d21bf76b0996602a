/* resident.h - pages of the program and its libraries that only starting touched go back.
 *
 *     file's page cache   [ code and constants of a library ]      one copy on the machine, whatever happens here
 *                             mapped by the start of each process      counted once for each (RSS), sixteen pages around each one touched
 *     resident_settle     nothing mapped; what runs on is mapped again when it is touched, from the cache
 *
 * A node initialises thirty libraries and calls a few; a nursery has run the prelude and then only waits. Only segments that cannot be
 * written are let go, so nothing is lost and a child split off later finds the same. For a process that has started and stays for long.
 */
#ifndef RONDO_SCRIPT_RESIDENT_H
#define RONDO_SCRIPT_RESIDENT_H

void resident_settle(void);

#endif
