/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks and messages for C: the runtime.
 *
 * A task is a C function that runs as a process of its own, with a stack of its own, on some PE
 * of the world. Tasks share nothing; they send each other messages, which have a tag. Code that
 * orrery-cc generates calls nothing but this header, and it can be used by hand:
 *
 *     static void echo(void *argument, size_t size) {
 *       orrery_message m;
 *       while (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) {
 *         orrery_send_bytes(m.sender, m.tag, m.data, m.size, ORRERY_WAIT);
 *         orrery_release(&m);
 *       }
 *     }
 *     int main_task(int argc, char **argv) {
 *       orrery_task t;
 *       if (orrery_create(echo, NULL, 0, orrery_anywhere(), &t) != ORRERY_OK) return 1;
 *       ...
 *     }
 *     int main(int argc, char **argv) { return orrery_run(argc, argv, main_task); }
 *
 * Calls return a status; orrery_error() has the whole text. All but those marked "anywhere" are
 * for tasks, and return ORRERY_USAGE elsewhere. Those marked "may park" let other tasks of the
 * PE run; they leave errno as it was. A task that was told ORRERY_STOPPED is to return. If it
 * asks to wait again instead, that call does not return: the task ends there, as with
 * orrery_exit. With ORRERY_NOW it may still take the messages that are left; a task that goes on
 * to look when there are none ends, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- errors ----------------------------------------------------------------------------------- */

typedef enum orrery_status {
  ORRERY_OK = 0,
  ORRERY_EMPTY, /* there is no such message */
  ORRERY_TIMEOUT, /* nothing came within the time */
  ORRERY_FULL, /* the receiver has no room now, and nothing was sent */
  ORRERY_GONE, /* the task has ended */
  ORRERY_NODE_LOST, /* its OS process has ended or was killed */
  ORRERY_STOPPED, /* the world ends, or this task is to end: return */
  ORRERY_NAME_NOT_FOUND, /* no task has the name */
  ORRERY_NAME_TAKEN, /* another task has the name */
  ORRERY_WRONG_TYPE, /* the message is of another type */
  ORRERY_BAD_MESSAGE, /* the bytes are not a message of that type */
  ORRERY_NO_PLACE, /* there is no such PE, node or machine */
  ORRERY_NO_MEMORY,
  ORRERY_DEADLOCK, /* waiting would never end */
  ORRERY_USAGE, /* the program asked for what cannot be done */
  ORRERY_FAILED /* anything else; see orrery_error */
} orrery_status;

/* One sentence for a status. Anywhere. The text lives for ever. */
const char* orrery_status_text(orrery_status status);
/* The text of the last call of this task that failed: what happened, where, what to do. The text
 * is good until the next such call. ORRERY_EMPTY, and ORRERY_TIMEOUT of messages, are no
 * failures, and leave it as it was. */
const char* orrery_error(void);

/* --- the program ------------------------------------------------------------------------------ */

/* Runs the program: starts the PEs (and with --orrery-nodes=N the other nodes), runs `main_task`
 * as the first task with the arguments that the runtime did not take, and returns what it
 * returned when everything has shut down. 1 after a line on stderr if that cannot be. In the other
 * nodes, and in ranks but the first, `main_task` does not run: there orrery_run serves until the
 * world ends, and returns 0. So what main_task leaves in global variables is in the first node
 * only. Once at a time, from the main thread. */
int orrery_run(int argc, char** argv, int (*main_task)(int argc, char** argv));

/* Before orrery_run: a node that was started with --orrery-role=NAME and runs no main runs `role`
 * as a task of its own, with the arguments that the runtime did not take. Such are the ranks of an
 * MPI launch but the first, also those of other programs, and the other nodes of --orrery-nodes.
 * The node serves on when the task has returned, whatever it returned: a role that fails tells
 * main in a message, or calls orrery_log_failure, so that its node ends with 1. A name that is
 * empty, or taken, or no function is an error of orrery_run. Programs in C++ that run with
 * orrery::run have the roles that they give to it, and not these. Anywhere. */
