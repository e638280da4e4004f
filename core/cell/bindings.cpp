// argosy._core: CellView (what can be read) and Cell (what changes).
//
// The global interpreter lock is the live cell's lock: its operations are short and keep it. A
// snapshot never changes, so searching one lets go of it. Everything that comes from Python is checked
// here or in the cell; what is wrong becomes a ValueError or TypeError and leaves the cell sound.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

#include "arrays.hpp"
#include "bindings.hpp"
#include "cell/cell.hpp"
#include "cell/search.hpp"
#include "cell/snapshot.hpp"

namespace {

namespace nb = nanobind;
using namespace nb::literals;
using argosy::Amounts;
using argosy::Bitmap;
using argosy::Cell;
using argosy::CellView;
using argosy::OutArray;
using argosy::Random;
using argosy::to_numpy;

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::device::cpu>;
using Table = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A one-dimensional array as contiguous memory: itself, or a copy where it has strides.
template <class T>
class Contiguous {
 public:
  explicit Contiguous(const Array<T>& array) : data_(array.data()), size_(array.shape(0)) {
    if (size_ < 2 || array.stride(0) == 1) return;
    copy_.reserve(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      copy_.push_back(array.data()[static_cast<std::ptrdiff_t>(i) * array.stride(0)]);
    }
    data_ = copy_.data();
  }
  explicit Contiguous(const std::optional<Array<T>>& array)
      : Contiguous(array ? Contiguous(*array) : Contiguous()) {}
  Contiguous() = default;
  Contiguous(Contiguous&&) = default;
  Contiguous(const Contiguous&) = delete;
  Contiguous& operator=(const Contiguous&) = delete;

  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<const T> span() const { return {data_, size_}; }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
  std::vector<T> copy_;
};

void require(bool holds, const char* otherwise) {
  if (!holds) throw std::invalid_argument(otherwise);
}

std::int32_t checked_machine(const CellView& view, std::int64_t machine) {
  if (!view.knows(machine)) {
    throw std::invalid_argument("there is no machine " + std::to_string(machine));
  }
  return static_cast<std::int32_t>(machine);
}

std::int32_t checked_set(const CellView& view, std::int64_t set) {
  require(set >= 0 && set < view.groups().sets(), "there is no such node set");
  return static_cast<std::int32_t>(set);
}

std::vector<std::int64_t> amounts_list(const CellView& view, const Amounts& amounts) {
  return {amounts.begin(), amounts.begin() + view.dimensions()};
}

// One column of all machines, or of those listed.
template <class T, class Read>
std::vector<T> gather(const CellView& view, const std::optional<Array<std::int32_t>>& listed,
                      std::size_t width, Read read) {
  std::vector<T> out;
  if (!listed) {
    out.reserve(static_cast<std::size_t>(view.machines()) * width);
    for (std::int32_t machine = 0; machine < view.machines(); ++machine) read(machine, out);
    return out;
  }
  const Contiguous<std::int32_t> machines(*listed);
  out.reserve(machines.size() * width);
  for (const std::int32_t machine : machines.span()) read(checked_machine(view, machine), out);
  return out;
}

template <class Row>
OutArray<std::int64_t> gather_rows(const CellView& view,
                                   const std::optional<Array<std::int32_t>>& listed, Row row) {
  const auto width = static_cast<std::size_t>(view.dimensions());
  std::vector<std::int64_t> out = gather<std::int64_t>(
      view, listed, width, [&](std::int32_t machine, std::vector<std::int64_t>& to) {
        const std::int64_t* from = row(machine);
        to.insert(to.end(), from, from + width);
      });
  const std::size_t rows = out.size() / width;
  return to_numpy(std::move(out), {rows, width});
}

using Table = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Machines, versions, looks, looks with room, looks without by reason; then, only where there is any, the
// nearest miss (machine, dimension, what lacks, whether it could ever fit) and the best two scores.
using FoundTuple =
    std::tuple<OutArray<std::int32_t>, OutArray<std::uint32_t>, std::int64_t, std::int64_t,
               std::vector<std::int64_t>,
               std::optional<std::tuple<std::int32_t, int, std::int64_t, bool>>,
               std::optional<std::tuple<std::int64_t, std::int32_t, std::int64_t>>>;

FoundTuple find(const CellView& view, bool is_frozen, std::int64_t shape, std::int64_t count, int rule,
                Random& random, const std::optional<Array<std::uint64_t>>& within,
                const std::optional<Array<std::int64_t>>& keys, std::int64_t step, bool needs_room,
                std::int32_t per_machine, const std::optional<Array<std::int64_t>>& steps,
                const std::optional<Table>& adjust) {
  require(view.shapes().knows(shape), "there is no such shape");
  require(count >= 0 && count <= (1 << 24), "a search is for 0 to 2^24 tasks");
  require(rule >= 0 && rule <= static_cast<int>(argosy::Rule::sample), "there is no such rule");
  require(per_machine >= 0, "per_machine must not be negative");
  argosy::Query query;
  query.rule = static_cast<argosy::Rule>(rule);
  query.count = count;
  query.step = step;
  query.needs_room = needs_room;
  query.per_machine = per_machine;
  require(needs_room || (query.rule != argosy::Rule::best && query.rule != argosy::Rule::worst),
          "best and worst fit need room");

  // The request is copied: interning may move the table while the lock is let go.
  Amounts request{};
  std::copy_n(view.request(static_cast<std::int32_t>(shape)), view.dimensions(), request.begin());
  query.request = request.data();
  const Contiguous<std::uint64_t> bits(within);
  if (within) {
    static constexpr std::uint64_t nobody = 0;
    query.within = bits.size() > 0 ? bits.data() : &nobody;
    query.within_words = bits.size();
  }
  const Contiguous<std::int64_t> values(keys);
  if (query.rule == argosy::Rule::smallest_key) {
    require(keys.has_value() && values.size() == static_cast<std::size_t>(view.machines()),
            "smallest_key needs one key per machine");
    query.keys = values.data();
  }
  const Contiguous<std::int64_t> increments(steps);
  if (steps) {
    require(increments.size() == static_cast<std::size_t>(view.machines()),
            "steps are one per machine");
    query.steps = increments.data();
  }
  if (adjust) {
    require(adjust->shape(0) == static_cast<std::size_t>(view.machines()) &&
                adjust->shape(1) == static_cast<std::size_t>(view.dimensions()),
            "adjust has a row per machine and a column per dimension");
    const std::int64_t* amounts = adjust->data();
    for (std::size_t i = 0; i < adjust->size(); ++i) {
      require(-argosy::largest_amount <= amounts[i] && amounts[i] <= argosy::largest_amount,
              "adjustments are from -2^53 to 2^53");
    }
    query.adjust = amounts;
  }

  Random stream = random;
  argosy::Found found;
  if (is_frozen) {
    nb::gil_scoped_release unlocked;
    found = argosy::Search(view.columns(), query, stream).run();
  } else {
    found = argosy::Search(view.columns(), query, stream).run();
  }
  random = stream;
  std::vector<std::int64_t> ruled_out(found.ruled_out.begin(),
                                      found.ruled_out.begin() + view.dimensions() + 2);
  FoundTuple answer{to_numpy(std::move(found.machines)), to_numpy(std::move(found.versions)),
                    found.looked_at, found.feasible, std::move(ruled_out), {}, {}};
  if (found.miss_machine >= 0) {
    std::get<5>(answer) = {found.miss_machine, found.miss_dimension, found.miss_lacking,
                           found.could_fit};
  }
  if (found.has_score) std::get<6>(answer) = {found.score, found.second, found.second_score};
  return answer;
}

// The arrays of one transaction, kept alive while it is judged.
struct Asked {
  Asked(const std::optional<Array<std::int64_t>>& task_array,
        const std::optional<Array<std::int32_t>>& machine_array,
        const std::optional<Array<std::int32_t>>& shape_array,
        const std::optional<Array<std::uint32_t>>& version_array,
        const std::optional<Array<std::int32_t>>& gang_array,
        const std::optional<Array<std::int64_t>>& release_array)
      : tasks(task_array),
        machines(machine_array),
        shapes(shape_array),
        versions(version_array),
        gangs(gang_array),
        releases(release_array) {
    const std::size_t count = tasks.size();
    require(machines.size() == count && shapes.size() == count && versions.size() == count &&
                (!gang_array || gangs.size() == count),
            "the arrays of claims differ in length");
    rows = {count, tasks.data(), machines.data(), shapes.data(), versions.data(),
            gang_array && count > 0 ? gangs.data() : nullptr};
  }

