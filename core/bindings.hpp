#pragma once

#include <nanobind/nanobind.h>

void bind_random(nanobind::module_& module);
void bind_budgets(nanobind::module_& module);
void bind_cell(nanobind::module_& module);
void bind_flow(nanobind::module_& module);
void bind_roster(nanobind::module_& module);
void bind_waits(nanobind::module_& module);
void bind_place(nanobind::module_& module);
void bind_board(nanobind::module_& module);
void bind_runtime(nanobind::module_& module);
void bind_replays(nanobind::module_& module);
