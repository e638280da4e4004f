// Admission: which of the flow's placements are committed.
//
// If tasks differ in size, the flow may put more on a machine than fits, or preempt a task that is too
// small to make room. Overfull machines are resolved one by one: tasks of the highest precedence are
// admitted first, tasks of lower precedence in their way are preempted, and the rest waits for another
// round. A task whose job does not preempt is admitted only where nobody has to leave for it; so machines
// that such tasks come to and others leave are resolved as well. A task that was to move but is not admitted stays where it is, which may leave less room there;
// that machine is resolved in turn. Tasks are only ever removed from the list, so this ends. A move that
// makes room for no admitted task is not made. A round has a limit on moves and preemptions of running
// tasks.
//
// Complexity.  O(tasks that move x dimensions), and for machines to sort out O(running tasks) once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "flow/extraction.hpp"
#include "flow/roster.hpp"

namespace argosy::flow {

// A task of a pool and precedence was not admitted on a machine.
struct Refused {
  Number pool, machine, precedence;
};

// One transaction: tasks to place or move, tasks to take from their machines, moving tasks that must leave
// before others can come, and whether the limit on moves cut something.
struct Plan {
  Placements placements;
  std::vector<Row> early;
  bool is_cut = false;
  std::vector<Refused> refused;
};

class Admission {
 public:
  // `free` has one row per machine and one column per dimension.
  Admission(const Roster& roster, std::span<const Number> free, const bool* usable, Number allowance)
      : roster_(roster), free_(free), usable_(usable), allowance_(allowance) {}

  Plan run(Placements wanted) {
    leaving_ = std::move(wanted.leaving);
    for (std::size_t i = 0; i < wanted.rows.size(); ++i) {
      // A preferred machine may no longer accept tasks.
      if (!usable_[wanted.machines[i]]) continue;
      const Row row = wanted.rows[i];
      arrivals_.push_back({row, wanted.machines[i], wanted.costs[i], tasks()[T::machine][row], true});
    }
    const bool is_cut = cut();
    count_rooms();
    for (std::size_t i = 0; i < short_.size(); ++i) sort_out(short_[i]);
    for (Room& here : rooms_) {
      if (here.has_refused) stay(here);
    }
    return plan(is_cut);
  }

 private:
  using T = TaskColumn;

  struct Arrival {
    Row row;
    Number machine;
    Cost cost;
    Number from;  // `none` if it is not running
    bool is_in;
  };
  // A machine that tasks come to or leave: what is free once everything is done as planned.
  struct Room {
    std::vector<Number> left;
    std::vector<std::size_t> arriving, departing;  // by number of arrival
    std::vector<Row> leaving, evicted, running;
    Number machine = none;
    bool is_sorted = false, has_refused = false;
    bool is_contested = false;  // tasks leave, and one comes that must not push off any
  };

  const Table<T>& tasks() const { return roster_.tasks(); }
  const std::vector<Number>& request(Row row) const { return roster_.pool_of(row).request; }

  // Enforces the round's limit on moves and preemptions.
  bool cut() {
    Number moves = 0;
    for (const Arrival& arrival : arrivals_) moves += arrival.from != none;
    if (moves + static_cast<Number>(leaving_.size()) <= allowance_) {
      allowance_ -= moves + static_cast<Number>(leaving_.size());
      return false;
    }
    if (static_cast<Number>(leaving_.size()) > allowance_) leaving_.resize(allowance_);
    allowance_ -= static_cast<Number>(leaving_.size());
    std::erase_if(arrivals_, [&](const Arrival& arrival) {
      return arrival.from != none && --allowance_ < 0;
    });
    allowance_ = std::max<Number>(0, allowance_);
    return true;
  }

