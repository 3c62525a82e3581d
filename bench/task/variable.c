// SPDX-License-Identifier: Apache-2.0
// The experiment of Gingras 2018, section 4.5.1, with tasks: clients that each update one variable many times, which is a server task's.
//
//   ./variable CLIENTS WRITES [answered]     each update is a message, or a request with an answer
#include <orrery/task.h>
#include <stdio.h>
#include <stdlib.h>

message Update { int number; };

task Server {
  tag UPDATE(Update);
  tag END();
  long variable = 0;
  int clients;
};
task Client {
  tag BEGIN(Update);
  tag DONE(Update);
};

static long writes;
static bool answered;
static orrery_task server;

static void Client_handle_BEGIN(Client this, Update message) { (void)this, (void)message; }
static void Client_handle_DONE(Client this, Update message) { (void)this, (void)message; }
static void Client_start(Client this) {
  Client_receive(this);
  const struct Update one = {1};
  for (long i = 0; i < writes; i++) {
    if (Server_send_UPDATE(server, &one) != ORRERY_OK) return;
    if (answered && Client_receive(this) != ORRERY_OK) return;
  }
  Server_send_END(server);
}

static void Server_handle_UPDATE(Server this, Update message) { this->variable += message->number; }
static void Server_handle_END(Server this) { this->clients--; }

static void serve(Server this) {
  while (this->clients > 0) {
    orrery_message m;
    if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return;
    if (m.tag == Server_END) {
      Server_handle_END(this);
    } else {
      const Update update = Update_open(&m);
      Server_handle_UPDATE(this, update);
      if (answered) Client_send_DONE(m.sender, update);
    }
    orrery_release(&m);
  }
}

static int clients;
static long result;

static void Server_start(Server this) {
  this->clients = clients;
  serve(this);
  result = this->variable;
}

int main(int argc, char** argv) {
  clients = argc > 1 ? atoi(argv[1]) : 4;
  writes = argc > 2 ? atol(argv[2]) : 10000;
  answered = argc > 3;
  if (Server_create_at(orrery_pe(0), &server) != ORRERY_OK) return fprintf(stderr, "%s\n", orrery_error());
  orrery_task* all = calloc((size_t)clients, sizeof *all);
  for (int i = 0; i < clients; i++)
    if (Client_create_at(orrery_pe((uint32_t)(i + 1) % orrery_pes()), &all[i]) != ORRERY_OK)
      return fprintf(stderr, "%s\n", orrery_error());
  const int64_t begin = orrery_now_ns();
  for (int i = 0; i < clients; i++) Client_send_BEGIN(all[i], &(struct Update){0});
  if (orrery_join(server, ORRERY_FOREVER) != ORRERY_OK) return fprintf(stderr, "%s\n", orrery_error());
  printf("task%s_variable_s %.6g\n", answered ? "_answered" : "", (double)(orrery_now_ns() - begin) / 1e9);
  free(all);
  if (result == clients * writes) return EXIT_SUCCESS;
  fprintf(stderr, "updates were lost\n");
  return EXIT_FAILURE;
}
