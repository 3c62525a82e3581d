// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/mpi/engine.hpp>
#include <orrery/transport/mpi/frame.hpp>

#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace orrery::testing {

/// Sends into nothing, and receives what the test says.
class scripted_engine final : public transport::engine {
 public:
  bool send(std::uint32_t, int tag, std::span<const std::byte> data, request& begun) override {
    ++sent;
    begun = 0;
    if (tag == 0) {
      last_sent.assign(data.begin(), data.end());
    } else {
      begun = ++requests_;
      going.push_back(data.size());
      going_requests.insert(begun);
    }
    return true;
  }
  bool receive(std::uint32_t, int tag, std::span<std::byte> into, request& begun) override {
    begun = ++requests_;
    if (tag == 0) {
      posted_.emplace_back(begun, into);
    } else {
      pieces[begun] = into.size();
    }
    return true;
  }
  outcome test(request& begun, std::uint32_t& from, std::uint64_t& bytes) override {
    if (begun == 0) return outcome::done;
    if (going_requests.contains(begun)) return holds_pieces ? outcome::pending : outcome::done;
    if (const auto piece = pieces.find(begun); piece != pieces.end()) {
      bytes = piece->second;
      return blocks_are_there ? outcome::done : outcome::pending;
    }
    if (posted_.empty() || posted_.front().first != begun || incoming.empty()) return outcome::pending;
    const auto& frame = incoming.front();
    std::memcpy(posted_.front().second.data(), frame.data(), frame.size());
    from = sender_of(frame);
    bytes = frame.size();
    incoming.pop_front();
    posted_.pop_front();
    return outcome::done;
  }
  void cancel(request&) override {}
  std::span<const std::uint32_t> failures() override { return failed; }
  [[nodiscard]] std::string error() const override { return "no error"; }

  std::deque<std::vector<std::byte>> incoming;  // frames
  int sent = 0;
  std::vector<std::byte> last_sent;  // a frame
  std::map<request, std::uint64_t> pieces;  // of blocks: what is received
  bool blocks_are_there = false;
  bool holds_pieces = false;  // what is sent of blocks does not arrive
  std::vector<std::uint64_t> going;  // their bytes
  std::set<request> going_requests;
  std::vector<std::uint32_t> failed;  // nodes, as the library reports them

 private:
  // As it says itself; 1 for what is no frame.
  static std::uint32_t sender_of(const std::vector<std::byte>& frame) {
    transport::frame_head head{};
    if (frame.size() >= sizeof head) std::memcpy(&head, frame.data(), sizeof head);
    return head.magic == transport::frame_head::magic_value ? head.node : 1;
  }

  std::deque<std::pair<request, std::span<std::byte>>> posted_;
  request requests_ = 0;
};

}  // namespace orrery::testing
