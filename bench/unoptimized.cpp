// SPDX-License-Identifier: Apache-2.0
// A part of the benchmarks that ./run test builds: those are not optimized, and say so.
#include <cstdio>
#include <cstdlib>

namespace {

[[gnu::constructor]] void say_so() {
  if (std::getenv("ORRERY_INTERNAL_JOIN") != nullptr) return;  // the first node has said it
  std::fputs("built without optimization, to see that it runs: no figure means anything (./run bench builds anew)\n",
             stderr);
}

}  // namespace
