#include "native/base/log.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "native/base/buffer.h"

static const char *const level_names[] = { "error", "warn", "info", "debug" };

struct log log_default(enum log_level level)
{
    return (struct log){ .fd = 2, .level = level, .round = -1 };
}

bool log_level_parse(const char *name, enum log_level *out)
{
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++)
        if (strcmp(name, level_names[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    return false;
}

const char *log_time(char text[32])
{
    struct timespec now;
    struct tm utc;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t at = strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &utc);

    snprintf(text + at, 32 - at, ".%03ldZ", now.tv_nsec / 1000000);
    return text;
}

static void write_whole(int fd, struct buffer *line)
{
    buffer_add_u8(line, '\n');
    for (size_t done = 0; done < line->size;) {
        ssize_t put = write(fd, line->bytes + done, line->size - done);

        if (put <= 0)
            break; /* nobody is left to tell */
        done += (size_t)put;
    }
}

static void add_json(struct buffer *line, const struct log *log, enum log_level level, const char *code, const char *message)
{
    char time[32];
    json_t *object = json_object();

    log_time(time);
    json_object_set_new(object, "time", json_string(time));
    json_object_set_new(object, "level", json_string(level_names[level]));
    if (log->node)
        json_object_set_new(object, "node", json_string(log->node));
    if (log->run)
        json_object_set_new(object, "run", json_string(log->run));
    if (log->run && log->round >= 0)
        json_object_set_new(object, "round", json_integer(log->round));
    if (code)
        json_object_set_new(object, "code", json_string(code));

    /* A message may quote bytes from outside that are no UTF-8. */
    json_t *text = json_string(message);

    json_object_set_new(object, "message", text ? text : json_string("(message is not UTF-8)"));
    char *dump = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);

    buffer_add_text(line, dump ? dump : "{}");
    free(dump);
    json_decref(object);
}

static void add_text(struct buffer *line, const struct log *log, enum log_level level, const char *message)
{
    char time[32];

    log_time(time);
    buffer_printf(line, "%s  %-5s", time, level_names[level]);
    if (log->node)
        buffer_printf(line, "  %s", log->node);
    if (log->run && log->round >= 0)
        buffer_printf(line, "  [%s %lld]", log->run, (long long)log->round);
    else if (log->run)
        buffer_printf(line, "  [%s]", log->run);
    buffer_add_text(line, "  ");
    /* One message is one line and holds no terminal codes, whatever it quotes. */
    for (const char *c = message; *c; c++)
        buffer_add_u8(line, (unsigned char)*c < ' ' || *c == 127 ? ' ' : (uint8_t)*c);
}

static void emit(const struct log *log, enum log_level level, const char *code, const char *message)
{
    struct buffer line = { 0 };

    if (level > log->level)
        return;
    if (log->json)
        add_json(&line, log, level, code, message);
    else
        add_text(&line, log, level, message);
    write_whole(log->fd, &line);
    buffer_free(&line);
}

void log_write(const struct log *log, enum log_level level, const char *format, ...)
{
    char message[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    emit(log, level, NULL, message);
}

void log_error(const struct log *log, const struct error *err)
{
    char text[1024];

    emit(log, LOG_ERROR, error_name(err->code), error_text(err, text, sizeof text));
}
