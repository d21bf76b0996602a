/* sandbox.h - what the child gives up before it sees a script.
 *
 *     sandbox_enter     other descriptors closed, rlimits, no_new_privs, not dumpable, dies with its parent, no new executable
 *                       pages, landlock with nothing granted (where the kernel has it), the heap mapped in advance
 *     ... the Lua state is made, the trusted prelude loaded ...
 *     sandbox_seal      seccomp: read, write, exit; brk and mmap answer "no memory"; anything else kills the process
 *
 * The heap is one block that malloc holds after sandbox_enter, so that neither the engine nor the graph builder needs the kernel
 * afterwards. In builds with a sanitizer the address space limit and the filter are left out: the sanitizer's own calls would die.
 */
#ifndef RONDO_SCRIPT_SANDBOX_H
#define RONDO_SCRIPT_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "native/base/error.h"

#if defined(__has_feature) /* clang */
#define SANDBOX_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_SANITIZED 1
#else
#define SANDBOX_SANITIZED 0
#endif

/* `memory`: bytes of heap; `seconds`: CPU time. Errors: absent (the kernel lacks what is needed), memory. */
bool sandbox_enter(uint64_t memory, unsigned seconds, struct error *err);

/* Errors: absent. Where seccomp is missing scripts are refused. */
bool sandbox_seal(struct error *err);

#endif
