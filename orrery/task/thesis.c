// SPDX-License-Identifier: Apache-2.0
// In C, as in C++ `Message` cannot be a pointer to `struct Message`.
#include <orrery/task/thesis.h>

#include <stdlib.h>
#include <string.h>

// Filled before main, by constructors of the program.
static orrery_message_class* classes = NULL;

static const orrery_message_class* find_class(uint64_t id) {
  for (const orrery_message_class* c = classes; c != NULL; c = c->next)
    if (c->id == id) return c;
  return NULL;
}

// The thesis' functions have no result that says that the world ends.
static void go_on_unless(orrery_status stopped) {
  if (stopped == ORRERY_STOPPED) orrery_exit();
}

static void* allocate(size_t bytes) {
  void* memory = calloc(1, bytes != 0 ? bytes : 1);
  if (memory == NULL) {
    orrery_log("there is no memory for a message of %zu bytes", bytes);
    orrery_exit();
  }
  return memory;
}

static int get_tag(System system, orrery_task self) {
  (void)system;
  (void)self;
  orrery_message m;
  orrery_status said = orrery_peek(&m, ORRERY_NOW);
  go_on_unless(said);
  if (said != ORRERY_OK && !orrery_message_immediate()) said = orrery_peek(&m, ORRERY_NOW);
  return said == ORRERY_OK ? (int)m.tag : -1;
}

static Message receive(System system, orrery_task self) {
  (void)system;
  (void)self;
  orrery_message m;
  const orrery_status said = orrery_receive(&m, ORRERY_FOREVER);
  go_on_unless(said);
  if (said != ORRERY_OK) return NULL;
  const orrery_message_class* cls = find_class(m.type);
  void* message = cls != NULL ? orrery_message_adopt(cls, &m) : NULL;
  orrery_release(&m);
  if (message == NULL)
    orrery_log("the message with tag %llu has no functions in this program", (unsigned long long)m.tag);
  orrery_message_keep(message);
  return message;
}

static int drop(System system, orrery_task self) {
  (void)system;
  (void)self;
  return (int)orrery_drop();
}

static void destroy(System system) { (void)system; }

static struct System the_system = {NULL, get_tag, receive, drop, destroy};
System Comm = &the_system;
System System_create(void) { return &the_system; }
System System_acquire(void) { return &the_system; }

int send(const void* self, Message message, orrery_task to) {
  (void)self;
  if (message == NULL) return (int)ORRERY_USAGE;
  const size_t size = message->msg_size > 0 ? (size_t)message->msg_size : 0;
  void* bytes = allocate(size);
  message->class_->write(message, bytes);
  const orrery_message_type type = {message->class_->name, message->class_->id, (uint32_t)size, 0, NULL};
  const orrery_status said = orrery_send(to, (uint64_t)message->tag, &type, bytes, ORRERY_TRY);
  free(bytes);
  return (int)said;
}

void message_notify(const void* self) {
  (void)self;
  go_on_unless(orrery_message_notify());
}

void message_wait(const void* self) {
  (void)self;
  go_on_unless(orrery_message_wait());
}

bool message_immediate(const void* self) {
  (void)self;
  return orrery_message_immediate();
}

int repository_set_name(const void* self, const char* name) {
  (void)self;
  return (int)orrery_set_name(orrery_self(), name);
}

orrery_task repository_get_id(const void* self, const char* name) {
  (void)self;
  orrery_task task = {0, 0, 0};
  (void)orrery_find(name, &task, ORRERY_NOW);
  return task;
}

orrery_task repository_wait_id(const void* self, const char* name) {
  (void)self;
  orrery_task task = {0, 0, 0};
  go_on_unless(orrery_find(name, &task, ORRERY_FOREVER));
  return task;
}

void orrery_message_register(orrery_message_class* cls) {
  cls->next = classes;
  classes = cls;
}

void* orrery_message_new(const orrery_message_class* cls) { return allocate(cls->bytes); }

void* orrery_message_copy(const orrery_message_class* cls, const void* message) {
  const int size = ((const struct Message*)message)->msg_size;
  void* copy = allocate(size > (int)cls->bytes ? (size_t)size : cls->bytes);
  cls->write(message, copy);
  cls->rebind(copy, size > 0 ? (size_t)size : 0);
  return copy;
}

void* orrery_message_adopt(const orrery_message_class* cls, const orrery_message* received) {
  if (received->type != cls->id || received->size < cls->bytes) return NULL;
  void* message = allocate(received->size);
  memcpy(message, received->data, received->size);
  Message head = message;
  head->tag = (int)received->tag;
  head->msg_size = (int)received->size;
  cls->rebind(message, received->size);
  return message;
}
