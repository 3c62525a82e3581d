// SPDX-License-Identifier: Apache-2.0
// Listing 3.5. Corrected: IntArrayMessage is called IntArrayMsg elsewhere.
#pragma once
#include <orrery/thesis.h>

message IntArrayMsg {
  // Data structure
  int size = 0;
  int* values;

  // Functions
  int getValue(int pIndex);
  int getSize();
  void setValues(int pCount, int* pValues);
};
