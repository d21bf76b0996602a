#include "runtime/role/sponsor.h"
#include "runtime/role/run_file.h"

#include <dirent.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/hex.h"
#include "native/model/adapter.h"
#include "runtime/doc/canonical.h"
#include "runtime/role/course.h"
#include "runtime/role/dataset.h"
#include "runtime/script/host.h"
#include "runtime/store/object.h"

enum { FILE_LIMIT = 1 << 30 };

/* --- scripts -------------------------------------------------------------------------------------------------------------- */

static bool put_text(const struct sponsor_setting *setting, const struct script_file *file, json_t *object, const char *field,
                     struct error *err)
{
    struct hash id;
    char cid[CID_TEXT];

    if (!block_put(setting->blocks, file->source, file->size, &id, err))
        return false;
    json_object_set_new(object, field, json_string(cid_text(id, cid)));
    return true;
}

/* A script that the draft names by CID, with the imports it pins: all of them must be in the store. */
static json_t *describe_stored(const struct sponsor_setting *setting, struct hash id, const json_t *entry, json_t *imports,
                               struct error *err)
{
    size_t count = json_object_size(imports) + 1, used = 1;
    struct buffer *texts = calloc(count, sizeof *texts);
    struct script_file *files = calloc(count, sizeof *files);
    struct script_bundle bundle = { files, count, json_object_get(entry, "options") };
    const char *name;
    json_t *cid, *meta = NULL;
    bool ok = block_get(setting->blocks, id, &texts[0], err);

    json_object_foreach(imports, name, cid)
    {
        struct hash import;

        ok = ok && cid_parse(json_string_value(cid) ? json_string_value(cid) : "", &import, err) &&
             block_get(setting->blocks, import, &texts[used], err);
        files[used] = (struct script_file){ name, (const char *)texts[used].bytes, texts[used].size };
        used++;
    }
    files[0] = (struct script_file){ "script", (const char *)texts[0].bytes, texts[0].size };
    if (ok)
        meta = script_describe(&bundle, NULL, err);
    for (size_t i = 0; i < count; i++)
        buffer_free(&texts[i]);
    free(texts);
    free(files);
    return meta;
}

/* The worker reads rows of text, conversations, pairs, images, series and prompts: other kinds of data are for graphs that only tests and `script check` make. */
static bool is_fed(const json_t *meta, const char *name, struct error *err)
{
    const char *kind = document_text(meta, "kind"), *data = document_text(meta, "data");

    if (!kind || strcmp(kind, "objective") != 0 || !data || strcmp(data, "chat") == 0 || strcmp(data, "text") == 0 ||
        strcmp(data, "rollouts") == 0 || strcmp(data, "pairs") == 0 || strcmp(data, "images") == 0 || strcmp(data, "series") == 0)
        return true;
    error_set(err, ERROR_UNSUPPORTED, "objectives on chat, text, pairs, images, series and rollouts train",
              "no run feeds an objective with %s yet", data);
    return error_at(err, "%s", name);
}

/* entry.script becomes a CID; what it imports is put too and pinned in `imports`. `robust` (may be NULL): whether it says so of itself. */
static bool put_script(const struct sponsor_setting *setting, json_t *entry, json_t *imports, bool *robust, struct error *err)
{
    const char *name = document_text(entry, "script");
    struct script_set set;
    struct hash already;
    struct error no = { 0 };
    json_t *meta, *import;
    size_t index;
    bool ok;

    if (!name)
        return error_set(err, ERROR_MISSING, "name a script, or give its path", "script: this field is missing");
    if (cid_parse(name, &already, &no)) {
        if (!robust)
            return true;
        meta = describe_stored(setting, already, entry, imports, err);
        *robust = json_is_true(json_object_get(meta, "robust"));
        json_decref(meta);
        return meta != NULL;
    }
    if (!script_set_read(setting->scripts, name, json_object_get(entry, "options"), &set, err))
        return false;
    meta = script_describe(&set.bundle, NULL, err);
    if (robust)
        *robust = json_is_true(json_object_get(meta, "robust"));
    ok = meta && is_fed(meta, name, err) && put_text(setting, &set.bundle.files[0], entry, "script", err);
    json_array_foreach(json_object_get(meta, "imports"), index, import)
    {
        for (size_t i = 1; ok && i < set.bundle.count; i++)
            if (strcmp(set.bundle.files[i].name, document_text(import, "name")) == 0)
                ok = put_text(setting, &set.bundle.files[i], imports, document_text(import, "name"), err);
    }
    json_decref(meta);
    script_set_free(&set);
    return ok;
}

