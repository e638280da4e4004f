// argosy._core.Placer: a placement problem, greedy answers to it, and what an answer costs.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <tuple>

#include "arrays.hpp"
#include "bindings.hpp"
#include "budget.hpp"
#include "place/greedy.hpp"

namespace {

namespace nb = nanobind;
using namespace nb::literals;
using namespace argosy::place;
using argosy::OutArray;
using argosy::to_numpy;
template <class T>
using Array = argosy::InArray<T>;
// family, is spread, how many can never hold, [(counter, least, most, self)]
using RawTerm =
    std::tuple<std::int32_t, bool, std::int32_t,
               std::vector<std::tuple<std::int32_t, std::int32_t, std::int32_t, bool>>>;

void require(bool holds, const char* otherwise) {
  if (!holds) throw std::invalid_argument(otherwise);
}

template <class T>
std::vector<T> copied(const Array<T>& array) {
  return {array.data(), array.data() + array.shape(0)};
}

Family make_family(std::vector<std::int32_t> first_set, std::vector<std::int32_t> sets_of,
                   std::int32_t sets, std::int32_t machines) {
  require(sets >= 0 && first_set.size() == static_cast<std::size_t>(machines) + 1, "rows of machines");
  require(first_set.front() == 0 && first_set.back() == static_cast<std::int32_t>(sets_of.size()),
          "rows that end with the sets");
  Family family;
  family.sets = sets;
  family.first_member.assign(static_cast<std::size_t>(sets) + 1, 0);
  bool overlaps = false;
  for (std::size_t n = 0; n + 1 < first_set.size(); ++n) {
    require(first_set[n] <= first_set[n + 1], "rows in order");
    overlaps |= first_set[n + 1] - first_set[n] > 1;
  }
  for (const std::int32_t set : sets_of) {
    require(set >= 0 && set < sets, "sets that are there");
    ++family.first_member[static_cast<std::size_t>(set) + 1];
  }
  for (std::size_t s = 1; s < family.first_member.size(); ++s) {
    family.first_member[s] += family.first_member[s - 1];
  }
  family.members.resize(sets_of.size());
  std::vector<std::int32_t> next = family.first_member;
  if (!overlaps) family.set_of.assign(static_cast<std::size_t>(machines), -1);
  for (std::int32_t n = 0; n < machines; ++n) {
    const auto row = static_cast<std::size_t>(n);
    for (std::int32_t i = first_set[row]; i < first_set[row + 1]; ++i) {
      const std::int32_t set = sets_of[static_cast<std::size_t>(i)];
      family.members[static_cast<std::size_t>(next[static_cast<std::size_t>(set)]++)] = n;
      if (!overlaps) family.set_of[row] = set;
    }
  }
  family.first_set = std::move(first_set);
  family.sets_of = std::move(sets_of);
  return family;
}

class Placer {
 public:
  Placer(const Array<std::int64_t>& free, const Array<std::int64_t>& capacity,
         const Array<std::int64_t>& smallest, const Array<std::int64_t>& requests,
         const Array<std::int32_t>& counts, const Array<std::int32_t>& apps, std::int32_t app_count,
         std::int32_t all_kinds) {
    p_.dimensions = static_cast<std::int32_t>(smallest.shape(0));
    require(p_.dimensions > 0, "at least one dimension");
    require(free.shape(0) % smallest.shape(0) == 0 && capacity.shape(0) == free.shape(0),
            "room and capacity of the same machines");
    p_.machines = static_cast<std::int32_t>(free.shape(0) / smallest.shape(0));
    p_.kinds = static_cast<std::int32_t>(counts.shape(0));
    require(requests.shape(0) == counts.shape(0) * smallest.shape(0) && apps.shape(0) == counts.shape(0),
            "a request and an application for each kind");
    require(all_kinds >= p_.kinds, "all kinds");
    p_.all_kinds = all_kinds;
    p_.apps = app_count;
    p_.free = copied(free);
    p_.capacity = copied(capacity);
    p_.smallest = copied(smallest);
    p_.requests = copied(requests);
    p_.counts = copied(counts);
    p_.app_of = copied(apps);
    for (const std::int32_t app : p_.app_of) require(app >= 0 && app < app_count, "known applications");
    p_.tiers.resize(counts.shape(0));
    p_.allowed.resize(counts.shape(0));
    machine_count_ = p_.machines;
    kind_count_ = p_.kinds;
  }

  void allow(std::int32_t kind, const Array<std::uint8_t>& mask) {
    open();
    require(kind >= 0 && kind < p_.kinds && mask.shape(0) == machines(), "a mask of the machines");
    p_.allowed[static_cast<std::size_t>(kind)] = copied(mask);
  }

  void rank(const Array<std::int32_t>& tiers) {
    open();
    require(tiers.shape(0) == kinds(), "a tier for each kind");
    p_.tiers = copied(tiers);
  }

  void add_family(const Array<std::int32_t>& first_set, const Array<std::int32_t>& sets_of,
                  std::int32_t sets) {
    open();
    p_.families.push_back(make_family(copied(first_set), copied(sets_of), sets, p_.machines));
  }

