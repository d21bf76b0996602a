#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/role/audit_internal.h"

struct copies {
    struct archive_node *node;
    json_t *checked, *findings;
    struct error *err;
    bool ok;
};

/* A copy that does not read as what its name says. */
static bool spoiled(struct copies *c, struct error *fault)
{
    archive_damaged(fault);
    error_at(fault, "node %s", c->node->name);
    if (audit_find(c->findings, fault))
        return true;
    *c->err = *fault;
    c->ok = false;
    return false;
}

static bool check_block(void *context, struct hash id)
{
    struct copies *c = context;
    struct buffer bytes = { 0 };
    struct error fault = { 0 };
    bool good = block_get(&c->node->blocks, id, &bytes, &fault);

    buffer_free(&bytes);
    audit_count(c->checked, "blocks", 1);
    return good || spoiled(c, &fault);
}

static void check_document(struct copies *c, struct hash id)
{
    struct buffer bytes = { 0 };
    struct error fault = { 0 };

    if (!journal_get_document(c->node->journal, id, &bytes, &fault))
        spoiled(c, &fault);
    buffer_free(&bytes);
    audit_count(c->checked, "documents", 1);
}

/* Files whose names are no content ids are no documents: nobody reads them. */
static void check_documents(struct copies *c)
{
    char path[4200];
    DIR *folder;

    snprintf(path, sizeof path, "%s/documents", c->node->folder);
    folder = opendir(path);
    for (struct dirent *entry; c->ok && folder && (entry = readdir(folder));) {
        struct hash id;

        if (cid_parse(entry->d_name, &id, NULL))
            check_document(c, id);
    }
    if (folder)
        closedir(folder);
}

bool audit_copies(struct archive *a, json_t *checked, json_t *findings, struct error *err)
{
    for (size_t i = 0; i < a->count; i++) {
        struct copies c = { .node = &a->nodes[i], .checked = checked, .findings = findings, .err = err, .ok = true };

        audit_count(checked, "nodes", 1);
        if (!block_each(&c.node->blocks, check_block, &c, err))
            return false;
        check_documents(&c);
        if (!c.ok)
            return false;
    }
    return true;
}

bool audit_archive(struct archive *a, struct error *err)
{
    json_t *checked = json_object(), *findings = json_array(), *first;
    bool ok = audit_copies(a, checked, findings, err);

    first = ok ? json_array_get(findings, 0) : NULL;
    if (first) {
        error_set(err, ERROR_MISMATCH, "rondo audit lists everything that is damaged", "%s", document_text(first, "message"));
        ok = error_at(err, "%s", document_text(first, "place"));
    }
    json_decref(checked);
    json_decref(findings);
    return ok;
}