  // Rooms are in the order of their machines; those of all machines named are created first.
  void make_rooms() {
    std::vector<Number> named;
    for (const Row row : leaving_) named.push_back(tasks()[T::machine][row]);
    for (const Arrival& arrival : arrivals_) {
      named.push_back(arrival.machine);
      if (arrival.from != none) named.push_back(arrival.from);
    }
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
    index_.assign(roster_.machines(), none);
    rooms_.resize(named.size());
    for (std::size_t i = 0; i < named.size(); ++i) {
      index_[named[i]] = static_cast<std::int32_t>(i);
      rooms_[i].machine = named[i];
      rooms_[i].left = free_at(named[i]);
    }
  }
  Room& room(Number machine) { return rooms_[index_[machine]]; }
  const Room& room(Number machine) const { return rooms_[index_[machine]]; }
  std::vector<Number> free_at(Number machine) const {
    const Number* free = free_.data() + machine * roster_.dimensions();
    return {free, free + roster_.dimensions()};
  }
  static void give(std::vector<Number>& left, const std::vector<Number>& amounts, Number sign) {
    for (std::size_t d = 0; d < left.size(); ++d) left[d] += sign * amounts[d];
  }
  static bool is_negative(const std::vector<Number>& left) {
    return std::any_of(left.begin(), left.end(), [](Number x) { return x < 0; });
  }
  static bool fits(const std::vector<Number>& amounts, const std::vector<Number>& left) {
    for (std::size_t d = 0; d < left.size(); ++d) {
      if (amounts[d] > left[d]) return false;
    }
    return true;
  }

  void count_rooms() {
    make_rooms();
    for (const Row row : leaving_) {
      Room& from = room(tasks()[T::machine][row]);
      from.leaving.push_back(row);
      give(from.left, request(row), 1);
    }
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
      const Arrival& arrival = arrivals_[i];
      Room& to = room(arrival.machine);
      to.arriving.push_back(i);
      give(to.left, request(arrival.row), -1);
      if (arrival.from == none) continue;
      Room& from = room(arrival.from);
      from.departing.push_back(i);
      give(from.left, request(arrival.row), 1);
    }
    for (Room& each : rooms_) {
      each.is_contested = !each.leaving.empty() && std::any_of(each.arriving.begin(), each.arriving.end(),
                                                               [&](std::size_t i) { return is_polite(i); });
      if (each.is_contested || is_negative(each.left)) short_.push_back(each.machine);
    }
  }

  bool is_polite(std::size_t i) const { return !roster_.pool_of(arrivals_[i].row).preempts; }