static bool put_scripts(const struct sponsor_setting *setting, json_t *draft, struct error *err)
{
    static const char *const roles[] = { "model", "objective", "reward", "inner", "outer", "schedule" };
    const char *tier = document_text(json_object_get(draft, "trust"), "tier");
    bool open = tier && strcmp(tier, "open") == 0, safe = false;
    json_t *imports = json_object_get(draft, "imports"), *entry;
    size_t index;

    if (!imports) {
        imports = json_object();
        json_object_set_new(draft, "imports", imports);
    }
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        entry = json_object_get(draft, roles[i]);
        if (json_is_object(entry) && !put_script(setting, entry, imports, NULL, err))
            return error_at(err, "%s", roles[i]);
    }
    json_array_foreach(json_object_get(draft, "aggregators"), index, entry)
    {
        bool robust = false;

        if (!put_script(setting, entry, imports, open ? &robust : NULL, err))
            return error_at(err, "aggregators[%zu]", index);
        safe = safe || robust;
    }
    if (open && !safe) {
        error_set(err, ERROR_RANGE, "put trimmed_mean, median or norm_clip before it, or set trust.tier = \"known\"",
                  "the open tier needs an aggregator that declares robust = true; none of this chain does");
        return error_at(err, "aggregators");
    }
    return true;
}

/* --- model ---------------------------------------------------------------------------------------------------------------- */

static bool wanted_file(const char *name)
{
    static const char *const known[] = { "config.json",         "tokenizer.json",         "tokenizer_config.json",
                                         "chat_template.jinja", "generation_config.json", "model.safetensors.index.json",
                                         "adapter_config.json" };
    size_t size = strlen(name);

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i]) == 0)
            return true;
    return size > 12 && strcmp(name + size - 12, ".safetensors") == 0;
}

static bool put_model_file(const struct sponsor_setting *setting, const char *path, const char *name, json_t *files,
                           struct error *err)
{
    struct hash id;
    struct stat st;
    char cid[CID_TEXT];

    if (stat(path, &st) != 0)
        return error_set(err, ERROR_MISSING, NULL, "%s cannot be read", path);
    if (!object_put_file(setting->blocks, MODEL_MEDIA, path, &id, err))
        return false;
    json_array_append_new(
        files, json_pack("{s:s, s:s, s:I}", "name", name, "object", cid_text(id, cid), "size", (json_int_t)st.st_size));
    return true;
}

static bool put_json(const struct sponsor_setting *setting, json_t *value, json_t *object, const char *field, struct error *err)
{
    struct buffer bytes = { 0 };
    struct hash id;
    char cid[CID_TEXT];
    bool ok = canonical_write(value, &bytes, err) && block_put(setting->blocks, bytes.bytes, bytes.size, &id, err);

    if (ok)
        json_object_set_new(object, field, json_string(cid_text(id, cid)));
    buffer_free(&bytes);
    return ok;
}

/* `field`: base_model, or reference, which may be an adapter's folder. */
static bool put_model(const struct sponsor_setting *setting, json_t *draft, const char *field, struct error *err)
{
    const char *path = document_text(draft, field);
    json_t *files = json_array(), *manifest;
    struct dirent **names = NULL;
    struct hash already;
    struct error no = { 0 };
    bool ok = true;
    int count;
    char found[4096];

    if (!path || cid_parse(path, &already, &no)) {
        json_decref(files);
        return true; /* absent: the check of the spec says so */
    }
    path = run_file_find(path, found);
    count = scandir(path, &names, NULL, alphasort);
    if (count < 0) {
        const char *slash = strrchr(path, '/');

        ok = put_model_file(setting, path, slash ? slash + 1 : path, files, err);
        if (ok && (strlen(path) < 5 || strcmp(path + strlen(path) - 5, ".gguf") != 0))
            ok = error_set(err, ERROR_SYNTAX, "a model is a folder, or a file whose name ends in .gguf", "%s is neither", path);
    }
    for (int i = 0; i < count; i++) {
        char file[PATH_MAX];

        snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        if (ok && wanted_file(names[i]->d_name))
            ok = put_model_file(setting, file, names[i]->d_name, files, err);
        free(names[i]);
    }
    free(names);
    if (ok && json_array_size(files) == 0)
        ok = error_set(err, ERROR_MISSING, "a folder needs config.json, weights and tokenizer.json", "%s holds no model", path);
    manifest = json_pack("{s:O, s:i}", "files", files, "version", 1);
    ok = ok && put_json(setting, manifest, draft, field, err);
    json_decref(manifest);
    json_decref(files);
    return ok || error_at(err, "%s", field);
}

/* What the draft leaves open of an adapter that it goes on from is told by the adapter. */
static bool fill_adapter(const char *folder, json_t *adapter, struct error *err)
{
    json_t *told = adapter_describe(folder, err), *targets = json_object(), *names = json_array(), *module;
    const char *name;
    size_t index;

    json_array_foreach(json_object_get(told, "targets"), index, module)
    {
        const char *whole = json_string_value(module), *dot = strrchr(whole, '.');

        name = dot ? dot + 1 : whole;
        if (!json_object_get(targets, name))
            json_array_append_new(names, json_string(name));
        json_object_set_new(targets, name, json_true());
    }
    if (told && json_object_get(adapter, "alpha"))
        json_object_del(told, "scaling");
    if (told) {
        json_object_set(told, "targets", names);
        json_object_update_missing(adapter, told);
    }
    json_decref(targets);
    json_decref(names);
    json_decref(told);
    return told != NULL;
}

