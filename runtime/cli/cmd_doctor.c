#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/hex.h"
#include "native/base/library.h"
#include "native/kernel/class.h"
#include "runtime/cli/commands.h"
#include "runtime/crypto/sign.h"
#include "runtime/script/host.h"

static json_t *finding(const char *name, bool ok, const char *told)
{
    return json_pack("{s:s, s:b, s:s}", "check", name, "ok", ok, "text", told);
}

static json_t *check_kernels(unsigned threads)
{
    struct error err = { 0 };
    char text[1024], told[256];
    struct pool *pool = pool_new(threads);
    bool ok = kernel_start(&err) && kernel_self_test(pool, true, &err);

    pool_free(pool);
    if (!ok)
        return finding("kernels", false, error_text(&err, text, sizeof text));
    snprintf(told, sizeof told, "%s by %s; every kernel gives the bits of its definition", kernel_class_name(),
             kernel_isa_name(kernel_isa()));
    return finding("kernels", true, told);
}

static json_t *check_signatures(void)
{
    struct error err = { 0 };
    char text[1024];
    bool ok = sign_self_test(&err);

    return finding("signatures", ok, ok ? "known answers and edge cases hold" : error_text(&err, text, sizeof text));
}

static json_t *check_sandbox(void)
{
    static const char source[] = "return { twice = function(x) return 2 * x end }";
    struct script_file file = { "doctor", source, sizeof source - 1 };
    struct script_bundle bundle = { &file, 1, NULL };
    struct error err = { 0 };
    char text[1024];
    json_t *meta = script_describe(&bundle, NULL, &err);
    bool ok = meta != NULL;

    json_decref(meta);
    return finding("sandbox", ok, ok ? "a script runs in its child under seccomp" : error_text(&err, text, sizeof text));
}

static json_t *check_libraries(void)
{
    struct error err = { 0 };
    char text[1024];
    bool ok = library_all_there(&err);

    return finding("libraries", ok, ok ? "those of HTTP, TLS and evidence can be loaded" : error_text(&err, text, sizeof text));
}

static json_t *check_disk(const char *home)
{
    struct statvfs fs;
    struct error err = { 0 };
    char text[1024], told[256];

    if (!file_make_folder(home, &err))
        return finding("home", false, error_text(&err, text, sizeof text));
    if (access(home, R_OK | W_OK | X_OK) != 0)
        return finding("home", false, "this user may not write into it: run it as the user whom the folder belongs to");
    if (statvfs(home, &fs) != 0)
        return finding("home", false, "its free space cannot be read");
    double free_gb = (double)fs.f_bavail * (double)fs.f_frsize / 1e9;

    snprintf(told, sizeof told, "%s, %.1f GB free", home, free_gb);
    return finding("home", free_gb > 1, told);
}

static int doctor_main(struct invocation *in)
{
    uint8_t digest[32];
    char hex[65];
    json_t *checks = json_pack("[o, o, o, o, o]", check_kernels(in->threads), check_signatures(), check_sandbox(),
                               check_libraries(), check_disk(in->home)),
           *each;
    bool ok = true;
    size_t index;

    kernel_class_digest(digest);
    hex_encode(digest, sizeof digest, hex);
    json_array_foreach(checks, index, each)
    {
        ok = ok && json_is_true(json_object_get(each, "ok"));
        if (!in->json)
            printf("%-5s %-11s %s\n", json_is_true(json_object_get(each, "ok")) ? "ok" : "FAIL",
                   json_string_value(json_object_get(each, "check")), json_string_value(json_object_get(each, "text")));
    }
    if (in->json)
        command_print_json(json_pack("{s:b, s:s, s:s, s:s, s:I, s:O}", "ok", ok, "kernel_class", kernel_class_name(), "digest",
                                     hex, "isa", kernel_isa_name(kernel_isa()), "cores",
                                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "checks", checks));
    else
        printf("\nkernel class %s\ndigest       %s\ncores        %ld\n", kernel_class_name(), hex, sysconf(_SC_NPROCESSORS_ONLN));
    json_decref(checks);
    return ok ? EXIT_OK : EXIT_VERDICT;
}

const struct command command_doctor = {
    "doctor",
    "",
    "whether this machine can take part: kernels, signatures, sandbox, libraries, disk",
    "rondo doctor\nrondo doctor --json",
    "Exit status 1 when a check fails; its line tells what to do.",
    NULL,
    doctor_main,
};
