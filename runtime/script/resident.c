#include "runtime/script/resident.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Relocations in code are written into private copies of its pages, which the file does not hold. */
static bool has_written_code(const struct dl_phdr_info *object)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];

        if (part->p_type != PT_DYNAMIC)
            continue;
        for (const ElfW(Dyn) *entry = (const void *)(object->dlpi_addr + part->p_vaddr); entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_TEXTREL))
                return true;
    }
    return false;
}

static int let_go(struct dl_phdr_info *object, size_t size, void *context)
{
    const uintptr_t page = *(const uintptr_t *)context;

    (void)size;
    if (has_written_code(object))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t from = (object->dlpi_addr + part->p_vaddr + page - 1) / page * page,
                        to = (object->dlpi_addr + part->p_vaddr + part->p_filesz) / page * page;

        if (part->p_type == PT_LOAD && !(part->p_flags & PF_W) && to > from)
            madvise((void *)from, to - from, MADV_DONTNEED); /* where it is refused the pages stay: nothing to tell */
    }
    return 0;
}

void resident_settle(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    dl_iterate_phdr(let_go, &page);
}
