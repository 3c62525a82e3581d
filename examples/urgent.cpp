// SPDX-License-Identifier: Apache-2.0
// Messages of three levels: a question that does not wait for work, and tidying up behind it.
// run: ./urgent
// run: ./urgent --orrery-nodes=2 --orrery-pes=2
#include <orrery/orrery.hpp>
#include <orrery/process/priority.hpp>

#include <cstdio>

struct Worker {
  void work(int n) { done += n; }
  int progress() const { return done; }
  void tidy() { tidied_after = done; }
  int tidied() const { return tidied_after; }
  int done = 0;
  int tidied_after = 0;
};
ORRERY_PROCESS(Worker, work, progress, tidy, tidied);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    const auto worker = orrery::spawn<Worker>(orrery::here());
    post(worker, orrery::background)->tidy();  // when its PE has nothing else to do
    for (int i = 0; i < 1000; ++i) post(worker)->work(1);
    const int early = call(worker, orrery::urgent)->progress();  // before the work
    orrery::quiescence();
    std::printf("asked after %d steps, tidied after %d\n", early, worker->tidied());
    return early == 0 && worker->tidied() == 1000 ? 0 : 1;
  });
}
