#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "native/base/hex.h"
#include "native/kernel/class.h"
#include "runtime/cli/command.h"
#include "runtime/crypto/sign.h"
#include "runtime/script/host.h"
#include "runtime/worker/jobs.h"

static int version(void)
{
    uint8_t digest[32];
    char hex[65];

    kernel_class_digest(digest);
    printf("rondo " RONDO_VERSION "\n%s %s\n", kernel_class_name(), hex_encode(digest, sizeof digest, hex));
    return EXIT_OK;
}

/* Whoever starts a program may have closed its standard streams: the first files opened would take their numbers, and what is printed would go
 * into them. */
static bool streams_open(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return false;
    return true;
}

/* A result that could not be written is no success. */
static int told(int status)
{
    bool failed = ferror(stdout) != 0;

    if (fflush(stdout) == 0 && !failed)
        return status;
    fputs("rondo: cannot write to standard output\n", stderr);
    return status == EXIT_OK ? EXIT_FAULT : status;
}

int main(int argc, char **argv)
{
    if (!streams_open())
        return EXIT_FAULT;
    if (argc == 2 && strcmp(argv[1], "--script-child") == 0)
        return script_child_main();

    struct error err = { 0 };
    char text[1024];

    if (!sign_self_test(&err)) { /* 0.3 ms */
        fprintf(stderr, "rondo: %s\n", error_text(&err, text, sizeof text));
        return EXIT_FAULT;
    }
    if (argc >= 2 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argc - 2, argv + 2);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return told(version());
    return told(command_main(argc, argv));
}
