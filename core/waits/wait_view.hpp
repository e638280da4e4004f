// One scheduler's view of the expected wait at every machine, fed by time-stamped reports.
//
// Machines are m = 0 .. M-1 with D <= 8 amounts of capacity. A task of shape s asks for the vector r(s) and
// is expected to run for e microseconds; its work at a machine is w = floor(e * max_d r_d / c_d), its
// estimate times the share of the machine it takes. Two readings of the Murmuration paper:
//
//   clean      W(m) = sum of the work of all tasks believed to be queued or running at m, and H(m) = the
//              sum of what they ask for. The key of m for shape s is 0 if H(m) + r(s) <= c(m), else W(m).
//              On a machine with one slot that is the paper's expected wait. Beliefs are a ledger
//              (ledger.hpp): lost, late and doubled reports do no lasting harm.
//   plain      like clean, but the key of m is the sum of the estimates alone, on a machine with several slots
//              too: the formula in the paper's text.
//   published  v(m) = the time until which m is busy, from 0 on. A placement made at time t sets
//              v = max(v, t) + w, and an end of a task that had started at t sets v = max(v, t) - w: what
//              the authors' simulator does, which trusts each report to come once.
//
// A task goes to a machine with the smallest key, each such machine equally likely; machines that are
// closed, too small, blocked or not in the wanted set have no key. Each shape (and set) that is asked for
// has an index of its own (min_tree.hpp), at most 16, the longest unused going first. Changes mark their
// machine in every index and are worked in when that index is next asked: a placement costs O(log M), a
// report O(1) plus O(log M) for each index that is still in use; nothing scans the machines per task, and
// no report copies a view.
//
// Reports are posted with the time at which they are due. They are applied in order of due times, then of
// posting, when the scheduler reads the view (`settle`), or earlier if many have accumulated. Reading a message may
// take time (`cost`), and a scheduler reads only while it does not decide: a message is applied if its reading has
// ended by the time of `settle`.
//
// Busy-until views may share one log of reports (report_log.hpp) instead.
//
// Numbers: amounts up to 2^53, work up to 2^53 each and 2^63 in sum; e * share in doubles, contracted
// nowhere, so the same on every platform.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <queue>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cell/columns.hpp"
#include "random.hpp"
#include "waits/ledger.hpp"
#include "waits/min_tree.hpp"
#include "waits/report_log.hpp"
#include "waits/wait_state.hpp"

namespace argosy {

struct WaitReport {
  std::int64_t due;
  std::int64_t task;
  std::int64_t estimate;
  // When the placement was decided, or the ended task had started.
  std::int64_t since;
  std::int32_t machine;
  std::int32_t shape;
  std::uint8_t version;
  // Whether it begins a message, which may hold several reports.
  bool begins = true;
};

class WaitView {
 public:
  // Reports are applied `lag` after they arrive. Reading a message takes `cost`.
  WaitView(bool published, std::int64_t lag, bool plain = false, std::int64_t cost = 0)
      : published_(published), plain_(plain), lag_(lag), cost_(cost) {
    if (lag < 0) throw std::invalid_argument("reports are not worked in before they come");
    if (cost < 0) throw std::invalid_argument("reading a message takes some time or none");
  }

  int dimensions() const { return dimensions_; }
  bool is_published() const { return published_; }
  std::int32_t machines() const { return machines_; }

  // All machines: rows of capacity, and which of them accept tasks.
  void learn(std::span<const std::int64_t> capacity, std::span<const std::uint8_t> open) {
    const std::size_t count = open.size();
    if (count == 0) return;
    const std::size_t wide = capacity.size() / count;
    if (wide < 1 || wide > most_dimensions || capacity.size() != count * wide) {
      throw std::invalid_argument("a row of 1 to 8 amounts for each machine");
    }
    if (count < static_cast<std::size_t>(machines_)) {
      throw std::invalid_argument("fewer machines than before");
    }
    if (wide > width()) widen(wide);
    // Until now, nothing was of any use.
    if (machines_ == 0 && log_ != nullptr) position_ = log_->end();
    machines_ = static_cast<std::int32_t>(count);
    rows_.resize(count * stride(), 0);
    kinds_.clear();
    for (std::size_t m = 0; m < count; ++m) {
      flags(m) = (flags(m) & 0xFF) | (flags(m) & is_blocked) | (open[m] ? is_open : 0) |
                 static_cast<std::int64_t>(kind_of({capacity.data() + m * wide, wide})) << 32;
    }
    indexes_.clear();
  }

