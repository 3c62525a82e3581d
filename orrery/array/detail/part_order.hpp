// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/part_route.hpp>
#include <orrery/wire/unique_ptr.hpp>

// Where messages whose order is kept wait for each other (order.hpp).
namespace orrery::detail {

// At the element. Mostly nothing waits, and the message goes the way of all others.
template <class Index>
slot* index_part<Index>::pass_element(cell_type& c, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
                                      const Index& i, order_tag tag) {
  inbox& in = c.order_of().in;
  if (!in.in_turn(tag) && !lossy()) {
    in.hold(tag, d.detach(e, size));
    return nullptr;
  }
  in.passed(tag);
  if (!in.has_next(tag.stream)) return c.process;
  const Index at = i;  // it may lie in the message
  self_.push(*c.process, d.detach(e, size));
  release_next(at, tag.stream);
  return nullptr;
}

// At the home of an index without an element.
template <class Index>
slot* index_part<Index>::pass_home(const routed_kind& kind, remote_location* a, scheduler::delivery& d,
                                   const wire::envelope& e, std::uint32_t size, const route_head& h, const Index& i,
                                   order_tag tag) {
  const Index at = i;
  if (a == nullptr) {
    a = &make_location(at, self_.id(), true);
    a->state = remote_location::what::waiting;
  }
  if ((h.flags & route_head::asks) != 0) tell_location(h, at, nullptr);
  inbox& in = inbox_of(*a);
  if (!in.in_turn(tag) && !lossy()) {
    in.hold(tag, d.detach(e, size));
    return nullptr;
  }
  if (create_for(kind, a, h, at)) return route(kind, d, e, size, once_tried(h), at, tag);
  in.passed(tag);
  if (a->state == remote_location::what::waiting && !ends() && (kind.policy != early::refuse || a->queued != 0)) {
    if (!keep_early(kind, *a, d, e, size, h, at)) in.failed(tag);
  } else {
    if (h.number != 0) tell_location(h, at, nullptr);
    fail_routed(*this, kind, d, h, gone(at));
    if (kind.closes) {
      end_stream(at, tag.stream);
      return nullptr;
    }
  }
  release_next(at, tag.stream);
  return nullptr;
}

template <class Index>
inbox* index_part<Index>::streams_of(const Index& i) const noexcept {
  const auto it = tables_->places.find(i);
  if (it == tables_->places.end()) return nullptr;
  if (it->second.is_remote()) return it->second.there()->in.get();
  return it->second.here()->order != nullptr ? &it->second.here()->order->in : nullptr;
}

// A released message may release more, also of other streams: one after the other, as the stack has
// an end.
template <class Index>
void index_part<Index>::release_next(const Index& i, std::uint64_t stream) {
  tables_->releasing.emplace_back(i, stream);
  if (in_release_) return;
  in_release_ = true;
  while (!tables_->releasing.empty()) {
    const auto [at, name] = std::move(tables_->releasing.back());
    tables_->releasing.pop_back();
    inbox* in = streams_of(at);
    scheduler::message* m = in != nullptr ? in->take_next(name) : nullptr;
    if (m == nullptr) continue;
    tables_->releasing.emplace_back(at, name);
    dispatch(self_, m);
  }
  in_release_ = false;
}

// At the home of an index without an element, of which nothing may have to be known any more.
template <class Index>
void index_part<Index>::end_stream(const Index& i, std::uint64_t stream) {
  remote_location* a = find_location(i);
  a->in->end(stream);
  if (!a->in->empty()) return;
  a->in.reset();
  if (a->state == remote_location::what::deleted) {
    tables_->deleted.emplace_back(i, a->birth);
  } else if (a->queued == 0) {
    (void)erase_remote_location(i);
  }
}

template <class Index>
bool index_part<Index>::merge_streams(const Index& i, const inbox::counts& streams) {
  const auto it = tables_->places.find(i);
  if (it == tables_->places.end()) return false;
  inbox* in = nullptr;
  if (!it->second.is_remote()) {
    if (!streams.empty()) in = &it->second.here()->order_of().in;
  } else {
    remote_location* a = it->second.there();
    if (!a->is_home || a->state == remote_location::what::at) return false;
    if (!streams.empty()) in = &inbox_of(*a);
  }
  if (in == nullptr) return true;
  in->merge(streams);
  for (const inbox::count& c : streams) release_next(i, c.stream);
  return true;
}

/// Brings what the home knows of the streams of an index to its new element.
template <class Index>
struct streams_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      orrery::reader r(wire_payload(d, e, size));
      const auto h = orrery::read<route_head>(r);
      const auto i = orrery::read<Index>(r);
      const auto streams = orrery::read<inbox::counts>(r);
      auto* part = static_cast<index_part<Index>*>(array_directory::of(self).find(e.slot));
      if (part != nullptr && !part->merge_streams(i, streams)) return part->route(following_kind, d, e, size, h, i);
      d.release();
    } catch (...) {
      d.fail(std::current_exception());
    }
    return nullptr;
  }
  inline static const control_handler instance{type_name<streams_message>(), &route, nullptr,
                                               wire::type_key<streams_message>()};
};

template <class Index>
void index_part<Index>::send_streams(const Index& i, std::uint32_t pe, wire::unique_ptr<inbox> in) {
  if (in->empty()) return;
  tell(self_, pe, streams_message<Index>::instance, id(), 0, pack(0, route_head{0, 0, self_.id(), 0, 0}, i, in->all()));
}

}  // namespace orrery::detail