  // Admits tasks that fit, in order of precedence.
  void sort_out(Number machine) {
    Room& here = room(machine);
    if (!here.is_contested && !is_negative(here.left)) return;
    here.is_contested = false;
    allowance_ += withdraw(here);
    std::vector<Number> left = free_at(machine);
    for (const std::size_t i : here.departing) {
      if (arrivals_[i].is_in) give(left, request(arrivals_[i].row), 1);
    }
    std::vector<std::size_t> order;
    for (const std::size_t i : here.arriving) {
      if (arrivals_[i].is_in) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return precedence(arrivals_[a].row) > precedence(arrivals_[b].row);
    });
    for (const std::size_t i : order) {
      if (!let_in(here, arrivals_[i].row, left)) refuse(i);
    }
    here.left = std::move(left);
  }

  // Undoes the evictions of the last resolution of a machine.
  Number withdraw(Room& here) {
    here.is_sorted = true;
    find_running();
    const Number returned = std::count_if(here.evicted.begin(), here.evicted.end(), [&](Row row) {
      return !is_among(here.leaving, row);
    });
    here.evicted.clear();
    return returned;
  }

  // Makes room for a task if possible: first by evicting tasks that the flow gave up, then others of lower
  // precedence, lowest first.
  bool let_in(Room& here, Row row, std::vector<Number>& left) {
    if (fits(request(row), left)) {
      give(left, request(row), -1);
      return true;
    }
    if (!roster_.pool_of(row).preempts) return false;
    std::vector<Number> after = left;
    std::vector<Row> needed;
    Number extra = 0;
    for (const Row victim : victims(here, precedence(row))) {
      const bool is_given_up = is_among(here.leaving, victim);
      if (fits(request(row), after)) break;
      if (!is_given_up && extra == allowance_) break;
      give(after, request(victim), 1);
      needed.push_back(victim);
      extra += !is_given_up;
    }
    if (!fits(request(row), after)) return false;
    here.evicted.insert(here.evicted.end(), needed.begin(), needed.end());
    allowance_ -= extra;
    give(after, request(row), -1);
    left = std::move(after);
    return true;
  }

  static bool is_among(const std::vector<Row>& rows, Row row) {
    return std::find(rows.begin(), rows.end(), row) != rows.end();
  }

  std::vector<Row> victims(const Room& here, Number below) const {
    std::vector<Row> rows, others;
    for (const Row row : here.leaving) {
      if (!is_among(here.evicted, row)) rows.push_back(row);
    }
    if (!roster_.reschedules()) return rows;
    for (const Row row : here.running) {
      if (precedence(row) >= below) continue;
      const bool departs = std::any_of(here.departing.begin(), here.departing.end(), [&](std::size_t i) {
        return arrivals_[i].is_in && arrivals_[i].row == row;
      });
      if (departs || is_among(here.evicted, row) || is_among(here.leaving, row)) continue;
      others.push_back(row);
    }
    std::sort(others.begin(), others.end(), [&](Row a, Row b) {
      const Number first = precedence(a), second = precedence(b);
      return first != second ? first < second : a > b;
    });
    rows.insert(rows.end(), others.begin(), others.end());
    return rows;
  }

  // A task is not admitted: a running one stays where it is.
  void refuse(std::size_t i) {
    Arrival& arrival = arrivals_[i];
    arrival.is_in = false;
    room(arrival.machine).has_refused = true;
    const Number pool = roster_.classes()[ClassColumn::pool][tasks()[T::task_class][arrival.row]];
    refused_.push_back({pool, arrival.machine, precedence(arrival.row)});
    if (arrival.from == none) return;
    ++allowance_;
    Room& from = room(arrival.from);
    give(from.left, request(arrival.row), -1);
    if (is_negative(from.left)) short_.push_back(arrival.from);
  }

  // Moves that were to make room for refused tasks are not made.
  void stay(Room& here) {
    for (const std::size_t i : here.departing) {
      Arrival& arrival = arrivals_[i];
      if (!arrival.is_in || !fits(request(arrival.row), here.left)) continue;
      arrival.is_in = false;
      give(here.left, request(arrival.row), -1);
      give(room(arrival.machine).left, request(arrival.row), 1);
    }
  }

  Plan plan(bool is_cut) {
    Plan made;
    made.is_cut = is_cut;
    made.refused = std::move(refused_);
    for (const Arrival& arrival : arrivals_) {
      if (arrival.is_in) made.placements.add(arrival.row, arrival.machine, arrival.cost);
    }
    for (const Row row : leaving_) {
      if (!room(tasks()[T::machine][row]).is_sorted) made.placements.leaving.push_back(row);
    }
    for (const Room& each : rooms_) {
      made.placements.leaving.insert(made.placements.leaving.end(), each.evicted.begin(),
                                     each.evicted.end());
      // Whether there is room before the moving tasks have left.
      std::vector<Number> before = each.left;
      for (const std::size_t i : each.departing) {
        if (arrivals_[i].is_in) give(before, request(arrivals_[i].row), -1);
      }
      if (!is_negative(before)) continue;
      for (const std::size_t i : each.departing) {
        if (arrivals_[i].is_in) made.early.push_back(arrivals_[i].row);
      }
    }
    std::sort(made.early.begin(), made.early.end());
    return made;
  }

  Number precedence(Row row) const { return roster_.job_at(row).precedence; }

  // The tasks running on the machines to be resolved.
  void find_running() {
    if (has_looked_ || !roster_.reschedules()) return;
    has_looked_ = true;
    for (Row row = 0; row < tasks().used(); ++row) {
      if (tasks()[T::state][row] != running) continue;
      const std::int32_t at = index_[tasks()[T::machine][row]];
      if (at != none) rooms_[at].running.push_back(row);
    }
  }

  const Roster& roster_;
  std::span<const Number> free_;
  const bool* usable_;
  Number allowance_;
  std::vector<Arrival> arrivals_;
  std::vector<Row> leaving_;
  std::vector<Room> rooms_;
  std::vector<std::int32_t> index_;  // of each machine's room
  std::vector<Number> short_;
  std::vector<Refused> refused_;
  bool has_looked_ = false;
};

}  // namespace argosy::flow
