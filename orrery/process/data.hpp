// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/spawn.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

// Remote data (Givelberg 2014, section 3.1): an array that is a process.
//
//     auto data = orrery::spawn<double[]>(orrery::pe(3), 1024);
//     data[7] = 3.1415;
//     double x = data[2];
//     data.write(0, values);               // in bulk: one message, no intermediate copy

namespace orrery {

namespace detail {
[[noreturn]] void throw_outside(std::size_t index, std::size_t size);
[[noreturn]] void throw_outside(std::size_t first, std::size_t count, std::size_t size);
}  // namespace detail

/// The change that `data[i] op= x` makes to an element.
enum class element_update : std::uint8_t { add, subtract, multiply, divide };

/// The process behind a `remote<T[]>`: a block of elements that others read and write. An ordinary
/// class; user code sees it only where it wants a call in another mode: `start(data)->get(7)`,
/// `post(data)->set(7, x)`, `start(data)->read(0, 100)`.
///
/// All methods throw std::out_of_range, which names the index and the size, and change nothing
/// then.
template <class T>
class block {
  static_assert(
      std::is_same_v<T, std::remove_cv_t<T>> && serializable<std::span<const T>>,
      "orrery: the elements of remote data have to be numbers, enums or classes of them without padding, as they are "
      "read and written in place (not bool: use unsigned char); make a process of a class of your own for all others");

 public:
  explicit block(std::size_t size) : size_(checked(size)), elements_(wire::make_unique<T[]>(size)) {}
  block(std::size_t size, T value) : size_(checked(size)), elements_(wire::make_unique_definit<T[]>(size)) {
    fill(value);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The element i. Throws std::out_of_range.
  [[nodiscard]] T get(std::size_t i) const {
    check(i);
    return elements_[i];
  }
  /// Gives the element i a value. Throws std::out_of_range.
  void set(std::size_t i, T value) {
    check(i);
    elements_[i] = value;
  }
  /// Changes an element where it is, so that no other process comes in between; returns what it
  /// became.
  T update(std::size_t i, element_update what, T value)
    requires std::is_arithmetic_v<T>
  {
    check(i);
    T& e = elements_[i];
    switch (what) {
      case element_update::add:
        e = static_cast<T>(e + value);
        break;
      case element_update::subtract:
        e = static_cast<T>(e - value);
        break;
      case element_update::multiply:
        e = static_cast<T>(e * value);
        break;
      case element_update::divide:
        e = static_cast<T>(e / value);
        break;
    }
    return e;
  }
  /// Gives all elements one value.
  void fill(T value) { std::fill_n(elements_.get(), size_, value); }

  /// A copy of `count` elements from `first` on. Throws std::out_of_range.
  [[nodiscard]] std::vector<T> read(std::size_t first, std::size_t count) const {
    const auto v = view(first, count);
    return std::vector<T>(v.begin(), v.end());
  }
  /// Writes the values to the elements from `first` on. Throws std::out_of_range.
  void write(std::size_t first, std::span<const T> values) {
    check(first, values.size());
    std::copy(values.begin(), values.end(), elements_.get() + first);
  }
  /// The elements where they are.
  [[nodiscard]] std::span<const T> view(std::size_t first, std::size_t count) const {
    check(first, count);
    return {elements_.get() + first, count};
  }

  ORRERY_PROCESS_MEMBERS(block, size, get, set, update, fill, read, write)

 private:
  // A size that no memory can hold is refused here: not every allocator reports it by an exception.
  static std::size_t checked(std::size_t size) {
    if (size > std::size_t{PTRDIFF_MAX} / sizeof(T)) throw std::bad_array_new_length();
    return size;
  }
  void check(std::size_t i) const {
    if (i >= size_) [[unlikely]]
      detail::throw_outside(i, size_);
  }
  void check(std::size_t first, std::size_t count) const {
    if (first > size_ || count > size_ - first) [[unlikely]]
      detail::throw_outside(first, count, size_);
  }

  std::size_t size_;
  wire::unique_ptr<T[]> elements_;
};

namespace detail {

// remote<T[]> is described by the block behind it.
template <class T>
typename block<T>::orrery_description orrery_describe(T (*)[], adl_tag);

// Where a bulk read is to put the elements: known inside a node only, where the caller waits.
// Another node sees no pointer.
template <class T>
struct destination {
  using stays_as_it_is = void;
  T* at = nullptr;
  std::size_t count = 0;
  template <class A>
  void serialize(A& a) {
    a & count;
  }
};

// A bulk read: inside a node it copies straight to its destination and returns nothing; to another
// node the elements are written from the block into the message.
template <class T>
struct read_operation {
  using object = block<T>;
  using result = std::span<const T>;
  static constexpr std::string_view class_name() noexcept { return type_name<block<T>>(); }
  static constexpr std::string_view name() noexcept { return "read"; }
  static std::span<const T> run(pe&, slot&, const block<T>* b, std::size_t first, const destination<T>& to) {
    const auto elements = b->view(first, to.count);
    if (to.at == nullptr) return elements;
    std::copy(elements.begin(), elements.end(), to.at);
    return {};
  }
};

// ... and out of the message to the caller's memory.
template <class T>
struct read_sink : scheduler::sink {
  std::span<const T> nothing;
  std::span<T> out;
  explicit read_sink(std::span<T> o) noexcept : out(o) {
    storage = &nothing;
    decode = [](scheduler::sink& s, const std::byte* data, std::size_t received) {
      orrery::reader r({data, received});
      const auto elements = orrery::read<std::span<const T>>(r);
      auto& to = static_cast<read_sink&>(s).out;
      if (elements.size() != to.size())
        throw bad_message(errc::message_corrupt, "remote data: another number of elements than was asked for");
      std::copy(elements.begin(), elements.end(), to.begin());
    };
  }
  void take() const {
    if (state == status::error) std::rethrow_exception(error);
  }
};

}  // namespace detail

/// An element of remote data, as `data[i]` gives it: converts to its value, which is read then, and
/// can be assigned to. Each is one sequential call, with what that throws, and std::out_of_range.
/// (`auto x = data[i]` names the element, not its value.)
template <class T>
class remote_element {
 public:
  remote_element(const remote<T[]>& data, std::size_t i) noexcept : address_(data.address()), index_(i) {}
  remote_element(const remote_element&) = default;

