// Time since it was made, for algorithms that must stop by then. What an algorithm answers before its time
// is up must not depend on it.
#pragma once

#include <chrono>

namespace argosy::place {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace argosy::place
