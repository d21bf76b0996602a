#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/text/utf8.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/speaker.h"

struct chat {
    struct invocation *in;
    struct speaker speaker;
    json_t *rule;     /* the job, less its conversation */
    json_t *messages; /* so far */
    json_t *tools;    /* NULL: none */
    bool terminal;    /* a person types */
};

static void add_message(json_t *messages, const char *role, json_t *content)
{
    json_array_append_new(messages, json_pack("{s:s, s:o}", "role", role, "content", content));
}

/* No turn yet: the system message alone, where one was given. */
static bool begin(struct chat *c, struct error *err)
{
    const char *system = option_text(c->in, "system", NULL);
    json_t *text = system ? json_string(system) : NULL;

    json_array_clear(c->messages);
    if (system && !text)
        return error_set(err, ERROR_USAGE, NULL, "--system: UTF-8 text is needed");
    if (text)
        add_message(c->messages, "system", text);
    return true;
}

static bool read_tools(struct chat *c, struct error *err)
{
    const char *path = option_text(c->in, "tools", NULL);
    struct buffer bytes = { 0 };
    bool ok = !path || file_read(path, SPEAKER_FILE_MOST, &bytes, err);

    if (ok && path) {
        c->tools = json_read((const char *)bytes.bytes, bytes.size, SPEAKER_FILE_MOST, err);
        ok = c->tools &&
             (json_is_array(c->tools) || error_set(err, ERROR_TYPE, "it holds what a request has as \"tools\"", "not a list"));
        if (!ok)
            error_at(err, "%s", path);
    }
    buffer_free(&bytes);
    return ok;
}

/* The model's turn, printed as it comes and kept. With --json one object a turn. */
static bool answer(struct chat *c, struct error *err)
{
    struct speaker_stream stream = { .silent = c->in->json };
    json_t *job = json_copy(c->rule), *result;
    const char *text;

    json_object_set_new(job, "conversation", json_pack("{s:O, s:O*}", "messages", c->messages, "tools", c->tools));
    result = speaker_job(&c->speaker, job, speaker_print, &stream, err);
    if (!result) {
        if (stream.told)
            putchar('\n');
        return false;
    }
    text = json_string_value(json_object_get(result, "text"));
    add_message(c->messages, "assistant", json_string(text));
    if (c->in->json) {
        command_print_json(result);
    } else {
        puts(text + stream.told);
        json_decref(result);
    }
    fflush(stdout);
    return true;
}

/* What begins with a slash; false at the end of the chat. */
static bool command(struct chat *c, const char *line, struct error *err)
{
    if (strcmp(line, "/quit") == 0)
        return false;
    if (strcmp(line, "/new") == 0)
        return begin(c, err);
    fputs("/new begins again, /quit ends; all else is said to the model\n", stderr);
    return true;
}

/* A turn that fails is taken back: an overlong one can be said again, shorter. Who is no person gets the error. */
static bool turn(struct chat *c, const char *line, struct error *err)
{
    json_t *text = json_string(line);

    if (!text)
        return error_set(err, ERROR_SYNTAX, NULL, "what was said is not UTF-8");
    add_message(c->messages, "user", text);
    if (answer(c, err))
        return true;
    json_array_remove(c->messages, json_array_size(c->messages) - 1);
    if (!c->terminal || err->code != ERROR_LIMIT)
        return false;
    fprintf(stderr, "%s: say less, or /new\n", err->message);
    *err = (struct error){ 0 };
    return true;
}

static bool talk(struct chat *c, struct error *err)
{
    char *line = NULL;
    size_t room = 0;
    bool going = true;

    while (going) {
        ssize_t size;

        if (c->terminal)
            fputs("> ", stderr);
        size = getline(&line, &room, stdin);
        if (size < 0)
            break;
        while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r'))
            line[--size] = 0;
        if (strlen(line) != (size_t)size)
            going = error_set(err, ERROR_SYNTAX, NULL, "what was said holds a zero byte");
        else if (line[0] == '/' && c->terminal)
            going = command(c, line, err);
        else if (size > 0)
            going = turn(c, line, err);
    }
    free(line);
    return err->code == ERROR_NONE;
}

static int chat_main(struct invocation *in)
{
    struct error err = { 0 };
    struct chat c = { .in = in, .messages = json_array(), .terminal = isatty(STDIN_FILENO) };
    bool ok;

    c.rule = speaker_rule(in, &err);
    ok = c.rule && begin(&c, &err) && read_tools(&c, &err) && speaker_open(&c.speaker, in, &err) && talk(&c, &err);
    speaker_close(&c.speaker);
    json_decref(c.rule);
    json_decref(c.messages);
    json_decref(c.tools);
    return ok ? EXIT_OK : command_fail(in, &err);
}

static const struct option options[] = {
    SPEAKER_SOURCE,
    { "system", "TEXT", "system message" },
    { "tools", "FILE", "JSON list of tools that the model may call" },
    SPEAKER_RULE,
    { NULL, NULL, NULL },
};

const struct command command_chat = {
    "chat",
    "",
    "talk with a model in the terminal",
    "rondo chat\n"
    "rondo chat --home build/q --run RUN --tools tools.json\n"
    "printf 'Hello.\\nAnd now?\\n' | rondo chat --model model.gguf --temperature 0.7 --json",
    "Each line is a user turn; the answer comes as it is made. /new begins again, /quit or the end of the input ends. Lines from "
    "a pipe are turns,\n"
    "too, slash or not; with --json each answer is one object: text, tokens, prompt_tokens, ids, logprobs, end.",
    options,
    chat_main,
};