  operator T() const { return data()->get(index_); }  // NOLINT(google-explicit-constructor)
  const remote_element& operator=(T value) const {
    data()->set(index_, value);
    return *this;
  }
  const remote_element& operator=(const remote_element& other) const { return *this = static_cast<T>(other); }
  remote_element& operator=(const remote_element& other) {
    std::as_const(*this) = static_cast<T>(other);
    return *this;
  }
  // These change the elements at the process: nobody comes in between.
  const remote_element& operator+=(T x) const { return update(element_update::add, x); }
  const remote_element& operator-=(T x) const { return update(element_update::subtract, x); }
  const remote_element& operator*=(T x) const { return update(element_update::multiply, x); }
  const remote_element& operator/=(T x) const { return update(element_update::divide, x); }

 private:
  [[nodiscard]] remote<block<T>> data() const noexcept { return remote<block<T>>(address_); }
  const remote_element& update(element_update what, T x) const {
    data()->update(index_, what, x);
    return *this;
  }

  address address_;
  std::size_t index_;
};

/// An array of T somewhere in the world: a small value, like every remote pointer; to be copied,
/// stored and sent. It owns nothing; `destroy(data)` ends it. All calls may park the caller and
/// throw std::out_of_range, process_gone, node_lost and stopped. In other modes:
/// `start(data)->read(first, count)`, `post(data)->write(first, values)`; see `block`. (Givelberg
/// 2014, section 3.1.)
template <class T>
class remote<T[]> {
 public:
  using element_type = T;

  constexpr remote() noexcept = default;
  constexpr explicit remote(orrery::address a) noexcept : address_(a) {}

