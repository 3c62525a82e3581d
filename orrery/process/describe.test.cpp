// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/describe.hpp>

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>

namespace orrery {
namespace describe_tests {

using testing::in_world;

class Shape {
 public:
  explicit Shape(std::string name = "shape") : name_(std::move(name)) {}
  virtual ~Shape() = default;
  virtual double area() const { return 0; }
  std::string name() const { return name_; }
  int scale(int n) { return n; }
  int hidden() { return 1; }

 protected:
  std::string name_;
};
ORRERY_PROCESS(Shape, area, name, scale, hidden);

class Square : public Shape {
 public:
  explicit Square(double side) : Shape("square"), side_(side) {}
  double area() const override { return side_ * side_; }
  double side() const { return side_; }
  std::string hidden() { return "derived"; }

 private:
  double side_;
};
ORRERY_PROCESS(Square, side, hidden);

class Tile : public Square {  // no line of its own
 public:
  Tile() : Square(2) {}
  double area() const override { return 4.5; }
};

struct Other {
  virtual ~Other() = default;
  int padding[4] = {};
  int other() const { return padding[0] + 9; }
};
ORRERY_PROCESS(Other, other);

struct Mixed : Other, Shape {  // the described base is not at the beginning of the object
  int own() const { return 3; }
};

struct Both : Shape, Other {  // both bases are described
  Both() : Shape("both") {}
  int own() const { return 5; }
};
ORRERY_PROCESS_DERIVED(Both, (Shape, Other), own);

struct More : Both {
  int more() const { return 6; }
};
ORRERY_PROCESS(More, more);

struct Part : virtual Other {
  int part() const { return other() + 1; }
};
ORRERY_PROCESS(Part, part);

template <class T>
class Queue {
 public:
  void push(T value) { values_.push_back(std::move(value)); }
  T pop() {
    T value = std::move(values_.back());
    values_.pop_back();
    return value;
  }
  ORRERY_PROCESS_MEMBERS(Queue, push, pop)

 private:
  std::vector<T> values_;
};

template <class T>
class Counting : public Queue<T> {
 public:
  int count() { return ++count_; }
  ORRERY_PROCESS_MEMBERS_DERIVED(Counting, Queue<T>, count)

