// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include <orrery/wire/address.hpp>
#include <orrery/wire/exception.hpp>
#include <orrery/wire/serialize.hpp>

// The types that the fuzzer reads from arbitrary bytes, and one good value of each to begin with.
// The first byte of an input selects the type, the others are the message.

namespace orrery::fuzz {

enum class colour : std::uint8_t { red, green };

struct nothing {
  auto operator<=>(const nothing&) const = default;
};

struct packed {
  std::int32_t a;
  float b;
  std::array<std::uint16_t, 4> c;
};

struct mixed {
  char c;
  double d;
  bool b;
  colour k;
  long double l;
  int grid[2][3];
  std::optional<packed> p;
};

struct tree {
  int value = 0;
  std::vector<tree> children;
  std::unique_ptr<tree> next;
  std::variant<std::monostate, bool, std::string, std::shared_ptr<tree>> leaf;
};

// A class that manages its memory by itself.
class page {
 public:
  page() = default;
  explicit page(std::size_t n) : size_(n), data_(std::make_unique<double[]>(n)) {}

  template <class A>
  void serialize(A& a) {
    a & size_ & name_;
    a.require(size_, sizeof(double));
    if constexpr (A::is_loading::value) data_ = std::make_unique<double[]>(size_);
    a.block(data_.get(), size_);
  }

 private:
  std::size_t size_ = 0;
  std::string name_;
  std::unique_ptr<double[]> data_;
};

struct view {
  static constexpr bool is_view = true;
  std::string_view name;
  std::span<const packed> values;
};

using cases =
    std::tuple<bool, colour, packed, mixed, tree, page, view, address, wire_exception,  //
               std::string, std::u16string, std::vector<double>, std::vector<bool>, std::vector<std::string>,
               std::vector<nothing>, std::vector<std::vector<std::tuple<>>>, std::deque<mixed>, std::list<page>,
               std::set<std::string>, std::multiset<nothing>, std::map<std::string, std::vector<int>>,
               std::multimap<int, tree>, std::unordered_map<std::string, std::deque<std::string>>,
               std::unordered_set<int>, std::optional<std::optional<std::string>>, std::pair<bool, std::string>,
               std::tuple<int, std::string, std::vector<bool>>, std::bitset<77>, std::filesystem::path,
               std::complex<long double>, std::chrono::system_clock::time_point, std::span<const double>,
               std::string_view>;

inline tree make_tree(int depth) {
  tree t;
  t.value = depth;
  if (depth == 0) {
    t.leaf = "leaf";
    return t;
  }
  t.children.push_back(make_tree(depth - 1));
  t.children.push_back(make_tree(depth - 1));
  t.next = std::make_unique<tree>(make_tree(depth - 1));
  t.leaf = std::make_shared<tree>(make_tree(0));
  return t;
}

/// Calls f with one value of each case, in their order.
template <class F>
void for_each_sample(F&& f) {
  static const std::vector<double> numbers{1, 2, 3};
  static const std::vector<packed> packs{{1, 2, {3, 4, 5, 6}}};
  const packed p{1, 2, {3, 4, 5, 6}};
  f(true);
  f(colour::green);
  f(p);
  f(mixed{'c', 2, true, colour::red, 3, {{1, 2, 3}, {4, 5, 6}}, p});
  f(make_tree(3));
  f(page(5));
  f(view{"name", packs});
  f(address{3, 17, 2});
  f(encode_exception(make_error(errc::process_gone, "3.17#2")));
  f(std::string("text"));
  f(std::u16string(u"wide"));
  f(numbers);
  f(std::vector<bool>(19, true));
  f(std::vector<std::string>{"one", "", "three"});
  f(std::vector<nothing>(5));
  f(std::vector<std::vector<std::tuple<>>>(3, std::vector<std::tuple<>>(2)));
  f(std::deque<mixed>(2));
  {
    std::list<page> pages;
    pages.emplace_back(3);
    pages.emplace_back();
    f(pages);
  }
  f(std::set<std::string>{"a", "b"});
  f(std::multiset<nothing>{{}, {}});
  f(std::map<std::string, std::vector<int>>{{"a", {1}}, {"b", {}}});
  {
    std::multimap<int, tree> trees;
    trees.emplace(1, make_tree(1));
    trees.emplace(1, make_tree(0));
    f(trees);
  }
  f(std::unordered_map<std::string, std::deque<std::string>>{{"a", {"x"}}, {"b", {}}});
  f(std::unordered_set<int>{1, 2, 3});
  f(std::optional<std::optional<std::string>>(std::in_place, "inner"));
  f(std::pair<bool, std::string>{true, "x"});
  f(std::tuple<int, std::string, std::vector<bool>>{1, "x", {true, false}});
  f(std::bitset<77>("1011"));
  f(std::filesystem::path("/data/set"));
  f(std::complex<long double>(1, 2));
  f(std::chrono::system_clock::time_point(std::chrono::seconds(1)));
  f(std::span<const double>(numbers));
  f(std::string_view("text"));
}

}  // namespace orrery::fuzz
