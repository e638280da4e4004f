// Fit search: machines for `count` identical tasks at once.
//
// A machine qualifies if it is up, not draining, in the bitmap `within` (if given), and has room; the
// tasks of one search see each other's room, of devices (devices.hpp) too, unless `adjust` says something of
// them: then room is estimated as a difference. With `needs_room` off only its capacity must suffice, for
// engines that queue at machines. `adjust` corrects what is free: less what other parts of the same
// decision have taken, or more by what preemption would set free. At most `per_machine` tasks go to
// one machine (0: no limit).
//
//   first         each task scans from its own random start, wrapping round, and takes the first
//                 machine that fits; the first task to find none ends the search.  O(looks)
//   best, worst   least (most) left over, where a machine's left-over after taking the task is
//                     s = sum over d of floor((free_d - request_d) * 2^20 / capacity_d)
//   smallest_key  least keys[machine]; each task adds `step`, or steps[machine], to the key of the
//                 machine it takes
//   sample        up to `count` distinct machines in random order, one look each
//
// A request for a resource that is no dimension finds nothing under any rule; one pass over the machines
// tells what else would have ruled them out.
//
// best, worst and smallest_key make one pass over M machines, keep the `count` best (shortlist.hpp) and
// hand out n tasks from a heap of these: O(M + n log n). Ties fall by scramble(nonce ^ machine), with
// one nonce drawn per search.
//
// Numbers. s is computed in doubles: free - request < 2^53 is exact, the quotient 2^20 / capacity is
// stored correctly rounded, and one multiplication follows, so s is the same everywhere; it is within
// one of the exact value per dimension. Keys saturate at the ends of int64.
//
// Determinism: the answer is a function of columns, query and the stream's position. Nothing is
// written but the calling thread's scratch space.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "cell/columns.hpp"
#include "cell/query.hpp"
#include "cell/shortlist.hpp"
#include "random.hpp"

namespace argosy {

class Search {
 public:
  Search(const Columns& columns, const Query& query, Random& random)
      : columns_(columns), query_(query), random_(random), dimensions_(columns.dimensions()), devices_(columns.device_dimension()) {
    const auto machines = static_cast<std::size_t>(columns.machines());
    if (scratch_.taken.size() < machines) scratch_.taken.resize(machines, 0);
    taken_ = scratch_.taken.data();
    is_plain_ = query.within == nullptr && query.adjust == nullptr && query.needs_room &&
                query.per_machine == 0 && devices_ < 0;
  }

  Found run() {
    if (query_.beyond > 0) {
      if (query_.count > 0) rule_out_all();
    } else if (columns_.machines() > 0 && query_.count > 0) {
      switch (query_.rule) {
        case Rule::first: first(); break;
        case Rule::sample: sample(); break;
        default: ranked(); break;
      }
      if (static_cast<std::int64_t>(found_.machines.size()) < query_.count) find_nearest_miss();
    }
    for (const std::int32_t machine : found_.machines) taken(machine) = 0;
    return std::move(found_);
  }

 private:
  static constexpr int fitting = -1;
  static constexpr std::size_t starts_ahead = 8;

  struct Scratch {
    // Number of tasks this search put on each machine; all zero between searches.
    std::vector<std::int32_t> taken;
    // 0, 1, 2, … between searches.
    std::vector<std::int32_t> order;
  };
  static inline thread_local Scratch scratch_;

  std::int32_t& taken(std::int32_t machine) {
    return taken_[static_cast<std::size_t>(machine)];
  }

  bool is_within(std::int32_t machine) const {
    if (query_.within == nullptr) return true;
    const std::size_t word = static_cast<std::size_t>(machine) / 64;
    return word < query_.within_words && ((query_.within[word] >> (machine & 63)) & 1) != 0;
  }

  bool is_exhausted(std::int32_t machine) {
    return query_.per_machine > 0 && taken(machine) >= query_.per_machine;
  }

  // What is lacking of d on `machine` for one more task; zero or less if it suffices.
  std::int64_t lacking(std::int32_t machine, int d) {
    if (!query_.needs_room) return query_.request[d] - columns_.capacity(machine)[d];
    const std::int64_t tasks = taken(machine) + 1;
    const std::int64_t change = adjusted(machine, d);
    const std::int64_t less = query_.request[d] * tasks - columns_.free(machine)[d] - change;
    if (d != devices_ || change != 0) return less;
    return has_devices(machine, tasks) ? std::min<std::int64_t>(0, less) : std::max<std::int64_t>(1, less);
  }

