// SPDX-License-Identifier: Apache-2.0
// In C, as in C++ `Message` cannot be a pointer to `struct Message`.
#include <orrery/task/thesis.h>

#include <stdarg.h>
#include <stdio.h>
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

// The first `bytes` are zero.
static void* allocate(size_t bytes, size_t spare) {
  void* memory = malloc(bytes + spare != 0 ? bytes + spare : 1);
  if (memory != NULL) {
    memset(memory, 0, bytes);
  } else {
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
  go_on_unless(said);
  return said == ORRERY_OK ? (int)m.tag : -1;
}

static Message receive(System system, orrery_task self) {
  (void)system;
  (void)self;
  orrery_message m;
  const orrery_status said = orrery_receive(&m, ORRERY_FOREVER);
  go_on_unless(said);
  if (said != ORRERY_OK) return NULL;
  void* message = orrery_message_adopt_any(&m);
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

// Keeps the text for orrery_error().
static void refuse(const char* format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  (void)vsnprintf(text, sizeof text, format, values);
  va_end(values);
  (void)orrery_message_refuse(text);
}

static bool is_known(const orrery_message_class* cls) {
  const orrery_message_class* c = classes;
  while (c != NULL && c != cls) c = c->next;
  return c != NULL;
}

// The usual mistake of a writeAt is to write more than msg_size says. It gets room for that, so
// that it harms nothing; the bytes at the beginning of the room show the mistake.
enum { spare_bytes = 64 << 10, watched_bytes = 256, untouched = 0xa5 };

// Calls the message's writeAt. The caller frees the bytes; NULL: orrery_error() has the reason.
static void* written(const char* call, const orrery_message_class* cls, const struct Message* message) {
  const int size = message->msg_size;
  if (size < 0 || (uint32_t)size < cls->bytes) {
    refuse(
        "%s: a message %s has msg_size %d, and its structure has %u bytes: msg_size counts the structure and what "
        "writeAt puts behind it",
        call, cls->name, size, (unsigned)cls->bytes);
    return NULL;
  }
  unsigned char* bytes = allocate((size_t)size, spare_bytes);
  memset(bytes + size, untouched, watched_bytes);
  const int said = cls->write(message, bytes);
  bool beyond = false;
  for (int i = 0; i < watched_bytes; ++i) beyond |= bytes[(size_t)size + (size_t)i] != untouched;
  if (!beyond && said == size) return bytes;
  free(bytes);
  if (beyond) {
    refuse(
        "%s: writeAt of a message %s writes more than its msg_size, which is %d: set msg_size to the bytes of the "
        "structure and of what writeAt puts behind it",
        call, cls->name, size);
  } else {
    refuse(
        "%s: writeAt of a message %s returns %d, and its msg_size is %d: it writes msg_size bytes, and returns their "
        "number",
        call, cls->name, said, size);
  }
  return NULL;
}

int send(const void* self, Message message, orrery_task to) {
  (void)self;
  if (message == NULL) return (int)orrery_message_refuse("send: the message is NULL");
  if (!is_known(message->class_))
    return (int)orrery_message_refuse(
        "send: this is no message with functions that its X_create has made: make it so, or send a message without "
        "functions with its X_send");
  if (message->tag < 0) {
    refuse("send: a message %s has the tag %d, and tags are not negative", message->class_->name, message->tag);
    return (int)ORRERY_USAGE;
  }
  void* bytes = written("send", message->class_, message);
  if (bytes == NULL) return (int)ORRERY_USAGE;
  const size_t size = (size_t)message->msg_size;
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

void* orrery_message_new(const orrery_message_class* cls) { return allocate(cls->bytes, 0); }

void* orrery_message_copy(const orrery_message_class* cls, const void* message) {
  if (message == NULL) refuse("clone: the message is NULL");
  void* bytes = message != NULL ? written("clone", cls, message) : NULL;
  if (bytes == NULL) {
    orrery_log("%s", orrery_error());
    orrery_exit();
  }
  const size_t size = (size_t)((const struct Message*)message)->msg_size;
  void* copy = realloc(bytes, size);  // without the spare bytes
  if (copy == NULL) copy = bytes;
  // Its writeAt need not write the head.
  const struct Message* from = message;
  Message head = copy;
  head->tag = from->tag;
  head->tid = from->tid;
  head->msg_size = from->msg_size;
  cls->rebind(copy, size);
  if (cls->elements == 0 || size == cls->bytes) return copy;
  void* elements = allocate(size - cls->bytes, 0);
  memcpy(elements, (char*)copy + cls->bytes, size - cls->bytes);
  memcpy((char*)copy + cls->elements, &elements, sizeof elements);
  return copy;
}

void* orrery_message_adopt_any(const orrery_message* received) {
  const orrery_message_class* cls = find_class(received->type);
  return cls != NULL ? orrery_message_adopt(cls, received) : NULL;
}

void* orrery_message_adopt(const orrery_message_class* cls, const orrery_message* received) {
  if (received->type != cls->id || received->size < cls->bytes) return NULL;
  void* message = allocate(received->size, 0);
  memcpy(message, received->data, received->size);
  Message head = message;
  head->tag = (int)received->tag;
  head->tid = (int)(cls->id & 0x7fffffff);
  head->msg_size = (int)received->size;
  cls->rebind(message, received->size);
  return message;
}
