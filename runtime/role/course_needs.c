#include "runtime/role/course_needs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "runtime/store/object.h"

enum { SCRIPT_LIMIT = 64 << 10 };

struct wants {
    struct fetch_want *list;
    size_t count;
};

static void want(struct wants *w, struct hash id, bool object)
{
    w->list = realloc(w->list, (w->count + 1) * sizeof *w->list);
    w->list[w->count++] = (struct fetch_want){ .id = id, .object = object };
}

static json_t *read_block(struct course *c, struct hash id, struct error *err)
{
    struct buffer bytes = { 0 };
    json_t *value =
        block_get(&c->node->blocks, id, &bytes, err) ? json_read((const char *)bytes.bytes, bytes.size, BLOCK_SIZE, err) : NULL;

    buffer_free(&bytes);
    return value;
}

static void want_scripts(struct course *c, struct wants *w)
{
    const struct run_spec *s = &c->spec;
    const struct hash own[] = { s->model.cid, s->objective.cid, s->inner.cid, s->outer.cid, s->schedule.cid };

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        want(w, own[i], false);
    if (s->rewarded)
        want(w, s->reward.cid, false);
    for (size_t i = 0; i < s->aggregator_count; i++)
        want(w, s->aggregators[i].cid, false);
    for (size_t i = 0; i < s->import_count; i++)
        want(w, s->imports[i].cid, false);
}

/* A name inside the model's folder: no path. */
bool course_plain_name(const char *name)
{
    return name && name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < 200;
}

/* The manifest of a model, or of an adapter, and what it names once it is here: *complete says whether it was. */
static bool want_model(struct course *c, struct wants *w, struct hash id, bool *complete, struct error *err)
{
    json_t *model, *file;
    size_t index;
    bool ok = true;

    want(w, id, false);
    if (!block_has(&c->node->blocks, id)) {
        *complete = false;
        return true;
    }
    model = read_block(c, id, err);
    ok = model != NULL;
    json_array_foreach(json_object_get(model, "files"), index, file)
    {
        const char *cid = json_string_value(json_object_get(file, "object"));
        struct hash object;

        ok = ok && course_plain_name(json_string_value(json_object_get(file, "name"))) && cid_parse(cid ? cid : "", &object, err);
        if (ok)
            want(w, object, true);
    }
    if (!ok && err->code == ERROR_NONE)
        error_set(err, ERROR_SYNTAX, NULL, "the model's manifest names no usable file");
    json_decref(model);
    return ok;
}

bool course_wants(struct course *c, struct fetch_want **wants, size_t *count, bool *complete, struct error *err)
{
    struct wants w = { 0 };
    struct hash template;
    bool ok;

    *complete = true;
    want_scripts(c, &w);
    want(&w, c->spec.dataset.manifest, false);
    if (strcmp(c->spec.chat_template, "model") != 0 && cid_parse(c->spec.chat_template, &template, err))
        want(&w, template, false);
    ok = want_model(c, &w, c->spec.base_model, complete, err) &&
         (!c->spec.referenced || want_model(c, &w, c->spec.reference, complete, err)) &&
         (!c->spec.adapter.continued || want_model(c, &w, c->spec.adapter.start, complete, err));
    *wants = w.list;
    *count = w.count;
    return ok;
}

/* One that is there and whole stays: it may be large. */
static bool lay_out_file(struct course *c, struct hash object, const char *at, struct error *err)
{
    struct error fault = { 0 };

    return (file_exists(at) && object_is_file(MODEL_MEDIA, object, at, &fault)) ||
           object_get_file(&c->node->blocks, object, MODEL_MEDIA, COURSE_OBJECT_LIMIT, at, err);
}

/* `list` gets what was laid out: [ [path, CID of the object] ]. */
static bool lay_out_model(struct course *c, struct hash id, json_t *list, char path[4096], struct error *err)
{
    char cid[CID_TEXT], at[4400];
    json_t *model = read_block(c, id, err), *files = json_object_get(model, "files"), *file;
    size_t index;
    bool ok = model != NULL, gguf = false;

    snprintf(path, 4096, "%.3900s/models/%s", c->node->folder, cid_text(id, cid));
    ok = ok && file_make_folder(path, err);
    json_array_foreach(files, index, file)
    {
        const char *name = json_string_value(json_object_get(file, "name"));
        struct hash object;

        if (!ok || !course_plain_name(name)) {
            ok = ok && error_set(err, ERROR_SYNTAX, NULL, "the model's manifest names no usable file");
            break;
        }
        snprintf(at, sizeof at, "%s/%s", path, name);
        gguf = gguf || (json_array_size(files) == 1 && strlen(name) > 5 && strcmp(name + strlen(name) - 5, ".gguf") == 0);
        ok =
            ok && cid_parse(json_string_value(json_object_get(file, "object")), &object, err) && lay_out_file(c, object, at, err);
        if (ok)
            json_array_append_new(list, json_pack("[s, O]", at, json_object_get(file, "object")));
    }
    if (ok && gguf)
        snprintf(path, 4096, "%s", at);
    json_decref(model);
    return ok;
}