void orrery_add_role(const char* name, int (*role)(int argc, char** argv));

/* `ORRERY_ROLE(client);` at file scope, behind a function of that type, adds it by its own name
 * before main begins. */
#define ORRERY_ROLE(function)                                                                                        \
  __attribute__((constructor)) static void orrery_role_##function##_(void) { orrery_add_role(#function, function); } \
  struct orrery_role_##function##_ /* for the semicolon */

/* --- tasks ------------------------------------------------------------------------------------ */

/* Names a task anywhere in the world. A value: copy it, keep it, send it in messages. All zero:
 * no task. */
typedef struct orrery_task {
  uint32_t pe;
  uint32_t slot;
  uint32_t generation;
} orrery_task;

static inline bool orrery_task_same(orrery_task a, orrery_task b) {
  return a.pe == b.pe && a.slot == b.slot && a.generation == b.generation;
}
static inline bool orrery_task_is_null(orrery_task t) { return t.generation == 0; }

/* Where a task is to live. */
typedef struct orrery_place {
  uint32_t kind;
  uint32_t number;
} orrery_place;

orrery_place orrery_here(void); /* the caller's own PE */
orrery_place orrery_anywhere(void); /* all PEs of this program in turn */
orrery_place orrery_pe(uint32_t number); /* of the world; see also orrery_program_pe */
orrery_place orrery_node(uint32_t number); /* some PE of that OS process */
orrery_place orrery_machine(uint32_t number); /* some PE of that machine */
orrery_place orrery_near(orrery_task other); /* the PE on which that task lives */

/* The function of a task. It is given a copy of the argument, which is its own until it ends,
 * and ends when it returns. */
typedef void (*orrery_task_function)(void* argument, size_t size);

/* Creates a task and returns at once, before the function has begun. `run` is a function of the
 * program itself, not of a shared library, so that it can be found in the other nodes. May park
 * if the place is on another PE. ORRERY_NO_PLACE, also for a PE that runs another program (or
 * another build of this one), ORRERY_NODE_LOST, ORRERY_NO_MEMORY, ORRERY_USAGE. */
orrery_status orrery_create(orrery_task_function run, const void* argument, size_t size, orrery_place where,
                            orrery_task* task);
/* The same with a stack of at least so many bytes (0: as orrery_create; at most 1 GiB,
 * ORRERY_USAGE), for a task that calls what needs more than the 64 KiB of
 * --orrery-function-stack, as many libraries do. Only pages that are touched cost memory. In a
 * program for orrery-cc `stack = 256 << 10;` in the task's definition does it. The first task,
 * which runs main, has the usual stack. */
orrery_status orrery_create_with_stack(orrery_task_function run, const void* argument, size_t size, size_t stack_bytes,
                                       orrery_place where, orrery_task* task);
/* The task that calls; null outside of tasks. Anywhere. */
orrery_task orrery_self(void);
/* Waits until the task has ended: ORRERY_OK then, also if it had ended before. May park, with
 * ORRERY_NOW for as long as its PE takes to answer. ORRERY_TIMEOUT, ORRERY_NODE_LOST,
 * ORRERY_STOPPED, and ORRERY_USAGE for itself. */
orrery_status orrery_join(orrery_task task, int64_t timeout_ns);
/* The message to a watcher. `status` is ORRERY_OK if the task has ended, ORRERY_NODE_LOST if its
 * OS process was lost, ORRERY_FAILED if nobody can tell. */
typedef struct orrery_ended {
  orrery_task task;
  orrery_status status;
} orrery_ended;
/* The calling task is sent a message with that tag when the task has ended or its node was lost;
 * at once if it had ended before. The message is an orrery_ended, as bytes. A watcher that ends
 * leaves nothing behind. May park while the request is sent, but does not wait for an answer.
 * ORRERY_NO_PLACE for a task on a PE that does not exist, ORRERY_USAGE, ORRERY_NO_MEMORY. */