  void add_item(std::int32_t family, std::int32_t least, std::int32_t most, double weight, double outside,
                bool hard, const Array<std::uint8_t>& subject, const Array<std::uint8_t>& match,
                const Array<std::int32_t>& gamma, const Array<std::int32_t>& both,
                const Array<std::int32_t>& other) {
    open();
    const Family& known = checked(family);
    require(!known.set_of.empty() || p_.machines == 0, "a family whose sets do not overlap");
    const auto sets = static_cast<std::size_t>(known.sets) + 1;
    require(gamma.shape(0) == sets && both.shape(0) == sets && other.shape(0) == sets, "counts per set");
    require(subject.shape(0) == kinds() && match.shape(0) == kinds(), "a bit for each kind");
    p_.items.push_back({family, {least, most}, weight, outside, hard, copied(subject), copied(match),
                        copied(gamma), copied(both), copied(other)});
  }

  void add_spread(std::int32_t family, std::int32_t least, std::int32_t most, double weight, bool hard,
                  const Array<std::uint8_t>& subject, const Array<std::int32_t>& inside,
                  std::int64_t subjects) {
    open();
    require(inside.shape(0) == static_cast<std::size_t>(checked(family).sets), "counts per set");
    require(subject.shape(0) == kinds(), "a bit for each kind");
    Spread spread{family, {least, most}, weight, hard, copied(subject), copied(inside), subjects, 0, subjects > 0};
    for (const std::int32_t count : spread.inside) spread.used += count > 0;
    p_.spreads.push_back(std::move(spread));
  }

  void add_counter(std::int32_t family, bool is_spread, const Array<std::uint8_t>& match,
                   const Array<std::int32_t>& count) {
    open();
    require(count.shape(0) == static_cast<std::size_t>(checked(family).sets), "counts per set");
    require(match.shape(0) == static_cast<std::size_t>(p_.all_kinds), "a bit for each kind");
    Counter counter{family, is_spread, copied(match), copied(count), 0};
    for (const std::int32_t inside : counter.count) counter.used += inside > 0;
    p_.counters.push_back(std::move(counter));
  }

  void add_choice(double weight, bool hard,
                  const std::vector<std::vector<std::vector<RawTerm>>>& alternatives,
                  const std::vector<Array<std::int32_t>>& here) {
    open();
    require(alternatives.size() == static_cast<std::size_t>(p_.all_kinds) && here.size() == alternatives.size(),
            "alternatives for each kind");
    Choice choice;
    choice.weight = weight;
    choice.hard = hard;
    for (const auto& of_kind : alternatives) {
      auto& mine = choice.alternatives.emplace_back();
      for (const auto& terms : of_kind) {
        Alternative alternative;
        for (const auto& [family, is_spread, never, atoms] : terms) {
          checked(family);
          Term term{family, is_spread, never, {}};
          for (const auto& [counter, least, most, self] : atoms) {
            require(counter >= 0 && static_cast<std::size_t>(counter) < p_.counters.size(), "counters");
            term.atoms.push_back({counter, {least, most}, self});
            choice.counters.push_back(counter);
          }
          require(!is_spread || term.atoms.size() == 1, "one atom in a spread");
          alternative.push_back(std::move(term));
        }
        mine.push_back(std::move(alternative));
      }
    }
    std::sort(choice.counters.begin(), choice.counters.end());
    choice.counters.erase(std::unique(choice.counters.begin(), choice.counters.end()), choice.counters.end());
    for (std::size_t k = 0; k < here.size(); ++k) {
      require(choice.alternatives[k].empty() || here[k].shape(0) == machines(), "counts per machine");
      choice.here.push_back(choice.alternatives[k].empty() ? std::vector<std::int32_t>{} : copied(here[k]));
    }
    p_.choices.push_back(std::move(choice));
  }

  std::tuple<OutArray<std::int32_t>, OutArray<std::int32_t>> run(
      const std::vector<std::int32_t>& sequence, Order order, Rule rule,
      const std::tuple<double, double, double, double>& weights, argosy::Random& random,
      argosy::Budget* budget, bool thorough) {
    for (const std::int32_t kind : sequence) require(kind >= 0 && kind < kind_count_, "known kinds");
    const auto [violation, fragment, used, load] = weights;
    State& state = ready();
    Placed placed;
    {
      nb::gil_scoped_release release;
      Greedy greedy(state, {violation, fragment, used, load}, thorough);
      placed = greedy.run(sequence, order, rule, random);
      for (std::size_t i = 0; i < placed.kinds.size(); ++i) state.change(placed.kinds[i], placed.machines[i], -1);
    }
    if (budget) budget->charge(placed.looks);
    return {to_numpy(std::move(placed.kinds)), to_numpy(std::move(placed.machines))};
  }