static bool add_script(struct course *c, json_t *scripts, struct hash id, const char *name, struct error *err)
{
    struct buffer bytes = { 0 };
    char cid[CID_TEXT];

    if (!block_get(&c->node->blocks, id, &bytes, err))
        return error_at(err, "script %s", name);
    if (bytes.size > SCRIPT_LIMIT) {
        buffer_free(&bytes);
        return error_set(err, ERROR_LIMIT, NULL, "script %s is larger than 64 KiB", name);
    }
    json_t *source = json_stringn((const char *)bytes.bytes, bytes.size);

    buffer_free(&bytes);
    if (!source)
        return error_set(err, ERROR_SYNTAX, NULL, "script %s is not UTF-8", name);
    json_object_set_new(scripts, cid_text(id, cid), json_pack("{s:s, s:o}", "name", name, "source", source));
    return true;
}

static bool add_scripts(struct course *c, json_t *scripts, struct error *err)
{
    const struct run_spec *s = &c->spec;
    const struct {
        struct hash id;
        const char *name;
    } own[] = { { s->model.cid, "model" },
                { s->objective.cid, "objective" },
                { s->inner.cid, "inner" },
                { s->outer.cid, "outer" },
                { s->schedule.cid, "schedule" } };
    bool ok = true;

    for (size_t i = 0; ok && i < sizeof own / sizeof *own; i++)
        ok = add_script(c, scripts, own[i].id, own[i].name, err);
    if (ok && s->rewarded)
        ok = add_script(c, scripts, s->reward.cid, "reward", err);
    for (size_t i = 0; ok && i < s->aggregator_count; i++)
        ok = add_script(c, scripts, s->aggregators[i].cid, "aggregator", err);
    for (size_t i = 0; ok && i < s->import_count; i++)
        ok = add_script(c, scripts, s->imports[i].cid, s->imports[i].name, err);
    return ok;
}

static bool read_shards(struct course *c, struct error *err)
{
    json_t *manifest = read_block(c, c->spec.dataset.manifest, err), *list = json_object_get(manifest, "shards"), *shard;
    struct hash object;
    size_t index;

    c->shards = json_array();
    json_array_foreach(list, index, shard)
    {
        const char *cid = json_string_value(json_object_get(shard, "object"));

        if (!cid || !cid_parse(cid, &object, err))
            break;
        json_array_append(c->shards, json_object_get(shard, "object"));
    }

    bool ok = manifest && json_array_size(c->shards) == c->spec.dataset.shards;

    json_decref(manifest);
    return ok || error_set(err, ERROR_MISMATCH, NULL, "the dataset's manifest does not list the spec's %u shards",
                           c->spec.dataset.shards);
}

bool course_prepare(struct course *c, struct error *err)
{
    char path[4096], reference[4096], adapter[4096];
    json_t *scripts = json_object(), *laid = json_array();
    struct buffer template = { 0 };
    struct hash id;
    bool ok = lay_out_model(c, c->spec.base_model, laid, path, err) &&
              (!c->spec.referenced || lay_out_model(c, c->spec.reference, laid, reference, err)) &&
              (!c->spec.adapter.continued || lay_out_model(c, c->spec.adapter.start, laid, adapter, err)) &&
              add_scripts(c, scripts, err) && read_shards(c, err);

    if (ok && strcmp(c->spec.chat_template, "model") != 0)
        ok = cid_parse(c->spec.chat_template, &id, err) && block_get(&c->node->blocks, id, &template, err);
    if (ok)
        c->open =
            json_pack("{s:s, s:s, s:O, s:s, s:o, s:O, s:O}", "job", "open", "run", c->run, "spec", c->spec.json, "model", path,
                      "template", template.size ? json_stringn((const char *)template.bytes, template.size) : json_null(),
                      "scripts", scripts, "files", laid);
    if (c->open && c->spec.referenced)
        json_object_set_new(c->open, "reference", json_string(reference));
    if (c->open && c->spec.adapter.continued)
        json_object_set_new(c->open, "adapter", json_string(adapter));
    buffer_free(&template);
    json_decref(scripts);
    json_decref(laid);
    return ok && (c->open || error_set(err, ERROR_SYNTAX, NULL, "the chat template is not UTF-8"));
}
