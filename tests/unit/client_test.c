/* The node's side of a worker: against this program serving as a worker that does what its jobs say, and against the real one. */
#include "runtime/worker/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/worker/frame.h"
#include "tests/fixture/fixture.h"

/* --- the worker that obeys ------------------------------------------------------------------------------------------------ */

static void say(json_int_t id, const char *what, json_t *value, const void *bytes, size_t size)
{
    struct error err = { 0 };
    json_t *line = json_pack("{s:I, s:o}", "id", id, what, value);

    if (!frame_write(STDOUT_FILENO, line, bytes, size, &err))
        exit(1);
    json_decref(line);
}

static int serve(void)
{
    struct buffer bytes = { 0 };
    struct error err = { 0 };
    json_t *job;
    int opened = 0, done = 0;

    while (frame_read(STDIN_FILENO, &job, &bytes, &err)) {
        const char *name = json_string_value(json_object_get(job, "job"));
        json_int_t id = json_integer_value(json_object_get(job, "id"));

        if (strcmp(name, "open") == 0)
            opened++;
        if (strcmp(name, "die") == 0)
            exit(7);
        if (strcmp(name, "garbage") == 0)
            for (int i = 0; i < 100; i++)
                if (write(STDOUT_FILENO, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12) != 12)
                    exit(1);
        if (strcmp(name, "hang") == 0 || strcmp(name, "garbage") == 0)
            pause();
        if (strcmp(name, "progress") == 0)
            for (int i = 0; i < 3; i++)
                say(id, "progress", json_pack("{s:i}", "step", i), NULL, 0);
        if (strcmp(name, "fail") == 0) {
            say(id, "error", json_pack("{s:s, s:s, s:s, s:s}", "code", "shape", "place", "here", "message", "no", "hint", "try"),
                NULL, 0);
        } else if (strcmp(name, "huge") == 0) {
            size_t size = 40 << 20;
            char *text = malloc(size + 1);

            memset(text, 'x', size);
            text[size] = 0;
            say(id, "result", json_pack("{s:s}", "text", text), text, size);
            free(text);
        } else {
            say(id, "result", json_pack("{s:s, s:i, s:i}", "job", name, "opened", opened, "done", done++), bytes.bytes,
                bytes.size);
        }
        json_decref(job);
        buffer_clear(&bytes);
    }
    return 0;
}

/* --- asking --------------------------------------------------------------------------------------------------------------- */

enum { MOST = 16 };

static struct {
    uv_loop_t loop;
    struct worker *worker;
    char order[MOST + 1]; /* a letter for each answer, in the order they came */
    size_t count, wanted;
    json_t *results[MOST]; /* by answer */
    enum error_code codes[MOST];
    struct error last;
    size_t bytes, progress;
} t;

static void seen(void *context, const struct worker_answer *answer)
{
    assert_true(t.count < MOST);
    t.order[t.count] = *(const char *)context;
    t.results[t.count] = json_incref(answer->result);
    t.codes[t.count] = answer->error ? answer->error->code : ERROR_NONE;
    if (answer->error)
        t.last = *answer->error;
    t.bytes = answer->size;
    if (++t.count == t.wanted)
        uv_stop(&t.loop);
}

static void stepped(void *context, json_t *progress)
{
    (void)context;
    assert_int_equal(json_integer_value(json_object_get(progress, "step")), (json_int_t)t.progress++);
}

static uint64_t ask(const char *name, const char *letter)
{
    return worker_submit(t.worker, json_pack("{s:s}", "job", name), "abc", 3, stepped, seen, (void *)(uintptr_t)letter);
}

static void wait_for(size_t count)
{
    t.wanted = count;
    if (t.count < count)
        uv_run(&t.loop, UV_RUN_DEFAULT);
    assert_int_equal(t.count, count);
}

static void start(const char *program, const char *blocks)
{
    struct error err = { 0 };

    memset(&t, 0, sizeof t);
    uv_loop_init(&t.loop);
    t.worker = worker_new(&t.loop, &(struct worker_options){ .program = program, .blocks = blocks, .threads = 1 }, &err);
    FIXTURE_OK(t.worker != NULL, &err);
}

