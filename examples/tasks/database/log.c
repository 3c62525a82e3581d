// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct record {
  uint64_t sum;  // of what follows
  int64_t key;
  uint64_t operation;
  value v;
};

struct log {
  int fd;
  int count, capacity;  // of records that are not written yet
  struct record* records;
};

static uint64_t sum_of(const struct record* r) { return XXH3_64bits(&r->key, sizeof *r - sizeof r->sum); }

static bool read_whole(int fd, struct record* r) {
  size_t done = 0;
  while (done < sizeof *r) {
    const ssize_t n = read(fd, (char*)r + done, sizeof *r - done);
    if (n <= 0 && !(n < 0 && errno == EINTR)) return false;
    if (n > 0) done += (size_t)n;
  }
  return true;
}

static void apply(struct index* to, const struct record* r) {
  switch (r->operation) {
    case INSERT:
      index_insert(to, r->key, &r->v);
      break;
    case UPDATE:
      index_update(to, r->key, &r->v);
      break;
    case DELETE:
      index_delete(to, r->key);
      break;
  }
}

struct log* log_open(const char* path, struct index* into, long* records, long* dropped) {
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return NULL;
  struct record r;
  *records = 0;
  for (; read_whole(fd, &r) && r.sum == sum_of(&r); ++*records) apply(into, &r);
  const off_t good = (off_t)sizeof r * *records;
  const off_t end = lseek(fd, 0, SEEK_END);
  struct log* log = calloc(1, sizeof *log);
  if (end < 0 || log == NULL || (end > good && ftruncate(fd, good) != 0) || lseek(fd, good, SEEK_SET) != good) {
    const int why = log == NULL ? ENOMEM : errno;
    free(log);
    close(fd);
    errno = why;
    return NULL;
  }
  *dropped = (long)(end - good);
  log->fd = fd;
  return log;
}

void log_add(struct log* log, enum operation operation, int64_t key, const value* v) {
  if (log->count == log->capacity) {
    log->capacity = log->capacity == 0 ? 64 : 2 * log->capacity;
    log->records = realloc(log->records, sizeof *log->records * (size_t)log->capacity);
    if (log->records == NULL) abort();
  }
  struct record* r = &log->records[log->count++];
  memset(r, 0, sizeof *r);
  r->key = key;
  r->operation = operation;
  r->v = *v;
  r->sum = sum_of(r);
}

bool log_sync(struct log* log) {
  const char* at = (const char*)log->records;
  for (size_t left = sizeof *log->records * (size_t)log->count; left > 0;) {
    const ssize_t n = write(log->fd, at, left);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) at += n, left -= (size_t)n;
  }
  log->count = 0;
  return fdatasync(log->fd) == 0;
}

void log_close(struct log* log) {
  close(log->fd);
  free(log->records);
  free(log);
}
