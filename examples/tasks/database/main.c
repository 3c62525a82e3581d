// SPDX-License-Identifier: Apache-2.0
// A database (Gingras 2018, section 4.5): a server task with an ordered index, and clients in the
// same and in other OS processes that check each answer.
//
//   ./database [-c CLIENTS] [-n REQUESTS] [-w WINDOW] [-k KEYS] [-p NS]
//              [-s notify|wait|immediate] [-l LOG] [-b BATCH]
//   ./database --orrery-world=NAME serve [-l LOG] ...  the server in a program of its own
//   ./database --orrery-world=NAME client [-f NUMBER]  clients; the first has that number
//   ./database recover -l LOG                          says what the log makes of an index
//
// -n: of each client; -w: that it has at a time without an answer; -b: changes that go to the disk
// together; -g: only the figures; -v: says when it has begun.
//
// run: ./database -c 3 -n 3000 --orrery-pes=2
// run: ./database -c 7 -n 500 -s wait --orrery-nodes=4 --orrery-pes=1
// run: ./database -c 3 -n 300 -s immediate --orrery-pes=1
// run: ./database -c 2 -n 500 -p 20000 -w 4 --orrery-pes=2
// run: ./database -c 5 -n 400 -w 8 --orrery-sim=machines=3,jitter=20us --orrery-quiet
// run: l=/tmp/database-log-$$; ./database -c 4 -n 500 -l $l -b 16 --orrery-pes=2; ./database recover -l $l > $l.1; printf torn >> $l; ./database recover -l $l | grep 'dropped: 4 bytes'; ./database recover -l $l | diff - $l.1; ./database -c 2 -n 100 -l $l --orrery-pes=2; rm $l $l.1
// run: w=database-$$; exec 3< <(./database --orrery-world=$w serve); read -u 3; ./database --orrery-world=$w client -c 2 -n 500 & ./database --orrery-world=$w client -f 10 -n 500; wait $!; ./database --orrery-world=$w stop; grep 'server: 150' <&3
// run: w=database-$$; l=/tmp/$w; serve="./database --orrery-world=$w serve -l $l"; exec 3< <(exec $serve); s=$!; read -u 3; ./database --orrery-world=$w client -n 200; exec 4< <(./database --orrery-world=$w client -f 5 -n 1000000000 -v 2>&1 || true); read -u 4; kill -9 $s; cat <&4; exec 3< <($serve); read -u 3; ./database --orrery-world=$w client -n 200; ./database --orrery-world=$w client -f 5 -n 200; ./database --orrery-world=$w stop; rm $l
// run: w=database-$$; exec 3< <(exec ./database --orrery-world=$w serve -l /tmp/$w); s=$!; read -u 3; ./database --orrery-world=$w client -n 300; kill -TERM $s; grep 'server: 301' <&3; ./database recover -l /tmp/$w; rm /tmp/$w
#include "database.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
  const char* what;
  int clients, first, requests, window, keys, pace, batch;
  orrery_strategy strategy;
  char* log;
  bool only_figures, verbose;
};

static int usage(void) {
  fprintf(
      stderr,
      "usage: database [serve|client|stop|recover] [-c CLIENTS] [-f FIRST] [-n REQUESTS] [-w WINDOW] [-k KEYS] [-p NS]\n"
      "                [-s notify|wait|immediate] [-l LOG] [-b BATCH] [-g] [-v]\n");
  return 2;
}

static bool read_options(int argc, char** argv, struct options* o) {
  static const char* const strategies[] = {"notify", "wait", "immediate"};
  *o = (struct options){"both", 1, 0, 10000, 1, 1000, 0, 64, ORRERY_NOTIFY, NULL, false, false};
  optind = 1;
  for (int c = 0; (c = getopt(argc, argv, "c:f:n:w:k:p:s:l:b:gv")) != -1;) {
    int* const numbers[256] = {['c'] = &o->clients, ['f'] = &o->first, ['n'] = &o->requests, ['w'] = &o->window,
                               ['k'] = &o->keys,    ['b'] = &o->batch, ['p'] = &o->pace};
    if (c < 256 && numbers[c] != NULL) {
      char* end = optarg;
      const long n = strtol(optarg, &end, 10);
      if (end == optarg || *end != 0 || n < (c == 'f' ? 0 : 1) || n > 1000000000) return false;
      *numbers[c] = (int)n;
    } else if (c == 's') {
      int s = 0;
      while (s < 3 && strcmp(optarg, strategies[s]) != 0) s++;
      if (s == 3) return false;
      o->strategy = (orrery_strategy)s;
    } else if (c == 'l') {
      o->log = optarg;
    } else if (c == 'g') {
      o->only_figures = true;
    } else if (c == 'v') {
      o->verbose = true;
    } else {
      return false;
    }
  }
  if (optind < argc) o->what = argv[optind++];
  return optind == argc && o->clients <= 10000;
}

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, orrery_error());
  return EXIT_FAILURE;
}

// --- the server ----------------------------------------------------------------------------------

static bool start_server(const struct options* o, orrery_task* server) {
  return Server_create_at(orrery_here(), server) == ORRERY_OK &&
         Server_send_OPTIONS(*server, &(struct ServerOptions){o->log, o->batch, o->strategy, orrery_self()}) ==
             ORRERY_OK;
}

