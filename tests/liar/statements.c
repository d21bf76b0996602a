/* statements.c - reads every node's folder of a home: no key may have signed two statements for one run, round, view and phase, wherever
 * they are kept. Prints what was looked at; exit status 1 when two are found.
 *
 *     rondo_statements HOME
 */
#include <dirent.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "runtime/doc/documents.h"
#include "runtime/round/value.h"

struct looked {
    json_t *said; /* "signer run round view phase" -> id of what was said */
    size_t statements, evidence, twice;
};

static void say(struct looked *l, const json_t *payload, const char *phase, const char *id)
{
    char key[512];
    const char *before;

    snprintf(key, sizeof key, "%s %s %lld %lld %s", value_text(payload, "signer"), value_text(payload, "run"),
             (long long)value_integer(payload, "round"), (long long)value_integer(payload, "view"), phase);
    before = json_string_value(json_object_get(l->said, key));
    if (!before) {
        json_object_set_new(l->said, key, json_string(id));
        l->statements++;
    } else if (strcmp(before, id) != 0) {
        printf("two statements: %s\n  %s\n  %s\n", key, before, id);
        l->twice++;
    }
}

static void read_envelope(struct looked *l, const json_t *envelope);

static void read_certificate(struct looked *l, const json_t *certificate)
{
    json_t *envelope;
    size_t i;

    json_array_foreach(json_object_get(certificate, "votes"), i, envelope) read_envelope(l, envelope);
}

static void read_document(struct looked *l, const struct document *d)
{
    char cid[CID_TEXT];

    cid_text(d->id, cid);
    switch (d->type) {
    case DOCUMENT_VOTE:
        say(l, d->json, value_text(d->json, "phase"), value_text(d->json, "record"));
        break;
    case DOCUMENT_PROPOSAL:
        say(l, d->json, "proposal", cid);
        break;
    case DOCUMENT_RECEIVED:
        say(l, d->json, "received", cid);
        if (json_is_object(json_object_get(d->json, "lock")))
            read_certificate(l, json_object_get(d->json, "lock"));
        break;
    case DOCUMENT_CERTIFICATE:
        read_certificate(l, d->json);
        break;
    case DOCUMENT_EQUIVOCATION:
        l->evidence++;
        break;
    default:
        break;
    }
}

static void read_envelope(struct looked *l, const json_t *envelope)
{
    char *text = json_dumps(envelope, JSON_COMPACT);
    struct document document = { 0 };
    struct error err = { 0 };

    if (document_read(text, strlen(text), &document, &err))
        read_document(l, &document);
    document_free(&document);
    free(text);
}

static void read_folder(struct looked *l, const char *home, const char *node)
{
    struct dirent **names = NULL;
    char folder[4096], path[4400];

    snprintf(folder, sizeof folder, "%.3000s/nodes/%.200s/documents", home, node);
    int count = scandir(folder, &names, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        struct buffer bytes = { 0 };
        struct document document = { 0 };
        struct error err = { 0 };

        snprintf(path, sizeof path, "%s/%.200s", folder, names[i]->d_name);
        if (file_read(path, 16 << 20, &bytes, &err) && document_read(bytes.bytes, bytes.size, &document, &err))
            read_document(l, &document);
        document_free(&document);
        buffer_free(&bytes);
        free(names[i]);
    }
    free(names);
}

int main(int argc, char **argv)
{
    struct looked l = { .said = json_object() };
    struct dirent **names = NULL;
    char path[4096];
    int count;

    if (argc != 2 || sodium_init() < 0) {
        fputs("usage: rondo_statements HOME\n", stderr);
        return 2;
    }
    snprintf(path, sizeof path, "%.3000s/nodes", argv[1]);
    count = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.')
            read_folder(&l, argv[1], names[i]->d_name);
        free(names[i]);
    }
    free(names);
    json_decref(l.said);
    printf("%zu statements, %zu said twice, %zu documents of evidence\n", l.statements, l.twice, l.evidence);
    return l.twice ? 1 : l.statements ? 0 : 2;
}
