// SPDX-License-Identifier: Apache-2.0
// Listings 3.3 and 3.4 use it; the thesis has no definition of it. The text lies in the message, so
// that it needs no writeAt.
#pragma once
#include <orrery/thesis.h>

message TextMsg {
  char msg[32];

  char* getMsg();
  void setMsg(char* text);
};
