/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the thesis (Gingras 2018, tables 3.1 to 3.3) for tasks and messages:
 * System_create, Comm->receive, send, message_notify, repository_set_name.
 *
 * They are thin: each calls task.h. A message with functions in it has a head (tag, tid,
 * msg_size), is made by X_create(tag), and is written and copied by functions of its file
 * (`writeAt`, `clone`, `destroy`), or by generated ones. Differences from the thesis: a task's
 * identifier is an orrery_task, not an unsigned int; `send` of POSIX is not to be had beside
 * this header, whose `send` is another function; a task that waits when the world ends is ended.
 */
#pragma once

#include <orrery/task/task.h>

#ifdef __cplusplus
#error "thesis.h is for C: in C++ `Message` cannot be a pointer to `struct Message`; use <orrery/task.h>"
#endif

#define send orrery_thesis_send /* not that of POSIX */

/* A type of messages with functions, as orrery-cc describes it to the runtime. */
typedef struct orrery_message_class {
  const char* name;
  uint64_t id;
  uint32_t bytes;                          /* of the structure */
  uint32_t elements;                       /* where its pointer lies, if a clone has elements of its own */
  void (*rebind)(void* message, size_t size); /* makes received bytes a message of this program */
  int (*write)(const void* message, void* to); /* writes msg_size bytes, and returns their number */
  struct orrery_message_class* next;       /* the runtime's own */
} orrery_message_class;

/* The head of each message with functions. */
typedef struct Message* Message;
struct Message {
  int tag;
  int tid;
  int msg_size;
  const orrery_message_class* class_;
};

typedef struct System* System;
struct System {
  void* data;
  /* The tag of the oldest message; -1, after the other tasks of the PE had their turn, if there
   * is none. */
  int (*getMsgTag)(System system, orrery_task self);
  /* Takes the oldest message, waits for it if there is none. It is good until the task receives
   * the next; NULL: it is no message with functions. */
  Message (*receive)(System system, orrery_task self);
  int (*dropMsg)(System system, orrery_task self);
  void (*destroy)(System system);
};

/* The system of this program. It is there before main; System_create and System_acquire return
 * it. */
extern System Comm;
System System_create(void);
System System_acquire(void);

/* Sends a copy. 0, or an orrery_status: ORRERY_FULL if the receiver has no room now, ORRERY_USAGE
 * if the message is NULL, was not made by an X_create, has a negative tag, or its writeAt does not
 * write msg_size bytes; orrery_error() says which. `self` is the sending task, which is known
 * anyway. */
int send(const void* self, Message message, orrery_task to);
/* The thesis' strategies, each for one look: they sleep, yield, or ask. And the repository; `self`
 * is the task that calls. repository_get_id returns
 * the null task if nobody has the name. */
void message_notify(const void* self);
void message_wait(const void* self);
bool message_immediate(const void* self);
int repository_set_name(const void* self, const char* name);
orrery_task repository_get_id(const void* self, const char* name);
orrery_task repository_wait_id(const void* self, const char* name); /* waits until a task has the name */

/* For generated code. */
void orrery_message_register(orrery_message_class* cls);
void* orrery_message_new(const orrery_message_class* cls); /* zeroed; ends the program's task if there is no memory */
/* Through `write` and `rebind`; its elements are memory of their own. Tells what is wrong with the
 * message, and ends the task then. */
void* orrery_message_copy(const orrery_message_class* cls, const void* message);
void* orrery_message_adopt(const orrery_message_class* cls, const orrery_message* received);
void* orrery_message_adopt_any(const orrery_message* received); /* of whatever class; NULL: of none */
/* The runtime keeps the memory, which free() ends, until the task keeps another, or ends. */
void orrery_message_keep(void* message);
/* Keeps the text for orrery_error() and returns ORRERY_USAGE. */
orrery_status orrery_message_refuse(const char* text);
