/* file_sync.h - now and then, beside the loop, the folders of a node are synced, and its journal lets go of what it kept for them (unsynced.h). */
#ifndef RONDO_ROLE_FILE_SYNC_H
#define RONDO_ROLE_FILE_SYNC_H

#include "runtime/role/node.h"

struct file_sync *file_sync_new(struct node *node);
/* The loop must run until what is under way has ended. NULL is fine. */
void file_sync_free(struct file_sync *s);

#endif
