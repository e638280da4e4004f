// The audit: recounts everything from the claims.
//
// O(machines + claims x (log jobs + tags x sets)). Each discrepancy is one sentence; none means that the
// invariants stated in cell.hpp hold. Sentences are built only for discrepancies, because audited cells
// recount after every start and end.
#pragma once

#include <array>
#include <bit>
#include <map>
#include <utility>

#include "cell/cell.hpp"

namespace argosy {

namespace audit_detail {

inline std::string differ(const std::string& what, std::int64_t kept, std::int64_t recounted) {
  return what + " is kept as " + std::to_string(kept) + " but recounts to " +
         std::to_string(recounted);
}

using Counts = std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t>;

inline void compare_tags(const char* owner, const TagCounts& kept, const Counts& recounted,
                         std::vector<std::string>& found) {
  Counts all;
  kept.each([&](std::int32_t at, std::int32_t tag, std::int32_t count) { all[{at, tag}] = count; });
  for (const auto& [key, count] : recounted) all.try_emplace(key, 0);
  for (const auto& [key, count] : all) {
    const auto at = recounted.find(key);
    const std::int64_t real = at == recounted.end() ? 0 : at->second;
    if (count != real) {
      found.push_back(differ(std::string("tag ") + std::to_string(key.second) + " on " + owner + " " +
                                 std::to_string(key.first),
                             count, real));
    }
  }
}

}  // namespace audit_detail

inline std::vector<std::string> Cell::audit() const {
  using audit_detail::differ;
  std::vector<std::string> found;
  const auto dims = static_cast<std::size_t>(dimensions());

  std::vector<Amounts> on_machine(static_cast<std::size_t>(machines()), Amounts{});
  std::vector<std::size_t> claims_of_machine(static_cast<std::size_t>(machines()), 0);
  const int of_devices = columns_.device_dimension();
  std::vector<std::array<std::int64_t, most_devices>> on_device(
      of_devices < 0 ? 0 : static_cast<std::size_t>(machines()));
  std::vector<Amounts> by_scheduler(schedulers_.size(), Amounts{});
  std::vector<std::map<std::int64_t, std::int64_t>> jobs(schedulers_.size());
  std::vector<std::int64_t> claims_of_scheduler(schedulers_.size(), 0);
  audit_detail::Counts machine_tags;
  audit_detail::Counts set_tags;
  Amounts used{};
  std::size_t claims = 0;

  std::size_t assumed = 0;
  claims_.each([&](std::int32_t slot, const Claim& claim) {
    ++claims;
    const auto name = [&claim] { return "task " + std::to_string(claim.task); };
    if (claims_.slot(claim.task) != slot) found.push_back(name() + " is not found by its number");
    if (!knows(claim.machine) || !shapes_->knows(claim.shape) ||
        !knows_scheduler(claim.scheduler)) {
      found.push_back(name() + " refers to a machine, shape or scheduler that does not exist");
      return;
    }
    if (!is_within_reach(claim.shape)) {
      found.push_back(name() + " holds a resource that no machine has");
    }
    if (claim.assumed) {
      ++assumed;
      const std::uint64_t* listed = assumed_.find(claim.task);
      if (listed == nullptr || *listed != claim.sequence) {
        found.push_back(name() + " is assumed but not listed so");
      }
    }
    const auto machine = static_cast<std::size_t>(claim.machine);
    for (std::size_t d = 0; d < dims; ++d) {
      const std::int64_t amount = shapes_->request(claim.shape)[d];
      on_machine[machine][d] += amount;
      by_scheduler[claim.scheduler][d] += amount;
      used[d] += amount;
    }
    if (of_devices >= 0) {
      const std::int64_t amount = shapes_->request(claim.shape)[of_devices];
      const std::int64_t wanted = amount == 0 ? 0 : is_share(amount) ? 1 : whole_devices(amount);
      if (std::popcount(claim.devices) != wanted) {
        found.push_back(differ(name() + ": devices", std::popcount(claim.devices), wanted));
      }
      for (std::size_t each = 0; each < most_devices; ++each) {
        if ((claim.devices >> each) & 1) on_device[machine][each] += taken_from_each(amount);
      }
    }
    ++claims_of_machine[machine];
    ++claims_of_scheduler[claim.scheduler];
    ++jobs[claim.scheduler][job_of(claim.task)];
    for (const std::int32_t tag : shapes_->tags(claim.shape)) {
      ++machine_tags[{claim.machine, tag}];
      for (const std::int32_t set : groups_->sets_of(claim.machine)) ++set_tags[{set, tag}];
    }
  });
  if (assumed != assumed_.size()) {
    found.push_back(differ("the number of assumed claims", static_cast<std::int64_t>(assumed_.size()),
                           static_cast<std::int64_t>(assumed)));
  }
  if (claims != claims_.size()) {
    found.push_back(differ("the number of claims", static_cast<std::int64_t>(claims_.size()),
                           static_cast<std::int64_t>(claims)));
  }

  Amounts capacity{};
  Amounts capacity_ever{};
  for (std::int32_t machine = 0; machine < machines(); ++machine) {
    const auto at = static_cast<std::size_t>(machine);
    const auto name = [machine] { return "machine " + std::to_string(machine); };
    for (std::size_t d = 0; d < dims; ++d) {
      const std::int64_t whole = columns_.capacity(machine)[d];
      const std::int64_t left = whole - on_machine[at][d];
      const auto what = [&] { return name() + ", dimension " + std::to_string(d); };
      if (left < 0) found.push_back(what() + " is oversubscribed by " + std::to_string(-left));
      if (static_cast<int>(d) != of_devices && columns_.free(machine)[d] != left) {
        found.push_back(differ(what() + ": free", columns_.free(machine)[d], left));
      }
      capacity_ever[d] += whole;
      if (is_up(machine)) capacity[d] += whole;
    }
    if (of_devices >= 0) {
      const Devices devices = columns_.devices(machine);
      for (std::size_t each = 0; each < most_devices; ++each) {
        const auto device = [&] { return name() + ", device " + std::to_string(each); };
        const std::int64_t left = (each < devices.size() ? device_size : 0) - on_device[at][each];
        if (left < 0) found.push_back(device() + " is oversubscribed by " + std::to_string(-left));
        if (each < devices.size() && devices[each] != left) {
          found.push_back(differ(device() + ": free", devices[each], left));
        }
      }
      if (columns_.free(machine)[of_devices] != usable(devices)) {
        found.push_back(differ(name() + ": what is usable of its devices",
                               columns_.free(machine)[of_devices], usable(devices)));
      }
    }
    if (!is_up(machine) && claims_of_machine[at] > 0) found.push_back(name() + " is gone but holds claims");

    std::size_t listed = 0;
    std::int32_t last = -1;
    for (std::int32_t slot = claims_.first_on(machine); slot >= 0 && listed <= claims;
         slot = claims_.at(slot).next) {
      if (claims_.at(slot).machine != machine || claims_.at(slot).previous != last) {
        found.push_back(name() + " has a broken list of claims");
        break;
      }
      if (last >= 0 && claims_.at(last).sequence >= claims_.at(slot).sequence) {
        found.push_back(name() + " lists its claims out of order");
      }
      last = slot;
      ++listed;
    }
    if (listed != claims_of_machine[at] || claims_.last_on(machine) != last) {
      found.push_back(differ(name() + ": length of the list of claims", static_cast<std::int64_t>(listed),
                             static_cast<std::int64_t>(claims_of_machine[at])));
    }
  }

  for (std::size_t d = 0; d < dims; ++d) {
    const std::string dimension = " in dimension " + std::to_string(d);
    if (used_[d] != used[d]) found.push_back(differ("total used" + dimension, used_[d], used[d]));
    if (capacity_[d] != capacity[d]) {
      found.push_back(differ("total capacity" + dimension, capacity_[d], capacity[d]));
    }
    if (capacity_ever_[d] != capacity_ever[d]) {
      found.push_back(differ("capacity with gone machines" + dimension, capacity_ever_[d], capacity_ever[d]));
    }
  }
  for (std::size_t number = 0; number < schedulers_.size(); ++number) {
    const Scheduler& kept = schedulers_[number];
    const std::string name = "scheduler " + std::to_string(number);
    for (std::size_t d = 0; d < dims; ++d) {
      if (kept.used[d] != by_scheduler[number][d]) {
        found.push_back(differ(name + ": used in dimension " + std::to_string(d), kept.used[d],
                               by_scheduler[number][d]));
      }
    }
    if (kept.claims != claims_of_scheduler[number]) {
      found.push_back(differ(name + ": claims", kept.claims, claims_of_scheduler[number]));
    }
    bool jobs_agree = kept.jobs.size() == jobs[number].size();
    for (const auto& [job, count] : jobs[number]) {
      const std::int32_t* known = kept.jobs.find(job);
      jobs_agree = jobs_agree && known != nullptr && *known == count;
    }
    if (!jobs_agree) found.push_back(name + ": counts of admitted jobs differ from a recount");
  }
  audit_detail::compare_tags("machine", machine_tags_, machine_tags, found);
  audit_detail::compare_tags("set", set_tags_, set_tags, found);
  return found;
}

inline void Cell::require_sound() const {
  std::string all;
  for (const std::string& one : audit()) all += (all.empty() ? "" : "; ") + one;
  if (!all.empty()) throw Unsound(all);
}

}  // namespace argosy
