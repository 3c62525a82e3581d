// SPDX-License-Identifier: Apache-2.0
// Listing A.3. Corrected: IntMessage is IntMsg; clone returned an undefined BarMsg; create binds
// all functions.
#include "IntMsg.h"

#include <stdlib.h>

static int getTag(IntMsg this) { return this->tag; }

static IntMsg clone(IntMsg this) {
  IntMsg tmp = IntMsg_create(0);
  tmp->tag = this->tag;
  tmp->tid = this->tid;
  tmp->msg_size = this->msg_size;

  tmp->value = this->value;

  return tmp;
}

static void destroy(IntMsg this) { free(this); }

static int writeAt(IntMsg this, void* addr) {
  IntMsg tmp = (IntMsg)addr;
  tmp->tag = this->tag;
  tmp->tid = this->tid;
  tmp->msg_size = this->msg_size;

  tmp->value = this->value;

  return this->msg_size;
}

static int getValue(IntMsg this) { return this->value; }

static void setValue(IntMsg this, int value) { this->value = value; }