  // The violation before and after, how many machines are newly fragmented, whether all fits, and
  // whether a container breaks something hard.
  std::tuple<double, double, std::int64_t, bool, bool> judge(const Array<std::int32_t>& kinds_of,
                                                             const Array<std::int32_t>& machines_of) {
    require(kinds_of.shape(0) == machines_of.shape(0), "a machine for each container");
    const std::size_t count = kinds_of.shape(0);
    for (std::size_t i = 0; i < count; ++i) {
      require(kinds_of.data()[i] >= 0 && kinds_of.data()[i] < kind_count_, "known kinds");
      require(machines_of.data()[i] >= 0 && machines_of.data()[i] < machine_count_, "known machines");
    }
    State& state = ready();
    const double before = state.violation();
    std::int64_t fragments = 0;
    bool fits = true;
    for (std::size_t i = 0; i < count; ++i) {
      fits &= state.fits(kinds_of.data()[i], machines_of.data()[i]);
      fragments += state.fragments(kinds_of.data()[i], machines_of.data()[i]);
      state.change(kinds_of.data()[i], machines_of.data()[i], 1);
    }
    const double after = state.violation();
    bool breaks = state.worsens();
    for (std::size_t i = 0; i < count && !breaks; ++i) {
      breaks = state.breaks_hard(kinds_of.data()[i], machines_of.data()[i]);
    }
    for (std::size_t i = 0; i < count; ++i) state.change(kinds_of.data()[i], machines_of.data()[i], -1);
    return {before, after, fragments, fits, breaks};
  }

  // Per machine: whether the kind fits, the violation one container of it adds, whether that is clean.
  std::tuple<OutArray<std::uint8_t>, OutArray<double>, OutArray<std::uint8_t>> look(std::int32_t kind) {
    require(kind >= 0 && kind < kind_count_, "a known kind");
    State& state = ready();
    std::vector<std::uint8_t> fits(machines()), clean(machines());
    std::vector<double> adds(machines());
    for (std::int32_t n = 0; n < machine_count_; ++n) {
      const auto row = static_cast<std::size_t>(n);
      const Effect effect = state.effect(kind, n);
      fits[row] = state.fits(kind, n) && !effect.is_forbidden;
      adds[row] = effect.violation;
      clean[row] = effect.is_clean;
    }
    return {to_numpy(std::move(fits)), to_numpy(std::move(adds)), to_numpy(std::move(clean))};
  }

 private:
  std::size_t machines() const { return static_cast<std::size_t>(machine_count_); }
  std::size_t kinds() const { return static_cast<std::size_t>(kind_count_); }

  const Family& checked(std::int32_t family) const {
    require(family >= 0 && static_cast<std::size_t>(family) < p_.families.size(), "a known family");
    return p_.families[static_cast<std::size_t>(family)];
  }

  // The problem is complete with the first question; nothing can be added after it.
  State& ready() {
    if (states_.empty()) {
      require(!p_.families.empty() && !p_.families[0].set_of.empty(), "the machines as the first family");
      states_.emplace_back(std::move(p_));
      p_ = {};
    }
    return states_.front();
  }

  void open() const { require(states_.empty(), "a problem that is still being made"); }

  Problem p_;
  std::int32_t machine_count_ = 0, kind_count_ = 0;
  std::vector<State> states_;
};

}  // namespace

void bind_place(nb::module_& module) {
  nb::enum_<Order>(module, "PlacementOrder", nb::is_arithmetic())
      .value("GIVEN", Order::given)
      .value("CANDIDATES", Order::candidates);
  nb::enum_<Rule>(module, "PlacementRule", nb::is_arithmetic())
      .value("SCORED", Rule::scored)
      .value("FIRST_FIT", Rule::first_fit)
      .value("KUBE", Rule::kube)
      .value("HEARTBEAT", Rule::heartbeat);
  nb::class_<Placer>(module, "Placer")
      .def(nb::init<const Array<std::int64_t>&, const Array<std::int64_t>&, const Array<std::int64_t>&,
                    const Array<std::int64_t>&, const Array<std::int32_t>&, const Array<std::int32_t>&,
                    std::int32_t, std::int32_t>(),
           "free"_a, "capacity"_a, "smallest"_a, "requests"_a, "counts"_a, "apps"_a, "app_count"_a,
           "all_kinds"_a)
      .def("allow", &Placer::allow, "kind"_a, "mask"_a)
      .def("rank", &Placer::rank, "tiers"_a)
      .def("add_family", &Placer::add_family, "first_set"_a, "sets_of"_a, "sets"_a)
      .def("add_item", &Placer::add_item, "family"_a, "least"_a, "most"_a, "weight"_a, "outside"_a,
           "hard"_a, "subject"_a, "match"_a, "gamma"_a, "both"_a, "other"_a)
      .def("add_spread", &Placer::add_spread, "family"_a, "least"_a, "most"_a, "weight"_a, "hard"_a,
           "subject"_a, "inside"_a, "subjects"_a)
      .def("add_counter", &Placer::add_counter, "family"_a, "is_spread"_a, "match"_a, "count"_a)
      .def("add_choice", &Placer::add_choice, "weight"_a, "hard"_a, "alternatives"_a, "here"_a)
      .def("run", &Placer::run, "sequence"_a, "order"_a, "rule"_a, "weights"_a, "random"_a,
           "budget"_a.none() = nb::none(), "thorough"_a = false)
      .def("judge", &Placer::judge, "kinds"_a, "machines"_a)
      .def("look", &Placer::look, "kind"_a);
}
