// argosy._core: Cell, what changes, and CellSnapshot, what it was.
//
// The global interpreter lock is the live cell's lock: its operations are short and keep it. Everything
// that comes from Python is checked here or in the cell; what is wrong becomes a ValueError or TypeError
// and leaves the cell sound.
#include "cell/answers.hpp"
#include "cell/query.hpp"
#include "cell/reading.hpp"
#include "cell/snapshot.hpp"

namespace {

namespace nb = nanobind;
using namespace nb::literals;
using namespace argosy;

template <class T>
using Given = std::optional<Array<T>>;
using Choices = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The arrays of one transaction, kept alive while it is judged.
struct Asked {
  Asked(const Given<std::int64_t>& task_array, const Given<std::int32_t>& machine_array,
        const Given<std::int32_t>& shape_array, const Given<std::uint32_t>& version_array,
        const Given<std::int32_t>& gang_array, const std::optional<Choices>& alternatives,
        const Given<std::int64_t>& confirm_array, const Given<std::int64_t>& forget_array,
        const Given<std::int64_t>& release_array)
      : tasks(task_array),
        machines(machine_array),
        shapes(shape_array),
        versions(version_array),
        gangs(gang_array),
        confirms(confirm_array),
        forgets(forget_array),
        releases(release_array),
        settled{confirms.span(), forgets.span(), releases.span()} {
    const std::size_t count = tasks.size();
    require(machines.size() == count && shapes.size() == count && versions.size() == count &&
                (!gang_array || gangs.size() == count) &&
                (!alternatives || alternatives->shape(0) == count),
            "the arrays of claims differ in length");
    rows = {count, tasks.data(), machines.data(), shapes.data(), versions.data(),
            gang_array && count > 0 ? gangs.data() : nullptr};
    if (alternatives && count > 0) {
      rows.alternatives = alternatives->data();
      rows.width = alternatives->shape(1);
    }
  }

