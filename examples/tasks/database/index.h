// SPDX-License-Identifier: Apache-2.0
// An ordered index: 64-bit keys with short texts, in a B+ tree. Plain C and C++, so that the
// database's peers in bench/ do the same work.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { VALUE_BYTES = 32 };  // of a text, with its end

typedef struct value {
  char text[VALUE_BYTES];
} value;

struct index;

struct index* index_create(void);
void index_destroy(struct index* index);
long index_size(const struct index* index);

// The value of a key; NULL if it is not there. Good until the index changes.
const value* index_find(const struct index* index, int64_t key);
// False, and nothing is done, if the key is there already.
bool index_insert(struct index* index, int64_t key, const value* v);
// False if the key is not there.
bool index_update(struct index* index, int64_t key, const value* v);
bool index_delete(struct index* index, int64_t key);
// At most `limit` keys from `first` to `last`, in order, with their values. Returns how many.
int index_range(const struct index* index, int64_t first, int64_t last, int limit, int64_t* keys, value* values);
// Walks everything: the order of the keys, the number of them in each node, the depth, the list of
// leaves.
bool index_is_sound(const struct index* index);
