// A network together with all its solvers.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>

#include "flow/auction.hpp"
#include "flow/contraction.hpp"
#include "flow/cost_scaling.hpp"
#include "flow/cycle_cancelling.hpp"
#include "flow/network.hpp"
#include "flow/primal_dual.hpp"
#include "flow/relaxation.hpp"
#include "flow/settling.hpp"
#include "flow/shortest_paths.hpp"
#include "flow/solving.hpp"
#include "flow/ways.hpp"

namespace argosy::flow {

enum class Algorithm : std::int32_t {
  automatic,
  local,
  shortest_paths,
  primal_dual,
  relaxation,
  cost_scaling,
  cycle_cancelling,
  race,
  warm_race,
};

// Heuristics that can be turned off, to measure their effect.
struct Heuristics {
  // Relaxation: halves to a deficit are taken at once; others depth-first instead of breadth-first.
  bool arc_prioritisation = true;
  bool depth_first = true;
  bool price_refine = true;
  // Cost scaling: new vertices start at prices that match their neighbours' instead of at zero.
  bool fresh_prices = true;
  // Shortest paths: prices start at the distances to the sink, and a search ends at its target.
  bool short_searches = true;
  // Cost scaling: what each phase divides the approximation by.
  Cost alpha = 16;
};

struct Outcome {
  Status status;
  Algorithm algorithm;  // the one that found the answer
  std::int64_t scans;
};

class Solver {
 public:
  Network& network() { return net_; }
  const Network& network() const { return net_; }
  Ways& ways() { return ways_; }

  // From scratch unless `warm`: then from the current flow and prices.
  Outcome solve(Algorithm algorithm, bool warm, Budget* budget, const Stop* stop,
                Heuristics heuristics) {
    Control control(budget, stop);
    heuristics_ = heuristics;
    if (!warm) net_.reset();
    if (algorithm == Algorithm::race) return race(warm, budget, stop);
    if (algorithm == Algorithm::warm_race) return race(false, budget, stop);
    const Outcome outcome = algorithm == Algorithm::automatic
                                ? choose(control)
                                : Outcome{run(algorithm, control), algorithm, control.scans()};
    control.settle();
    return Outcome{outcome.status, outcome.algorithm, control.scans()};
  }

 private:
  Relaxation relaxation(Network& net) const {
    return Relaxation(net, heuristics_.arc_prioritisation, heuristics_.depth_first);
  }
  CostScaling scaling(Network& net) const {
    return CostScaling(net, heuristics_.price_refine, heuristics_.fresh_prices, heuristics_.alpha);
  }

  Status run(Algorithm algorithm, Control& control) {
    switch (algorithm) {
      case Algorithm::shortest_paths:
        net_.touch_all();
        return shortest_paths_.run(control, false, heuristics_.short_searches);
      case Algorithm::primal_dual:
        return PrimalDual(net_).run(control);
      case Algorithm::relaxation:
        return relaxation(net_).run(control);
      case Algorithm::cost_scaling:
        return scaling(net_).run(control);
      case Algorithm::cycle_cancelling:
        return CycleCancelling(net_).run(control);
      default:
        return shortest_paths_.run(control);
    }
  }

  // Local repair after edits, and otherwise, or if that takes too long, all paths at once. What these do not settle
  // because destinations are scarce is left to scaling, and what that leaves to them again.
  Outcome choose(Control& control) {
    if (!net_.all_touched()) {
      const Status status = repair(control);
      if (!is_too_much_) return Outcome{status, Algorithm::local, control.scans()};
    }
    Settling settling(net_, shortest_paths_);
    const Status status = settling.begin(control, true);
    if (!settling.goes_on() && !settling.is_stuck()) {
      return Outcome{status, Algorithm::primal_dual, control.scans()};
    }
    Contraction contraction(net_);
    if (!contraction.is_worth_it(control)) return go_on(net_, settling, control);
    Network small = contraction.build();
    ShortestPaths small_paths(small);
    Settling small_settling(small, small_paths);
    const Outcome outcome = go_on(small, small_settling, control);
    // Differences of costs may be too large where the costs are not.
    if (outcome.status == Status::overflow) return go_on(net_, settling, control);
    contraction.write_back(small);
    if (outcome.status != Status::optimal) net_.touch_all();
    return outcome;
  }

  // What is left after a first phase.
  Outcome go_on(Network& net, Settling& settling, Control& control) {
    Status status = Status::stopped;
    if (!settling.is_stuck()) status = settling.run(control, true);
    if (!settling.is_stuck()) return Outcome{status, Algorithm::primal_dual, control.scans()};
    const Cost spread = settling.usual_distance();
    if (Auction::fits(net) && Auction::suits(net)) {
      status = Auction(net).run(control, spread);
    } else {
      net.touch_all();
      status = scaling(net).approximate(control, spread);
    }
    net.touch_all();
    // If even small factors are too large for the costs, the others go on.
    if (status != Status::stopped) status = settling.run(control, false);
    return Outcome{status, Algorithm::cost_scaling, control.scans()};
  }

  // Local repair, unless it `is_too_much_`: then another way seems faster.
  Status repair(Control& control) {
    const std::int64_t patience = 4096 + 24 * (net_.arcs() + net_.vertices());
    is_too_much_ = false;
    for (double left = patience; left <= 2.0 * patience;) {
      Control trial = control.part(patience);
      const Status status = shortest_paths_.run(trial);
      control.take_over(trial);
      if (status != Status::stopped || trial.scans() <= patience) return status;
      const double done = shortest_paths_.progress();
      left = done > 0 ? trial.scans() * (1 - done) / done : 4.0 * patience;
    }
    is_too_much_ = true;
    return Status::stopped;
  }

  // Relaxation here and cost scaling on a copy, on two threads: the first to finish stops the other. Relaxation
  // may start from scratch, as published; what it leaves if both are stopped is then of no use to the next solve.
  Outcome race(bool relaxes_from_scratch, Budget* budget, const Stop* stop) {
    Network twin = net_;
    if (relaxes_from_scratch) net_.reset();
    Stop relaxed, scaled;
    std::atomic<int> winner{0};
    const auto is_answer = [](Status status) {
      return status != Status::stopped && status != Status::overflow;
    };
    Control scaling(budget, stop, &relaxed);
    Status second = Status::stopped;
    std::thread other([&] {
      second = this->scaling(twin).run(scaling);
      int nobody = 0;
      if (is_answer(second) && winner.compare_exchange_strong(nobody, 2)) scaled.set();
    });
    Control relaxing(budget, stop, &scaled);
    const Status first = relaxation(net_).run(relaxing);
    int nobody = 0;
    if (is_answer(first) && winner.compare_exchange_strong(nobody, 1)) relaxed.set();
    other.join();
    relaxing.settle();
    scaling.settle();
    const std::int64_t scans = relaxing.scans() + scaling.scans();
    if (winner == 2 || (winner == 0 && relaxes_from_scratch)) net_ = std::move(twin);
    if (winner == 2) {
      return Outcome{second, Algorithm::cost_scaling, scans};
    }
    return Outcome{first, Algorithm::relaxation, scans};
  }

  Network net_;
  ShortestPaths shortest_paths_{net_};
  Ways ways_{net_};
  Heuristics heuristics_;
  bool is_too_much_ = false;
};

}  // namespace argosy::flow
