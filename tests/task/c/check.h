// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder have in common.
#pragma once

#include <stdio.h>
#include <stdlib.h>

// Ends the program with a line if it is not so.
#define CHECK(condition)                                                                  \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, orrery_error()); \
      exit(2);                                                                            \
    }                                                                                     \
  } while (0)
