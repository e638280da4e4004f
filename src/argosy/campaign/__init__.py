"""Campaigns: random scenarios with faults, for any engine or fleet.

Charter: draw scenarios from a seed, run each in a process that can be killed, judge its journal by rules
that share no code with the cell, the host or the engines, and shrink what fails to a small scenario.

    draw        a scenario from a seed: `cells`, `jobs`, `fleets`, `settings`, `surroundings`
    worlds      where a scenario can be run; a world gives back a journal
    recount     where every task is, recounted from a journal's records
    rules       what must hold at every moment of a run; `waiting`: what must hold at its end
    trial       one scenario, run and judged
    processes   worker processes with a limit of time
    shrink      a smaller scenario that fails in the same way
    campaign    all of it
"""
