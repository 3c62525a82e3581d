// SPDX-License-Identifier: Apache-2.0
#pragma once

// What two programs, shop.cpp and customer.cpp, use in common. Each has more.

#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>
#include <orrery/shared/vector.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace shop {

struct price {
  std::string of;
#ifdef OTHER_FIELD
  float euros = 0;
  float cents = 0;
#else
  double euros = 0;
#endif
};

/// Lives in the customer's program and is called by the shop's.
struct listener {
  int hear(const std::string& text) { return heard += static_cast<int>(text.size()); }
  int heard = 0;
};
ORRERY_PROCESS(listener, hear);

/// An element of the shop's array.
struct shelf {
  int put(int n) { return goods += n; }
  void fill(int n) { goods = n; }
  int goods = 0;
};
ORRERY_PROCESS(shelf, put, fill);

/// A member of the shop's group.
struct clerk {
  int greet(const std::string& whom) { return greeted += static_cast<int>(whom.size()); }
  int greeted = 0;
};
ORRERY_PROCESS(clerk, greet);

struct counter {
#ifdef OTHER_SIGNATURE
  int add(long n) { return total += static_cast<int>(n); }
#else
  int add(int n) { return total += n; }
#endif
  price quote(std::string_view of, const std::vector<unsigned long>& amounts) const {
    price p;
    p.of = of;
    for (const unsigned long n : amounts) p.euros += static_cast<decltype(p.euros)>(n);
    return p;
  }
  void refuse(const std::string& why) { throw std::out_of_range(why); }
  int tell(orrery::remote<listener> who, const std::string& text) { return who->hear(text); }
  orrery::array<shelf, int> shelves() const { return all_shelves; }
  orrery::element_ptr<shelf, long> best() const { return best_shelf; }
  orrery::group<clerk> clerks() const { return all_clerks; }
  orrery::shared_vector<std::string> words() const { return all_words; }
  int mark(int n) { return n; }
  int mark(const std::string& text) { return static_cast<int>(text.size()); }

  int total = 0;
  orrery::array<shelf, int> all_shelves;
  orrery::element_ptr<shelf, long> best_shelf;
  orrery::group<clerk> all_clerks;
  orrery::shared_vector<std::string> all_words;
};
ORRERY_PROCESS(counter, add, quote, refuse, tell, mark, shelves, best, clerks, words);

}  // namespace shop