  bool has_devices(std::int32_t machine, std::int64_t tasks) const {
    return device_slots(columns_.devices(machine), query_.request[devices_]) >= tasks;
  }

  std::int64_t adjusted(std::int32_t machine, int d) const {
    if (query_.adjust == nullptr) return 0;
    return query_.adjust[static_cast<std::size_t>(machine) * static_cast<std::size_t>(dimensions_) +
                         static_cast<std::size_t>(d)];
  }

  // `fitting`, or the index into ruled_out.
  int look(std::int32_t machine) {
    const Page& page = columns_.page(machine);
    if (page.flags[static_cast<std::size_t>(machine & Page::mask)] != 0) return dimensions_ + 1;
    if (!is_within(machine) || is_exhausted(machine)) return dimensions_;
    if (query_.adjust != nullptr || !query_.needs_room) {
      for (int d = 0; d < dimensions_; ++d) {
        if (lacking(machine, d) > 0) return d;
      }
      return fitting;
    }
    const std::int64_t* room = page.free.data() + row(machine);
    const std::int64_t tasks = taken(machine) + 1;
    for (int d = 0; d < dimensions_; ++d) {
      if (d == devices_ ? !has_devices(machine, tasks) : room[d] < query_.request[d] * tasks) return d;
    }
    return fitting;
  }

  // The same where nothing but room matters.
  int look_plainly(std::int32_t machine) {
    const Page& page = columns_.page(machine);
    if (page.flags[static_cast<std::size_t>(machine & Page::mask)] != 0) return dimensions_ + 1;
    const std::int64_t* room = page.free.data() + row(machine);
    const std::int64_t tasks = taken(machine) + 1;
    for (int d = 0; d < dimensions_; ++d) {
      if (room[d] < query_.request[d] * tasks) return d;
    }
    return fitting;
  }

  std::size_t row(std::int32_t machine) const {
    return static_cast<std::size_t>(machine & Page::mask) * static_cast<std::size_t>(dimensions_);
  }

  bool note(int verdict) {
    ++found_.looked_at;
    if (verdict == fitting) {
      ++found_.feasible;
      return true;
    }
    ++found_.ruled_out[static_cast<std::size_t>(verdict)];
    return false;
  }

  void take(std::int32_t machine) {
    found_.machines.push_back(machine);
    found_.versions.push_back(columns_.version(machine));
    ++taken(machine);
  }

  void rule_out_all() {
    for (std::int32_t machine = 0; machine < columns_.machines(); ++machine) {
      const int verdict = look(machine);
      note(verdict == fitting ? dimensions_ + 2 : verdict);
      // The whole amount of the resource is lacking everywhere, which is as far off as a machine can be.
      if (found_.miss_machine >= 0 || verdict == dimensions_ || verdict == dimensions_ + 1) continue;
      found_.miss_machine = machine;
      found_.miss_dimension = dimensions_;
      found_.miss_lacking = query_.beyond;
    }
  }

  void first() {
    const std::int32_t machines = columns_.machines();
    found_.machines.reserve(static_cast<std::size_t>(query_.count));
    found_.versions.reserve(static_cast<std::size_t>(query_.count));
    // Starts are drawn ahead, so that memory is fetched before it is looked at.
    const Random before = random_;
    std::array<std::int32_t, starts_ahead> starts;
    const auto draw = [&](std::size_t task) {
      if (static_cast<std::int64_t>(task) >= query_.count) return;
      const auto start = static_cast<std::int32_t>(random_.below(static_cast<std::uint64_t>(machines)));
      columns_.prefetch(start);
      starts[task % starts_ahead] = start;
    };
    for (std::size_t task = 0; task < starts_ahead; ++task) draw(task);
    for (std::size_t task = 0; static_cast<std::int64_t>(task) < query_.count; ++task) {
      std::int32_t machine = starts[task % starts_ahead];
      draw(task + starts_ahead);
      std::int32_t looks = 0;
      while (looks < machines && !note(is_plain_ ? look_plainly(machine) : look(machine))) {
        ++looks;
        if (++machine == machines) machine = 0;
      }
      if (looks == machines) {
        // As if only the starts of the tasks searched for had been drawn.
        random_ = before;
        for (std::size_t drawn = 0; drawn <= task; ++drawn) {
          random_.below(static_cast<std::uint64_t>(machines));
        }
        return recount();
      }
      take(machine);
    }
  }

