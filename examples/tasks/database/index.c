// SPDX-License-Identifier: Apache-2.0
#include "index.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 32, FEWEST = MOST / 2 };  // keys of a node; the root may have fewer

// An inner node has one child more than keys; child i has the keys from keys[i - 1] on, below
// keys[i].
typedef struct node {
  bool is_leaf;
  int count;  // of keys
  int64_t keys[MOST];
  union {
    struct node* child[MOST + 1];
    struct {
      value values[MOST];
      struct node* next;  // the leaf behind it
    } leaf;
  } has;
} node;

struct index {
  node* root;
  long size;
};

static node* new_node(bool is_leaf) {
  node* n = (node*)calloc(1, sizeof *n);
  if (n == NULL) abort();
  n->is_leaf = is_leaf;
  return n;
}

struct index* index_create(void) {
  struct index* index = (struct index*)calloc(1, sizeof *index);
  if (index == NULL) abort();
  index->root = new_node(true);
  return index;
}

static void destroy_node(node* n) {
  for (int i = 0; !n->is_leaf && i <= n->count; i++) destroy_node(n->has.child[i]);
  free(n);
}

void index_destroy(struct index* index) {
  destroy_node(index->root);
  free(index);
}

long index_size(const struct index* index) { return index->size; }

// The first key that is not below `key`.
static int position(const node* n, int64_t key) {
  int low = 0, high = n->count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (n->keys[middle] < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static int child_for(const node* n, int64_t key) {
  const int at = position(n, key);
  return at < n->count && n->keys[at] == key ? at + 1 : at;
}

static node* leaf_for(const struct index* index, int64_t key) {
  node* n = index->root;
  while (!n->is_leaf) n = n->has.child[child_for(n, key)];
  return n;
}

static value* find(const struct index* index, int64_t key) {
  node* n = leaf_for(index, key);
  const int at = position(n, key);
  return at < n->count && n->keys[at] == key ? &n->has.leaf.values[at] : NULL;
}

const value* index_find(const struct index* index, int64_t key) { return find(index, key); }

bool index_update(struct index* index, int64_t key, const value* v) {
  value* found = find(index, key);
  if (found != NULL) *found = *v;
  return found != NULL;
}

int index_range(const struct index* index, int64_t first, int64_t last, int limit, int64_t* keys, value* values) {
  int count = 0;
  const node* n = leaf_for(index, first);
  for (int at = position(n, first); n != NULL && count < limit; n = n->has.leaf.next, at = 0)
    for (; at < n->count && count < limit; at++, count++) {
      if (n->keys[at] > last) return count;
      keys[count] = n->keys[at];
      values[count] = n->has.leaf.values[at];
    }
  return count;
}

// --- insertion -----------------------------------------------------------------------------------

static void open_gap(int64_t* keys, int at, int count) {
  memmove(keys + at + 1, keys + at, sizeof *keys * (size_t)(count - at));
}
static void close_gap(int64_t* keys, int at, int count) {
  memmove(keys + at, keys + at + 1, sizeof *keys * (size_t)(count - at - 1));
}

static void insert_in_leaf(node* n, int at, int64_t key, const value* v) {
  value* values = n->has.leaf.values;
  open_gap(n->keys, at, n->count);
  memmove(values + at + 1, values + at, sizeof *values * (size_t)(n->count - at));
  n->keys[at] = key;
  values[at] = *v;
  n->count++;
}

static void insert_child(node* n, int at, int64_t key, node* right) {
  node** child = n->has.child;
  open_gap(n->keys, at, n->count);
  memmove(child + at + 2, child + at + 1, sizeof *child * (size_t)(n->count - at));
  n->keys[at] = key;
  child[at + 1] = right;
  n->count++;
}

// Child `at`, which is full, becomes two; n is not full.
static void split(node* n, int at) {
  node* left = n->has.child[at];
  node* right = new_node(left->is_leaf);
  const int kept = MOST / 2;
  const int64_t between = left->keys[kept];
  const int moved = left->is_leaf ? kept : kept + 1;  // the key between inner nodes goes up
  right->count = MOST - moved;
  memcpy(right->keys, left->keys + moved, sizeof(int64_t) * (size_t)right->count);
  if (left->is_leaf) {
    memcpy(right->has.leaf.values, left->has.leaf.values + moved, sizeof(value) * (size_t)right->count);
    right->has.leaf.next = left->has.leaf.next;
    left->has.leaf.next = right;
  } else {
    memcpy(right->has.child, left->has.child + moved, sizeof(node*) * (size_t)(right->count + 1));
  }
  left->count = kept;
  insert_child(n, at, between, right);
}

bool index_insert(struct index* index, int64_t key, const value* v) {
  if (find(index, key) != NULL) return false;
  if (index->root->count == MOST) {
    node* above = new_node(false);
    above->has.child[0] = index->root;
    index->root = above;
    split(above, 0);
  }
  node* n = index->root;
  while (!n->is_leaf) {
    int at = child_for(n, key);
    if (n->has.child[at]->count == MOST) {
      split(n, at);
      at = child_for(n, key);
    }
    n = n->has.child[at];
  }
  insert_in_leaf(n, position(n, key), key, v);
  index->size++;
  return true;
}

// --- deletion ------------------------------------------------------------------------------------

static void move_from_left(node* n, int at) {
  node *left = n->has.child[at - 1], *right = n->has.child[at];
  const int last = left->count - 1;
  if (right->is_leaf) {
    insert_in_leaf(right, 0, left->keys[last], &left->has.leaf.values[last]);
    n->keys[at - 1] = right->keys[0];
  } else {
    open_gap(right->keys, 0, right->count);
    memmove(right->has.child + 1, right->has.child, sizeof(node*) * (size_t)(right->count + 1));
    right->keys[0] = n->keys[at - 1];
    right->has.child[0] = left->has.child[last + 1];
    right->count++;
    n->keys[at - 1] = left->keys[last];
  }
  left->count--;
}

static void remove_from_leaf(node* n, int at) {
  value* values = n->has.leaf.values;
  close_gap(n->keys, at, n->count);
  memmove(values + at, values + at + 1, sizeof *values * (size_t)(n->count - at - 1));
  n->count--;
}

static void move_from_right(node* n, int at) {
  node *left = n->has.child[at], *right = n->has.child[at + 1];
  if (left->is_leaf) {
    insert_in_leaf(left, left->count, right->keys[0], &right->has.leaf.values[0]);
    remove_from_leaf(right, 0);
    n->keys[at] = right->keys[0];
  } else {
    left->keys[left->count++] = n->keys[at];
    left->has.child[left->count] = right->has.child[0];
    n->keys[at] = right->keys[0];
    close_gap(right->keys, 0, right->count);
    memmove(right->has.child, right->has.child + 1, sizeof(node*) * (size_t)right->count);
    right->count--;
  }
}

// Children `at` and `at` + 1 become one.
static void merge(node* n, int at) {
  node *left = n->has.child[at], *right = n->has.child[at + 1];
  if (!left->is_leaf) left->keys[left->count++] = n->keys[at];
  memcpy(left->keys + left->count, right->keys, sizeof(int64_t) * (size_t)right->count);
  if (left->is_leaf) {
    memcpy(left->has.leaf.values + left->count, right->has.leaf.values, sizeof(value) * (size_t)right->count);
    left->has.leaf.next = right->has.leaf.next;
  } else {
    memcpy(left->has.child + left->count, right->has.child, sizeof(node*) * (size_t)(right->count + 1));
  }
  left->count += right->count;
  close_gap(n->keys, at, n->count);
  memmove(n->has.child + at + 1, n->has.child + at + 2, sizeof(node*) * (size_t)(n->count - at - 1));
  n->count--;
  free(right);
}

static bool delete_below(node* n, int64_t key) {
  if (n->is_leaf) {
    const int at = position(n, key);
    if (at == n->count || n->keys[at] != key) return false;
    remove_from_leaf(n, at);
    return true;
  }
  const int at = child_for(n, key);
  node** child = n->has.child;
  if (!delete_below(child[at], key)) return false;
  if (child[at]->count >= FEWEST) return true;
  if (at > 0 && child[at - 1]->count > FEWEST) {
    move_from_left(n, at);
  } else if (at < n->count && child[at + 1]->count > FEWEST) {
    move_from_right(n, at);
  } else {
    merge(n, at > 0 ? at - 1 : at);
  }
  return true;
}

bool index_delete(struct index* index, int64_t key) {
  if (!delete_below(index->root, key)) return false;
  node* root = index->root;
  if (!root->is_leaf && root->count == 0) {
    index->root = root->has.child[0];
    free(root);
  }
  index->size--;
  return true;
}

// --- the check -----------------------------------------------------------------------------------

struct walk {
  long size;
  int depth;  // of the leaves; 0: not known yet
  const node* next_leaf;  // NULL before the first
  bool sound;
};

static void walk_node(struct walk* w, const node* n, int depth, bool has_first, int64_t first, bool has_end,
                      int64_t end) {
  if (depth > 1 && n->count < (n->is_leaf ? FEWEST : FEWEST - 1)) w->sound = false;
  for (int i = 0; i < n->count; i++) {
    if (i > 0 && n->keys[i - 1] >= n->keys[i]) w->sound = false;
    if ((has_first && n->keys[i] < first) || (has_end && n->keys[i] >= end)) w->sound = false;
  }
  if (n->is_leaf) {
    if (w->depth == 0) {
      w->depth = depth;
    } else if (w->depth != depth || w->next_leaf != n) {
      w->sound = false;
    }
    w->next_leaf = n->has.leaf.next;
    w->size += n->count;
    return;
  }
  for (int i = 0; i <= n->count; i++)
    walk_node(w, n->has.child[i], depth + 1, i > 0 || has_first, i > 0 ? n->keys[i - 1] : first,
              i < n->count || has_end, i < n->count ? n->keys[i] : end);
}

bool index_is_sound(const struct index* index) {
  struct walk w = {0, 0, NULL, true};
  walk_node(&w, index->root, 1, false, 0, false, 0);
  return w.sound && w.size == index->size && w.next_leaf == NULL;
}