static void stop(void)
{
    worker_free(t.worker);
    uv_run(&t.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&t.loop), 0); /* no handle is left */
    for (size_t i = 0; i < t.count; i++)
        json_decref(t.results[i]);
}

static json_int_t number(size_t answer, const char *name)
{
    return json_integer_value(json_object_get(t.results[answer], name));
}

/* --- tests ---------------------------------------------------------------------------------------------------------------- */

static void jobs_are_done_one_by_one_in_the_order_given(void **state)
{
    (void)state;
    start(NULL, "-");
    ask("one", "a");
    ask("two", "b");
    ask("progress", "c");
    ask("four", "d");
    assert_int_equal(worker_waiting(t.worker), 4);
    wait_for(4);
    assert_string_equal(t.order, "abcd");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(number(i, "done"), (json_int_t)i);
    assert_int_equal(t.progress, 3);
    assert_int_equal(t.bytes, 3);
    assert_int_equal(worker_waiting(t.worker), 0);
    stop();
}

static void what_is_preferred_goes_before_what_waits_and_behind_what_was_preferred_before(void **state)
{
    (void)state;
    start(NULL, "-");
    ask("one", "a");
    ask("two", "b");
    ask("three", "c");
    worker_prefer(t.worker, ask("four", "d"));
    worker_prefer(t.worker, ask("five", "e"));
    wait_for(5);
    assert_string_equal(t.order[0] == 'a' ? t.order + 1 : t.order, t.order[0] == 'a' ? "debc" : "deabc");
    stop();
}

static void an_error_comes_with_all_its_parts(void **state)
{
    (void)state;
    start(NULL, "-");
    ask("fail", "a");
    wait_for(1);
    assert_int_equal(t.codes[0], ERROR_SHAPE);
    assert_string_equal(t.last.place, "here");
    assert_string_equal(t.last.message, "no");
    assert_string_equal(t.last.hint, "try");
    stop();
}

static void a_worker_that_dies_is_started_again_and_opened_again(void **state)
{
    (void)state;
    start(NULL, "-");
    worker_open(t.worker, json_pack("{s:s}", "job", "open"), seen, (void *)(uintptr_t) "o");
    ask("one", "a");
    ask("die", "b");
    ask("two", "c"); /* waits while the worker is away */
    wait_for(4);
    assert_string_equal(t.order, "oabc"); /* the second opening is not told again */
    assert_int_equal(t.codes[2], ERROR_FAULT);
    assert_non_null(strstr(t.last.message, "status 7"));
    assert_int_equal(number(1, "opened"), 1);
    assert_int_equal(number(3, "opened"), 1);
    assert_int_equal(number(3, "done"), 1); /* a new process: only its opening came before */
    for (size_t i = 0; i < 3; i++) {        /* and again */
        ask("die", "x");
        wait_for(5 + i);
    }
    ask("three", "d");
    wait_for(8);
    assert_int_equal(t.codes[7], ERROR_NONE);
    stop();
}

static void a_worker_that_talks_nonsense_is_ended(void **state)
{
    (void)state;
    start(NULL, "-");
    ask("garbage", "a");
    ask("one", "b");
    wait_for(2);
    assert_int_equal(t.codes[0], ERROR_FAULT);
    assert_int_equal(t.codes[1], ERROR_NONE);
    stop();
}

static void cancelled_jobs_are_never_told_and_the_next_ones_go_on(void **state)
{
    uint64_t running, queued;

    (void)state;
    start(NULL, "-");
    worker_open(t.worker, json_pack("{s:s}", "job", "open"), NULL, NULL);
    running = ask("hang", "a");
    queued = ask("two", "b");
    ask("three", "c");
    worker_cancel(t.worker, queued);
    assert_int_equal(worker_waiting(t.worker), 3); /* opening, a, c */
    while (worker_waiting(t.worker) > 2)
        uv_run(&t.loop, UV_RUN_ONCE);
    worker_cancel(t.worker, running);
    worker_cancel(t.worker, 12345); /* nobody's */
    wait_for(1);
    assert_string_equal(t.order, "c");
    assert_int_equal(number(0, "opened"), 1);
    stop();
}

