// Machines as columns, in pages that snapshots share.
//
// A machine is a dense number, never reused. Its row holds D <= 8 amounts of capacity and of what is
// free (0 <= free <= capacity <= 2^53), a version, and flags. 256 machines make a page. Pages are held
// by shared pointers and copied when written while shared, so a copy of `Columns` costs one pointer
// per 256 machines, and the first write to a page after that costs one copy of the page (about 13 KB
// at D = 2). Reading never copies.
//
// Growth. A row has exactly as many amounts as there are dimensions: searches spend their time reading
// rows, so rows have no spare room. Adding a dimension, which is rare, rewrites all pages, O(machines x D).
// Earlier copies keep their pages and their number of dimensions.
//
// Devices. One dimension may consist of devices (devices.hpp). What is free of it is `usable`, kept by
// `hold_devices` and `resize`; writers of rows leave it alone.
//
// Threads: a copy may be read by one thread while the original is written by another, as long as
// copies are made and dropped by the thread that writes (or under a lock with it).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cell/devices.hpp"

namespace argosy {

constexpr int most_dimensions = 8;
constexpr std::int64_t largest_amount = std::int64_t{1} << 53;
constexpr std::int32_t most_machines = std::int32_t{1} << 30;

// Neither flag: the machine is up and takes claims.
enum MachineFlag : std::uint8_t { flag_draining = 1, flag_gone = 2 };

struct Page {
  static constexpr int bits = 8;
  static constexpr int size = 1 << bits;
  static constexpr int mask = size - 1;

  explicit Page(int dimensions)
      : capacity(static_cast<std::size_t>(size * dimensions)), free(capacity), scale(capacity.size()) {
    version.fill(0);
    sequence.fill(0);
    flags.fill(flag_gone);
  }

  std::vector<std::int64_t> capacity;
  std::vector<std::int64_t> free;
  // 2^20 / capacity (0 if there is none): the factor by which a search multiplies leftovers.
  std::vector<double> scale;
  std::array<std::uint32_t, size> version;
  // Transactions that claimed something, even if it was taken back.
  std::array<std::uint32_t, size> sequence;
  std::array<std::uint8_t, size> flags;
  // What is free on each device, `most_devices` per machine; empty if no dimension consists of devices.
  std::vector<std::uint16_t> devices;
};

class Columns {
 public:
  explicit Columns(int dimensions) : dimensions_(dimensions) {}

  int dimensions() const { return dimensions_; }
  std::int32_t machines() const { return machines_; }
  bool knows(std::int64_t machine) const { return machine >= 0 && machine < machines_; }

  const Page& page(std::int32_t machine) const {
    return *pages_[static_cast<std::size_t>(machine >> Page::bits)];
  }
  const std::int64_t* capacity(std::int32_t machine) const {
    return page(machine).capacity.data() + row(machine);
  }
  const std::int64_t* free(std::int32_t machine) const {
    return page(machine).free.data() + row(machine);
  }
  std::uint32_t version(std::int32_t machine) const {
    return page(machine).version[static_cast<std::size_t>(machine & Page::mask)];
  }
  std::uint32_t sequence(std::int32_t machine) const {
    return page(machine).sequence[static_cast<std::size_t>(machine & Page::mask)];
  }
  std::uint8_t flags(std::int32_t machine) const {
    return page(machine).flags[static_cast<std::size_t>(machine & Page::mask)];
  }

  // The dimension that consists of devices; -1: none.
  int device_dimension() const { return device_dimension_; }
  // Only before the first machine.
  void set_device_dimension(int dimension) { device_dimension_ = dimension; }
  Devices devices(std::int32_t machine) const {
    const auto count = static_cast<std::size_t>(capacity(machine)[device_dimension_] / device_size);
    return {page(machine).devices.data() + first_device(machine), count};
  }
  // Takes an amount from devices of a machine (sign 1), or gives it back (-1).
  void hold_devices(std::int32_t machine, std::uint16_t chosen, std::int64_t amount, int sign) {
    if (chosen == 0) return;
    std::uint16_t* devices = writable(machine).devices.data() + first_device(machine);
    for (int each = 0; each < most_devices; ++each) {
      if (((chosen >> each) & 1) == 0) continue;
      devices[each] = static_cast<std::uint16_t>(devices[each] - sign * taken_from_each(amount));
    }
    free_for_writing(machine)[device_dimension_] = usable(this->devices(machine));
  }