  // When a search ends for lack of room, results are reported per machine, each counted once.
  void recount() {
    found_.looked_at = found_.feasible = 0;
    found_.ruled_out.fill(0);
    for (std::int32_t machine = 0; machine < columns_.machines(); ++machine) {
      note(taken(machine) > 0 ? fitting : look(machine));
    }
  }

  // The beginning of a random permutation, drawn only as far as needed.
  void sample() {
    const auto machines = static_cast<std::size_t>(columns_.machines());
    auto& order = scratch_.order;
    while (order.size() < machines) order.push_back(static_cast<std::int32_t>(order.size()));
    std::vector<std::size_t> swaps;
    for (std::size_t at = 0; at < machines; ++at) {
      if (static_cast<std::int64_t>(found_.machines.size()) == query_.count) break;
      const std::size_t other = at + static_cast<std::size_t>(random_.below(machines - at));
      std::swap(order[at], order[other]);
      swaps.push_back(other);
      if (note(look(order[at]))) take(order[at]);
    }
    for (std::size_t at = swaps.size(); at-- > 0;) std::swap(order[at], order[swaps[at]]);
  }

  // Smaller is better.
  std::int64_t rank(std::int32_t machine, std::int64_t key) {
    if (query_.rule == Rule::smallest_key) return key;
    const Page& page = columns_.page(machine);
    const std::size_t from = row(machine);
    const std::int64_t tasks = taken(machine) + 1;
    std::int64_t left = 0;
    for (int d = 0; d < dimensions_; ++d) {
      const std::size_t at = from + static_cast<std::size_t>(d);
      const std::int64_t after = page.free[at] + adjusted(machine, d) - query_.request[d] * tasks;
      left += static_cast<std::int64_t>(static_cast<double>(after) * page.scale[at]);
    }
    return query_.rule == Rule::best ? left : -left;
  }

  // Offers every machine that fits, before any is taken.
  void rank_all(Shortlist& shortlist) {
    if (query_.adjust == nullptr) {
      switch (dimensions_) {
        case 1: return rank_pages<1>(shortlist);
        case 2: return rank_pages<2>(shortlist);
        case 3: return rank_pages<3>(shortlist);
        case 4: return rank_pages<4>(shortlist);
        default: break;
      }
    }
    for (std::int32_t machine = 0; machine < columns_.machines(); ++machine) {
      if (!note(look(machine))) continue;
      const std::int64_t key = query_.keys ? query_.keys[static_cast<std::size_t>(machine)] : 0;
      shortlist.offer(machine, rank(machine, key));
    }
  }

  // The same page by page, without adjustments and with the loop over dimensions unrolled: a ranked search
  // spends most of its time here.
  template <int Dimensions>
  void rank_pages(Shortlist& shortlist) {
    std::array<std::int64_t, Dimensions> request;
    std::copy_n(query_.request, Dimensions, request.begin());
    std::array<std::int64_t, Dimensions + 3> verdicts{};  // as ruled_out, then those that fit
    const bool is_keyed = query_.rule == Rule::smallest_key;
    const std::int64_t sign = query_.rule == Rule::worst ? -1 : 1;
    const std::int32_t machines = columns_.machines();
    for (std::int32_t first = 0; first < machines; first += Page::size) {
      const Page& page = columns_.page(first);
      const std::int64_t* room = (query_.needs_room ? page.free : page.capacity).data();
      const double* scale = page.scale.data();
      const std::int32_t end = std::min(machines - first, std::int32_t{Page::size});
      for (std::int32_t i = 0; i < end; ++i, room += Dimensions, scale += Dimensions) {
        std::size_t verdict = Dimensions + 2;
        for (std::size_t d = Dimensions; d-- > 0;) verdict = room[d] < request[d] ? d : verdict;
        if (!is_within(first + i)) verdict = Dimensions;
        if (page.flags[static_cast<std::size_t>(i)] != 0) verdict = Dimensions + 1;
        ++verdicts[verdict];
        if (verdict != Dimensions + 2) continue;
        if (is_keyed) {
          shortlist.offer(first + i, query_.keys[static_cast<std::size_t>(first + i)]);
          continue;
        }
        std::int64_t left = 0;
        for (std::size_t d = 0; d < Dimensions; ++d) {
          left += static_cast<std::int64_t>(static_cast<double>(room[d] - request[d]) * scale[d]);
        }
        shortlist.offer(first + i, sign * left);
      }
    }
    std::copy_n(verdicts.begin(), Dimensions + 2, found_.ruled_out.begin());
    found_.looked_at = machines;
    found_.feasible = verdicts[Dimensions + 2];
  }

