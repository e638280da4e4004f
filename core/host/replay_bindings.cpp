// argosy._core: JournalReader.
#include <string_view>

#include "bindings.hpp"
#include "host/replaying.hpp"

namespace nb = nanobind;

void bind_replays(nb::module_& module) {
  using namespace argosy;
  nb::class_<JournalReader>(module, "JournalReader")
      .def(
          "__init__",
          [](JournalReader* self, TaskRuntime& runtime, LineBuffer& written, const nb::bytes& journal,
             bool finished) {
            if (!runtime.is_replayed()) throw nb::value_error("only a replay follows a journal");
            new (self) JournalReader(runtime, written, {journal.c_str(), journal.size()}, finished);
          },
          nb::arg("runtime"), nb::arg("written"), nb::arg("journal"), nb::arg("finished"),
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
      .def_prop_ro("position", &JournalReader::position)
      .def_prop_ro("inputs", &JournalReader::inputs)
      // An event, a line for the caller, false at a difference, or none at the end.
      .def("step", [](JournalReader& self) -> nb::object {
        Due due;
        switch (self.step(due)) {
          case JournalReader::Step::event:
            return nb::make_tuple(due.kind, due.at, due.a, due.b);
          case JournalReader::Step::line: {
            const std::string_view line = self.line();
            return nb::bytes(line.data(), line.size());
          }
          case JournalReader::Step::differs:
            return nb::bool_(false);
          case JournalReader::Step::end:
            break;
        }
        return nb::none();
      });
}