  void know_shape(std::int32_t shape, std::span<const std::int64_t> request) {
    if (shapes_.contains(shape)) return;
    if (request.size() > most_dimensions) throw std::invalid_argument("a request of 1 to 8 amounts");
    // A peer may have learnt of a dimension earlier.
    if (request.size() > width()) widen(request.size());
    if (shapes_.size() >= 65'535) throw std::invalid_argument("more than 65,535 shapes");
    shapes_.emplace(shape, static_cast<std::uint16_t>(shapes_.size()));
    requests_.insert(requests_.end(), request.begin(), request.end());
    requests_.resize(shapes_.size() * width(), 0);
  }

  // Each task's machine and the version of its placement, in order; fewer if no machine is left. `feasible`
  // machines could have taken the first task; its machine had the key `score`, and `second` the next (-1: there
  // was no other).
  struct Chosen {
    std::vector<std::int32_t> machines;
    std::vector<std::uint8_t> versions;
    std::int64_t feasible = 0;
    std::int64_t score = 0;
    std::int32_t second = -1;
    std::int64_t second_score = 0;
  };

  // `set` names the machines in `members` (one byte each; none: all), the same for each call with that
  // number until `learn`. A machine outside `near` adds `far` to its key.
  Chosen choose(std::span<const std::int64_t> tasks, std::int64_t total, std::int32_t shape,
                std::int64_t estimate, std::int64_t now, Random& random, std::int64_t set,
                std::span<const std::uint8_t> members, std::span<const std::uint8_t> near,
                std::int64_t far) {
    const std::uint16_t own = own_shape(shape);
    settle(now);
    Index& index = index_of(own, set, members, near, far);
    Chosen chosen;
    if (!tasks.empty() && !published_) ledger_.expect(job_of(tasks[0]), total);
    for (const std::int64_t task : tasks) {
      refresh(index);
      const std::int32_t machine = index.tree.pick(random);
      if (machine < 0) break;
      if (chosen.machines.empty()) explain(index, machine, chosen);
      std::uint8_t version = 2;
      if (published_) {
        push_back(machine, now, work_of(own, estimate, machine));
      } else {
        Placing* entry = ledger_.find(task);
        if (entry == nullptr) throw std::invalid_argument("a task that has ended is placed");
        version = static_cast<std::uint8_t>(
            std::min<int>((entry->version | 1) + 1, Ledger::last_version));
        enter(task, *entry, version, machine, estimate, own);
      }
      chosen.machines.push_back(machine);
      chosen.versions.push_back(version);
    }
    return chosen;
  }

  // Records how long tasks ran, as far as known, until asked.
  void record_times() { records_times_ = true; }
  std::vector<std::pair<std::int64_t, std::int64_t>> take_times() { return std::exchange(times_, {}); }
  // What `take_times` would return if everything reported so far were due. Changes nothing; see settling.hpp.
  std::vector<std::pair<std::int64_t, std::int64_t>> times_to_come() const;

  // Sets the number of tasks in a job.
  void expect(std::int64_t job, std::int64_t total) {
    if (!published_) ledger_.expect(job, total);
  }

  void post(const WaitReport& report, std::int64_t now) {
    WaitReport mine = report;
    mine.due += lag_;
    if (inbox_.size() == read_ || mine.due >= inbox_.back().due) {
      inbox_.push_back(mine);
    } else {
      early_.push({mine, posted_++});
    }
    if ((inbox_.size() - read_) % most_waiting == most_waiting - 1) settle(now);
  }

  // Receives the rows of a log from its end on, except those sent by `own`. Null: no longer.
  void follow(std::shared_ptr<const ReportLog> log, std::int32_t own) {
    log_ = std::move(log);
    own_ = own;
    if (log_ != nullptr) position_ = log_->end();
  }
  std::uint64_t position() const { return position_; }

  // The scheduler decides until then, and reads nothing.
  void occupy(std::int64_t until) { free_at_ = std::max(free_at_, until); }

  // Applies everything due by now, as far as there was time to read it; see settling.hpp.
  void settle(std::int64_t now);

  // Undoes the placement: the task has no machine until it is placed again.
  std::uint8_t undo(std::int64_t task) {
    if (published_) return 0;
    Placing* entry = ledger_.find(task);
    if (entry == nullptr || !entry->is_placed()) return entry == nullptr ? Ledger::ended : entry->version;
    const auto version = static_cast<std::uint8_t>(entry->version + 1);
    enter(task, *entry, version, -1, 0, 0);
    return version;
  }

  // Clears everything the view held at the machine.
  void empty(std::int32_t machine) {
    check(machine);
    const auto m = static_cast<std::size_t>(machine);
    work(m) = 0;
    std::fill_n(held(m), width(), 0);
    flags(m) = (flags(m) & ~0xFF) | ((flags(m) + 1) & 0xFF);
    touch(machine);
  }

  // The machine is not used until something is reported to have ended there.
  void block(std::int32_t machine) {
    check(machine);
    flags(static_cast<std::size_t>(machine)) |= is_blocked;
    touch(machine);
  }
  std::int64_t blocked() const {
    std::int64_t count = 0;
    for (std::size_t m = 0; m < size(); ++m) count += (flags(m) & is_blocked) != 0;
    return count;
  }

  std::vector<std::int64_t> all_work() const {
    std::vector<std::int64_t> all(size());
    for (std::size_t m = 0; m < size(); ++m) all[m] = work(m);
    return all;
  }
  std::vector<std::int64_t> all_held() const {
    std::vector<std::int64_t> all;
    for (std::size_t m = 0; m < size(); ++m) all.insert(all.end(), held(m), held(m) + width());
    return all;
  }
  const Ledger& ledger() const { return ledger_; }
  std::int64_t waiting() const {
    const std::uint64_t logged = log_ == nullptr ? 0 : log_->end() - position_;
    return static_cast<std::int64_t>(inbox_.size() - read_ + early_.size() + logged);
  }

  // Exchange between views; see exchange.hpp.

  // Jobs that are not over, each with its digest.
  void digests(std::vector<std::int64_t>& jobs, std::vector<std::uint64_t>& digests) const;
  // Of the given jobs, those that differ here; and those known only here.
  std::vector<std::int64_t> differing(std::span<const std::int64_t> jobs,
                                      std::span<const std::uint64_t> digests) const;
  WaitState state(std::span<const std::int64_t> jobs) const;
  WaitState whole_state() const;
  // Applies everything newer in the other's state.
  void join(const WaitState& state);

 private:
  static constexpr std::size_t most_indexes = 16;
  static constexpr std::size_t most_waiting = std::size_t{1} << 16;
  static constexpr std::size_t fetched_together = 32;

  struct Index {
    std::uint16_t shape;
    std::int64_t set;
    std::vector<std::uint8_t> members;
    std::vector<std::uint8_t> near;
    std::int64_t far;
    std::uint64_t used;
    MinTree tree;
    std::vector<std::int32_t> dirty;
  };

  struct Early {
    WaitReport report;
    std::uint64_t order;
    bool operator<(const Early& other) const {
      if (report.due != other.report.due) return report.due > other.report.due;
      return order > other.order;
    }
  };

  // A machine's row is what a report touches: work, flags, and what is held. The flags are, from the
  // lowest bit: 8 of epoch, open, blocked, 16 of the indexes in which the machine is marked, and from bit
  // 32 on the number of its kind. Machines of one kind have the same capacity.
  static constexpr std::int64_t is_open = 1 << 8;
  static constexpr std::int64_t is_blocked = 1 << 9;
  static constexpr int first_mark = 10;
  std::size_t width() const { return static_cast<std::size_t>(dimensions_); }
  std::size_t size() const { return static_cast<std::size_t>(machines_); }
  std::size_t stride() const { return width() <= 2 ? 4 : 2 + width(); }
  std::int64_t& work(std::size_t m) { return rows_[m * stride()]; }
  std::int64_t work(std::size_t m) const { return rows_[m * stride()]; }
  std::int64_t& flags(std::size_t m) { return rows_[m * stride() + 1]; }
  std::int64_t flags(std::size_t m) const { return rows_[m * stride() + 1]; }
  std::int64_t* held(std::size_t m) { return rows_.data() + m * stride() + 2; }
  const std::int64_t* held(std::size_t m) const { return rows_.data() + m * stride() + 2; }

  struct Kind {
    std::array<std::int64_t, most_dimensions> capacity{};
    std::array<double, most_dimensions> inverse{};
  };
  const Kind& kind(std::size_t m) const { return kinds_[static_cast<std::size_t>(flags(m) >> 32)]; }

  std::size_t kind_of(std::span<const std::int64_t> capacity) {
    // Neighbours are mostly identical.
    for (std::size_t k = kinds_.size(); k-- > 0 && kinds_.size() - k <= 64;) {
      if (std::equal(capacity.begin(), capacity.end(), kinds_[k].capacity.begin())) return k;
    }
    Kind& kind = kinds_.emplace_back();
    for (std::size_t d = 0; d < capacity.size(); ++d) {
      kind.capacity[d] = capacity[d];
      kind.inverse[d] = capacity[d] > 0 ? 1.0 / static_cast<double>(capacity[d]) : 0.0;
    }
    return kinds_.size() - 1;
  }

  // Until `learn`, machines have none of a new dimension, and known shapes ask for none of it.
  void widen(std::size_t wide) {
    const std::size_t old = width(), old_stride = stride();
    dimensions_ = static_cast<int>(wide);
    const auto relay = [](std::vector<std::int64_t>& rows, std::size_t from, std::size_t to) {
      if (from == 0 || from == to) return;
      std::vector<std::int64_t> wider(rows.size() / from * to, 0);
      for (std::size_t row = 0; row < rows.size() / from; ++row) {
        std::copy_n(rows.data() + row * from, from, wider.data() + row * to);
      }
      rows = std::move(wider);
    };
    relay(rows_, old_stride, stride());
    relay(requests_, old, wide);
  }

  void check(std::int32_t machine) const {
    if (machine < 0 || machine >= machines()) throw std::invalid_argument("unknown machine number");
  }

  std::uint16_t own_shape(std::int32_t shape) const {
    const auto found = shapes_.find(shape);
    if (found == shapes_.end()) throw std::invalid_argument("a shape that was never made known");
    return found->second;
  }

  std::span<const std::int64_t> request(std::uint16_t own) const {
    return {requests_.data() + own * width(), width()};
  }

  bool read(std::int64_t due, bool begins, std::int64_t now);
  void settle_log(std::int64_t now);

  std::int64_t work_of(std::uint16_t own, std::int64_t estimate, std::int32_t machine) const {
    if (plain_) return estimate;
    const std::int64_t* asked = requests_.data() + own * width();
    const Kind& machine_kind = kind(static_cast<std::size_t>(machine));
    double share = 0.0;
    for (std::size_t d = 0; d < width(); ++d) {
      share = std::max(share, static_cast<double>(asked[d]) * machine_kind.inverse[d]);
    }
    return static_cast<std::int64_t>(static_cast<double>(estimate) * share);
  }

  void push_back(std::int32_t machine, std::int64_t since, std::int64_t by) {
    std::int64_t& until = work(static_cast<std::size_t>(machine));
    until = std::max(until, since) + by;
    touch(machine);
  }

  void prefetch();
  void apply(const WaitReport report) {
    const auto m = static_cast<std::size_t>(report.machine);
    const bool is_end = report.version == Ledger::ended;
    if (report.machine >= machines()) return;
    if (is_end && report.machine >= 0 && (flags(m) & is_blocked)) {
      flags(m) &= ~is_blocked;
      touch(report.machine);
    }
    const auto shape = shapes_.find(report.shape);
    if (is_end && records_times_ && (published_ || !ledger_.has_ended(report.task))) {
      times_.emplace_back(report.task, report.due - lag_ - report.since);
    }
    if (published_) {
      if (shape == shapes_.end()) return;
      const std::int64_t by = work_of(shape->second, report.estimate, report.machine);
      push_back(report.machine, report.since, is_end ? -by : by);
      return;
    }
    Placing* entry = ledger_.find(report.task);
    if (entry == nullptr || !Ledger::is_news(*entry, report.version, report.machine)) return;
    const std::uint16_t own = shape == shapes_.end() ? std::uint16_t{0} : shape->second;
    enter(report.task, *entry, report.version, report.machine, report.estimate, own);
  }

  void enter(std::int64_t task, Placing& entry, std::uint8_t version, std::int32_t machine,
             std::int64_t estimate, std::uint16_t own) {
    take_off(entry);
    Placing mine{0, -1, own, version, 0};
    if (mine.is_placed()) {
      mine.machine = machine;
      mine.work = work_of(own, estimate, machine);
      put_on(mine);
    }
    ledger_.change(task, entry, mine);
  }

  void put_on(Placing& entry) {
    if (!entry.is_placed() || entry.machine < 0 || entry.machine >= machines()) return;
    const auto m = static_cast<std::size_t>(entry.machine);
    entry.epoch = static_cast<std::uint8_t>(flags(m));
    work(m) += entry.work;
    for (std::size_t d = 0; d < width(); ++d) held(m)[d] += request(entry.shape)[d];
    touch(entry.machine);
  }

  void take_off(const Placing& entry) {
    if (!entry.is_placed() || entry.machine < 0 || entry.machine >= machines()) return;
    const auto m = static_cast<std::size_t>(entry.machine);
    if (entry.epoch != static_cast<std::uint8_t>(flags(m))) return;
    work(m) -= entry.work;
    for (std::size_t d = 0; d < width(); ++d) held(m)[d] -= request(entry.shape)[d];
    touch(entry.machine);
  }

  void end_job(std::int64_t job, std::int64_t total);

  void touch(std::int32_t machine) {
    std::int64_t& flag = flags(static_cast<std::size_t>(machine));
    for (std::size_t i = 0; i < indexes_.size(); ++i) {
      const std::int64_t mark = std::int64_t{1} << (first_mark + i);
      if (flag & mark) continue;
      flag |= mark;
      indexes_[i].dirty.push_back(machine);
    }
  }

  std::int64_t key(const Index& index, std::size_t m) const {
    if ((flags(m) & (is_open | is_blocked)) != is_open) return MinTree::never;
    if (!index.members.empty() && !index.members[m]) return MinTree::never;
    const std::int64_t* asked = requests_.data() + index.shape * width();
    const auto& has = kind(m).capacity;
    const std::int64_t* taken = held(m);
    bool has_room = true;
    for (std::size_t d = 0; d < width(); ++d) {
      if (asked[d] > has[d]) return MinTree::never;
      has_room = has_room && taken[d] + asked[d] <= has[d];
    }
    std::int64_t wait = !published_ && !plain_ && has_room ? 0 : work(m);
    if (!index.near.empty() && !index.near[m]) wait += index.far;
    return wait;
  }

  static void explain(Index& index, std::int32_t machine, Chosen& chosen) {
    const auto m = static_cast<std::size_t>(machine);
    chosen.feasible = index.tree.eligible();
    chosen.score = index.tree.key(m);
    index.tree.set(m, MinTree::never);
    chosen.second = index.tree.first();
    if (chosen.second >= 0) chosen.second_score = index.tree.least();
    index.tree.set(m, chosen.score);
  }

  void refresh(Index& index) {
    const std::int64_t mark = std::int64_t{1} << (first_mark + (&index - indexes_.data()));
    for (std::size_t i = 0; i < index.dirty.size(); ++i) {
      if (i % fetched_together == 0 && index.dirty.size() > 1) {
        const std::size_t last = std::min(i + fetched_together, index.dirty.size());
        for (std::size_t next = i; next < last; ++next) {
          const auto m = static_cast<std::size_t>(index.dirty[next]);
          __builtin_prefetch(rows_.data() + m * stride());
          index.tree.prefetch(m);
        }
      }
      const auto m = static_cast<std::size_t>(index.dirty[i]);
      flags(m) &= ~mark;
      index.tree.set(m, key(index, m));
    }
    index.dirty.clear();
  }

  // Adds an index, or reuses the one unused for longest, with no machine marked in it.
  Index& unused_index() {
    if (indexes_.size() < most_indexes) return indexes_.emplace_back();
    Index& oldest = *std::min_element(
        indexes_.begin(), indexes_.end(),
        [](const Index& x, const Index& y) { return x.used < y.used; });
    const std::int64_t mark = std::int64_t{1} << (first_mark + (&oldest - indexes_.data()));
    for (const std::int32_t machine : oldest.dirty) flags(static_cast<std::size_t>(machine)) &= ~mark;
    oldest.dirty.clear();
    return oldest;
  }

  Index& index_of(std::uint16_t own, std::int64_t set, std::span<const std::uint8_t> members,
                  std::span<const std::uint8_t> near, std::int64_t far) {
    for (Index& index : indexes_) {
      if (index.shape == own && index.set == set && index.far == far) {
        index.used = ++uses_;
        return index;
      }
    }
    const auto count = static_cast<std::size_t>(machines());
    if ((!members.empty() && members.size() != count) || (!near.empty() && near.size() != count)) {
      throw std::invalid_argument("a set has a byte for each machine");
    }
    Index& index = unused_index();
    index.shape = own;
    index.set = set;
    index.members.assign(members.begin(), members.end());
    index.near.assign(near.begin(), near.end());
    index.far = far;
    index.used = ++uses_;
    std::vector<std::int64_t> keys(count);
    for (std::size_t m = 0; m < count; ++m) keys[m] = key(index, m);
    index.tree.assign(std::move(keys));
    return index;
  }

  // 0 until the machines are known.
  int dimensions_ = 0;
  bool published_;
  bool plain_;
  std::int64_t lag_;
  std::int64_t cost_;
  // When the scheduler has time to read the next message.
  std::int64_t free_at_ = 0;
  std::shared_ptr<const ReportLog> log_;
  std::uint64_t position_ = 0;
  std::int32_t own_ = -1;
  std::int32_t machines_ = 0;
  // The sum of work in the clean reading, the busy-until time in the published one.
  std::vector<std::int64_t> rows_;
  std::vector<Kind> kinds_;
  std::unordered_map<std::int32_t, std::uint16_t> shapes_;
  std::vector<std::int64_t> requests_;
  Ledger ledger_;
  bool records_times_ = false;
  // Tasks reported as ended, each with the time from its start until then, including a hop.
  std::vector<std::pair<std::int64_t, std::int64_t>> times_;
  std::vector<Index> indexes_;
  std::uint64_t uses_ = 0;
  // In order of due times; reports due before the last of these are in `early_`.
  std::vector<WaitReport> inbox_;
  // Reports before this index have been applied; data for those before the next has been prefetched.
  std::size_t read_ = 0;
  std::size_t fetched_ = 0;
  std::priority_queue<Early> early_;
  std::uint64_t posted_ = 0;
};

}  // namespace argosy

#include "waits/exchange.hpp"
#include "waits/settling.hpp"