orrery_status orrery_watch(orrery_task task, uint64_t tag);
/* Asks the task to end: after the messages that were sent before, its receive returns
 * ORRERY_STOPPED, and so do peek and notify. It does not cut short a sleep, a join or a find: who
 * may have to wait long there gives it a limit, and looks for messages in between. Returns at
 * once. */
orrery_status orrery_stop(orrery_task task);
/* The task is asked to end, as by orrery_stop, when this OS process gets the signal (SIGINT for
 * Ctrl-C, SIGTERM) for the first time; the second time, and when the world has ended, it does what
 * it did before, mostly end the OS process at once. So a program leaves its world cleanly: its
 * main task joins that task, and returns. A world that waits for the signal only is not taken for
 * dead. In a simulation signals are left alone. ORRERY_USAGE for a signal that cannot be caught,
 * ORRERY_FAILED. */
orrery_status orrery_stop_on_signal(int signal, orrery_task task);
/* Ends the calling task, whose cleanups (attributes, destructors of C++) run: those of C if it was
 * compiled with -fexceptions, which orrery-cc, CMake and pkg-config see to. `exit` instead ends
 * the whole OS process, as in every program: what atexit has registered runs, and other nodes see
 * that this one was lost. */
#ifdef __cplusplus
[[noreturn]]
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Noreturn
#elif defined(__GNUC__)
__attribute__((noreturn))
#endif
void orrery_exit(void);

/* Times are in nanoseconds. No limit; no time at all, which a negative time is, too, such as
 * what is left of one that has passed: */
#define ORRERY_FOREVER INT64_MAX
#define ORRERY_NOW ((int64_t)0)

/* Parks the task that long. ORRERY_STOPPED. */
orrery_status orrery_sleep(int64_t ns);
/* Lets the other tasks of this PE run first. ORRERY_STOPPED. */
orrery_status orrery_yield(void);
/* The time since some fixed moment: of the machine's steady clock, or of the PE in a simulation. */
int64_t orrery_now_ns(void);
/* In a simulation: what the task does now takes that long. Elsewhere it does nothing. */
void orrery_compute(int64_t ns);

uint32_t orrery_this_pe(void);
uint32_t orrery_this_node(void);
uint32_t orrery_pes(void); /* of the world */
uint32_t orrery_nodes(void);
/* The number of PEs that run this program: all, but for those of other programs that have joined
 * the world or are ranks of the same MPI launch, and have none of its functions. */
uint32_t orrery_program_pes(void);
/* The PE with that rank among them, from 0 to orrery_program_pes() - 1; from there on they begin
 * again. So orrery_create finds its function there. */
orrery_place orrery_program_pe(uint32_t rank);