  Contiguous<std::int64_t> tasks;
  Contiguous<std::int32_t> machines;
  Contiguous<std::int32_t> shapes;
  Contiguous<std::uint32_t> versions;
  Contiguous<std::int32_t> gangs;
  Contiguous<std::int64_t> confirms;
  Contiguous<std::int64_t> forgets;
  Contiguous<std::int64_t> releases;
  Settled settled;
  ClaimRows rows;
};

OutcomeTuple commit(Cell& cell, const Asked& asked, const Terms& terms, bool is_begun) {
  cell.check(asked.rows, asked.settled, terms);
  if (!is_begun) cell.begin();
  return answer(cell, cell.commit(asked.rows, asked.settled, terms), asked.rows.width > 0);
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
      .def("relabel",
           [](Cell& self, std::int32_t machine, const std::vector<std::int32_t>& sets,
              const std::vector<std::int32_t>& attributes) {
             return self.relabel(machine, sets, attributes);
           },
           "machine"_a, "sets"_a, "attributes"_a)
      .def("mark",
           [](Cell& self, std::int32_t attribute, const Given<std::uint64_t>& bitmap, bool is_given) {
             const Contiguous<std::uint64_t> bits(bitmap);
             self.mark(attribute, bits.span(), is_given);
           },
           "attribute"_a, "bitmap"_a.noconvert(), "is_given"_a)
      .def("grow", &Cell::grow, "resource"_a)
      .def("set_devices", &Cell::set_devices, "dimension"_a)
      .def("claim_devices", &Cell::claim_devices, "task"_a)
      .def("add_sets", &Cell::add_sets, "count"_a)
      .def("capacity_ever",
           [](const Cell& self) { return amounts_list(self, self.capacity_ever()); });
}

void bind_commit(nb::class_<Cell, CellView>& type) {
  type.def("check",
           [](const Cell& self, std::int32_t scheduler, const Given<std::int64_t>& tasks,
              const Given<std::int32_t>& machines, const Given<std::int32_t>& shapes,
              const Given<std::uint32_t>& versions, const Given<std::int32_t>& gangs,
              const std::optional<Choices>& alternatives, const Given<std::int64_t>& confirms,
              const Given<std::int64_t>& forgets, const Given<std::int64_t>& releases) {
             const Asked asked(tasks, machines, shapes, versions, gangs, alternatives, confirms,
                               forgets, releases);
             Terms terms;
             terms.scheduler = scheduler;
             self.check(asked.rows, asked.settled, terms);
           },
           "scheduler"_a, "tasks"_a.noconvert().none(), "machines"_a.noconvert().none(),
           "shapes"_a.noconvert().none(), "versions"_a.noconvert().none(),
           "gangs"_a.noconvert().none(), "alternatives"_a.noconvert().none(),
           "confirms"_a.noconvert().none(), "forgets"_a.noconvert().none(),
           "releases"_a.noconvert().none())
      .def("commit",
           [](Cell& self, std::int32_t scheduler, const Given<std::int64_t>& tasks,
              const Given<std::int32_t>& machines, const Given<std::int32_t>& shapes,
              const Given<std::uint32_t>& versions, const Given<std::int32_t>& gangs,
              const std::optional<Choices>& alternatives, const Given<std::int64_t>& confirms,
              const Given<std::int64_t>& forgets, const Given<std::int64_t>& releases, bool atomic,
              bool coarse, bool preempt, bool move, bool assume, bool by_claims, bool is_begun) {
             const Asked asked(tasks, machines, shapes, versions, gangs, alternatives, confirms,
                               forgets, releases);
             return commit(self, asked, {scheduler, atomic, coarse, preempt, move, assume, by_claims},
                           is_begun);
           },
           "scheduler"_a, "tasks"_a.noconvert().none(), "machines"_a.noconvert().none(),
           "shapes"_a.noconvert().none(), "versions"_a.noconvert().none(),
           "gangs"_a.noconvert().none(), "alternatives"_a.noconvert().none(),
           "confirms"_a.noconvert().none(), "forgets"_a.noconvert().none(),
           "releases"_a.noconvert().none(), "atomic"_a, "coarse"_a, "preempt"_a, "move"_a, "assume"_a,
           "by_claims"_a, "is_begun"_a)
      .def("end",
           [](Cell& self, const Array<std::int64_t>& tasks) {
             return self.end(Contiguous<std::int64_t>(tasks).span());
           },
           "tasks"_a.noconvert());
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
             limit.fill(unlimited);
             for (std::size_t d = 0; d < resources.size(); ++d) {
               require(resources[d] >= 0, "limits must not be negative");
               limit[d] = resources[d];
             }
             self.set_limits(static_cast<std::int32_t>(scheduler), limit,
                             jobs < 0 ? unlimited : jobs, precedence);
           },
           "scheduler"_a, "resources"_a, "jobs"_a, "precedence"_a)
      .def("most_precedence", [](const Cell& self, std::int64_t scheduler) {
        require(self.knows_scheduler(scheduler), "unknown scheduler number");
        return self.scheduler(static_cast<std::int32_t>(scheduler)).most_precedence;
      }, "scheduler"_a)
      .def("usage", [](const Cell& self, std::int64_t scheduler) {
        require(self.knows_scheduler(scheduler), "unknown scheduler number");
        const Scheduler& of = self.scheduler(static_cast<std::int32_t>(scheduler));
        return std::tuple(amounts_list(self, of.used), of.claims, of.jobs.size());
      }, "scheduler"_a)
      .def_prop_ro("claims", [](const Cell& self) { return self.claims().size(); })
      .def("claim", [](const Cell& self, std::int64_t task) {
        require(task >= 0, "task numbers must not be negative");
        return std::tuple(self.claim_machine(task), self.claim_shape(task),
                          self.claim_scheduler(task), self.claim_sequence(task));
      }, "task"_a)
      .def("is_assumed", [](const Cell& self, std::int64_t task) {
        require(task >= 0, "task numbers must not be negative");
        const Claim* claim = self.claims().of(task);
        return claim != nullptr && claim->assumed;
      }, "task"_a)
      .def("assumed", [](const Cell& self) { return to_numpy(self.assumed()); })
      .def("claims_on", [](const Cell& self, std::int64_t machine) {
        std::vector<std::int64_t> tasks;
        self.claims_on(checked_machine(self, machine), tasks);
        return to_numpy(std::move(tasks));
      }, "machine"_a)
      .def("set_audited", &Cell::set_audited, "audited"_a)
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
      }, "precedence"_a)
      .def("victims_for", [](const View& self, std::int32_t shape, int precedence) {
        require(self.shapes().knows(shape), "unknown shape");
        std::vector<std::int64_t> counts;
        self.victims_for(shape, precedence, counts);
        return to_numpy(std::move(counts));
      }, "shape"_a, "precedence"_a)
      .def_prop_ro("lowest_precedence",
                   [](const View& self) { return self.shapes().lowest_precedence(); });
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