 private:
  int count_ = 0;
};

struct Empty {};
ORRERY_PROCESS(Empty);

struct Later;
ORRERY_PROCESS(Later, link, sum);  // before the class, whose methods call each other
struct Later {
  remote<Later> next;
  int value = 1;
  void link(remote<Later> n) { next = n; }
  int sum() const { return value + (next ? next->sum() : 0); }
};

ORRERY_AT_EACH_PLACE(description);

TEST_P(description, of_a_derived_class_has_the_methods_of_its_base) {
  in_world([] {
    const auto s = spawn<Square>(where(), 3.0);
    EXPECT_EQ(s->side(), 3.0);
    EXPECT_EQ(s->name(), "square");
    EXPECT_EQ(s->scale(4), 4);
    EXPECT_EQ(start(s)->name().get(), "square");
  });
}

TEST_P(description, of_a_derived_class_hides_base_methods_of_the_same_name) {
  in_world([] {
    const auto s = spawn<Square>(where(), 3.0);
    EXPECT_EQ(s->hidden(), "derived");
    EXPECT_EQ(remote<Shape>(s)->hidden(), 1);
  });
}

TEST_P(description, lets_virtual_methods_dispatch_at_the_process) {
  in_world([] {
    const remote<Shape> s = spawn<Square>(where(), 3.0);
    EXPECT_EQ(s->area(), 9.0);
    EXPECT_EQ(start(s)->area().get(), 9.0);
    EXPECT_EQ(spawn<Shape>(where())->area(), 0.0);
  });
}

TEST_P(description, of_a_class_without_a_line_is_that_of_its_base) {
  in_world([] {
    const auto t = spawn<Tile>(where());
    EXPECT_EQ(t->area(), 4.5);
    EXPECT_EQ(t->side(), 2.0);
    const remote<Square> s = t;
    const remote<Shape> b = t;
    EXPECT_EQ(s->area(), 4.5);
    EXPECT_EQ(b->name(), "square");
    destroy(b);  // through the base
    EXPECT_THROW((void)t->area(), process_gone);
  });
}

TEST_P(description, of_a_class_with_several_described_bases_has_the_methods_of_all) {
  in_world([] {
    const auto b = spawn<Both>(where());
    EXPECT_EQ(b->own(), 5);
    EXPECT_EQ(b->name(), "both");
    EXPECT_EQ(b->other(), 9);
    EXPECT_EQ(start(b)->other().get(), 9);
    const remote<Shape> shape = b;
    const remote<Other> other = b;  // not at the beginning of the object
    EXPECT_EQ(shape->name(), "both");
    EXPECT_EQ(other->other(), 9);
    EXPECT_EQ(remote_cast<Both>(other)->own(), 5);
    const auto m = spawn<More>(where());
    EXPECT_EQ(m->more(), 6);
    EXPECT_EQ(m->own(), 5);
    EXPECT_EQ(m->other(), 9);
    EXPECT_EQ(remote<Other>(m)->other(), 9);
    const auto both = spawn_group<Both>(everywhere(), 3);
    EXPECT_EQ(both->other(), (std::vector{9, 9, 9}));
    destroy(other);
    EXPECT_THROW((void)b->own(), process_gone);
  });
}

TEST_P(description, of_a_class_with_a_virtual_base_has_its_methods) {
  in_world([] {
    const auto p = spawn<Part>(where());
    EXPECT_EQ(p->part(), 10);
    EXPECT_EQ(p->other(), 9);
    EXPECT_EQ(remote<Other>(p)->other(), 9);
  });
}

struct Lamp {
  int watts(int hours) const { return 60 * hours; }
  int watts() const { return 60; }
};
ORRERY_PROCESS(orrery::describe_tests::Lamp, watts);
template <class T, class Less>
struct Heap {
  void push(T value) { top_ = Less()(top_, value) ? value : top_; }
  T top() const { return top_; }
  T top_{};
};
using int_heap = Heap<int, std::less<>>;
ORRERY_PROCESS(int_heap, push, top);
template <class T>
struct Bag {
  void add(T value) { sum_ += value; }
  T sum() const { return sum_; }
  T sum_{};
};
ORRERY_PROCESS(Bag<int>, add, sum);

TEST_P(description, takes_qualified_names_and_instances_of_templates) {
  in_world([] {
    EXPECT_EQ(spawn<Lamp>(where())->watts(2), 120);
    const auto bag = spawn<Bag<int>>(where());
    bag->add(3);
    EXPECT_EQ(bag->sum(), 3);
    const auto heap = spawn<int_heap>(where());
    heap->push(5);
    EXPECT_EQ(heap->top(), 5);
  });
}

TEST_P(description, of_a_class_template_stands_in_the_class) {
  in_world([] {
    const auto q = spawn<Queue<std::string>>(where());
    q->push("a");
    q->push("b");
    EXPECT_EQ(q->pop(), "b");
    const auto c = spawn<Counting<int>>(where());
    c->push(4);
    EXPECT_EQ(c->pop(), 4);
    EXPECT_EQ(c->count(), 1);
    const remote<Queue<int>> base = c;
    base->push(7);
    EXPECT_EQ(c->pop(), 7);
  });
}

TEST_P(description, may_stand_before_a_class_whose_methods_use_it) {
  in_world([] {
    const auto a = spawn<Later>(where());
    const auto b = spawn<Later>(here());
    a->link(b);
    EXPECT_EQ(a->sum(), 2);
  });
}

TEST(description_of, an_unknown_class_is_none) {
  struct Unknown {};
  EXPECT_FALSE(described<Unknown>);
  EXPECT_FALSE(described<int>);
  EXPECT_TRUE(described<Empty>);
  EXPECT_TRUE(described<Tile>);
  EXPECT_TRUE(described<Queue<double>>);
}

TEST(description_of, a_pointer_to_a_derived_class_converts_to_its_base_and_not_back) {
  EXPECT_TRUE((std::is_convertible_v<remote<Square>, remote<Shape>>));
  EXPECT_TRUE((std::is_convertible_v<remote<Tile>, remote<Shape>>));
  EXPECT_FALSE((std::is_convertible_v<remote<Shape>, remote<Square>>));
  EXPECT_FALSE((std::is_convertible_v<remote<Other>, remote<Shape>>));
}

TEST(description_of, a_class_has_its_name_as_c_plus_plus_writes_it) {
  EXPECT_EQ(detail::type_name<int>(), "int");
  EXPECT_NE(detail::type_name<Queue<int>>().find("Queue<int>"), std::string_view::npos);
  EXPECT_EQ(detail::type_name<void(int)>().find("void"), 0U);
}

// --- remote pointers -----------------------------------------------------------------------------

TEST(remote_pointer, is_a_small_value_that_compares_hashes_and_travels) {
  static_assert(sizeof(remote<Shape>) == sizeof(address));
  static_assert(std::is_trivially_copyable_v<remote<Shape>>);
  in_world(2, [] {
    const auto a = spawn<Shape>(pe(0), "a");
    const auto b = spawn<Shape>(pe(1), "b");
    EXPECT_TRUE(a);
    EXPECT_FALSE(remote<Shape>{});
    EXPECT_NE(a, b);
    EXPECT_EQ(a, remote<Shape>(a.address()));
    EXPECT_LT(a, b);
    EXPECT_NE(std::hash<remote<Shape>>{}(a), std::hash<remote<Shape>>{}(b));
    const auto q = spawn<Queue<remote<Shape>>>(pe(1));
    q->push(b);
    q->push(a);
    EXPECT_EQ(q->pop()->name(), "a");
    EXPECT_EQ(q->pop()->name(), "b");
  });
}

TEST(remote_pointer, of_a_wrong_class_is_refused_by_the_process) {
  in_world(2, [] {
    for (const std::uint32_t at : {0U, 1U}) {
      const auto s = spawn<Shape>(pe(at));
      const remote<Other> wrong(s.address());
      const std::string said = testing::what_is_thrown<bad_message>([&] { (void)wrong->other(); });
      for (const char* part :
           {"Other::other: the remote pointer is of the wrong class", "of class ", "Shape, not ", "remote_cast"})
        EXPECT_NE(said.find(part), std::string::npos) << said;
      EXPECT_EQ(said.find("same build"), std::string::npos) << said;
      EXPECT_THROW((void)start(wrong)->other().get(), bad_message);
      EXPECT_EQ(s->name(), "shape");
    }
  });
}

}  // namespace describe_tests
}  // namespace orrery