/* `start`: a PEFT folder, or the file of tensors in it. */
static bool put_adapter(const struct sponsor_setting *setting, json_t *draft, struct error *err)
{
    static const char *const names[] = { "adapter_config.json", "adapter_model.safetensors" };
    json_t *adapter = json_object_get(draft, "adapter"), *files, *manifest;
    const char *start = document_text(adapter, "start");
    char found[4096], folder[4096], file[PATH_MAX];
    struct hash already;
    struct error no = { 0 };
    bool ok;

    if (!start || cid_parse(start, &already, &no))
        return true;
    snprintf(folder, sizeof folder, "%s", run_file_find(start, found));

    char *slash = strrchr(folder, '/');

    if (slash && strcmp(slash + 1, names[1]) == 0)
        *slash = 0;
    ok = fill_adapter(folder, adapter, err);
    files = json_array();
    for (int i = 0; ok && i < 2; i++) {
        ok = snprintf(file, sizeof file, "%s/%s", folder, names[i]) < PATH_MAX ||
             error_set(err, ERROR_LIMIT, NULL, "path is too long");
        ok = ok && put_model_file(setting, file, names[i], files, err);
    }
    manifest = json_pack("{s:o, s:i}", "files", files, "version", 1);
    ok = ok && put_json(setting, manifest, adapter, "start", err);
    json_decref(manifest);
    return ok || error_at(err, "adapter.start");
}

static bool put_template(const struct sponsor_setting *setting, json_t *draft, struct error *err)
{
    const char *path = document_text(draft, "chat_template");
    struct buffer text = { 0 };
    struct hash id;
    struct error no = { 0 };
    char cid[CID_TEXT];

    if (!path || strcmp(path, "model") == 0 || cid_parse(path, &id, &no))
        return true;
    char found[4096];
    bool ok = file_read(run_file_find(path, found), BLOCK_SIZE, &text, err) &&
              block_put(setting->blocks, text.bytes, text.size, &id, err);

    if (ok)
        json_object_set_new(draft, "chat_template", json_string(cid_text(id, cid)));
    buffer_free(&text);
    return ok || error_at(err, "chat_template");
}

/* --- the document ---------------------------------------------------------------------------------------------------------- */

static json_t *object_in(json_t *draft, const char *name)
{
    json_t *object = json_object_get(draft, name);

    if (!object) {
        object = json_object();
        json_object_set_new(draft, name, object);
    }
    return object;
}

static void fill_identity(const struct sponsor_setting *setting, json_t *draft)
{
    struct public_key key = public_key_of(&setting->keys->identity);
    uint8_t nonce[16];
    char did[DID_TEXT], account[ADDRESS_TEXT], hex[33], contract[ADDRESS_TEXT];
    json_t *payment = object_in(draft, "payment");

    randombytes_buf(nonce, sizeof nonce);
    if (!json_object_get(draft, "nonce"))
        json_object_set_new(draft, "nonce", json_string(setting->nonce ? setting->nonce : hex_encode(nonce, sizeof nonce, hex)));
    json_object_set_new(draft, "sponsor", json_string(did_text(&key, did)));
    json_object_set_new(draft, "account", json_string(address_text(account_address(&setting->keys->account), account)));
    json_object_set_new(payment, "chain", json_integer((json_int_t)setting->chain));
    json_object_set_new(payment, "contract", json_string(address_text(setting->contract, contract)));
    if (setting->panel)
        json_object_set(object_in(draft, "committee"), "panel", (json_t *)(uintptr_t)setting->panel);
    const char *mode = document_text(object_in(object_in(draft, "trust"), "admission"), "mode");

    if (setting->allowed && (!mode || strcmp(mode, "allow-list") == 0))
        json_object_set(object_in(object_in(draft, "trust"), "admission"), "allowed", (json_t *)(uintptr_t)setting->allowed);
}

bool sponsor_make_run(const struct sponsor_setting *setting, json_t *draft, struct document *run, struct error *err)
{
    fill_identity(setting, draft);
    if (!put_scripts(setting, draft, err) || !put_model(setting, draft, "base_model", err) ||
        !put_model(setting, draft, "reference", err) || !put_adapter(setting, draft, err) || !put_template(setting, draft, err) ||
        !dataset_put(setting->blocks, json_object_get(draft, "dataset"), err))
        return false;
    run_spec_complete(draft);
    return run_spec_check(draft, err) &&
           document_make(DOCUMENT_RUN, draft, &setting->keys->identity, &setting->keys->account, run, err);
}
