/* Lines of the log, and the names that schemas suggest. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/base/json.h"
#include "native/base/log.h"
#include "runtime/doc/schema.h"

static int pipes[2];
static char line[4096];

static int open_pipe(void **state)
{
    (void)state;
    return pipe2(pipes, O_NONBLOCK);
}

static int close_pipe(void **state)
{
    (void)state;
    return close(pipes[0]) | close(pipes[1]);
}

static const char *written(void)
{
    ssize_t size = read(pipes[0], line, sizeof line - 1);

    line[size > 0 ? size : 0] = '\0';
    return line;
}

static void text_line_names_node_run_and_round(void **state)
{
    struct log log = log_default(LOG_INFO);

    (void)state;
    log.fd = pipes[1], log.node = "syncer-1", log.run = "demo", log.round = 3;
    log_write(&log, LOG_INFO, "view %d begins", 1);
    assert_string_equal(written() + strlen("2026-11-29T22:30:01.250Z"), "  info   syncer-1  [demo 3]  view 1 begins\n");
    log_write(&log, LOG_DEBUG, "not written");
    assert_string_equal(written(), "");
}

static void quoted_control_characters_do_not_reach_the_terminal(void **state)
{
    struct log log = log_default(LOG_INFO);

    (void)state;
    log.fd = pipes[1];
    log_write(&log, LOG_WARN, "a\nb\x1b[31m");
    assert_string_equal(written() + strlen("2026-11-29T22:30:01.250Z"), "  warn   a b [31m\n");
}

static void json_line_is_one_object_whatever_it_quotes(void **state)
{
    static const char *const messages[] = { "plain", "quote \" and \\ and \n", "\xff\xfe" };
    struct log log = log_default(LOG_INFO);

    (void)state;
    log.fd = pipes[1], log.json = true, log.node = "n", log.run = "demo", log.round = 0;
    for (size_t i = 0; i < 3; i++) {
        log_write(&log, LOG_INFO, "%s", messages[i]);
        const char *text = written();
        json_t *object = json_read(text, strlen(text), sizeof line, NULL);

        assert_non_null(object);
        assert_int_equal(json_integer_value(json_object_get(object, "round")), 0);
        assert_string_equal(json_string_value(json_object_get(object, "level")), "info");
        if (i < 2)
            assert_string_equal(json_string_value(json_object_get(object, "message")), messages[i]);
        json_decref(object);
    }
}

static void error_is_logged_with_its_code(void **state)
{
    struct log log = log_default(LOG_ERROR);
    struct error err;

    (void)state;
    error_set(&err, ERROR_MISMATCH, "fetch it again", "another hash");
    error_at(&err, "block");
    log.fd = pipes[1], log.json = true;
    log_error(&log, &err);
    assert_non_null(strstr(written(), "\"code\":\"mismatch\",\"message\":\"block: another hash (fetch it again)\""));
}

static void levels_have_names(void **state)
{
    enum log_level level;

    (void)state;
    assert_true(log_level_parse("debug", &level) && level == LOG_DEBUG);
    assert_false(log_level_parse("loud", &level));
}

static void nearest_name_is_suggested_only_when_it_is_near(void **state)
{
    static const char *const known[] = { "round_ms", "close_ms", "trainers", "x", NULL };

    (void)state;
    assert_string_equal(schema_nearest("round_sm", known), "round_ms");
    assert_string_equal(schema_nearest("trainer", known), "trainers");
    assert_null(schema_nearest("colour", known));
    assert_null(schema_nearest("zz", known));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_line_names_node_run_and_round, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(quoted_control_characters_do_not_reach_the_terminal, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(json_line_is_one_object_whatever_it_quotes, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(error_is_logged_with_its_code, open_pipe, close_pipe),
        cmocka_unit_test(levels_have_names),
        cmocka_unit_test(nearest_name_is_suggested_only_when_it_is_near),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
