// SPDX-License-Identifier: Apache-2.0
// Listing 3.1. Corrected: IntMessage is IntMsg, and StringMessage TextMsg.
#pragma once
// Include message type to use
#include "IntMsg.h"
#include "TextMsg.h"

task TaskA {
  // Define tags
  tag tag_a = 0;
  tag tag_b = 1;

  // States
  int my_int_state = 0;
  char my_char_state = 'b';
};
