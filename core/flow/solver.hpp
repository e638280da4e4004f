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

enum class Algorithm : std::int32_t { local, shortest_paths, cost_scaling };

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
    if (algorithm == Algorithm::shortest_paths && warm) net_.touch_all();
    const Status status = run(algorithm, control);
    return Outcome{status, algorithm, control.scans()};
  }

 private:
  Status run(Algorithm algorithm, Control& control) {
    switch (algorithm) {
      case Algorithm::local:
      case Algorithm::shortest_paths:
        return shortest_paths_.run(control);
      case Algorithm::cost_scaling:
        return CostScaling(net_).run(control);
    }
    return Status::stopped;
  }

  Network net_;
  ShortestPaths shortest_paths_{net_};
};

}  // namespace argosy::flow
