// SPDX-License-Identifier: Apache-2.0
// Listing A.2. Corrected: it looks for the other task until that is there, as both begin at the
// same time; the tags are in the task; it tells its name and sends TaskA's second message, as TaskA
// waits for two; receive is not static before its definition.
#include "SimpleTask.h"
#include "TaskA.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * This is the "main" method for the thread
 */
static void start(SimpleTask this) {
  int important_int = 1000;
  repository_set_name(this, "simple_task");

  // Repository usage
  orrery_task destination_id = repository_wait_id(this, "destination_task_name");

  // Send a int message to a destination
  IntMsg int_to_send = IntMsg_create(tag_a);
  int_to_send->setValue(int_to_send, important_int);
  send(this, (Message)int_to_send, destination_id);
  int_to_send->destroy(int_to_send);

  TextMsg text_to_send = TextMsg_create(tag_b);
  text_to_send->setMsg(text_to_send, "x");
  send(this, (Message)text_to_send, destination_id);
  text_to_send->destroy(text_to_send);

  // Message strategy : yield cpu
  message_wait(this);

  // Receive a message
  receive(this);
}

static void receive(SimpleTask this) {
  int tag = Comm->getMsgTag(Comm, this->taskID);
  while (tag < 0) {
    tag = Comm->getMsgTag(Comm, this->taskID);
  }

  Message msg;

  // match the message to the right message "handler"
  switch (tag) {
    case A_MESSAGE_TAG:
      msg = Comm->receive(Comm, this->taskID);
      handle_AMessageTag(this, (IntMsg)msg);
      break;
    default:
      printf("\nTask %u No Handler for tag=%d, dropping message!\n", this->taskID.slot, tag);
      Comm->dropMsg(Comm, this->taskID);
  }
}

static void handle_AMessageTag(SimpleTask this, IntMsg intMsg) {
  (void)this;
  printf("Task received a message: %d\n", intMsg->value);
}