/* One line on stderr, with the task and its PE before it; as printf. */
void orrery_log(const char* format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;
/* The same of something that has failed and that nobody waits for: it counts as a one-way message
 * that failed, so that orrery_run returns 1. */
void orrery_log_failure(const char* format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;

/* --- message types ---------------------------------------------------------------------------- */

/* A type of messages is a C structure and what its pointers point to. orrery-cc makes these
 * tables. One that is written by hand is looked at when a call uses it first: an entry that lies
 * outside of the structure, overlaps another one, or makes no sense otherwise, is an error of that
 * call (ORRERY_USAGE), whose text names it. */
struct orrery_message_type;

typedef enum orrery_field_kind {
  ORRERY_STRING = 1, /* char *: ends with a 0 byte; may be NULL */
  ORRERY_ARRAY = 2, /* element *: as many as another member of the structure says; NULL if that is 0 */
  ORRERY_ONE = 3, /* element *: one, or NULL */
  ORRERY_BUFFER = 4 /* orrery_buffer: passed on, not copied */
} orrery_field_kind;

/* A member that is a pointer to what belongs to the message, or a buffer, of which `offset`
 * alone counts. */
typedef struct orrery_field {
  const char* name;
  uint32_t kind; /* an orrery_field_kind */
  uint32_t offset; /* of the pointer in the structure */
  uint32_t element; /* bytes of one element */
  uint32_t count_offset; /* of the member that counts the elements */
  uint32_t count_bytes; /* its size: 1, 2, 4 or 8 */
  uint32_t count_signed; /* 1 if it may be negative, which is an error */
  const struct orrery_message_type* of; /* if the elements have pointers of their own, else NULL */
} orrery_field;

typedef struct orrery_message_type {
  const char* name;
  uint64_t id; /* the same in all programs that mean the same; not 0 */
  uint32_t bytes; /* of the structure */
  uint32_t fields;
  const orrery_field* field; /* in the order of the structure */
} orrery_message_type;

/* Elements that are strings: ORRERY_ARRAY of these. */
extern const orrery_message_type orrery_string_type;
/* Elements that are buffers. */
extern const orrery_message_type orrery_buffer_type;

/* A deep copy in one piece of memory, which free() ends. NULL: no memory, or the structure makes
 * no sense (orrery_error). Anywhere. */
void* orrery_clone(const orrery_message_type* type, const void* value);

/* --- buffers ---------------------------------------------------------------------------------- */

/* Memory that messages pass on without a copy: inside a node as a pointer; to another OS process
 * of the machine as it lies in shared memory, if the message has one buffer, of at least 2 KiB,
 * that the sender has made or got inside its node, and 3 KiB beside it; else, and to other
 * machines, by one copy.
 * 
 * A buffer has one owner: the task that made or took it. It is the receiver's when a message
 * with it was sent. The structure may be copied; whichever copy is used, the calls below and
 * orrery_send refuse a buffer that its task does not have any more (ORRERY_USAGE). The bytes
 * themselves are then not to be touched: in a build with asserts, or with --orrery-serialize,
 * that is a fault at the line that does it. All zero: no buffer. */
typedef struct orrery_buffer {
  void* data; /* at a multiple of 64 */
  size_t size; /* in bytes */
  uint64_t id_; /* the runtime's own */
} orrery_buffer;

/* Makes a buffer of the calling task, whose bytes are not set. It lives until it is sent, given
 * back, or its task ends. Does not park. ORRERY_NO_MEMORY, ORRERY_USAGE. */
orrery_status orrery_buffer_make(size_t size, orrery_buffer* buffer);
/* Makes a buffer that came in a message the calling task's own: it outlives the message, which
 * has none then. No buffer gives no buffer. ORRERY_USAGE. */
orrery_status orrery_buffer_take(orrery_buffer* received, orrery_buffer* mine);
/* Gives the memory back, and sets the structure to no buffer. Buffers that came in a message and
 * were not taken go with orrery_release. ORRERY_USAGE. */
orrery_status orrery_buffer_free(orrery_buffer* buffer);

/* --- messages --------------------------------------------------------------------------------- */

/* A message that was received. */
typedef struct orrery_message {
  uint64_t tag;
  uint64_t type; /* the id of its message type; 0: bytes */
  orrery_task sender;
  void* data; /* the task may change it; good until orrery_release */
  size_t size;
  void* handle_; /* the runtime's own */
} orrery_message;

/* The behaviour of a sender when the receiver has no room. */
typedef enum orrery_sending { ORRERY_TRY, ORRERY_WAIT } orrery_sending;

/* Sends a copy of the structure and of all that belongs to it; buffers are passed on, unless it
 * fails. Messages of one sender arrive in the order sent. With ORRERY_TRY it never parks for
 * room and may return ORRERY_FULL: yield before you try again, since the receiver may need this PE,
 * or this PE has to hear of memory that is free again. With ORRERY_WAIT it parks until there is
 * room. ORRERY_GONE if the task was one of this PE and has ended; a message to a task that has
 * ended on another PE, or ends while it is on its way, is reported on stderr and counted: the first
 * one at once, how many followed when the PE ends.
 * ORRERY_NODE_LOST, ORRERY_USAGE, ORRERY_NO_MEMORY. */
orrery_status orrery_send(orrery_task to, uint64_t tag, const orrery_message_type* type, const void* value,
                          orrery_sending how);
/* The same for plain bytes, whose type is 0. */
orrery_status orrery_send_bytes(orrery_task to, uint64_t tag, const void* data, size_t size, orrery_sending how);

/* Takes the oldest message, or the oldest with that tag, out of the mailbox; waits for it at
 * most so long (ORRERY_FOREVER, ORRERY_NOW). Every message that was received is to be given to
 * orrery_release once. Where there is none the structure is all zero. May park; with ORRERY_NOW
 * only to let others run, when it has found nothing several times. ORRERY_TIMEOUT (ORRERY_EMPTY
 * for ORRERY_NOW), ORRERY_STOPPED. */
orrery_status orrery_receive(orrery_message* message, int64_t timeout_ns);
orrery_status orrery_receive_tag(uint64_t tag, orrery_message* message, int64_t timeout_ns);
/* Waits until there is a message and describes the oldest, which stays in the mailbox: data is
 * NULL, and there is nothing to release. May park. */
orrery_status orrery_peek(orrery_message* message, int64_t timeout_ns);
/* Drops the oldest message. ORRERY_EMPTY. */
orrery_status orrery_drop(void);
/* The structure of a received message of that type, with its strings and arrays, all of which
 * live in the message; NULL if it is of another type or makes no sense (orrery_error). Once for
 * each message. */
void* orrery_open(orrery_message* message, const orrery_message_type* type);
/* Gives back the memory of a message. Does nothing to one that was given back, or is all zero. */
void orrery_release(orrery_message* message);

/* --- strategies ------------------------------------------------------------------------------- */

/* How a task waits for messages. */
typedef enum orrery_strategy {
  ORRERY_NOTIFY, /* it sleeps until there is one; its PE may sleep, too */
  ORRERY_YIELD, /* it looks each time that the other tasks of its PE, and other threads that want its core, have had their turn: its PE never sleeps */
  ORRERY_IMMEDIATE /* the same, but it keeps the core, which must be its own */
} orrery_strategy;

/* How the calling task waits in orrery_receive, orrery_receive_tag and orrery_peek from now on;
 * at first with ORRERY_NOTIFY. In a program for orrery-cc `strategy message_wait;` in the task's
 * definition does it. A task that looks again and again never keeps its PE from the others.
 * ORRERY_USAGE. */
orrery_status orrery_set_strategy(orrery_strategy strategy);
/* Sleeps until there is a message; it stays in the mailbox. ORRERY_STOPPED. */
orrery_status orrery_message_notify(void);
/* Yields once, so that others can send. ORRERY_STOPPED. */
orrery_status orrery_message_wait(void);
/* True if there is no message. The other tasks of the PE have had their turn then, so that a
 * task may ask in a loop. False also if the task is to end, or the world ends: the receive that
 * follows returns ORRERY_STOPPED. A task that only goes on to ask is ended. */
bool orrery_message_immediate(void);

/* --- names ------------------------------------------------------------------------------------ */

/* Gives the task a name of 1 to 255 bytes of UTF-8, under which it is found from all nodes until
 * it ends. May park. ORRERY_NAME_TAKEN, ORRERY_GONE, ORRERY_NODE_LOST, ORRERY_USAGE. */
orrery_status orrery_set_name(orrery_task task, const char* name);
/* Takes a name back. ORRERY_NAME_NOT_FOUND. */
orrery_status orrery_remove_name(const char* name);
/* The task with that name; waits until there is one, at most so long. May park.
 * ORRERY_NAME_NOT_FOUND (for ORRERY_NOW), ORRERY_TIMEOUT, ORRERY_STOPPED, ORRERY_USAGE if it is
 * no task. */
orrery_status orrery_find(const char* name, orrery_task* task, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
