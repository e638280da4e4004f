// argosy._core: CellView, all that can be read of a cell.
//
// A snapshot never changes, so searching one lets go of the global interpreter lock. Everything that
// comes from Python is checked here; what is wrong becomes a ValueError or TypeError.
#include <nanobind/stl/pair.h>

#include <array>

#include "cell/draw.hpp"
#include "cell/reading.hpp"
#include "cell/search.hpp"

namespace {

namespace nb = nanobind;
using namespace nb::literals;
using namespace argosy;

std::int32_t checked_set(const CellView& view, std::int64_t set) {
  require(set >= 0 && set < view.groups().sets(), "there is no such node set");
  return static_cast<std::int32_t>(set);
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

// Machines, versions, looks, looks with room, looks without by reason; then, only where there is any, the
// nearest miss (machine, dimension, what lacks, whether it could ever fit) and the best two scores.
using FoundTuple =
    std::tuple<OutArray<std::int32_t>, OutArray<std::uint32_t>, std::int64_t, std::int64_t,
               std::vector<std::int64_t>,
               std::optional<std::tuple<std::int32_t, int, std::int64_t, bool>>,
               std::optional<std::tuple<std::int64_t, std::int32_t, std::int64_t>>>;

// The query asks for that shape. The request is copied: interning may move the table while the lock is let go.
void ask_for(const CellView& view, std::int32_t shape, Amounts& request, argosy::Query& query) {
  std::copy_n(view.request(shape), view.dimensions(), request.begin());
  query.request = request.data();
  if (!view.is_within_reach(shape)) query.beyond = view.beyond(shape).amount;
}

argosy::Found searched(const CellView& view, bool is_frozen, const argosy::Query& query, Random& random) {
  if (!is_frozen) return argosy::Search(view.columns(), query, random).run();
  Random stream = random;
  argosy::Found found;
  {
    nb::gil_scoped_release unlocked;
    found = argosy::Search(view.columns(), query, stream).run();
  }
  random = stream;
  return found;
}

FoundTuple told(const CellView& view, const argosy::Query& query, argosy::Found found) {
  std::vector<std::int64_t> ruled_out(found.ruled_out.begin(),
                                      found.ruled_out.begin() + view.dimensions() +
                                          (query.beyond > 0 ? 3 : 2));
  FoundTuple answer{to_numpy(std::move(found.machines)), to_numpy(std::move(found.versions)),
                    found.looked_at, found.feasible, std::move(ruled_out), {}, {}};
  if (found.miss_machine >= 0) {
    std::get<5>(answer) = {found.miss_machine, found.miss_dimension, found.miss_lacking,
                           found.could_fit};
  }
  if (found.has_score) std::get<6>(answer) = {found.score, found.second, found.second_score};
  return answer;
}

FoundTuple find(const CellView& view, bool is_frozen, std::int64_t shape, std::int64_t count, argosy::Rule rule,
                Random& random, const std::optional<Array<std::uint64_t>>& within,
                const std::optional<Array<std::int64_t>>& keys, std::int64_t step, bool needs_room,
                std::int32_t per_machine, const std::optional<Array<std::int64_t>>& steps,
                const std::optional<Table>& adjust) {
  require(view.shapes().knows(shape), "there is no such shape");
  require(count >= 0 && count <= (1 << 24), "a search is for 0 to 2^24 tasks");
  require(per_machine >= 0, "per_machine must not be negative");
  argosy::Query query;
  query.rule = rule;
  query.count = count;
  query.step = step;
  query.needs_room = needs_room;
  query.per_machine = per_machine;
  require(needs_room || (query.rule != argosy::Rule::best && query.rule != argosy::Rule::worst),
          "best and worst fit need room");

  Amounts request{};
  ask_for(view, static_cast<std::int32_t>(shape), request, query);
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

  return told(view, query, searched(view, is_frozen, query, random));
}

// For tasks that may go anywhere: machines and versions alone, if there is a machine for each of them, and
// otherwise what `find` says.
nb::object find_plainly(const CellView& view, bool is_frozen, std::int64_t shape, std::int64_t count,
                        argosy::Rule rule, Random& random) {
  require(view.shapes().knows(shape), "there is no such shape");
  require(count >= 0 && count <= (1 << 24), "a search is for 0 to 2^24 tasks");
  require(rule != argosy::Rule::smallest_key, "smallest_key needs one key per machine");
  argosy::Query query;
  query.rule = rule;
  query.count = count;
  Amounts request{};
  ask_for(view, static_cast<std::int32_t>(shape), request, query);
  argosy::Found found = searched(view, is_frozen, query, random);
  if (static_cast<std::int64_t>(found.machines.size()) < count) {
    return nb::cast(told(view, query, std::move(found)));
  }
  return nb::make_tuple(to_numpy(std::move(found.machines)), to_numpy(std::move(found.versions)));
}

template <class Class>
void define_find(Class& type, bool is_frozen) {
  type.def(
      "find_plainly",
      [is_frozen](const CellView& self, std::int64_t shape, std::int64_t count, argosy::Rule rule,
                  Random& random) { return find_plainly(self, is_frozen, shape, count, rule, random); },
      "shape"_a, "count"_a, "rule"_a, "random"_a);
  type.def(
      "find",
      [is_frozen](const CellView& self, std::int64_t shape, std::int64_t count, argosy::Rule rule,
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

// Machines, versions, free amounts, scores, how many were drawn, and those ruled out by dimension and
// then for being down.
using DrawnTuple = std::tuple<OutArray<std::int32_t>, OutArray<std::uint32_t>, OutArray<std::int64_t>,
                              OutArray<std::int64_t>, std::int64_t, std::vector<std::int64_t>>;

DrawnTuple draw(MachineDraw& self, const CellView& view, const std::vector<std::int64_t>& request,
                std::int64_t size, Random& random, std::int64_t most, std::int64_t rounds, bool is_cut,
                const std::optional<Array<std::int32_t>>& reserved, const std::optional<Table>& amounts) {
  const auto width = static_cast<std::size_t>(view.dimensions());
  require(request.size() == width, "a request has one amount per dimension");
  require(size >= 0 && most >= 0 && rounds >= 0, "size, most and rounds must not be negative");
  require(self.most() < view.machines(), "members must be machines of the view");
  DrawQuery query;
  for (std::size_t d = 0; d < width; ++d) {
    require(request[d] >= 0 && request[d] <= largest_amount, "amounts are from 0 to 2^53");
    query.request[d] = request[d];
  }
  query.size = size;
  query.most = most;
  query.rounds = rounds;
  query.is_cut = is_cut;
  const Contiguous<std::int32_t> machines(reserved);
  require(reserved.has_value() == amounts.has_value(), "reservations are machines and amounts");
  if (reserved) {
    require(amounts->shape(0) == machines.size() && amounts->shape(1) == width,
            "amounts have a row per machine and a column per dimension");
    for (std::size_t i = 1; i < machines.size(); ++i) {
      require(machines.data()[i - 1] < machines.data()[i], "reserved machines are in ascending order");
    }
    query.reserved = machines.span();
    query.reserved_amounts = amounts->data();
  }
  Drawn found = self.run(view, query, random);
  const std::size_t rows = found.machines.size();
  std::vector<std::int64_t> ruled_out(found.ruled_out.begin(), found.ruled_out.begin() + view.dimensions());
  ruled_out.push_back(found.ruled_out[most_dimensions]);
  return {to_numpy(std::move(found.machines)), to_numpy(std::move(found.versions)),
          to_numpy(std::move(found.free), {rows, width}), to_numpy(std::move(found.scores)), found.drawn,
          std::move(ruled_out)};
}

}  // namespace

void argosy::bind_find(nb::class_<Cell, CellView>& type) { define_find(type, false); }

void argosy::bind_view(nb::module_& module) {
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
      .def("sequences", [](const CellView& self, const std::optional<Array<std::int32_t>>& machines) {
        return to_numpy(gather<std::uint32_t>(
            self, machines, 1, [&](std::int32_t m, std::vector<std::uint32_t>& out) {
              out.push_back(self.columns().sequence(m));
            }));
      }, "machines"_a.noconvert() = nb::none())
      .def("used_total", [](const CellView& self) { return amounts_list(self, self.used_total()); })
      .def("capacity_total",
           [](const CellView& self) { return amounts_list(self, self.capacity_total()); })
      .def("shape",
           [](const CellView& self, const std::vector<std::int64_t>& request,
              std::vector<std::int32_t> tags, std::int64_t precedence,
              const std::vector<std::pair<std::int32_t, std::int64_t>>& beyond) {
             std::vector<argosy::Beyond> apart;
             for (const auto& [resource, amount] : beyond) apart.push_back({resource, amount});
             return self.shapes().intern(request, std::move(apart), std::move(tags), precedence);
           },
           "request"_a, "tags"_a, "precedence"_a, "beyond"_a = nb::list())
      .def("shape_beyond",
           [](const CellView& self, std::int64_t shape) {
             require(self.shapes().knows(shape), "there is no such shape");
             const auto number = static_cast<std::int32_t>(shape);
             if (self.is_within_reach(number)) return std::tuple(std::int32_t{-1}, std::int64_t{0});
             const auto [resource, amount] = self.beyond(number);
             return std::tuple(resource, amount);
           },
           "shape"_a)
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
      .def("in_sets_with_tag", [](const CellView& self, std::int32_t tag,
                                  const Array<std::int32_t>& sets, std::int64_t least,
                                  std::int64_t most) {
        require(tag >= 0, "tag numbers must not be negative");
        const Contiguous<std::int32_t> asked(sets);
        for (const std::int32_t set : asked.span()) checked_set(self, set);
        return to_numpy(self.in_sets_with_tag(tag, asked.span(), least, most));
      }, "tag"_a, "sets"_a.noconvert(), "least"_a, "most"_a);
  define_find(type, true);
  nb::class_<MachineDraw>(module, "MachineDraw")
      .def("__init__",
           [](MachineDraw* self, const Array<std::int32_t>& members) {
             const Contiguous<std::int32_t> listed(members);
             for (const std::int32_t machine : listed.span()) {
               require(machine >= 0, "machine numbers must not be negative");
             }
             new (self) MachineDraw({listed.span().begin(), listed.span().end()});
           },
           "members"_a.noconvert())
      .def_prop_ro("members", &MachineDraw::members)
      .def("draw", &draw, "view"_a, "request"_a, "size"_a, "random"_a, "most"_a = 0, "rounds"_a = 0,
           "is_cut"_a = false, "reserved"_a.noconvert() = nb::none(),
           "amounts"_a.noconvert() = nb::none());
}