static int report_of_server(const struct options* o) {
  orrery_message m;
  if (orrery_receive_tag(SERVER_REPORT, &m, ORRERY_FOREVER) != ORRERY_OK) return failed("the server");
  const ServerReport r = ServerReport_open(&m);
  if (r == NULL) return failed("the server");
  if (o->log != NULL && r->records != 0) printf("log: %ld records\n", r->records);
  if (r->dropped != 0) printf("log: damaged at its end; dropped: %ld bytes\n", r->dropped);
  if (!o->only_figures)
    printf("server: %ld requests, %ld entries, %ld visits to the disk\n", r->requests, r->size, r->syncs);
  if (r->problem[0] != 0) fprintf(stderr, "server: %s\n", r->problem);
  const bool good = r->problem[0] == 0;
  orrery_release(&m);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int serve(const struct options* o) {
  orrery_task server;
  if (!start_server(o, &server) || orrery_set_name(server, "database") != ORRERY_OK) return failed("serve");
  orrery_stop_on_signal(SIGINT, server);
  orrery_stop_on_signal(SIGTERM, server);
  puts("serving");
  fflush(stdout);
  return report_of_server(o);
}

static int recover(const struct options* o) {
  orrery_task server;
  if (o->log == NULL) return usage();
  if (!start_server(o, &server) || Server_send_STOP(server) != ORRERY_OK) return failed("recover");
  return report_of_server(o);
}

// --- clients -------------------------------------------------------------------------------------

static void say_figures(const struct options* o, long requests, double seconds, const long* counts) {
  const double rate = (double)requests / seconds / 1e3;
  const double p50 = quantile_us(counts, 0.5), p99 = quantile_us(counts, 0.99);
  if (o->only_figures) {
    printf("db_%d_k %.6g\ndb_%d_p50_us %.6g\ndb_%d_p99_us %.6g\n", o->clients, rate, o->clients, p50, o->clients, p99);
    return;
  }
  printf("%d clients, %ld requests: %.1f thousand a second\n", o->clients, requests, rate);
  printf("latency in us: 50%% %.1f, 90%% %.1f, 99%% %.1f, 99.9%% %.1f, the slowest %.1f\n", p50,
         quantile_us(counts, 0.9), p99, quantile_us(counts, 0.999), quantile_us(counts, 1));
}

// In a closed world they are on all other PEs in turn; in a program of their own, on its PEs.
static int run_clients(const struct options* o, orrery_task server, bool spread) {
  for (int i = 0; i < o->clients; i++) {
    orrery_task client;
    const orrery_place place =
        spread
            ? orrery_pe((orrery_this_pe() + 1 + (uint32_t)i % (orrery_pes() > 1 ? orrery_pes() - 1 : 1)) % orrery_pes())
            : orrery_anywhere();
    if (Client_create_at(place, &client) != ORRERY_OK ||
        Client_send_OPTIONS(client, &(struct ClientOptions){server, orrery_self(), o->first + i, o->requests, o->window,
                                                            o->keys, o->pace, o->strategy}) != ORRERY_OK)
      return failed("a client");
  }
  if (o->verbose) printf("%d clients have begun\n", o->clients), fflush(stdout);
  long counts[BUCKETS] = {0}, requests = 0, wrong = 0;
  int64_t begin = INT64_MAX, end = 0;
  bool lost = false;
  for (int i = 0; i < o->clients; i++) {
    orrery_message m;
    if (orrery_receive_tag(CLIENT_REPORT, &m, ORRERY_FOREVER) != ORRERY_OK) return failed("the clients");
    const ClientReport r = ClientReport_open(&m);
    if (r == NULL) return failed("a client");
    requests += r->requests, wrong += r->wrong;
    if (r->begin < begin) begin = r->begin;
    if (r->end > end) end = r->end;
    for (int b = 0; b < r->buckets && b < BUCKETS; b++) counts[b] += r->counts[b];
    if (r->problem[0] != 0) fprintf(stderr, "client %d: %s\n", r->number, r->problem), lost = true;
    orrery_release(&m);
  }
  say_figures(o, requests, (double)(end - begin) / 1e9, counts);
  if (wrong != 0) fprintf(stderr, "%ld answers are WRONG\n", wrong);
  return wrong == 0 && !lost ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int both(const struct options* o) {
  orrery_task server;
  if (!start_server(o, &server)) return failed("the server");
  const int clients = run_clients(o, server, true);
  if (Server_send_STOP(server) != ORRERY_OK) return failed("the server");
  const int said = report_of_server(o);
  return clients != EXIT_SUCCESS ? clients : said;
}

int main(int argc, char** argv) {
  struct options o;
  if (!read_options(argc, argv, &o)) return usage();
  if (strcmp(o.what, "both") == 0) return both(&o);
  if (strcmp(o.what, "serve") == 0) return serve(&o);
  if (strcmp(o.what, "recover") == 0) return recover(&o);
  orrery_task server;
  if (strcmp(o.what, "client") != 0 && strcmp(o.what, "stop") != 0) return usage();
  if (orrery_find("database", &server, ORRERY_FOREVER) != ORRERY_OK) return failed("database");
  if (strcmp(o.what, "client") == 0) return run_clients(&o, server, false);
  if (Server_send_STOP(server) != ORRERY_OK) return failed("stop");
  (void)orrery_join(server, ORRERY_FOREVER);  // with which the world may end
  return EXIT_SUCCESS;
}