  Contiguous<std::int64_t> tasks;
  Contiguous<std::int32_t> machines;
  Contiguous<std::int32_t> shapes;
  Contiguous<std::uint32_t> versions;
  Contiguous<std::int32_t> gangs;
  Contiguous<std::int64_t> releases;
  argosy::ClaimRows rows;
};

// Accepted, whys, details and amounts by row, or nothing where every row was accepted.
using Verdicts = std::tuple<nb::ndarray<nb::numpy, bool>, OutArray<std::uint8_t>,
                            OutArray<std::int8_t>, OutArray<std::int64_t>>;
using Evictions = std::tuple<OutArray<std::int64_t>, OutArray<std::int32_t>>;
using OutcomeTuple = std::tuple<std::optional<Verdicts>, std::optional<Evictions>,
                                std::vector<std::tuple<std::int64_t, int>>>;

Verdicts verdicts(const std::vector<argosy::Refusal>& refusals) {
  const std::size_t count = refusals.size();
  auto* accepted = new bool[count];
  nb::capsule owner(accepted, [](void* p) noexcept { delete[] static_cast<bool*>(p); });
  std::vector<std::uint8_t> whys(count);
  std::vector<std::int8_t> details(count);
  std::vector<std::int64_t> amounts(count);
  for (std::size_t row = 0; row < count; ++row) {
    accepted[row] = refusals[row].why == argosy::Why::none;
    whys[row] = static_cast<std::uint8_t>(refusals[row].why);
    details[row] = refusals[row].dimension;
    amounts[row] = refusals[row].amount;
  }
  return {nb::ndarray<nb::numpy, bool>(accepted, {count}, owner), to_numpy(std::move(whys)),
          to_numpy(std::move(details)), to_numpy(std::move(amounts))};
}

OutcomeTuple commit(Cell& cell, const Asked& asked, const argosy::Terms& terms, bool is_begun) {
  cell.check(asked.rows, asked.releases.span(), terms);
  if (!is_begun) cell.begin();
  std::vector<argosy::Refusal> refusals;
  std::vector<argosy::Unreleased> unreleased;
  cell.commit(asked.rows, asked.releases.span(), terms, refusals, unreleased);

  OutcomeTuple outcome;
  auto& [rows, evictions, kept] = outcome;
  const bool is_whole = std::all_of(refusals.begin(), refusals.end(), [](const auto& refusal) {
    return refusal.why == argosy::Why::none;
  });
  if (!is_whole) rows = verdicts(refusals);
  if (!cell.evicted().empty()) {
    evictions = {to_numpy(std::vector<std::int64_t>(cell.evicted())),
                 to_numpy(std::vector<std::int32_t>(cell.evicted_from()))};
  }
  for (const auto& [task, why] : unreleased) kept.emplace_back(task, static_cast<int>(why));
  return outcome;
}

template <class Class>
void bind_find(Class& type, bool is_frozen) {
  type.def(
      "find",
      [is_frozen](const CellView& self, std::int64_t shape, std::int64_t count, int rule,
                  Random& random, const std::optional<Array<std::uint64_t>>& within,
                  const std::optional<Array<std::int64_t>>& keys, std::int64_t step, bool needs_room,
                  std::int32_t per_machine, const std::optional<Array<std::int64_t>>& steps,
                  const std::optional<Table>& adjust) {
        return find(self, is_frozen, shape, count, rule, random, within, keys, step, needs_room,
                    per_machine, steps, adjust);
      },
      "shape"_a, "count"_a, "rule"_a, "random"_a, "within"_a.noconvert() = nb::none(),
      "keys"_a.noconvert() = nb::none(), "step"_a = 0, "needs_room"_a = true, "per_machine"_a = 0,
      "steps"_a.noconvert() = nb::none(), "adjust"_a.noconvert() = nb::none());
}

void bind_view(nb::module_& module) {
  nb::class_<CellView> type(module, "CellView");
  type.def_prop_ro("dimensions", &CellView::dimensions)
      .def_prop_ro("machines", &CellView::machines)
      .def("is_up", [](const CellView& self, std::int64_t machine) {
        return self.is_up(checked_machine(self, machine));
      }, "machine"_a)
      .def("is_draining", [](const CellView& self, std::int64_t machine) {
        return self.columns().flags(checked_machine(self, machine)) == argosy::flag_draining;
      }, "machine"_a)
      .def("takes_claims", [](const CellView& self) {
        std::vector<std::uint8_t> takes(static_cast<std::size_t>(self.machines()));
        for (std::int32_t m = 0; m < self.machines(); ++m) {
          takes[static_cast<std::size_t>(m)] = self.columns().flags(m) == 0;
        }
        return argosy::to_numpy(std::move(takes));
      })
      .def("free", [](const CellView& self, const std::optional<Array<std::int32_t>>& machines) {
        return gather_rows(self, machines, [&](std::int32_t m) { return self.columns().free(m); });
      }, "machines"_a.noconvert() = nb::none())
      .def("capacity", [](const CellView& self, const std::optional<Array<std::int32_t>>& machines) {
        return gather_rows(self, machines,
                           [&](std::int32_t m) { return self.columns().capacity(m); });
      }, "machines"_a.noconvert() = nb::none())
      .def("versions", [](const CellView& self, const std::optional<Array<std::int32_t>>& machines) {
        return to_numpy(gather<std::uint32_t>(
            self, machines, 1, [&](std::int32_t m, std::vector<std::uint32_t>& out) {
              out.push_back(self.columns().version(m));
            }));
      }, "machines"_a.noconvert() = nb::none())
      .def("used_total", [](const CellView& self) { return amounts_list(self, self.used_total()); })
      .def("capacity_total",
           [](const CellView& self) { return amounts_list(self, self.capacity_total()); })
      .def("shape",
           [](const CellView& self, const std::vector<std::int64_t>& request,
              std::vector<std::int32_t> tags, std::int64_t precedence) {
             return self.shapes().intern(request, std::move(tags), precedence);
           },
           "request"_a, "tags"_a, "precedence"_a)
      .def("shape_parts",
           [](const CellView& self, std::int64_t shape) {
             require(self.shapes().knows(shape), "there is no such shape");
             const auto number = static_cast<std::int32_t>(shape);
             const std::int64_t* request = self.request(number);
             return std::tuple(std::vector<std::int64_t>(request, request + self.dimensions()),
                               self.shapes().tags(number),
                               static_cast<int>(self.shapes().precedence(number)));
           },
           "shape"_a)
      .def("tag_count",
           [](const CellView& self, std::int32_t tag, std::int64_t machine) {
             require(tag >= 0, "tag numbers must not be negative");
             return self.machine_tags().get(checked_machine(self, machine), tag);
           },
           "tag"_a, "machine"_a)
      .def("set_tag_count",
           [](const CellView& self, std::int32_t tag, std::int64_t set) {
             require(tag >= 0, "tag numbers must not be negative");
             return self.set_tags().get(checked_set(self, set), tag);
           },
           "tag"_a, "set"_a)
      .def("sets_of", [](const CellView& self, std::int64_t machine) {
        const auto sets = self.groups().sets_of(checked_machine(self, machine));
        return std::vector<std::int32_t>(sets.begin(), sets.end());
      }, "machine"_a)
      .def("with_attributes", [](const CellView& self, const std::vector<std::int32_t>& attributes) {
        Bitmap bitmap = self.everyone();
        for (const std::int32_t attribute : attributes) {
          require(attribute >= 0, "attribute numbers must not be negative");
          self.groups().keep_attribute(attribute, bitmap);
        }
        return to_numpy(std::move(bitmap));
      }, "attributes"_a)
      .def("set_members", [](const CellView& self, std::int64_t set) {
        Bitmap bitmap = self.groups().members(checked_set(self, set));
        argosy::trim(bitmap, self.machines());
        return to_numpy(std::move(bitmap));
      }, "set"_a)
      .def("with_tag", [](const CellView& self, std::int32_t tag, std::int64_t least,
                          std::int64_t most) {
        require(tag >= 0, "tag numbers must not be negative");
        return to_numpy(self.with_tag(tag, least, most));
      }, "tag"_a, "least"_a, "most"_a)
      .def("in_sets_with_tag", [](const CellView& self, std::int32_t tag, std::int64_t first,
                                  std::int64_t sets, std::int64_t least, std::int64_t most) {
        require(tag >= 0, "tag numbers must not be negative");
        require(first >= 0 && sets >= 0 && first <= self.groups().sets() &&
                    sets <= self.groups().sets() - first,
                "there are no such node sets");
        return to_numpy(self.in_sets_with_tag(tag, static_cast<std::int32_t>(first),
                                              static_cast<std::int32_t>(first + sets), least, most));
      }, "tag"_a, "first"_a, "sets"_a, "least"_a, "most"_a);
  bind_find(type, true);
}

void bind_changes(nb::class_<Cell, CellView>& type) {
  type.def("begin", &Cell::begin)
      .def("add_machines",
           [](Cell& self, const Table& capacity,
              const std::vector<std::vector<std::int32_t>>& sets,
              const std::vector<std::vector<std::int32_t>>& attributes) {
             require(capacity.shape(1) == static_cast<std::size_t>(self.dimensions()),
                     "a capacity needs every dimension");
             require(sets.size() == capacity.shape(0) && attributes.size() == capacity.shape(0),
                     "sets and attributes must be given for every machine");
             for (std::size_t row = 0; row < capacity.shape(0); ++row) {
               self.add_machine(capacity.data() + row * capacity.shape(1), sets[row], attributes[row]);
             }
           },
           "capacity"_a.noconvert(), "sets"_a, "attributes"_a)
      .def("drain", &Cell::drain, "machine"_a, "draining"_a)
      .def("remove_machine", &Cell::remove_machine, "machine"_a)
      .def("revive", &Cell::revive, "machine"_a)
      .def("resize",
           [](Cell& self, std::int32_t machine, const std::vector<std::int64_t>& capacity) {
             require(capacity.size() == static_cast<std::size_t>(self.dimensions()),
                     "a capacity needs every dimension");
             self.resize(machine, capacity.data());
           },
           "machine"_a, "capacity"_a)
      .def("capacity_ever",
           [](const Cell& self) { return amounts_list(self, self.capacity_ever()); });
}

void bind_commit(nb::class_<Cell, CellView>& type) {
  type.def("check",
           [](const Cell& self, std::int32_t scheduler,
              const std::optional<Array<std::int64_t>>& tasks,
              const std::optional<Array<std::int32_t>>& machines,
              const std::optional<Array<std::int32_t>>& shapes,
              const std::optional<Array<std::uint32_t>>& versions,
              const std::optional<Array<std::int32_t>>& gangs,
              const std::optional<Array<std::int64_t>>& releases) {
             const Asked asked(tasks, machines, shapes, versions, gangs, releases);
             argosy::Terms terms;
             terms.scheduler = scheduler;
             self.check(asked.rows, asked.releases.span(), terms);
           },
           "scheduler"_a, "tasks"_a.noconvert().none(), "machines"_a.noconvert().none(),
           "shapes"_a.noconvert().none(), "versions"_a.noconvert().none(),
           "gangs"_a.noconvert().none(), "releases"_a.noconvert().none())
      .def("commit",
           [](Cell& self, std::int32_t scheduler, const std::optional<Array<std::int64_t>>& tasks,
              const std::optional<Array<std::int32_t>>& machines,
              const std::optional<Array<std::int32_t>>& shapes,
              const std::optional<Array<std::uint32_t>>& versions,
              const std::optional<Array<std::int32_t>>& gangs,
              const std::optional<Array<std::int64_t>>& releases, bool atomic, bool coarse,
              bool preempt, bool move, bool is_begun) {
             const Asked asked(tasks, machines, shapes, versions, gangs, releases);
             return commit(self, asked, {scheduler, atomic, coarse, preempt, move}, is_begun);
           },
           "scheduler"_a, "tasks"_a.noconvert().none(), "machines"_a.noconvert().none(),
           "shapes"_a.noconvert().none(), "versions"_a.noconvert().none(),
           "gangs"_a.noconvert().none(), "releases"_a.noconvert().none(), "atomic"_a, "coarse"_a,
           "preempt"_a, "move"_a, "is_begun"_a);
}

void bind_claims(nb::class_<Cell, CellView>& type) {
  type.def("add_scheduler", &Cell::add_scheduler)
      .def("set_limits",
           [](Cell& self, std::int64_t scheduler, const std::vector<std::int64_t>& resources,
              std::int64_t jobs, std::int16_t precedence) {
             require(self.knows_scheduler(scheduler), "unknown scheduler number");
             require(resources.empty() ||
                         resources.size() == static_cast<std::size_t>(self.dimensions()),
                     "a limit needs every dimension");
             Amounts limit;
             limit.fill(argosy::unlimited);
             for (std::size_t d = 0; d < resources.size(); ++d) {
               require(resources[d] >= 0, "limits must not be negative");
               limit[d] = resources[d];
             }
             self.set_limits(static_cast<std::int32_t>(scheduler), limit,
                             jobs < 0 ? argosy::unlimited : jobs, precedence);
           },
           "scheduler"_a, "resources"_a, "jobs"_a, "precedence"_a)
      .def("most_precedence", [](const Cell& self, std::int64_t scheduler) {
        require(self.knows_scheduler(scheduler), "unknown scheduler number");
        return self.scheduler(static_cast<std::int32_t>(scheduler)).most_precedence;
      }, "scheduler"_a)
      .def("usage", [](const Cell& self, std::int64_t scheduler) {
        require(self.knows_scheduler(scheduler), "unknown scheduler number");
        const argosy::Scheduler& of = self.scheduler(static_cast<std::int32_t>(scheduler));
        return std::tuple(amounts_list(self, of.used), of.claims, of.jobs.size());
      }, "scheduler"_a)
      .def_prop_ro("claims", [](const Cell& self) { return self.claims().size(); })
      .def("claim", [](const Cell& self, std::int64_t task) {
        require(task >= 0, "task numbers must not be negative");
        return std::tuple(self.claim_machine(task), self.claim_shape(task),
                          self.claim_scheduler(task), self.claim_sequence(task));
      }, "task"_a)
      .def("claims_on", [](const Cell& self, std::int64_t machine) {
        std::vector<std::int64_t> tasks;
        self.claims_on(checked_machine(self, machine), tasks);
        return to_numpy(std::move(tasks));
      }, "machine"_a)
      .def("audit", &Cell::audit);
}

// Who holds what, of the live cell and of a snapshot.
template <class View>
void bind_holders(nb::class_<View, CellView>& type) {
  type.def("tagged_claims_on", [](const View& self, const Array<std::int32_t>& machines) {
        Contiguous<std::int32_t> asked(machines);
        std::vector<std::int64_t> tasks;
        std::vector<std::int32_t> where, what, who;
        self.tagged_claims_on(asked.data(), asked.size(), tasks, where, what, who);
        return std::tuple(to_numpy(std::move(tasks)), to_numpy(std::move(where)),
                          to_numpy(std::move(what)), to_numpy(std::move(who)));
      }, "machines"_a)
      .def("evictable", [](const View& self, int precedence) {
        std::vector<std::int64_t> amounts;
        self.evictable(precedence, amounts);
        return to_numpy(std::move(amounts), {static_cast<std::size_t>(self.machines()),
                                             static_cast<std::size_t>(self.dimensions())});
      }, "precedence"_a);
}

void bind_snapshot(nb::module_& module) {
  using argosy::Snapshot;
  nb::class_<Snapshot, CellView> type(module, "CellSnapshot");
  bind_holders(type);
  type.def("most_precedence", [](const Snapshot& self, std::int64_t scheduler) {
        require(self.knows_scheduler(scheduler), "unknown scheduler number");
        return self.usage(scheduler).most_precedence;
      }, "scheduler"_a)
      .def("usage", [](const Snapshot& self, std::int64_t scheduler) {
        require(self.knows_scheduler(scheduler), "unknown scheduler number");
        const Snapshot::Usage& of = self.usage(scheduler);
        return std::tuple(amounts_list(self, of.used), of.claims, of.jobs);
      }, "scheduler"_a);
}

}  // namespace

void bind_cell(nb::module_& module) {
  bind_view(module);
  bind_snapshot(module);
  nb::class_<Cell, CellView> type(module, "Cell");
  type.def("__init__",
           [](Cell* self, int dimensions, std::int32_t sets) {
             require(dimensions >= 1 && dimensions <= argosy::most_dimensions,
                     "a cell has 1 to 8 dimensions");
             require(sets >= 0 && sets <= argosy::most_sets, "a cell has 0 to 2^24 node sets");
             new (self) Cell(dimensions, sets);
           },
           "dimensions"_a, "sets"_a)
      .def("snapshot", [](const Cell& self) { return argosy::Snapshot(self); });
  bind_find(type, false);
  bind_changes(type);
  bind_commit(type);
  bind_claims(type);
  bind_holders(type);
}
