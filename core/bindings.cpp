// The Python module argosy._core: one function per folder of the core.
#include "bindings.hpp"

NB_MODULE(_core, module) {
  module.doc() =
      "Argosy's native core: random streams, budgets, the cell's columns, flow, the runtime of tasks.";
  bind_random(module);
  bind_budgets(module);
  bind_cell(module);
  bind_flow(module);
  bind_roster(module);
  bind_waits(module);
  bind_place(module);
  bind_board(module);
  bind_runtime(module);
  bind_replays(module);
}
