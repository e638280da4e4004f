// What machines report about their queues: how many tasks wait, and how long the machine expects to be
// busy.
//
// Updated with every arrival, start and end: asking costs O(machines), a change O(1). The expected wait is
// the sum of the estimates queued plus what is left of the estimates running, at least nought:
//
//     Q + n d + R - min(R, n t - S)      n tasks run, R their estimates, S the sum of their starts,
//                                        d what a start takes
//
// which is exact for one slot, and a bound from below for several.
//
// With heartbeats, what is queued and running is as of the last whole multiple of the period; only the time
// since the running task started is current. This is how the authors of Murmuration model Yaq-d. A change
// copies nothing: a machine's figures are saved when it first changes after a heartbeat. Tasks on their way to
// a machine are not part of its load, unless this is asked for: then a scheduler does not send twice to the
// same machine within a hop.
//
// Long tasks, those with an estimate above a cut-off, are also counted separately.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace argosy {

class Loads {
 public:
  void cut_at(std::int64_t above) { above_ = above; }
  bool is_long(std::int64_t estimate) const { return above_ > 0 && estimate > above_; }

  void arrive(std::int32_t machine, std::int64_t estimate, std::int64_t now) {
    change(machine, now);
    for (Load* load : of(machine, estimate)) {
      if (load == nullptr) break;
      load->queued += estimate;
      ++load->entries;
    }
  }

  // On its way, until it arrives in the queue or is sent back.
  void send(std::int32_t machine, std::int64_t estimate, std::int64_t now) {
    change(machine, now);
    for (Load* load : of(machine, estimate)) {
      if (load == nullptr) break;
      load->sent += estimate;
    }
  }
  void land(std::int32_t machine, std::int64_t estimate, std::int64_t now) {
    change(machine, now);
    for (Load* load : of(machine, estimate)) {
      if (load == nullptr) break;
      load->sent -= estimate;
    }
  }

  void leave(std::int32_t machine, std::int64_t estimate, std::int64_t now) {
    change(machine, now);
    for (Load* load : of(machine, estimate)) {
      if (load == nullptr) break;
      load->queued -= estimate;
      --load->entries;
    }
  }

  void start(std::int32_t machine, std::int64_t estimate, std::int64_t now) {
    add_running(machine, estimate, now, now);
  }

  void end(std::int32_t machine, std::int64_t estimate, std::int64_t started, std::int64_t now) {
    change(machine, now);
    for (Load* load : of(machine, estimate)) {
      if (load == nullptr) break;
      load->running -= estimate;
      load->since -= started;
      --load->runs;
    }
  }

  void add_running(std::int32_t machine, std::int64_t estimate, std::int64_t started,
                   std::int64_t now) {
    change(machine, now);
    for (Load* load : of(machine, estimate)) {
      if (load == nullptr) break;
      load->running += estimate;
      load->since += started;
      ++load->runs;
    }
  }

  // Nothing is known to run on the machine: running tasks are counted again.
  void forget_running(std::int32_t machine, std::int64_t now) {
    change(machine, now);
    for (std::vector<Load>* loads : {&all_, &long_}) {
      Load& load = (*loads)[static_cast<std::size_t>(machine)];
      load.running = load.since = 0;
      load.runs = 0;
    }
  }

  bool is_running_long(std::int32_t machine) const {
    return static_cast<std::size_t>(machine) < long_.size() && long_[machine].runs > 0;
  }

  // Heartbeats are at whole multiples of `every`.
  void beat_every(std::int64_t every) { every_ = every; }

  // Tasks on their way count from now on.
  void count_sent() { counts_sent_ = true; }

  void read(std::int64_t machines, bool only_long, bool as_of_beat, std::int64_t start_delay,
            std::int64_t now, std::vector<std::int64_t>& lengths, std::vector<std::int64_t>& waits) {
    grow(machines);
    if (as_of_beat) tick(now);
    lengths.resize(static_cast<std::size_t>(machines));
    waits.resize(static_cast<std::size_t>(machines));
    const std::vector<Load>& loads = only_long ? long_ : all_;
    for (std::size_t m = 0; m < lengths.size(); ++m) {
      const Load& load = loads[m];
      const std::int64_t passed =
          std::min(std::max<std::int64_t>(0, load.runs * now - load.since), load.running);
      // Running long tasks count too, because they are in the way.
      lengths[m] = load.entries + (only_long ? load.runs : 0);
      waits[m] = (as_of_beat ? load.at_beat : total(load)) - passed + load.runs * start_delay;
      waits[m] = std::max<std::int64_t>(0, waits[m]);
    }
  }

 private:
  struct Load {
    std::int64_t sent = 0;
    std::int64_t queued = 0;
    std::int64_t running = 0;
    std::int64_t since = 0;
    std::int64_t at_beat = 0;
    std::int32_t entries = 0;
    std::int32_t runs = 0;
  };

  std::int64_t total(const Load& load) const {
    return load.queued + load.running + (counts_sent_ ? load.sent : 0);
  }

  struct Both {
    Load* loads[3];
    Load* const* begin() const { return loads; }
    Load* const* end() const { return loads + 2; }
  };
  Both of(std::int32_t machine, std::int64_t estimate) {
    const auto m = static_cast<std::size_t>(machine);
    return {{&all_[m], is_long(estimate) ? &long_[m] : nullptr, nullptr}};
  }

  void grow(std::int64_t machines) {
    if (all_.size() >= static_cast<std::size_t>(machines)) return;
    all_.resize(static_cast<std::size_t>(machines));
    long_.resize(static_cast<std::size_t>(machines));
  }

  void change(std::int32_t machine, std::int64_t now) {
    grow(machine + 1);
    if (every_ <= 0) return;
    tick(now);
    changed_.push_back(machine);
  }

  // For machines that changed before the last heartbeat, that heartbeat reported the current figures.
  void tick(std::int64_t now) {
    if (every_ <= 0 || now / every_ == beat_) return;
    beat_ = now / every_;
    for (const std::int32_t machine : changed_) {
      for (std::vector<Load>* loads : {&all_, &long_}) {
        Load& load = (*loads)[static_cast<std::size_t>(machine)];
        load.at_beat = total(load);
      }
    }
    changed_.clear();
  }

  std::int64_t above_ = 0;
  std::int64_t every_ = 0;
  std::int64_t beat_ = -1;
  bool counts_sent_ = false;
  std::vector<Load> all_, long_;
  std::vector<std::int32_t> changed_;
};

}  // namespace argosy
