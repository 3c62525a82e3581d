// SPDX-License-Identifier: Apache-2.0
#include <orrery/task.h>

message Number { int value; };
task Adder {
  tag NUMBER(Number);
  int sum = 40;
};
static void Adder_handle_NUMBER(Adder this, Number message) { this->sum += message->value; }
static void Adder_start(Adder this) {
  Adder_receive(this);
  if (this->sum != 42) orrery_receive(&(orrery_message){0}, ORRERY_FOREVER);  // for ever: the world ends with a report
}

int main(void) {
  orrery_task adder = Adder_create();
  Adder_send_NUMBER(adder, &(struct Number){2});
  return orrery_join(adder, ORRERY_FOREVER);
}
