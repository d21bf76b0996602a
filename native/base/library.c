#include "native/base/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { STATUS_MISSING = 127 }; /* as the dynamic linker ends a program */

static void end_without(const char *library)
{
    fprintf(stderr, "rondo: %s; install the package of %s\n", dlerror(), library);
    exit(STATUS_MISSING);
}

bool library_all_there(struct error *err)
{
    static const char *const libraries[] = { LIBRARY_CURL, LIBRARY_MICROHTTPD, LIBRARY_GNUTLS, LIBRARY_CRYPTO };

    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *handle = dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL);

        if (!handle)
            return error_set(err, ERROR_MISSING, "install its package", "%s", dlerror());
        dlclose(handle);
    }
    return true;
}

void library_load(const char *library, const char *const *names, void **calls)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *handle;

    pthread_mutex_lock(&lock); /* two threads fill one table with the same, one after the other */
    handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (!handle)
        end_without(library);
    for (size_t i = 0; names[i]; i++) {
        calls[i] = dlsym(handle, names[i]);
        if (!calls[i])
            end_without(library);
    }
    pthread_mutex_unlock(&lock);
}
