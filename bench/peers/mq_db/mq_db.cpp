// SPDX-License-Identifier: Apache-2.0
// The database over POSIX message queues: one for requests, and one for each client's answers.
#include "../database.hpp"

#include <fcntl.h>
#include <mqueue.h>
#include <string>

using namespace peers;

static mqd_t open_queue(const std::string& name, std::size_t bytes) {
  mq_attr a{};
  a.mq_maxmsg = 10;  // what a system gives without asking root
  a.mq_msgsize = long(bytes);
  mq_unlink(name.c_str());
  mqd_t q = mq_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600, &a);
  if (q == mqd_t(-1)) fail("mq_open");
  mq_unlink(name.c_str());  // those who are forked have it
  return q;
}

static void measure(int count) {
  const std::string name = "/orrery-db-" + std::to_string(getpid());
  const mqd_t requests = open_queue(name, sizeof(request));
  std::vector<mqd_t> answers;
  for (int i = 0; i < count; ++i) answers.push_back(open_queue(name + "-" + std::to_string(i), sizeof(answer)));
  auto serve = [&] {
    server_work work;
    for (request r;;) {
      if (mq_receive(requests, reinterpret_cast<char*>(&r), sizeof r, nullptr) < 0) fail("mq_receive");
      const answer& a = work.serve(r);
      if (mq_send(answers[r.client], reinterpret_cast<const char*>(&a), a.bytes(), 0) < 0) fail("mq_send");
    }
  };
  measure_database("mq", count, serve, [&](int i) {
    return [&, q = answers[std::size_t(i)]](const request& r, answer& a) {
      if (mq_send(requests, reinterpret_cast<const char*>(&r), sizeof r, 0) < 0 ||
          mq_receive(q, reinterpret_cast<char*>(&a), sizeof a, nullptr) < 0)
        fail("mq call");
    };
  });
  mq_close(requests);
  for (mqd_t q : answers) mq_close(q);
}

int main(int argc, char** argv) {
  for (int count : client_counts(argc, argv)) measure(count);
}
