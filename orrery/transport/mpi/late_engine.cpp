// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/late_engine.hpp>

#include <algorithm>

namespace orrery::transport {

bool late_engine::send(std::uint32_t to, int tag, std::span<const std::byte> data, request& begun) {
  return by_.send(to, tag, data, begun);
}

bool late_engine::receive(std::uint32_t from, int tag, std::span<std::byte> into, request& begun) {
  begun = next_number();
  if (tag == 0) {
    posted_.emplace_back(begun, into);
    return receive_frames();
  }
  part p;
  if (!by_.receive(from, tag, into, p.begun)) return false;
  parts_.emplace(begun, p);
  return true;
}

// As many as the library is to have ready, whatever the user has.
bool late_engine::receive_frames() {
  while (pool_.size() < receives) {
    frame_receive& r = pool_.emplace_back();
    if (!by_.receive(any_node, 0, r.memory.memory(), r.begun)) return false;
  }
  return true;
}

// Takes what the library has. False if it refuses to go on.
bool late_engine::collect() {
  for (;;) {
    frame_receive& r = pool_[oldest_];
    std::uint32_t node = 0;
    std::uint64_t bytes = 0;
    const outcome o = by_.test(r.begun, node, bytes);
    if (o == outcome::pending) return true;
    if (o == outcome::done && bytes <= frame::capacity) {
      auto& line = frames_[node];
      const auto data = r.memory.memory().first(bytes);
      line.push_back({line.empty() ? due() : std::max(due(), line.back().due), {data.begin(), data.end()}});
    }
    if (!by_.receive(any_node, 0, r.memory.memory(), r.begun)) return false;
    oldest_ = (oldest_ + 1) % pool_.size();
  }
}

engine::outcome late_engine::test(request& begun, std::uint32_t& from, std::uint64_t& bytes) {
  if ((begun & own) == 0) return by_.test(begun, from, bytes);
  if (const auto p = parts_.find(begun); p != parts_.end()) return test_part(p, from, bytes);
  failed_ = failed_ || !collect();
  if (posted_.empty() || posted_.front().first != begun) return outcome::pending;
  if (failed_) return outcome::failed;
  const std::int64_t now = time_();
  const auto is_due = [&](const auto& line) { return !line.second.empty() && line.second.front().due <= now; };
  const auto ready = static_cast<std::uint64_t>(std::ranges::count_if(frames_, is_due));
  if (ready == 0) return outcome::pending;
  auto line = frames_.begin();
  for (std::uint64_t skip = random_() % ready; !is_due(*line) || skip-- != 0;) ++line;
  const late_frame& next = line->second.front();
  std::ranges::copy(next.bytes, posted_.front().second.begin());
  from = line->first;
  bytes = next.bytes.size();
  line->second.pop_front();
  posted_.pop_front();
  return outcome::done;
}

engine::outcome late_engine::test_part(std::map<request, part>::iterator p, std::uint32_t& from, std::uint64_t& bytes) {
  part& is = p->second;
  if (is.due == 0) {
    const outcome o = by_.test(is.begun, is.from, is.bytes);
    if (o == outcome::pending) return o;
    if (o == outcome::failed) {
      parts_.erase(p);
      return o;
    }
    is.due = std::max<std::int64_t>(1, due());
  }
  if (time_() < is.due) return outcome::pending;
  from = is.from;
  bytes = is.bytes;
  parts_.erase(p);
  return outcome::done;
}

// The user cancels all of its receives, when it ends.
void late_engine::cancel(request& /*begun*/) {
  for (frame_receive& r : pool_) by_.cancel(r.begun);
  pool_.clear();
}

}  // namespace orrery::transport
