/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds.h"

static orrery_task sink(void) {
  orrery_task to = {0};
  if (orrery_find("sink", &to, ORRERY_FOREVER) != ORRERY_OK) orrery_log("%s", orrery_error());
  return to;
}

static void say(orrery_status said) {
  if (said != ORRERY_OK) orrery_log("mirror: %s", orrery_error());
}

static void Mirror_handle_EVERYTHING(Mirror this, Everything message) {
  message->from = this->taskID;
  say(Sink_send_EVERYTHING(sink(), message));
}
static void Mirror_handle_PARCEL(Mirror this, Parcel message) {
  (void)this;
  say(Sink_send_PARCEL(sink(), message));
}
static void Mirror_handle_NOTHING(Mirror this) {
  (void)this;
  say(Sink_send_NOTHING(sink()));
}
static void Mirror_start(Mirror this) { Mirror_serve(this); }
