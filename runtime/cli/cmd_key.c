#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "runtime/cli/commands.h"
#include "runtime/crypto/keyfile.h"
#include "runtime/doc/did.h"

static const struct option options[] = {
    { "name", "NAME", "whose: HOME/nodes/NAME/key.json (default: sponsor)" },
    { "passphrase-file", "FILE", "encrypt with, or open by, the first line of FILE" },
    { NULL, NULL, NULL },
};

static bool read_passphrase(const struct invocation *in, char text[1024], struct error *err)
{
    const char *path = option_text(in, "passphrase-file", NULL);
    struct buffer bytes = { 0 };
    bool ok = true;

    text[0] = '\0';
    if (path) {
        ok = file_read(path, 4096, &bytes, err);
        if (ok)
            snprintf(text, 1024, "%.*s", (int)strcspn(buffer_text(&bytes), "\r\n"), buffer_text(&bytes));
        buffer_free(&bytes);
        if (ok && !text[0])
            ok = error_set(err, ERROR_MISSING, NULL, "%s holds no passphrase", path);
    }
    return ok;
}

static int print_key(const struct invocation *in, const struct key_pair *pair, const char *path)
{
    struct public_key key = public_key_of(&pair->identity);
    char did[DID_TEXT], account[ADDRESS_TEXT];

    did_text(&key, did);
    address_text(account_address(&pair->account), account);
    if (in->json)
        command_print_json(json_pack("{s:s, s:s, s:s}", "did", did, "account", account, "path", path));
    else
        printf("did      %s\naccount  %s\nfile     %s\n", did, account, path);
    return EXIT_OK;
}

static bool key_path(const struct invocation *in, char folder[4400], char path[4500], struct error *err)
{
    const char *name;

    if (!option_node_name(in, "sponsor", &name, err))
        return false;
    snprintf(folder, 4400, "%.4000s/nodes/%s", in->home, name);
    snprintf(path, 4500, "%s/key.json", folder);
    return true;
}

static int key_new_main(struct invocation *in)
{
    struct key_pair pair;
    struct error err = { 0 };
    char folder[4400], path[4500], passphrase[1024];

    key_pair_new(&pair);
    if (!key_path(in, folder, path, &err) || !read_passphrase(in, passphrase, &err) || !file_make_folder(folder, &err) ||
        !keyfile_write(path, &pair, passphrase, &err)) {
        key_pair_wipe(&pair);
        return command_fail(in, &err);
    }
    print_key(in, &pair, path);
    key_pair_wipe(&pair);
    if (!in->quiet)
        fprintf(stderr, "%s\n", keyfile_reminder);
    return EXIT_OK;
}

static int key_show_main(struct invocation *in)
{
    struct key_pair pair;
    struct error err = { 0 };
    char folder[4400], path[4500], passphrase[1024];
    int status;

    if (!key_path(in, folder, path, &err) || !read_passphrase(in, passphrase, &err) ||
        !keyfile_read(path, passphrase, &pair, &err))
        return command_fail(in, &err);
    status = print_key(in, &pair, path);
    key_pair_wipe(&pair);
    return status;
}

const struct command command_key_new = {
    "key new",
    "",
    "make the keys of a node: its DID and its ledger account",
    "rondo key new --name trainer\nrondo key new --name syncer --passphrase-file /root/passphrase",
    "Written to HOME/nodes/NAME/key.json, readable by its owner only; a file that exists is never overwritten. A node with an\n"
    "encrypted key takes the passphrase from the environment variable RONDO_PASSPHRASE.",
    options,
    key_new_main,
};

const struct command command_key_show = {
    "key show",
    "",
    "print a node's DID and account; secrets are never printed",
    "rondo key show --name trainer --json",
    "",
    options,
    key_show_main,
};
