// SPDX-License-Identifier: Apache-2.0
// Listing A.3. Corrected: the thesis calls it IntMsg and IntMessage; it has no definition of it.
#pragma once
#include <orrery/thesis.h>

message IntMsg {
  int value = 0;

  int getValue();
  void setValue(int value);
};
