// Something about each job that is not over, by job number.
//
// Numbers are dense and jobs end roughly in the order in which they came. So numbers are divided into blocks, and a
// block is freed with the last of what it has: of jobs that are over, 8 bytes a block are left. O(1) a look-up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace argosy {

template <typename Value>
class OpenRows {
 public:
  // Null if there is nothing about the job.
  Value* find(std::int64_t job) const {
    const auto at = static_cast<std::size_t>(job);
    if (at / width >= blocks_.size() || blocks_[at / width] == nullptr) return nullptr;
    return blocks_[at / width]->values[at % width].get();
  }

  // There must be nothing about the job.
  Value& add(std::int64_t job, std::unique_ptr<Value> value) {
    const auto at = static_cast<std::size_t>(job);
    if (at / width >= blocks_.size()) blocks_.resize(at / width + 1);
    std::unique_ptr<Block>& block = blocks_[at / width];
    if (block == nullptr) block = std::make_unique<Block>();
    ++block->held;
    return *(block->values[at % width] = std::move(value));
  }

  // There must be something about the job.
  void erase(std::int64_t job) {
    const auto at = static_cast<std::size_t>(job);
    std::unique_ptr<Block>& block = blocks_[at / width];
    block->values[at % width].reset();
    if (--block->held == 0) block.reset();
  }

 private:
  static constexpr std::size_t width = 256;

  struct Block {
    std::array<std::unique_ptr<Value>, width> values;
    std::size_t held = 0;
  };

  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace argosy
