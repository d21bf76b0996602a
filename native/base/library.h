/* library.h - libraries that only some commands need, loaded when one first calls them.
 *
 * libcurl, libmicrohttpd and GnuTLS bring thirty others along (OpenSSL, Kerberos, LDAP ...). A program that is linked with them maps and
 * relocates all of them each time it starts, also as a worker, as the process of a script and as a command that talks to nobody: 6 MB of
 * resident memory each. So they are not linked: their functions stand in a table that the first call fills. OpenSSL's libcrypto is called for evidence
 * of hardware alone (runtime/attest/signature.h).
 *
 *     #define CURL_CALLS(CALL) CALL(curl_, easy_init) CALL(curl_, easy_perform)
 *     LIBRARY_CALLS(curl, CURL_CALLS)                    in a header: struct curl_calls, and curl() that returns it
 *     LIBRARY_LOAD(curl, "libcurl.so.4", CURL_CALLS)     in one file
 *     ... curl()->easy_perform(easy) ...
 *
 * Where the library or a function of it is not there the program ends with a line that says so, as it does when a linked one is missing.
 */
#ifndef RONDO_BASE_LIBRARY_H
#define RONDO_BASE_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "native/base/error.h"

/* Whether they are all there, so that nobody learns it in the middle of a run; else the first that is not, and why. */
bool library_all_there(struct error *err);

/* Fills `calls`, one function for each of `names`, which end with NULL. Any thread may call it, more than once. */
void library_load(const char *library, const char *const *names, void **calls);

#define LIBRARY_MEMBER(prefix, name) __typeof__(prefix##name) *name;
#define LIBRARY_NAME(prefix, name)   #prefix #name,

#define LIBRARY_CALLS(library, CALLS)                                                                                            \
    struct library##_calls {                                                                                                     \
        CALLS(LIBRARY_MEMBER)                                                                                                    \
    };                                                                                                                           \
    const struct library##_calls *library(void);

#define LIBRARY_LOAD(library, file, CALLS)                                                                                       \
    const struct library##_calls *library(void)                                                                                  \
    {                                                                                                                            \
        static const char *const names[] = { CALLS(LIBRARY_NAME) NULL };                                                         \
        static struct library##_calls calls;                                                                                     \
        static atomic_bool loaded;                                                                                               \
                                                                                                                                 \
        if (!atomic_load_explicit(&loaded, memory_order_acquire)) {                                                              \
            library_load(file, names, (void **)&calls);                                                                          \
            atomic_store_explicit(&loaded, true, memory_order_release);                                                          \
        }                                                                                                                        \
        return &calls;                                                                                                           \
    }

#endif
