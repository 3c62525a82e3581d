// SPDX-License-Identifier: Apache-2.0
// The server: one task with the index. It does one request at a time, so that each takes effect at
// one moment.
#include "database.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct waiting {
  orrery_task client;
  struct Answer answer;
};

static void Server_handle_OPTIONS(Server this, ServerOptions message) {
  this->home = message->home;
  this->batch = message->batch > 0 ? message->batch : 1;
  this->index = index_create();
  this->waiting = calloc((size_t)this->batch, sizeof *this->waiting);
  orrery_set_strategy(message->strategy);
  this->report.problem = "";
  if (message->log == NULL) return;
  this->log = log_open(message->log, this->index, &this->report.records, &this->report.dropped);
  if (this->log == NULL) this->report.problem = strerror(errno);
}

// A client that does not take its answers has no room at some time: it is not waited for.
static void answer(orrery_task client, const struct Answer* a) {
  if (Client_try_send_ANSWER(client, a) != ORRERY_OK)
    orrery_log("a client does not get its answer: %s", orrery_error());
}

static void sync_log(Server this) {
  if (this->waits == 0) return;
  this->report.syncs++;
  if (!log_sync(this->log)) {
    orrery_log("the log cannot be written: %s; the server ends without answering", strerror(errno));
    orrery_exit();
  }
  for (int i = 0; i < this->waits; i++) {
    answer(this->waiting[i].client, &this->waiting[i].answer);
    free(this->waiting[i].answer.pairs);
  }
  this->waits = 0;
}

static bool look_up(Server this, Request r, struct Answer* a) {
  const value* found = index_find(this->index, r->key);
  if (found != NULL) a->text = *found;
  return found != NULL;
}

static bool list(Server this, Request r, struct Answer* a, struct pair* pairs) {
  int64_t keys[MOST_PAIRS];
  value values[MOST_PAIRS];
  const int limit = r->limit < 0 ? 0 : r->limit < MOST_PAIRS ? r->limit : MOST_PAIRS;
  a->count = index_range(this->index, r->key, r->last, limit, keys, values);
  for (int i = 0; i < a->count; i++) pairs[i] = (struct pair){keys[i], values[i]};
  a->pairs = a->count != 0 ? pairs : NULL;
  return true;
}

static void Server_handle_REQUEST(Server this, Request message) {
  struct Answer a = {.number = message->number};
  struct pair pairs[MOST_PAIRS];
  message->text.text[VALUE_BYTES - 1] = 0;
  bool changes = true;
  switch (message->operation) {
    case INSERT:
      a.done = index_insert(this->index, message->key, &message->text);
      break;
    case UPDATE:
      a.done = index_update(this->index, message->key, &message->text);
      break;
    case DELETE:
      a.done = index_delete(this->index, message->key);
      break;
    default:
      changes = false;
      a.done = message->operation == FIND ? look_up(this, message, &a) : list(this, message, &a, pairs);
  }
  this->report.requests++;
  if (this->log != NULL && changes && a.done)
    log_add(this->log, (enum operation)message->operation, message->key, &message->text);
  // An answer is not shown before its change is written.
  if (this->log == NULL || (this->waits == 0 && !(changes && a.done))) {
    answer(message->client, &a);
    return;
  }
  if (a.count != 0) a.pairs = memcpy(malloc(sizeof *pairs * (size_t)a.count), pairs, sizeof *pairs * (size_t)a.count);
  this->waiting[this->waits++] = (struct waiting){message->client, a};
  if (this->waits == this->batch) sync_log(this);
}

static void Server_handle_STOP(Server this) { this->stopped = true; }

// Answers wait while there are more requests, which share their visit to the disk.
static void Server_start(Server this) {
  while (!this->stopped) {
    const orrery_status status = Server_receive_for(this, this->waits != 0 ? ORRERY_NOW : ORRERY_FOREVER);
    if (status == ORRERY_EMPTY) {
      sync_log(this);
    } else if (status != ORRERY_OK) {
      break;  // Ctrl-C: what was done is kept
    }
  }
  if (this->index == NULL) return;
  sync_log(this);
  if (!index_is_sound(this->index)) this->report.problem = "the index is damaged";
  this->report.size = index_size(this->index);
  ServerReport_send(this->home, SERVER_REPORT, &this->report);
  if (this->log != NULL) log_close(this->log);
  index_destroy(this->index);
  free(this->waiting);
}