static void answers_of_many_megabytes_arrive_whole(void **state)
{
    const char *text;

    (void)state;
    start(NULL, "-");
    ask("huge", "a");
    wait_for(1);
    text = json_string_value(json_object_get(t.results[0], "text"));
    assert_int_equal(strlen(text), 40 << 20);
    assert_int_equal(t.bytes, 40 << 20);
    stop();
}

static void freed(void *context, const struct worker_answer *answer)
{
    (void)context;
    assert_non_null(answer);
    worker_free(t.worker);
    t.worker = NULL;
}

static void a_worker_may_be_freed_by_who_it_answers(void **state)
{
    static const char *const jobs[] = { "one", "die" };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        start(NULL, "-");
        worker_submit(t.worker, json_pack("{s:s}", "job", jobs[i]), NULL, 0, NULL, freed, NULL);
        ask("two", "b");
        uv_run(&t.loop, UV_RUN_DEFAULT);
        assert_null(t.worker);
        assert_int_equal(t.count, 0);
        stop();
    }
}

static void a_program_that_does_not_exist_is_an_error(void **state)
{
    struct error err = { 0 };

    (void)state;
    memset(&t, 0, sizeof t);
    uv_loop_init(&t.loop);
    assert_null(worker_new(&t.loop, &(struct worker_options){ .program = "/nowhere/rondo", .blocks = "-" }, &err));
    assert_int_equal(err.code, ERROR_FAULT);
    stop();
}

static void the_real_worker_opens_a_run_and_gives_the_same_genesis(void **state)
{
    struct fixture f;
    char blocks[128];

    (void)state;
    fixture_new(&f, &(struct fixture_options){ 0 });
    snprintf(blocks, sizeof blocks, "%s/blocks", f.folder);
    start(RONDO_BINARY "/rondo", blocks);
    ask("genesis", "a"); /* before a run is open */
    worker_open(t.worker, json_incref(f.job), seen, (void *)(uintptr_t) "o");
    ask("genesis", "b");
    ask("what?", "c");
    wait_for(4);
    for (size_t i = 0; i < 4; i++)
        if (t.order[i] == 'a')
            assert_int_equal(t.codes[i], ERROR_FAULT); /* of this machine: it refuses nobody */
        else if (t.order[i] == 'o')
            assert_int_equal(number(i, "parameters"), (json_int_t)f.session->layout.values);
        else if (t.order[i] == 'b')
            assert_true(json_equal(t.results[i], f.genesis));
        else
            assert_int_equal(t.codes[i], ERROR_FAULT);

    json_t *context = fixture_context(&f, 1, 'a'),
           *job = json_pack("{s:s, s:O, s:O}", "job", "train", "context", context, "shards", f.shards);
    json_t *here = fixture_contribution(&f, context);

    worker_submit(t.worker, job, NULL, 0, NULL, seen, (void *)(uintptr_t) "d");
    wait_for(5);
    assert_int_equal(t.codes[4], ERROR_NONE);
    assert_true(json_equal(json_object_get(t.results[4], "payload"), json_object_get(here, "payload")));
    assert_true(json_equal(json_object_get(t.results[4], "step_log"), json_object_get(here, "step_log")));
    json_decref(context);
    json_decref(here);
    stop();
    fixture_free(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_done_one_by_one_in_the_order_given),
        cmocka_unit_test(what_is_preferred_goes_before_what_waits_and_behind_what_was_preferred_before),
        cmocka_unit_test(an_error_comes_with_all_its_parts),
        cmocka_unit_test(a_worker_that_dies_is_started_again_and_opened_again),
        cmocka_unit_test(a_worker_that_talks_nonsense_is_ended),
        cmocka_unit_test(cancelled_jobs_are_never_told_and_the_next_ones_go_on),
        cmocka_unit_test(answers_of_many_megabytes_arrive_whole),
        cmocka_unit_test(a_worker_may_be_freed_by_who_it_answers),
        cmocka_unit_test(a_program_that_does_not_exist_is_an_error),
        cmocka_unit_test(the_real_worker_opens_a_run_and_gives_the_same_genesis),
    };

    fixture_main(argc, argv);
    if (argc == 5 && strcmp(argv[1], "--worker") == 0)
        return serve();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
