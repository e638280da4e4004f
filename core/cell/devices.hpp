// Resources that consist of devices, such as GPUs.
//
// A device has `device_size` units. A request below that is a share, which has to fit on one device; any
// other takes whole devices, rounded up, that nobody else uses. Devices are numbered from 0, at most
// `most_devices` per machine, so a claim's devices are a bitmap.
//
// What a machine has free of such a resource is not a difference but
//     usable = device_size * (wholly free devices), or, if there are none, the largest free share.
// A single request fits if and only if it is at most `usable`: a share fits on any wholly free device, and
// without one on the device with the largest free share; n devices fit if n are wholly free. So whoever
// compares a request with what is free decides rightly, without knowing of devices. Several tasks at once
// need `device_slots`.
//
// Shares go to the device on which the least is left, which keeps devices wholly free; among equals, to the
// one with the smallest number. All functions are O(devices).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

namespace argosy {

constexpr int most_devices = 16;
constexpr std::int64_t device_size = 1000;

// What is free on each device of one machine.
using Devices = std::span<const std::uint16_t>;

inline bool is_share(std::int64_t amount) { return amount < device_size; }

inline std::int64_t whole_devices(std::int64_t amount) { return (amount + device_size - 1) / device_size; }

inline std::int64_t usable(Devices devices) {
  const std::int64_t whole = std::count(devices.begin(), devices.end(), device_size);
  if (whole > 0) return whole * device_size;
  return devices.empty() ? 0 : *std::max_element(devices.begin(), devices.end());
}

// How many requests of this amount fit at once.
inline std::int64_t device_slots(Devices devices, std::int64_t amount) {
  if (amount == 0) return std::numeric_limits<std::int64_t>::max();
  if (!is_share(amount)) {
    return std::count(devices.begin(), devices.end(), device_size) / whole_devices(amount);
  }
  std::int64_t slots = 0;
  for (const std::uint16_t free : devices) slots += free / amount;
  return slots;
}

// The devices for a request; none if it does not fit, or asks for none.
inline std::uint16_t choose_devices(Devices devices, std::int64_t amount) {
  if (amount == 0) return 0;
  const auto bit = [](std::size_t device) { return static_cast<std::uint16_t>(1u << device); };
  if (is_share(amount)) {
    std::size_t best = devices.size();
    for (std::size_t each = 0; each < devices.size(); ++each) {
      if (devices[each] < amount) continue;
      if (best == devices.size() || devices[each] < devices[best]) best = each;
    }
    return best == devices.size() ? std::uint16_t{0} : bit(best);
  }
  std::uint16_t chosen = 0;
  std::int64_t missing = whole_devices(amount);
  for (std::size_t each = 0; each < devices.size() && missing > 0; ++each) {
    if (devices[each] != device_size) continue;
    chosen = static_cast<std::uint16_t>(chosen | bit(each));
    --missing;
  }
  return missing > 0 ? std::uint16_t{0} : chosen;
}

// What a request takes from each of its devices.
inline std::int64_t taken_from_each(std::int64_t amount) { return is_share(amount) ? amount : device_size; }

}  // namespace argosy