void bind_enums(nb::module_& module) {
  using argosy::Rule;
  using argosy::Why;
  nb::enum_<Why>(module, "Why", nb::is_arithmetic())
      .value("NONE", Why::none)
      .value("NO_ROOM", Why::no_room)
      .value("STALE", Why::stale)
      .value("MACHINE_UNKNOWN", Why::machine_unknown)
      .value("MACHINE_GONE", Why::machine_gone)
      .value("MACHINE_DRAINING", Why::machine_draining)
      .value("RESOURCE_LIMIT", Why::resource_limit)
      .value("JOB_LIMIT", Why::job_limit)
      .value("DUPLICATE", Why::duplicate)
      .value("TOGETHER", Why::together)
      .value("NOT_CLAIMED", Why::not_claimed)
      .value("NOT_YOURS", Why::not_yours)
      .value("FILTERED", Why::filtered)
      .value("PREEMPTED", Why::preempted)
      .value("ATTEMPTS", Why::attempts)
      .value("SCHEDULER_LOST", Why::scheduler_lost)
      .value("PRECEDENCE_LIMIT", Why::precedence_limit)
      .value("ENDED", Why::ended)
      .value("QUEUE_FULL", Why::queue_full)
      .value("NOT_ASSUMED", Why::not_assumed)
      .value("MOVED", Why::moved)
      .value("RELEASED", Why::released)
      .value("CANCELLED", Why::cancelled)
      .value("FAILED", Why::failed)
      .value("NOT_OFFERED", Why::not_offered)
      .value("BEHIND", Why::behind);
  nb::enum_<Rule>(module, "Rule", nb::is_arithmetic())
      .value("FIRST", Rule::first)
      .value("BEST", Rule::best)
      .value("WORST", Rule::worst)
      .value("SMALLEST_KEY", Rule::smallest_key)
      .value("SAMPLE", Rule::sample);
}

}  // namespace

void bind_cell(nb::module_& module) {
  bind_enums(module);
  bind_view(module);
  bind_snapshot(module);
  nb::exception<Unsound>(module, "AuditFailure", PyExc_AssertionError);
  nb::class_<Cell, CellView> type(module, "Cell");
  type.def("__init__",
           [](Cell* self, int dimensions, std::int32_t sets) {
             require(dimensions >= 1 && dimensions <= most_dimensions,
                     "a cell has 1 to 8 dimensions");
             require(sets >= 0 && sets <= most_sets, "a cell has 0 to 2^24 node sets");
             new (self) Cell(dimensions, sets);
           },
           "dimensions"_a, "sets"_a)
      .def("snapshot", [](const Cell& self) { return argosy::Snapshot(self); })
      .def_prop_ro("transaction", &Cell::transaction)
      .def("fits_since",
           [](const Cell& self, std::uint64_t transaction, std::int64_t shape, int bound,
              const Given<std::uint64_t>& within) {
             require(self.shapes().knows(shape), "unknown shape number");
             const Contiguous<std::uint64_t> bits(within);
             if (within && bits.size() == 0) return false;
             return self.fits_since(transaction, static_cast<std::int32_t>(shape), bound, bits.span());
           },
           "transaction"_a, "shape"_a, "bound"_a, "within"_a.noconvert() = nb::none());
  bind_find(type);
  bind_changes(type);
  bind_commit(type);
  bind_claims(type);
  bind_holders(type);
}
