// All paths at once or one by one, whichever is faster now: how excesses are settled from exact prices.
//
// A phase of all paths at once (primal_dual.hpp) looks at the whole network and settles a share of the
// excesses; single searches (shortest_paths.hpp) look at what is near one of them. After each phase, single
// searches get a fraction of its work to show what they settle. They go on while that is more than a phase
// is expected to settle with the same work.
//
// Where destinations are scarce, neither gets far: prices rise in many small steps, each for a few units.
// Then it gives up, if it may, and is `stuck`. All measures are of work and of units, and what was done is kept.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "flow/network.hpp"
#include "flow/primal_dual.hpp"
#include "flow/shortest_paths.hpp"
#include "flow/solving.hpp"

namespace argosy::flow {

class Settling {
 public:
  Settling(Network& network, ShortestPaths& shortest_paths)
      : net_(network), single_(shortest_paths), all_(network) {}

  Status run(Control& control, bool may_give_up) {
    Status status;
    do {
      status = begin(control, may_give_up);
    } while (goes_on());
    return status;
  }

  // One phase and single searches. It has to begin again if it `goes_on`.
  Status begin(Control& control, bool may_give_up) {
    is_stuck_ = is_out_of_patience_ = false;
    Status status = all_.begin();
    if (status != Status::optimal || all_.left() == 0) return finish(status);
    const std::int64_t before = control.scans();
    status = all_.phase(control);
    finish(status);
    if (status != Status::optimal || all_.left() == 0) return status;
    const bool is_lean = may_give_up && all_.left() > lean * all_.moved();
    return search(control, control.scans() - before, is_lean);
  }
  bool goes_on() const { return is_out_of_patience_ && !is_stuck_; }

  bool is_stuck() const { return is_stuck_; }

  // Half of the arcs out of excesses that are not tight have a reduced cost below this power of two.
  Cost usual_distance() const {
    std::int64_t counts[64] = {}, total = 0;
    for (const Vertex v : all_.sources()) {
      for (const Half* h = net_.begin(v); h != net_.out_end(v); ++h) {
        const Cost reduced = net_.reduced(v, *h);
        if (reduced <= 0) continue;
        ++counts[std::bit_width(static_cast<std::uint64_t>(reduced))];
        ++total;
      }
    }
    int bits = 0;
    for (std::int64_t below = counts[0]; 2 * below < total; below += counts[bits]) ++bits;
    return Cost{1} << std::min(bits, 40);
  }

 private:
  // Single searches get at least this part of a phase's work at a time, and more after a phase that settled
  // less than as many units. They jump around in memory: an arc costs them about twice as much.
  static constexpr Amount most_parts = 8;
  static constexpr Amount burden = 2;
  // A phase is lean if it leaves this many times what it settles: the next ones settle even less.
  static constexpr Amount lean = 3;
  // Scaling scans each arc a few times as often, but what single searches settle gets less and less as well.
  static constexpr double too_much = 12;
  // Units that tell how single searches get on, and how often they may scan each arc until then.
  static constexpr double few = 8;
  static constexpr double least_probe = 0.5, most_probe = 2;

  Status finish(Status status) {
    all_.finish();
    return status;
  }

  // Whether it would be too much work to settle what is left as well, if `settled` took `work`.
  bool is_too_much(std::int64_t work, Amount settled, Amount left) const {
    const auto size = static_cast<double>(net_.arcs() + net_.vertices());
    return static_cast<double>(work) * static_cast<double>(left) >
           too_much * size * static_cast<double>(settled);
  }

  // Units that are not yet where they belong, except for what the other end of all searches has to give or take.
  Amount open_units() const {
    Amount sum = 0;
    for (Vertex v = 0; v < net_.vertex_bound(); ++v) {
      if (v != single_.anchor()) sum += std::abs(net_.excess(v));
    }
    return sum;
  }

  // Enough work to settle a few units, if it were not too much for all that are left.
  std::int64_t probe() const {
    const double size = static_cast<double>(net_.arcs() + net_.vertices());
    const double share = too_much * few / static_cast<double>(all_.left());
    return static_cast<std::int64_t>(size * std::clamp(share, least_probe, most_probe));
  }

  // Single searches, as long as they are faster than a phase that takes `work`; `stopped` with
  // `is_out_of_patience_` if they are not. After a lean phase it is stuck if they are slow as well.
  Status search(Control& control, std::int64_t work, bool is_lean) {
    const Amount parts = std::clamp<Amount>(all_.moved(), 1, most_parts);
    const std::int64_t patience = 256 + (is_lean ? probe() : work / parts);
    const double share = static_cast<double>(all_.moved()) / static_cast<double>(all_.moved() + all_.left());
    for (Amount open = open_units();;) {
      Control trial = control.part(patience);
      const Status status = single_.run(trial, true);
      const bool may_go_on = control.take_over(trial);
      is_out_of_patience_ = status == Status::stopped && may_go_on && trial.scans() > patience;
      if (!is_out_of_patience_) return status;
      const Amount now = open_units();
      const double settled = static_cast<double>(open - now) * static_cast<double>(work) / static_cast<double>(patience);
      is_stuck_ = is_lean && is_too_much(patience, open - now, now);
      if (is_stuck_ || settled < static_cast<double>(burden) * share * static_cast<double>(now)) return status;
      open = now;
    }
  }

  Network& net_;
  ShortestPaths& single_;
  PrimalDual all_;
  bool is_stuck_ = false;
  bool is_out_of_patience_ = false;
};

}  // namespace argosy::flow
