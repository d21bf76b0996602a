/* stored_part.h - the tables of readers, one an instruction set; internal to native/kernel. */
#ifndef RONDO_KERNEL_STORED_PART_H
#define RONDO_KERNEL_STORED_PART_H

#include "native/kernel/stored.h"

extern stored_read *const stored_scalar[STORED_TYPES], *const stored_avx2[STORED_TYPES], *const stored_avx512[STORED_TYPES],
                                                                                             *const stored_neon[STORED_TYPES];

#endif
