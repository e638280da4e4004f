// Probes: places in machines' queues that are kept for a job, and the hands of tasks that answer them.
//
// A probe is a queue entry without a task. At the head, and with room, it leaves the queue and holds its
// room by a claim of a task number that no job has, until it is answered with a task or with none. What a
// scheduler has probed goes with it when it stops. Probes that came with a hand of tasks are answered from
// it without anybody's being asked: the machine that asks first gets the first task, a round trip later. A
// sticky probe stays in its place and asks again; others are over once asked. When probes are lost and fewer
// are left than tasks in the hand, the tasks that are too many go back.
//
// A question and its answer each take half a round trip, and wait for the end of a cut that they meet.
//
// Probes are numbered from 0 and never forgotten: 32 bytes each. Looking for one task in the hands is a scan
// of all of them, for cancellations only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "host/board.hpp"

namespace argosy {

struct alignas(32) Probe {
  enum State : std::uint8_t { queued, held, over };
  std::int64_t job;
  std::int32_t machine;
  std::int32_t shape;
  std::int32_t scheduler;
  std::int32_t owner;
  // The hand that answers, or -1 for the scheduler.
  std::int32_t hand;
  State state;

  // The task number with which a probe holds its room; its job number is never assigned.
  static std::int64_t hold(std::int64_t probe) { return task_number(0x7FFF'FFFF, probe); }
  static bool is_hold(std::int64_t task) { return job_of(task) == 0x7FFF'FFFF; }
};

// Whose probes these are and what they ask for; `scheduler` is the cell's number for `owner`.
struct ProbeTerms {
  std::int64_t job = 0;
  std::int32_t owner = 0;
  std::int32_t scheduler = 0;
  std::int32_t shape = 0;
  std::int64_t estimate = 0;
  // As of an Arrival.
  std::int32_t requirement = 0;
};

// Tasks that go to whichever of their probes is ready first.
struct Hand {
  std::vector<std::int64_t> tasks;
  std::vector<std::int64_t> durations;
  std::int64_t sent = 0;
  std::size_t next = 0;
  // Probes that are queued or on their way.
  std::int64_t probes = 0;
  // When nobody asks in vain any more; negative: never.
  std::int64_t cancelled_after = -1;
  std::int64_t emptied = -1;
  bool is_sticky = false;
  // Whether probes are cancelled when no task is left.
  bool is_cancelled = false;

  std::int64_t left() const { return static_cast<std::int64_t>(tasks.size() - next); }
  // Tasks for which no probe is left.
  std::int64_t too_many() const {
    return is_sticky && probes > 0 ? 0 : left() - probes;
  }
};

class Probes {
 public:
  Probe& operator[](std::int64_t number) { return probes_[static_cast<std::size_t>(number)]; }
  const Probe& operator[](std::int64_t number) const {
    return probes_[static_cast<std::size_t>(number)];
  }
  std::int64_t size() const { return static_cast<std::int64_t>(probes_.size()); }
  Hand& hand(std::int32_t number) { return hands_[static_cast<std::size_t>(number)]; }
  bool has_sticky() const { return has_sticky_; }

  bool is_held(std::int64_t number) const {
    return number >= 0 && number < size() && (*this)[number].state == Probe::held;
  }

  std::int64_t add(const ProbeTerms& terms, std::int32_t machine, std::int32_t hand) {
    probes_.push_back({terms.job, machine, terms.shape, terms.scheduler, terms.owner, hand, Probe::queued});
    return size() - 1;
  }
  std::int32_t add_hand(Hand hand) {
    has_sticky_ = has_sticky_ || hand.is_sticky;
    hands_.push_back(std::move(hand));
    return static_cast<std::int32_t>(hands_.size()) - 1;
  }

  // Removes a task from its hand; false if it is in none.
  bool cancel(std::int64_t task, std::int64_t now) {
    for (Hand& hand : hands_) {
      for (std::size_t i = hand.next; i < hand.tasks.size(); ++i) {
        if (hand.tasks[i] != task) continue;
        hand.tasks.erase(hand.tasks.begin() + static_cast<std::ptrdiff_t>(i));
        hand.durations.erase(hand.durations.begin() + static_cast<std::ptrdiff_t>(i));
        if (hand.left() == 0) hand.emptied = now;
        return true;
      }
    }
    return false;
  }

  // The round-trip time to a scheduler.
  void set_round_trip(std::int64_t round_trip) { round_trip_ = round_trip; }
  std::int64_t round_trip() const { return round_trip_; }
  // The scheduler cannot be reached during [from, until); cuts are in order of `from`.
  void cut_off(std::int32_t owner, std::int64_t from, std::int64_t until) {
    cuts_.push_back({owner, from, until});
  }
  std::int64_t trip_to(std::int32_t owner, std::int64_t now) const {
    std::int64_t answered = now;
    for (const std::int64_t leg : {round_trip_ / 2, round_trip_ - round_trip_ / 2}) {
      for (const Cut& cut : cuts_) {
        if (cut.owner == owner && cut.from <= answered && answered < cut.until) answered = cut.until;
      }
      answered += leg;
    }
    return answered - now;
  }

 private:
  struct Cut {
    std::int32_t owner;
    std::int64_t from, until;
  };

  std::vector<Probe> probes_;
  std::vector<Hand> hands_;
  bool has_sticky_ = false;
  std::int64_t round_trip_ = 0;
  std::vector<Cut> cuts_;
};

}  // namespace argosy
