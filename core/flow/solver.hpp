// A network and its solvers behind one door.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "flow/cost_scaling.hpp"
#include "flow/network.hpp"
#include "flow/shortest_paths.hpp"
#include "flow/solving.hpp"

namespace argosy::flow {

enum class Algorithm : std::int32_t { automatic, local, shortest_paths, cost_scaling };

struct Outcome {
  Status status;
  Algorithm algorithm;
  std::int64_t scans;
};

class Solver {
 public:
  Network& network() { return net_; }
  const Network& network() const { return net_; }

  // From scratch unless `warm`: then from the flow and prices as they are.
  Outcome solve(Algorithm algorithm, bool warm, std::int64_t budget, const Stop* stop) {
    Control control(budget, stop);
    if (!warm) net_.reset();
    if (algorithm == Algorithm::automatic) return choose(control);
    return Outcome{run(algorithm, control), algorithm, control.scans()};
  }

 private:
  Status run(Algorithm algorithm, Control& control) {
    switch (algorithm) {
      case Algorithm::shortest_paths:
        net_.touch_all();
        return shortest_paths_.run(control);
      case Algorithm::cost_scaling:
        return CostScaling(net_).run(control);
      default:
        return shortest_paths_.run(control);
    }
  }

  // Local, unless the work shows that too much contends for too little: then prices are found by
  // scaling, and what that leaves is mended locally.
  Outcome choose(Control& control) {
    const std::int64_t patience = 4096 + 8 * (net_.arcs() + net_.vertices());
    Control trial = control.part(patience);
    Status status = shortest_paths_.run(trial);
    control.spend(trial.scans());
    if (status != Status::stopped || trial.scans() <= patience) {
      return Outcome{status, Algorithm::local, control.scans()};
    }
    status = CostScaling(net_).approximate(control);
    if (status == Status::optimal) status = shortest_paths_.run(control, true);
    return Outcome{status, Algorithm::cost_scaling, control.scans()};
  }

  Network net_;
  ShortestPaths shortest_paths_{net_};
};

}  // namespace argosy::flow
