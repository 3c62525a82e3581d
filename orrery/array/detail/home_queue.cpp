// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/home_queue.hpp>

namespace orrery::detail {

void home_queue::add(scheduler::message* m, order_tag tag, bool again) {
  std::size_t at = again ? again_ : all_.size();
  if (tag.stream != 0) {
    const auto of_stream = [&](const waiting& w) { return w.tag.stream == tag.stream; };
    const auto next =
        std::ranges::find_if(all_, [&](const waiting& w) { return of_stream(w) && w.tag.number > tag.number; });
    const auto last = std::find_if(all_.rbegin(), all_.rend(), of_stream);
    if (next != all_.end()) {
      at = static_cast<std::size_t>(next - all_.begin());
    } else if (last != all_.rend()) {
      at = std::max(at, static_cast<std::size_t>(all_.rend() - last));
    }
  }
  all_.insert(all_.begin() + static_cast<std::ptrdiff_t>(at), {m, tag});
  again_ += (again ? at <= again_ : at < again_) ? 1 : 0;
}

}  // namespace orrery::detail
