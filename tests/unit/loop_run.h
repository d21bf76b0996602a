/* loop_run.h - a libuv loop for so long: what a test waits for happens in it. */
#ifndef RONDO_TESTS_LOOP_RUN_H
#define RONDO_TESTS_LOOP_RUN_H

#include <stdbool.h>
#include <uv.h>

static inline void loop_turn(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

static inline void loop_run(uv_loop_t *loop, unsigned ms)
{
    bool over = false;
    uv_timer_t timer;

    uv_timer_init(loop, &timer);
    timer.data = &over;
    uv_timer_start(&timer, loop_turn, ms, 0);
    while (!over)
        uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
}

#endif
