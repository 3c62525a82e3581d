// SPDX-License-Identifier: Apache-2.0
// The log of a database: what was done to its index, record by record, in a file. Records are
// collected, and written and made durable together.
#pragma once

#include "index.h"

#include <stddef.h>

enum operation { FIND, INSERT, UPDATE, DELETE, RANGE, OPERATIONS };

struct log;

// Opens the file, or makes it, and does to the index what its records say. A record that was cut
// short or damaged ends the log: it and what follows is cut off, and counted in `dropped` bytes.
// NULL: errno says why.
struct log* log_open(const char* path, struct index* into, long* records, long* dropped);
// Adds a record, which log_sync writes.
void log_add(struct log* log, enum operation operation, int64_t key, const value* v);
// Returns when all records are on the disk. False: errno says why.
bool log_sync(struct log* log);
void log_close(struct log* log);