  bool fits(std::int32_t machine, const std::int64_t* request) const {
    const std::int64_t* room = free(machine);
    for (int d = 0; d < dimensions_; ++d) {
      if (room[d] < request[d]) return false;
    }
    return true;
  }

  // The machine will be looked at soon.
  void prefetch(std::int32_t machine) const {
    const Page& of = page(machine);
    __builtin_prefetch(of.free.data() + row(machine), 1);
    __builtin_prefetch(&of.version[static_cast<std::size_t>(machine & Page::mask)], 1);
  }

  // Existing machines have none of a new dimension.
  void widen(int dimensions) {
    const auto from = static_cast<std::size_t>(dimensions_);
    const auto to = static_cast<std::size_t>(dimensions);
    for (auto& page : pages_) {
      auto wide = std::make_shared<Page>(dimensions);
      for (std::size_t row = 0; row < Page::size; ++row) {
        std::copy_n(page->capacity.data() + row * from, from, wide->capacity.data() + row * to);
        std::copy_n(page->free.data() + row * from, from, wide->free.data() + row * to);
        std::copy_n(page->scale.data() + row * from, from, wide->scale.data() + row * to);
      }
      wide->version = page->version;
      wide->sequence = page->sequence;
      wide->flags = page->flags;
      wide->devices = page->devices;
      page = std::move(wide);
    }
    dimensions_ = dimensions;
  }

  std::int64_t* free_for_writing(std::int32_t machine) {
    return writable(machine).free.data() + row(machine);
  }
  std::uint32_t& version_for_writing(std::int32_t machine) {
    return writable(machine).version[static_cast<std::size_t>(machine & Page::mask)];
  }
  std::uint32_t& sequence_for_writing(std::int32_t machine) {
    return writable(machine).sequence[static_cast<std::size_t>(machine & Page::mask)];
  }
  void set_flags(std::int32_t machine, std::uint8_t flags) {
    writable(machine).flags[static_cast<std::size_t>(machine & Page::mask)] = flags;
  }

  std::int32_t append(const std::int64_t* capacity) {
    const std::int32_t machine = machines_;
    if ((machine & Page::mask) == 0) {
      pages_.push_back(std::make_shared<Page>(dimensions_));
      if (device_dimension_ >= 0) pages_.back()->devices.resize(Page::size * most_devices);
    }
    ++machines_;
    set_flags(machine, 0);
    resize(machine, capacity);
    return machine;
  }

  // What is used stays used: free changes by as much as capacity. New devices are wholly free; those with
  // the largest numbers go, and nobody may hold them.
  void resize(std::int32_t machine, const std::int64_t* capacity) {
    Page& target = writable(machine);
    const std::int64_t before = device_dimension_ < 0 ? 0 : this->capacity(machine)[device_dimension_];
    for (int d = 0; d < dimensions_; ++d) {
      const std::size_t at = row(machine) + static_cast<std::size_t>(d);
      target.free[at] += capacity[d] - target.capacity[at];
      target.capacity[at] = capacity[d];
      target.scale[at] = capacity[d] > 0 ? 0x1p20 / static_cast<double>(capacity[d]) : 0.0;
    }
    if (device_dimension_ < 0) return;
    const std::int64_t after = capacity[device_dimension_];
    for (std::int64_t each = before / device_size; each < after / device_size; ++each) {
      target.devices[first_device(machine) + static_cast<std::size_t>(each)] = device_size;
    }
    target.free[row(machine) + static_cast<std::size_t>(device_dimension_)] = usable(devices(machine));
  }

 private:
  std::size_t row(std::int32_t machine) const {
    return static_cast<std::size_t>(machine & Page::mask) * static_cast<std::size_t>(dimensions_);
  }

  static std::size_t first_device(std::int32_t machine) {
    return static_cast<std::size_t>(machine & Page::mask) * most_devices;
  }

  Page& writable(std::int32_t machine) {
    auto& page = pages_[static_cast<std::size_t>(machine >> Page::bits)];
    if (page.use_count() > 1) page = std::make_shared<Page>(*page);
    return *page;
  }

  int dimensions_;
  int device_dimension_ = -1;
  std::int32_t machines_ = 0;
  std::vector<std::shared_ptr<Page>> pages_;
};

}  // namespace argosy
