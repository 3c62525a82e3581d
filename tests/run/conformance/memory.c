// SPDX-License-Identifier: Apache-2.0
// A list, a tree and text on the heap; files, and what the program registers for its end.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct node {
  struct node *left, *right;
  char* word;
  int count;
} node;
static node* add(node* n, const char* word) {
  if (!n) {
    n = calloc(1, sizeof *n);
    n->word = strdup(word);
    n->count = 1;
    return n;
  }
  const int order = strcmp(word, n->word);
  if (order == 0)
    n->count++;
  else if (order < 0)
    n->left = add(n->left, word);
  else
    n->right = add(n->right, word);
  return n;
}
static int show(const node* n) {
  if (!n) return 0;
  int all = show(n->left);
  printf("%s:%d ", n->word, n->count);
  return all + n->count + show(n->right);
}
static void drop(node* n) {
  if (n) drop(n->left), drop(n->right), free(n->word), free(n);
}
int main(void) {
  char text[] = "the quick brown fox jumps over the lazy dog and the fox", *rest = text;
  node* root = NULL;
  for (char* word; (word = strsep(&rest, " ")) != NULL;) {
    word[0] = (char)toupper((unsigned char)word[0]);
    root = add(root, word);
  }
  printf("= %d\n", show(root));
  drop(root);
  FILE* f = tmpfile();
  for (int i = 0; i < 1000; i++) fprintf(f, "%d\n", i * i);
  rewind(f);
  long sum = 0, n;
  while (fscanf(f, "%ld", &n) == 1) sum += n;
  fclose(f);
  char* grown = NULL;
  size_t size = 0;
  FILE* m = open_memstream(&grown, &size);
  fprintf(m, "%08.3f|%-6s|%+d|%x", 3.14159, "ab", 7, 255);
  fclose(m);
  printf("%ld %s %zu\n", sum, grown, size);
  free(grown);
  return (int)(sum % 7);
}
