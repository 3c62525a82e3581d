// SPDX-License-Identifier: Apache-2.0
// Listing 3.6. Corrected: its last line is cut off in the print. writeAt, destroy and the other
// functions are not in the thesis.
#include "IntArrayMsg.h"

#include <stdlib.h>
#include <string.h>

static int getValue(IntArrayMsg this, int pIndex) { return this->values[pIndex]; }

static int getSize(IntArrayMsg this) { return this->size; }

static void setValues(IntArrayMsg this, int count, int val[]) {
  this->size = count;
  this->values = malloc(this->size * sizeof(int));
  for (int i = 0; i < count; i++) {
    this->values[i] = val[i];
  }

  // Size tracking
  this->msg_size = sizeof(struct IntArrayMsg) + (count * sizeof(int));
}

static void destroy(IntArrayMsg this) {
  free(this->values);
  free(this);
}

static int writeAt(IntArrayMsg this, void* addr) {
  IntArrayMsg tmp = (IntArrayMsg)addr;
  tmp->size = this->size;
  memcpy(tmp + 1, this->values, this->size * sizeof(int));
  return this->msg_size;
}
