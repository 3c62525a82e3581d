// SPDX-License-Identifier: Apache-2.0
// A client: it has keys of its own, and so knows what each answer has to be.
#include "database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct expected {
  int64_t sent;
  bool done;
  value text;
  int count;
  struct pair first;  // of a range
};

struct model {
  uint64_t random;
  bool* there;  // by key
  value* texts;
  struct expected* window;  // of requests without an answer, by their numbers
  uint32_t sent, answered;
  int learned;  // all keys below, at first
  long wrong;
  long counts[BUCKETS];
};

static void Client_handle_OPTIONS(Client this, ClientOptions message) { this->options = *message; }

static void Client_handle_ENDED(Client this) { this->lost = true; }

static int64_t key_of(Client this, int k) { return (int64_t)this->options.number << 32 | k; }

// Learns what a client of that number has left there.
static void learn(Client this, Answer message) {
  struct model* m = this->model;
  int k = this->options.keys;
  for (int i = 0; i < message->count; i++) {
    k = (int)(message->pairs[i].key & INT32_MAX);
    m->there[k] = true;
    m->texts[k] = message->pairs[i].text;
    char owner[VALUE_BYTES];
    snprintf(owner, sizeof owner, "of client %d", this->options.number);
    if (strstr(m->texts[k].text, owner) == NULL) m->wrong++;
  }
  m->learned = message->count < MOST_PAIRS ? this->options.keys : k + 1;
}

static void Client_handle_ANSWER(Client this, Answer message) {
  struct model* m = this->model;
  if (m->learned < this->options.keys) {
    learn(this, message);
    return;
  }
  const struct expected* e = &m->window[m->answered % (uint32_t)this->options.window];
  m->counts[bucket_of(orrery_now_ns() - e->sent)]++;
  bool good = message->number == m->answered && message->done == e->done && message->count == e->count &&
              memcmp(message->text.text, e->text.text, VALUE_BYTES) == 0;
  if (good && e->count != 0)
    good = message->pairs[0].key == e->first.key &&
           memcmp(message->pairs[0].text.text, e->first.text.text, VALUE_BYTES) == 0;
  for (int i = 1; good && i < message->count; i++) good = message->pairs[i - 1].key < message->pairs[i].key;
  if (!good) m->wrong++;
  m->answered++;
}

static uint32_t next_random(struct model* m) {
  m->random ^= m->random << 13, m->random ^= m->random >> 7, m->random ^= m->random << 17;
  return (uint32_t)(m->random >> 32);
}

// Half of them look, the others change; one of 64 is a range.
static enum operation next_operation(struct model* m) {
  const uint32_t n = next_random(m) % 64;
  return n == 0 ? RANGE : n < 32 ? FIND : n < 48 ? UPDATE : n < 56 ? INSERT : DELETE;
}

static void expect_range(Client this, const struct Request* r, int k, struct expected* e) {
  for (int i = k; i < this->options.keys && i <= (int)(r->last & INT32_MAX) && e->count < r->limit; i++) {
    if (!this->model->there[i]) continue;
    if (e->count++ == 0) e->first = (struct pair){key_of(this, i), this->model->texts[i]};
  }
}

// A client with a pace waits for the time of its next request. The latency counts from then, also
// if it is late.
static int64_t next_due(Client this, int64_t begin) {
  return this->options.pace == 0 ? 0 : begin + (int64_t)this->model->sent * this->options.pace;
}

static orrery_status request(Client this, int64_t now) {
  struct model* m = this->model;
  const int k = (int)(next_random(m) % (uint32_t)this->options.keys);
  struct Request r = {.client = this->taskID, .number = m->sent, .key = key_of(this, k)};
  struct expected* e = &m->window[m->sent % (uint32_t)this->options.window];
  *e = (struct expected){.sent = now};
  r.operation = (int)next_operation(m);
  if (r.operation == INSERT || r.operation == UPDATE)
    snprintf(r.text.text, VALUE_BYTES, "%u of client %d", m->sent, this->options.number);
  e->done = r.operation == INSERT ? !m->there[k] : m->there[k];
  switch (r.operation) {
    case FIND:
      if (e->done) e->text = m->texts[k];
      break;
    case DELETE:
      m->there[k] = false;
      break;
    case RANGE:
      e->done = true;
      r.limit = 20;
      r.last = key_of(this, k + 100);
      expect_range(this, &r, k, e);
      break;
    default:
      if (e->done) m->texts[k] = r.text, m->there[k] = true;
  }
  m->sent++;
  return Server_send_REQUEST(this->options.server, &r);
}

static void Client_start(Client this) {
  if (Client_receive(this) != ORRERY_OK) return;  // OPTIONS
  const struct ClientOptions* o = &this->options;
  struct model* m = this->model = calloc(1, sizeof *m);
  m->random = 88172645463325252u + (uint64_t)o->number * 1000003;
  m->there = calloc((size_t)o->keys, sizeof *m->there);
  m->texts = calloc((size_t)o->keys, sizeof *m->texts);
  m->window = calloc((size_t)o->window, sizeof *m->window);
  orrery_set_strategy(o->strategy);
  orrery_watch(o->server, Client_ENDED);
  while (m->learned < o->keys && !this->lost) {
    const struct Request r = {this->taskID, 0, RANGE, MOST_PAIRS, key_of(this, m->learned), key_of(this, o->keys - 1),
                              {{0}}};
    if (Server_send_REQUEST(o->server, &r) != ORRERY_OK || Client_receive(this) != ORRERY_OK) return;
  }
  const int64_t begin = orrery_now_ns();
  const uint32_t all = (uint32_t)o->requests;
  while (m->answered < all && !this->lost) {
    bool early = false;
    while (m->sent < all && m->sent - m->answered < (uint32_t)o->window && !early && !this->lost) {
      const int64_t now = orrery_now_ns(), due = next_due(this, begin);
      early = now < due;
      if (!early) this->lost = request(this, due != 0 ? due : now) != ORRERY_OK;
    }
    if (this->lost) break;
    const orrery_status said = Client_receive_for(this, early ? ORRERY_NOW : ORRERY_FOREVER);
    if (said != ORRERY_OK && said != ORRERY_EMPTY) return;
  }
  const int64_t end = orrery_now_ns();
  ClientReport_send(o->home, CLIENT_REPORT,
                    &(struct ClientReport){o->number, m->answered, m->wrong, begin, end,
                                           this->lost ? "the server has ended" : "", BUCKETS, m->counts});
  free(m->window), free(m->texts), free(m->there), free(m);
}
