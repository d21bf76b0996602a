#include "runtime/role/file_sync.h"

#include <stdlib.h>

enum { LOOK_MS = 1000, REST_MS = 30000, ROOM = 8 << 20 };

struct file_sync {
    struct node *node;
    uv_timer_t timer;
    uv_work_t work;
    bool busy, closing, closed, synced;
    int64_t mark;
    uint64_t last;
    struct error err;
};

static void sync_files(uv_work_t *work)
{
    struct file_sync *s = work->data;

    s->synced = journal_sync_folder(s->node->folder, &s->err);
}

/* A disk that does not sync loses nothing yet: the rows stay, the files are written again, and it is tried again. */
static bool take_up(struct file_sync *s)
{
    return s->synced ? journal_synced(s->node->journal, s->mark, &s->err) : journal_restore_files(s->node->journal, &s->err);
}

static void files_synced(uv_work_t *work, int status)
{
    struct file_sync *s = work->data;

    s->busy = false;
    if (s->closed)
        free(s);
    else if (!s->closing && status == 0 && !take_up(s))
        node_stop(s->node, &s->err);
}

static void looked(uv_timer_t *timer)
{
    struct file_sync *s = timer->data;
    const size_t size = journal_unsynced(s->node->journal);
    const uint64_t now = uv_now(&s->node->loop);

    if (s->busy || size == 0 || (size < ROOM && now - s->last < REST_MS))
        return;
    if (!journal_mark(s->node->journal, &s->mark, &s->err)) {
        node_stop(s->node, &s->err);
        return;
    }
    s->last = now;
    s->busy = uv_queue_work(&s->node->loop, &s->work, sync_files, files_synced) == 0;
}

struct file_sync *file_sync_new(struct node *node)
{
    struct file_sync *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->node = node;
    s->last = uv_now(&node->loop);
    uv_timer_init(&node->loop, &s->timer);
    s->timer.data = s->work.data = s;
    uv_timer_start(&s->timer, looked, LOOK_MS, LOOK_MS);
    uv_unref((uv_handle_t *)&s->timer);
    return s;
}

static void timer_closed(uv_handle_t *handle)
{
    struct file_sync *s = handle->data;

    s->closed = true;
    if (!s->busy)
        free(s);
}

void file_sync_free(struct file_sync *s)
{
    if (!s)
        return;
    s->closing = true;
    uv_close((uv_handle_t *)&s->timer, timer_closed);
}
