// Arrays that lie on huge pages once they are large, where the system offers them.
//
// Solvers jump around in arrays of tens of megabytes, one arc after another at an address that nobody can guess. With
// pages of 4 KiB, most of these jumps miss the processor's table of addresses as well as its caches. An array of at
// least half a huge page begins at one and fills whole ones, so it wastes at most that half.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace argosy::flow {

template <typename T>
struct LargePages {
  using value_type = T;

  LargePages() = default;
  template <typename U>
  LargePages(const LargePages<U>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (!is_large(count)) return static_cast<T*>(::operator new(bytes));
    const std::size_t whole = (bytes + page - 1) / page * page;
    void* const place = std::aligned_alloc(page, whole);
    if (place == nullptr) throw std::bad_alloc();
#ifdef __linux__
    // Advice: without huge pages, everything works as before.
    madvise(place, whole, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(place);
  }
  void deallocate(T* place, std::size_t count) {
    if (is_large(count)) {
      std::free(place);
    } else {
      ::operator delete(place);
    }
  }

  friend bool operator==(const LargePages&, const LargePages&) { return true; }

 private:
  static constexpr std::size_t page = std::size_t{2} << 20;

  static bool is_large(std::size_t count) { return count >= page / 2 / sizeof(T); }
};

template <typename T>
using LargeArray = std::vector<T, LargePages<T>>;

}  // namespace argosy::flow