  void ranked() {
    Shortlist shortlist(static_cast<std::size_t>(query_.count), random_.bits());
    rank_all(shortlist);
    if (shortlist.is_empty()) return;
    note_scores(shortlist.best_two());
    shortlist.make_heap();
    for (std::int64_t task = 0; task < query_.count && !shortlist.is_empty(); ++task) {
      Candidate best = shortlist.take_best();
      take(best.machine);
      if (look(best.machine) != fitting) continue;
      best.rank = rank(best.machine, saturating_sum(best.rank, step(best.machine)));
      shortlist.put_back(best);
    }
  }

  void note_scores(const std::pair<Candidate, Candidate>& best) {
    const std::int64_t sign = query_.rule == Rule::worst ? -1 : 1;
    found_.has_score = true;
    found_.score = sign * best.first.rank;
    found_.second = best.second.machine;
    if (found_.second >= 0) found_.second_score = sign * best.second.rank;
  }

  std::int64_t step(std::int32_t machine) const {
    return query_.steps ? query_.steps[static_cast<std::size_t>(machine)] : query_.step;
  }

  static std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return b > 0 ? std::numeric_limits<std::int64_t>::max()
                 : std::numeric_limits<std::int64_t>::min();
  }

  bool is_large_enough(std::int32_t machine) const {
    const std::int64_t* capacity = columns_.capacity(machine);
    for (int d = 0; d < dimensions_; ++d) {
      if (query_.request[d] > capacity[d]) return false;
    }
    return true;
  }

  // Over all machines that are up and not filtered, as this search left them. Machines that would be large
  // enough if empty come before all others, because room can be made there.
  void find_nearest_miss() {
    for (std::int32_t machine = 0; machine < columns_.machines(); ++machine) {
      if (columns_.flags(machine) != 0 || !is_within(machine) || is_exhausted(machine)) continue;
      const bool could_fit = is_large_enough(machine);
      if (found_.could_fit && !could_fit) continue;
      if (could_fit && !found_.could_fit) {
        found_.could_fit = true;
        found_.miss_machine = -1;
      }
      int largest = -1;
      for (int d = 0; d < dimensions_; ++d) {
        if (lacking(machine, d) <= 0) continue;
        if (largest < 0 || is_less(lacking(machine, largest), largest, lacking(machine, d), d)) {
          largest = d;
        }
      }
      if (largest < 0) continue;
      const std::int64_t amount = lacking(machine, largest);
      if (found_.miss_machine < 0 ||
          is_less(amount, largest, found_.miss_lacking, found_.miss_dimension)) {
        found_.miss_machine = machine;
        found_.miss_dimension = largest;
        found_.miss_lacking = amount;
      }
    }
  }

  // a / request_d < b / request_e, exactly; only requested dimensions can be lacking, so neither request is 0.
  bool is_less(std::int64_t a, int d, std::int64_t b, int e) const {
    __extension__ using Wide = __int128;
    return static_cast<Wide>(a) * query_.request[e] < static_cast<Wide>(b) * query_.request[d];
  }

  const Columns& columns_;
  const Query& query_;
  Random& random_;
  int dimensions_;
  // The dimension that consists of devices; -1: none.
  int devices_;
  // A reference to the scratch space: looking it up per thread would cost more than examining a machine.
  std::int32_t* taken_;
  // Whether `look_plainly` is enough.
  bool is_plain_;
  Found found_;
};

}  // namespace argosy
