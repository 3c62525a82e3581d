// SPDX-License-Identifier: Apache-2.0
// Listings 3.1 and 3.2. The thesis leaves out what the functions do; here it is the task that
// SimpleTask looks for.
#include "TaskA.h"

#include <stdio.h>

// Task related function
static int myFunction(TaskA this, int a, int b) { return this->my_int_state + a + b; }

static void start(TaskA this) {
  repository_set_name(this, "destination_task_name");

  // Check for first message
  receive(this);

  // check for second message
  receive(this);
  printf("TaskA has %d and %c\n", this->my_int_state, this->my_char_state);
}

// Message handling functions
static void handle_tag_a_msg(TaskA this, IntMsg message) {
  this->my_int_state = myFunction(this, message->getValue(message), 1);
}

static void handle_tag_b_msg(TaskA this, TextMsg message) {
  this->my_char_state = message->getMsg(message)[0];

  IntMsg answer = IntMsg_create(0);
  answer->setValue(answer, this->my_int_state);
  send(this, (Message)answer, repository_wait_id(this, "simple_task"));
  answer->destroy(answer);
}