  /// Where the process lies. Does not park.
  [[nodiscard]] constexpr const orrery::address& address() const noexcept { return address_; }
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return static_cast<bool>(address_); }
  [[nodiscard]] const auto* operator->() const noexcept { return detail::view_as<detail::call_mode, T[]>(address_); }

  [[nodiscard]] remote_element<T> operator[](std::size_t i) const noexcept { return {*this, i}; }
  [[nodiscard]] std::size_t size() const { return process()->size(); }
  /// Gives all elements one value.
  void fill(T value) const { process()->fill(value); }

  /// Fills `out` with the elements from `first` on. One message; inside a node one copy.
  void read(std::size_t first, std::span<T> out) const;
  /// A copy of `count` elements from `first` on.
  [[nodiscard]] std::vector<T> read(std::size_t first, std::size_t count) const {
    return process()->read(first, count);
  }
  /// Writes the values to the elements from `first` on. One message; inside a node one copy.
  void write(std::size_t first, std::span<const T> values) const { process()->write(first, values); }

  /// The process that holds the elements.
  [[nodiscard]] remote<block<T>> process() const noexcept { return remote<block<T>>(address_); }
  operator remote<block<T>>() const noexcept { return process(); }  // NOLINT(google-explicit-constructor)

  friend constexpr bool operator==(const remote&, const remote&) noexcept = default;
  friend constexpr auto operator<=>(const remote&, const remote&) noexcept = default;
  template <class A>
  void serialize(A& a) {
    a & address_;
    detail::rename_after_restart(a, address_);
  }

 private:
  orrery::address address_;
};

template <class T>
void remote<T[]>::read(std::size_t first, std::span<T> out) const {
  using handler = detail::typed_handler<detail::read_operation<T>, std::size_t, detail::destination<T>>;
  detail::pe& self = detail::here_pe();
  if (address_.pe == self.id()) {
    detail::slot* s = self.find(address_.slot, address_.generation);
    if (s != nullptr && s->state == scheduler::process_state::idle && self.room_on_stack()) [[likely]] {
      const auto* b = detail::object_in<block<T>>(*s);
      if (b == nullptr) [[unlikely]]
        detail::throw_wrong_class(handler::instance, s->cls());
      const detail::inline_frame frame(self, *s, handler::instance);
      const auto elements = b->view(first, out.size());
      std::copy(elements.begin(), elements.end(), out.begin());
      return;
    }
  }
  detail::read_sink<T> k(out);
  detail::send_call<handler>(self, address_, k, first, detail::destination<T>{out.data(), out.size()});
  k.take();
}

/// Creates an array of `size` elements, all `T()`, on the PE that the placement means. Parks the
/// caller unless that is its own. Throws std::bad_alloc (std::bad_array_new_length), usage_error
/// (no such place), node_lost, stopped.
///
///     auto data = orrery::spawn<double[]>(orrery::pe(3), 1024);
template <class A>
  requires std::is_unbounded_array_v<A>
remote<A> spawn(placement where, std::size_t size) {
  return remote<A>(spawn<block<std::remove_extent_t<A>>>(where, size).address());
}
/// The same; all elements are `value`.
template <class A>
  requires std::is_unbounded_array_v<A>
remote<A> spawn(placement where, std::size_t size, std::type_identity_t<std::remove_extent_t<A>> value) {
  return remote<A>(spawn<block<std::remove_extent_t<A>>>(where, size, value).address());
}
/// As spawn, but returns a future at once.
template <class A>
  requires std::is_unbounded_array_v<A>
future<remote<A>> start_spawn(placement where, std::size_t size) {
  using process = remote<block<std::remove_extent_t<A>>>;
  return start_spawn<block<std::remove_extent_t<A>>>(where, size).then([](process p) {
    return remote<A>(p.address());
  });
}

/// Ends the array; see destroy of a process.
template <class T>
void destroy(const remote<T[]>& data) {
  destroy(data.process());
}
template <class T>
future<void> start_destroy(const remote<T[]>& data) {
  return start_destroy(data.process());
}

}  // namespace orrery
